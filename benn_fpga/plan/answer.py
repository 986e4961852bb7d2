"""The answer record: what the hardware says to a frame, field by field, little-endian."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np
import numpy.typing as npt

from benn_fpga.golden import Result

__all__ = ["ERROR", "ERROR_BIT", "FLAGS", "REJECT", "REJECT_BIT", "Field", "answer_beats",
           "answer_bits", "answer_fields", "answer_keep", "answer_size", "decode", "describe",
           "flags_of", "items_per_word", "pack", "records", "totals_per_word", "word_bits"]

ERROR_BIT = 0  # of the flags: the frame was cut short or too long
ERROR = 1 << ERROR_BIT
REJECT_BIT = 1  # the margin is below that of the model: the answer means "unknown"
REJECT = 1 << REJECT_BIT
FLAGS = {  # by name: the bit, and what it says
    "error": (ERROR_BIT, "frame error"),
    "reject": (REJECT_BIT, "rejected for its margin"),
}


@dataclass(frozen=True)
class Field:
    """A number of the record, or ``count`` numbers one after another; ``text`` explains it."""

    name: str
    bits: int
    signed: bool
    text: str
    count: int | None = None


def answer_fields(classes: int) -> tuple[Field, ...]:
    """The fields of a record in their order; each begins where the one before ends."""
    flags = ", ".join(f"bit {bit}: {text}" for bit, text in FLAGS.values())
    return (
        Field("class_index", 16, False, "a tie goes to the lowest class"),
        Field("flags", 16, False, flags),
        Field("margin", 32, True, "total of the class minus that of the runner-up"),
        Field("totals", 32, True, "the vote", classes),
    )


def answer_bits(classes: int) -> int:
    """Bits of a record."""
    return sum(field.bits * (field.count or 1) for field in answer_fields(classes))


def answer_size(classes: int) -> int:
    """Bytes of a record."""
    return answer_bits(classes) // 8


def answer_beats(classes: int, bus: int) -> int:
    """Beats of a record on a bus of ``bus`` bits."""
    return -(-answer_bits(classes) // bus)


def answer_keep(classes: int, lanes: int) -> int:
    """TKEEP of the last beat of a record on a bus of ``lanes`` bytes."""
    return (1 << ((answer_size(classes) - 1) % lanes + 1)) - 1


def items_per_word(classes: int, bus: int) -> int:
    """Items, totals or as wide, that leave together: as many as a beat holds, or one if it takes
    several beats; 0 if beats and items do not begin together."""
    *head, totals = answer_fields(classes)
    items = max(1, bus // totals.bits)
    before = sum(field.bits for field in head)
    aligned = (totals.bits * items % bus == 0 and before % (items * totals.bits) == 0
               and classes % items == 0)
    return items if aligned else 0


def word_bits(classes: int, bus: int) -> tuple[int, int]:
    """Bits of what leaves together, and such words that class, flags and margin take; of a bus
    whose beats and items do not begin together those of the record, and 0."""
    items = items_per_word(classes, bus)
    if not items:
        return answer_beats(classes, bus) * bus, 0
    *head, totals = answer_fields(classes)
    return items * totals.bits, sum(field.bits for field in head) // (items * totals.bits)


def totals_per_word(classes: int, bus: int, lanes: int) -> int:
    """Totals that wait for the port together, if ``lanes`` of them are found at a time."""
    items = items_per_word(classes, bus)
    return lcm(lanes, items) if items and classes % lcm(lanes, items) == 0 else classes


def describe(classes: int) -> list[str]:
    """The fields in words, for the manifest."""
    return [f"{'i' if field.signed else 'u'}{field.bits} {field.name}"
            f"{'' if field.count is None else f'[{field.count}]'} ({field.text})"
            for field in answer_fields(classes)]


def _record(classes: int) -> np.dtype:
    return np.dtype([(field.name, f"<{'i' if field.signed else 'u'}{field.bits // 8}",
                      () if field.count is None else (field.count,))
                     for field in answer_fields(classes)])


def decode(data: npt.ArrayLike, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Fields of packed records uint8 (answers, bytes), and whether the bytes after them are 0."""
    data = np.ascontiguousarray(data)
    size = answer_size(classes)
    fields = np.ascontiguousarray(data[:, :size]).view(_record(classes))[:, 0]
    return fields, (data[:, size:] == 0).all(axis=1)


def pack(class_index: int, flags: int, margin: int, totals: Sequence[int]) -> bytes:
    """Bytes of one record, without padding."""
    return np.array((class_index, flags, margin, totals), _record(len(totals))).tobytes()


def flags_of(result: Result) -> np.ndarray:
    """The flags of right frames, as the golden model has them."""
    return np.where(result.rejected, REJECT, 0)


def records(result: Result) -> list[bytes]:
    """The record of each right frame, without padding, as the golden model has it."""
    return [pack(*record) for record in zip(result.classes, flags_of(result), result.margins,
                                            result.totals, strict=True)]
