"""The conversion of floats to bytes as C, for a host that feeds the hardware."""

from collections.abc import Iterable

from benn_fpga.raw import Inputs

__all__ = ["c_text"]

_FUNCTION = """\
/* The byte of value x, number n of its frame (channel fastest, then column, then row).
 *
 * IEEE double precision, rounded after every operation, as the model was trained: volatile keeps a
 * compiler from fusing two of them, but x87 arithmetic (32-bit x86 without SSE2) is not exact.
 * What is not a number becomes 0. */
static inline uint8_t benn_to_byte(double x, size_t n)
{{
    const size_t range = {range};
    volatile double half = x / 2, low = benn_low[range] / 2, high = benn_high[range] / 2;
    volatile double scaled;
    if (!(half > low))
        return 0;
    if (half >= high)
        return 255;
    scaled = (half - low) / (high - low);
    scaled = scaled * 255;
    return (uint8_t)(scaled + 0.5);
}}
"""


def c_text(inputs: Inputs, shape: tuple[int, ...]) -> str:
    """C99 that has the ranges of ``inputs`` and ``benn_to_byte(x, n)``, equal to
    :meth:`~benn_fpga.raw.Inputs.to_bytes` for value ``n`` of a frame of ``shape``.

    It needs ``<stddef.h>`` and ``<stdint.h>``, and is a comment alone if there is no range.
    """
    if not inputs.has_range:
        return f"/* The model {inputs.no_range}. */\n"
    return "\n".join([
        f"/* Floats become bytes by the range of the training data, {_words(inputs)}. */",
        _table("benn_low", inputs.low.tolist()),
        _table("benn_high", inputs.high.tolist()),
        "", _FUNCTION.format(range="n / {} % {}".format(*inputs.range_index(shape)))])


def _words(inputs: Inputs) -> str:
    return "one for all" if inputs.scale == "all" else f"one for each {inputs.scale}"


def _table(name: str, numbers: Iterable[float]) -> str:
    """An array of literals of 17 digits, which are exact."""
    items = [f"{number:.17g}" for number in numbers]
    return "\n".join([f"static const double {name}[{len(items)}] = {{",
                      *(f"    {item}," for item in items), "};"])
