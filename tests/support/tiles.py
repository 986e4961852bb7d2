"""What hw.tiles.Tiles must send."""

import numpy as np

from benn_fpga import bits

__all__ = ["tile_words"]


def tile_words(layer, x, lanes, width):
    """The words of images ``x`` in windows that do not overlap: window by window, then sorted as
    the pixels come."""
    words, found = layer.channels // lanes, []
    codes = np.array(bits.stream_words(x.reshape(-1, lanes), width), object)
    codes = codes.reshape(*x.shape[:3], words)
    for frame, row, column in np.ndindex(len(x), *layer.grid):
        starts = row * layer.stride - layer.padding, column * layer.stride - layer.padding
        rows, columns = (range(max(0, start), min(size, start + kernel)) for start, size, kernel in
                         zip(starts, layer.shape, layer.kernel, strict=False))
        found += [((frame, y, x_, n), {
            "data": codes[frame, y, x_, n],
            "first": int((y, x_) == (rows[0], columns[0])),
            "last": int((y, x_) == (rows[-1], columns[-1])),
            "enters": int(x_ == columns[0]), "leaves": int(x_ == columns[-1]),
            "partial": column * words + n}) for y in rows for x_ in columns for n in range(words)]
    return [payload for _, payload in sorted(found, key=lambda item: item[0])]
