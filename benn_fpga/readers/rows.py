"""``.csv`` files as rows of numbers."""

import csv
import io
import math

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.regular import open_regular

__all__ = ["check_width", "column_name", "is_numeric", "read_csv", "read_lines", "read_row"]

_FILL = "leave the row out, or fill it in"


def read_csv(path, size, names=()):
    """Rows (frames, size) of float64 in the ``.csv`` file at ``path``, and the names of the columns
    that are left out.

    A first row in which nothing is a number names the columns. If the features have ``names``, they
    are looked up there and other columns are left out; else there must be ``size`` columns, in
    order.
    """
    lines = read_lines(path)
    if not lines:
        raise BennError(f"{path} has no rows; give one for each frame")
    header = [cell.strip() for cell in lines[0][1]]
    if names and set(names) <= set(header):
        columns = _named(path, header, names)
    elif any(map(is_numeric, header)) or not any(header):
        header, columns = None, range(size)
    elif names:
        missing = next(name for name in names if name not in header)
        raise BennError(f"{path} has no column {missing!r}; it must have one for each feature of "
                        f"the model, or numbers alone")
    else:
        columns = range(size)
    rows = lines if header is None else lines[1:]
    if not rows:
        raise BennError(f"{path} has no rows below its header; give one for each frame")
    width = size if header is None else len(header)
    if not names and width != size:
        raise BennError(f"{path}, line {lines[0][0]}: {width} columns, but a frame of the model "
                        f"has {size} values")
    values = [read_row(path, *row, width, columns, header) for row in rows]
    left_out = [] if header is None else \
        [name for n, name in enumerate(header) if n not in set(columns)]
    return np.array(values, np.float64), left_out


def read_lines(path):
    """(number, cells) of each line that is not empty."""
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8-sig")
    except OSError as error:
        raise BennError(f"cannot read {path}: {error.strerror}; give a .csv file") from None
    except UnicodeDecodeError:
        raise BennError(f"{path} is not a text file in UTF-8; give a .csv file") from None
    first = text.partition("\n")[0]
    delimiter = next((each for each in ",;\t" if each in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise BennError(f"{path}, line {reader.line_num}: {error}; give a .csv file") from None


def _named(path, header, names):
    for name in names:
        if header.count(name) > 1:
            raise BennError(f"{path} has {header.count(name)} columns called {name!r}; keep one")
    return [header.index(name) for name in names]


def read_row(path, line, cells, width, columns, header, cure=_FILL):
    """The numbers in ``columns`` of a row that has ``width``; ``cure`` is for text among them."""
    check_width(path, line, cells, width)
    row = []
    for n in columns:
        number = _number(cells[n])
        if number is None:
            text, what, do = cells[n].strip(), "there is no value", _FILL
            if text:
                what = f"{text[:40]!r} is not a number"
                comma = "," in text and is_numeric(text.replace(",", "."))
                do = "write it with a decimal point" if comma else cure
            raise BennError(f"{path}, line {line}, {column_name(n, header)}: {what}; {do}")
        row.append(number)
    return row


def check_width(path, line, cells, width):
    """Raise unless a row has as many ``cells`` as there are columns."""
    if len(cells) != width:
        raise BennError(f"{path}, line {line}: {len(cells)} column{'s' * (len(cells) != 1)} "
                        f"instead of {width}")


def column_name(n, header):
    """Number of column ``n``, from 1, and its name if it has one."""
    return f"column {n + 1} ({header[n]})" if header else f"column {n + 1}"


def is_numeric(text):
    """Whether ``text`` is a number, or not-a-number, or infinite."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text):
    """The finite number that ``text`` is, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
