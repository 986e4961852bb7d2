"""What somebody gives a model, floats or bytes, as the raw values that it takes."""

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benn_fpga.errors import BennError, warn
from benn_fpga.golden import check_input
from benn_fpga.raw import FEW_VALUES, Inputs

if TYPE_CHECKING:
    from benn_fpga.spec import Ensemble

__all__ = ["to_raw"]

_MANY = 0.05  # share of values outside their range that is no exception


def to_raw(model: "Ensemble", x: npt.ArrayLike) -> tuple[np.ndarray, str]:
    """Raw values (frames, values) of ``x``, and whether those were "floats" or "bytes".

    Floats become bytes by the range of the model. Integers are bytes already; so are floats that
    are whole numbers, for a model that was trained on bytes. What seems to be a mistake but is
    possible gives a :class:`~benn_fpga.errors.BennWarning`.

    Parameters
    ----------
    x : (frames, *shape of a frame), (frames, values), or (frames, rows, columns) of one channel
    """
    x = np.asarray(x)
    if x.dtype.kind not in "iuf":
        raise BennError(f"Inputs must be floats or integers, not {x.dtype}")
    x = _shaped(x, model.encoder.shape)
    if x.dtype.kind != "f":
        _check_integers(x, model)
        return check_input(model.encoder, x), "bytes"
    if model.inputs.scale == "bytes":
        return check_input(model.encoder, _whole(x, model.encoder.bits)), "bytes"
    raw = model.inputs.to_bytes(x)
    _warn_outside(x, model.inputs)
    return raw.reshape(len(x), -1), "floats"


def _shaped(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``x`` as (frames, *shape)."""
    flat, grey = (math.prod(shape),), shape[:2] if shape[2:] == (1,) else shape
    if x.ndim and x.shape[1:] in (shape, flat, grey):
        if not len(x):
            raise BennError("Inputs must be at least one frame, not none")
        return x.reshape(len(x), *shape)
    cure = ""
    if len(shape) == 3 and x.shape[1:] == (shape[2], *shape[:2]):
        cure = "; the channels come last: give x.transpose(0, 2, 3, 1)"
    elif x.shape in (shape, grey):
        cure = "; for one frame give x[None]"
    raise BennError(f"Inputs must have shape (frames, {', '.join(map(str, shape))}), "
                    f"not {x.shape}{cure}")


def _whole(x: np.ndarray, bits: int) -> np.ndarray:
    """Floats, which are whole numbers, as integers."""
    top = (1 << bits) - 1
    wrong = ~((x == np.floor(x)) & (x >= 0) & (x <= top))
    if wrong.any():
        cure = "scale them as those of training were"
        if x.min() >= 0 and x.max() <= 1:
            cure = f"multiply values in 0..1 by the largest of training, at most {top}, and round"
        raise BennError(f"Inputs must be whole numbers in 0..{top}, not {x[wrong][0]}: the model "
                        f"was trained on bytes; {cure}")
    warn("the inputs are floats, but the model was trained on bytes: they are whole numbers and "
          "are taken as bytes")
    return x.astype(np.uint8)


def _check_integers(x: np.ndarray, model: "Ensemble") -> None:
    """Raise, or warn, if integers seem to be what the floats of training were."""
    inputs = model.inputs
    if not inputs.has_range:
        return
    if x.min() < 0 or x.max() > 255:
        raise BennError(f"Inputs must be bytes in 0..255 if they are integers, but range from "
                        f"{x.min()} to {x.max()}; if they are what the model was trained on, "
                        f"give floats: x.astype(float)")
    low, high = inputs.bounds(x.shape[1:])
    narrow = np.broadcast_to(high / 2 - low / 2 < FEW_VALUES / 2, x.shape[1:])
    if 2 * narrow.sum() < narrow.size:
        return
    values = x.astype(np.int64)
    values = np.where(values > 127, values - 256, values) if x.dtype == np.uint8 else values
    inside = (np.floor(low) <= values) & (values <= np.ceil(high))
    if inside[:, narrow].mean() > 1 - _MANY:
        warn(f"the inputs are integers, taken as bytes, but lie in the range of the floats of "
              f"training ({low.min():g} to {high.max():g}); if they were floats that were cast, "
              f"give the floats")


def _warn_outside(x: np.ndarray, inputs: Inputs) -> None:
    """Warn if many floats are farther outside the range than it is wide."""
    low, high = inputs.bounds(x.shape[1:])
    with np.errstate(over="ignore"):
        far = (x < low - (high - low)) | (x > high + (high - low))
    share = inputs.share_by_range(far)
    worst = int(share.argmax())
    if share[worst] < _MANY:
        return
    is_bytes = ((x == np.floor(x)) & (x >= 0) & (x <= 255)).all() and x.max() >= FEW_VALUES
    cure = "; if they are bytes, give integers: x.astype(np.uint8)" if is_bytes else ""
    more = f", and {(share >= _MANY).sum() - 1} more like it" if (share >= _MANY).sum() > 1 else ""
    warn(f"{100 * share[worst]:.0f} % of {inputs.range_name(worst)} lie far outside the range of "
          f"training, {inputs.low[worst]:g} to {inputs.high[worst]:g}{more}: they are clipped to "
          f"it{cure}")
