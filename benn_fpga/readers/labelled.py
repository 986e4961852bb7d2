"""``.csv`` files as tables: in every row the features of a frame and its label."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from benn_fpga.errors import BennError
from benn_fpga.readers.rows import check_width, column_name, is_numeric, read_lines, read_row

__all__ = ["LABELS", "LEAST", "Table", "read_frames", "read_table"]

LABELS = ("label", "class", "target")  # names of a column that has the labels, in any case
LEAST = 3  # rows of a class: to train, to validate and to test
_OTHER = "say with `label` which column has the classes"
_FEATURES = "features are numbers: turn the column into numbers, or leave it out"


@dataclass(frozen=True, eq=False)
class Table:
    """What a table has.

    Members
    -------
    x : float64 (rows, features)
    y : of each row its label, as text; None if no column has labels
    feature_names : empty if the columns have no names
    label : name of the column that has the labels, or its number, from 1, if it has none
    left_out : names of the columns that are neither
    """

    x: np.ndarray
    y: np.ndarray | None
    feature_names: tuple[str, ...]
    label: str | int | None
    left_out: tuple[str, ...] = ()

    @property
    def class_names(self):
        """The labels that there are: in order of the alphabet, or of numbers if all are."""
        names = np.unique(self.y).tolist()
        return tuple(sorted(names, key=int) if all(map(is_numeric, names)) else names)


def read_table(path, label=None):
    """The :class:`Table` in the ``.csv`` file at ``path``, for training.

    A first row without numbers, or with the name of the column that has the labels, names the
    columns. Labels are in the column ``label``, a name or a number from 1; else in the one that is
    called as in ``LABELS``, else in the last. All others are features.
    """
    header, lines = _open(path, label)
    width = len(lines[0][1]) if header is None else len(header)
    if width < 2:
        raise BennError(f"{path}, line {lines[0][0]}: one column; a table has features and a label")
    at = _label_column(path, header, width, label)
    for n, name in enumerate(header or ()):
        if not name:
            raise BennError(f"{path}, column {n + 1} has no name; name it, or leave it out (of "
                            f"pandas, to_csv(index=False) writes no index)")
    y = _labels(path, lines, at, header, width, _OTHER)
    _check_classes(path, lines, y, at, header)
    columns = [n for n in range(width) if n != at]
    x = [read_row(path, *lines[0], width, columns, header, _FEATURES),
         *(read_row(path, *line, width, columns, header) for line in lines[1:])]
    return Table(np.array(x, np.float64), y, tuple(header[n] for n in columns) if header else (),
                 header[at] if header else at + 1)


def read_frames(path, size, names=(), label=None):
    """The :class:`Table` in the ``.csv`` file at ``path``, for a model of ``size`` features.

    If the file names its columns and the features have ``names``, they are looked up, and ``label``
    too, which is as in :class:`Table`; else there must be ``size`` columns, or one more for the
    label, which is the last unless ``label`` says otherwise.
    """
    header, lines = _open(path, label, names)
    width = len(lines[0][1]) if header is None else len(header)
    if header and names:
        by_name = {name: n for n, name in enumerate(header)}
        missing = next((name for name in names if name not in by_name), None)
        if missing is not None:
            raise BennError(f"{path} has no column {missing!r}; it must have one for each feature "
                            f"of the model, or numbers alone")
        columns, others = [by_name.pop(name) for name in names], by_name
        at = others.get(label, next(
            (n for name, n in others.items() if name.casefold() in LABELS), None))
    elif width in (size, size + 1):
        at = None if width == size else _label_column(
            path, header, width, label if header is None or label in header else None)
        columns = [n for n in range(width) if n != at]
    else:
        raise BennError(f"{path}, line {lines[0][0]}: {width} columns, but a frame of the model "
                        f"has {size} values, and a label is one more")
    x = [read_row(path, *line, width, columns, header) for line in lines]
    if at is not None and not any(cells[at].strip() for _, cells in lines):
        at = None
    y = None if at is None else _labels(path, lines, at, header, width)
    taken = {at, *columns}
    left_out = [name for n, name in enumerate(header or ()) if n not in taken]
    return Table(np.array(x, np.float64), y, tuple(names),
                 None if at is None else header[at] if header else at + 1, tuple(left_out))


def _open(path, label, names=()):
    """The names of the columns, or None, and (number, cells) of each row."""
    lines = read_lines(path)
    if not lines:
        raise BennError(f"{path} has no rows; give one for each frame")
    header = [cell.strip() for cell in lines[0][1]]
    is_header = not any(map(is_numeric, header)) or (names and set(names) <= set(header)) or any(
        cell.casefold() in LABELS or (cell == label and not is_numeric(cell)) for cell in header)
    if not is_header:
        return None, lines
    if len(lines) == 1:
        raise BennError(f"{path} has no rows below its header; give one for each frame")
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise BennError(f"{path} has {header.count(twice[0])} columns called {twice[0]!r}; keep "
                        f"one")
    return header, lines[1:]


def _label_column(path, header, width, label):
    """The number, from 0, of the column that has the labels."""
    if label is not None:
        if header and label in header:
            return header.index(label)
        if str(label) in map(str, range(1, width + 1)):
            return int(label) - 1
        known = ", ".join(map(repr, header[:8])) + ", ..." * (len(header) > 8) if header else \
            f"1 to {width}, which have no names"
        raise BennError(f"{path} has no column {label!r} for the label; its columns are {known}")
    named = [n for n, name in enumerate(header or ()) if name.casefold() in LABELS]
    if len(named) > 1:
        raise BennError(f"{path} has columns {header[named[0]]!r} and {header[named[1]]!r}; "
                        f"{_OTHER}")
    return named[0] if named else width - 1


def _labels(path, lines, at, header, width, cure="classes are text or whole numbers"):
    """Labels as text: whole numbers as such, whether they were written as 1, 1.0 or +1."""
    for line, cells in lines:
        check_width(path, line, cells, width)
        if not cells[at].strip():
            raise BennError(f"{path}, line {line}, {column_name(at, header)}: there is no label; "
                            f"leave the row out, or fill it in")
    texts = [cells[at].strip() for _, cells in lines]
    if not all(map(is_numeric, texts)):
        return np.array(texts, str)
    for (line, _), text in zip(lines, texts, strict=True):
        if not float(text).is_integer():
            raise BennError(f"{path}, line {line}, {column_name(at, header)}: the label {text} is "
                            f"no class; {cure}")
    return np.array([str(int(text) if text.lstrip("+-").isdecimal() else int(float(text)))
                     for text in texts], str)


def _check_classes(path, lines, y, at, header):
    """Raise unless there are several classes, and enough rows of each."""
    names, first, counts = (array.tolist() for array in np.unique(y, return_index=True,
                                                                  return_counts=True))
    where = column_name(at, header)
    if len(names) == 1:
        raise BennError(f"{path}, lines {lines[0][0]} to {lines[-1][0]}, {where}: every label is "
                        f"{names[0]!r}, but 2 classes are the least; {_OTHER}")
    few = counts.index(min(counts))
    if counts[few] < LEAST:
        raise BennError(f"{path}, line {lines[first[few]][0]}, {where}: class {names[few]!r} has "
                        f"{counts[few]} of at least {LEAST} rows; add some or leave it out, or if "
                        f"these are no classes, {_OTHER}")
