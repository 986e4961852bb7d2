"""Where a design lies on its device, as a picture coloured by engine."""

import re
from collections import Counter, defaultdict
from html import escape

from benn_fpga.plan import names
from benn_fpga.synthesis.owners import HARNESS

__all__ = ["draw"]

_TILE = 8  # pixels
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7",
            "#9c755f", "#86bcb6", "#d37295", "#a0cbe8", "#ffbe7d", "#8cd17d", "#b6992d", "#499894")
_SHARED = "#555555"
_BEL = re.compile(r"X(\d+)/?Y(\d+)")


def draw(module, owners, title):
    """The text of an SVG file, of a netlist that nextpnr has placed; a tile has the colour of the
    engine that most of its cells belong to, and what all share is grey."""
    tiles = defaultdict(Counter)
    for name, cell in module["cells"].items():
        at = _BEL.search(cell["attributes"].get("NEXTPNR_BEL", ""))
        if at and not name.startswith((f"{HARNESS}.", "$")):
            tiles[int(at[1]), int(at[2])][owners.of(name).engine] += 1
    if not tiles:
        return None
    wide, high = (max(tile[axis] for tile in tiles) + 2 for axis in (0, 1))
    most = max(sum(tile.values()) for tile in tiles.values())
    engines = sorted({engine for tile in tiles.values() for engine in tile},
                     key=lambda engine: (engine is None, engine))
    rows = [-(-_TILE * high // 20) * 20 + 40 + 18 * n for n in range(len(engines))]
    width, height = max(_TILE * wide, 320), rows[-1] + 18
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="4" y="14">{escape(title)}</text>',
        f'<rect y="20" width="{_TILE * wide}" height="{_TILE * high}" fill="#f4f4f4"/>',
    ]
    for (x, y), cells in sorted(tiles.items()):
        engine = cells.most_common(1)[0][0]
        strength = 0.35 + 0.65 * sum(cells.values()) / most
        lines.append(f'<rect x="{_TILE * x}" y="{20 + _TILE * y}" width="{_TILE - 1}" '
                     f'height="{_TILE - 1}" fill="{_colour(engine)}" '
                     f'fill-opacity="{strength:.2f}"/>')
    for engine, y in zip(engines, rows, strict=True):
        text = "shared by all engines" if engine is None else names.engine(engine)
        cells = sum(tile[engine] for tile in tiles.values())
        lines += [f'<rect x="4" y="{y - 10}" width="12" height="12" fill="{_colour(engine)}"/>',
                  f'<text x="22" y="{y}">{text}: {cells:,} cells</text>']
    return "\n".join([*lines, "</svg>", ""])


def _colour(engine):
    return _SHARED if engine is None else _COLOURS[engine % len(_COLOURS)]
