"""The answer record in C: what a program that reads answers needs to know, as a header file."""

from __future__ import annotations

from benn_fpga.plan.answer import FLAGS, Field, answer_fields, answer_size
from benn_fpga.plan.manifest import TOP
from benn_fpga.raw_c import c_text
from benn_fpga.spec import Ensemble

__all__ = ["NAME", "header"]

NAME = "benn_answer.h"

_HEADER = """\
/* What {top} says to a frame, for C99 and C++. Generated: change the model, not this file. */
#ifndef BENN_ANSWER_H
#define BENN_ANSWER_H

#include <stddef.h>
#include <stdint.h>

{sections}

#endif
"""

_RECORD = """\
#define BENN_CLASSES {classes}
#define BENN_ANSWER_BYTES {size} /* of a record; zeros fill the rest of its last beat */

/* Bits of flags. */
{flags}

/* A record, little-endian on the bus. It has no padding: where the processor is little-endian too,
 * the bytes that arrive are the structure. */
struct benn_answer {{
{members}
}};

static inline uint32_t benn_number(const uint8_t *bytes, int size)
{{
    uint32_t value = 0;
    while (size-- > 0)
        value = value << 8 | bytes[size];
    return value;
}}

/* Decodes BENN_ANSWER_BYTES bytes, as they arrive, on any processor. */
static inline void benn_answer_decode(struct benn_answer *answer, const uint8_t *bytes)
{{
{decode}
}}"""

_INPUTS = """\
/* A frame is one byte per raw value, from 0 to BENN_VALUE_MAX; of an image row by row, column by
 * column, channel fastest. */
#define BENN_FRAME_BYTES {values}
#define BENN_VALUE_MAX {most}

{conversion}"""


def header(model: Ensemble) -> str:
    """The text of ``NAME`` for designs of ``model``."""
    sections = [_record(model), *_names(model), _inputs(model)]
    return _HEADER.format(top=TOP, sections="\n\n".join(sections))


def _record(model: Ensemble) -> str:
    fields = answer_fields(model.classes)
    flags = [f"#define BENN_FLAG_{name.upper()} 0x{1 << bit:04x}u /* {text} */"
             for name, (bit, text) in FLAGS.items()]
    decode, at = [], 0
    for field in fields:
        decode += _decode(field, at // 8)
        at += field.bits * (field.count or 1)
    return _RECORD.format(
        classes=model.classes, size=answer_size(model.classes), flags="\n".join(flags),
        members="\n".join(f"    {_type(field)} {_declared(field)}; /* {field.text} */"
                          for field in fields),
        decode="\n".join(f"    {line}" for line in decode))


def _names(model: Ensemble) -> list[str]:
    """The names of the classes, if they have any."""
    if not model.inputs.class_names:
        return []
    escaped = [name.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
               for name in model.inputs.class_names]
    return ["\n".join(["static const char *const benn_class_names[BENN_CLASSES] = {",
                       *(f'    "{name}",' for name in escaped), "};"])]


def _inputs(model: Ensemble) -> str:
    """How the bytes of a frame are made."""
    return _INPUTS.format(values=model.encoder.values, most=(1 << model.encoder.bits) - 1,
                          conversion=c_text(model.inputs, model.encoder.shape).rstrip())


def _type(field: Field) -> str:
    return f"{'' if field.signed else 'u'}int{field.bits}_t"


def _declared(field: Field) -> str:
    return field.name if field.count is None else f"{field.name}[BENN_CLASSES]"


def _decode(field: Field, at: int) -> list[str]:
    """C statements that read a field from byte ``at`` on."""
    size = field.bits // 8
    if field.count is None:
        return [f"answer->{field.name} = ({_type(field)})benn_number(bytes + {at}, {size});"]
    return ["for (int n = 0; n < BENN_CLASSES; n++)",
            f"    answer->{field.name}[n] = "
            f"({_type(field)})benn_number(bytes + {at} + {size} * n, {size});"]
