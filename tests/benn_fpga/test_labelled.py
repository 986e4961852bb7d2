"""Tables: features and labels of a .csv file."""

import pytest

from benn_fpga.errors import BennError
from benn_fpga.readers.labelled import read_frames, read_table

ROWS = [("1", "2", "a"), ("3", "4", "b")] * 3


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(*lines):
    """A .csv file of lines: text, or cells."""
    with open("t.csv", "w") as file:
        file.write("\n".join(line if isinstance(line, str) else ",".join(line) for line in lines))
    return "t.csv"


def message(function, *args):
    with pytest.raises(BennError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize(("header", "label", "order", "names", "found"), [
    (None, None, (0, 1, 2), (), 3),
    ("u,v,w", None, (0, 1, 2), ("u", "v"), "w"),
    ("u,Class,v", None, (0, 2, 1), ("u", "v"), "Class"),
    ("target,u,v", None, (2, 0, 1), ("u", "v"), "target"),
    ("0,1,label", None, (0, 1, 2), ("0", "1"), "label"),
    ("w,0,1", "w", (2, 0, 1), ("0", "1"), "w"),
    ("w,u,v", "1", (2, 0, 1), ("u", "v"), "w"),
    ("w,u,label", "w", (2, 0, 1), ("u", "label"), "w"),
    (None, "2", (0, 2, 1), (), 2),
])
def test_which_column_is_the_label(header, label, order, names, found):
    rows = [[row[n] for n in order] for row in ROWS]
    table = read_table(write(*([header] if header else []), *rows), label)
    assert table.x.tolist() == [[1, 2], [3, 4]] * 3
    assert table.y.tolist() == ["a", "b"] * 3
    assert (table.class_names, table.feature_names, table.label) == (("a", "b"), names, found)


@pytest.mark.parametrize(("labels", "names"), [
    (("10", "9"), ("9", "10")), (("1.0", "0"), ("0", "1")), (("-1", "1"), ("-1", "1")),
    (("10", "x"), ("10", "x")), (("9" * 20, "9" * 19 + "8"), ("9" * 19 + "8", "9" * 20))])
def test_classes_in_order(labels, names):
    assert read_table(write(*(f"1,{label}" for label in labels * 3))).class_names == names


@pytest.mark.parametrize(("lines", "label", "expected"), [
    ([], None, " has no rows; give one for each frame"),
    (["a,b,label"], None, " has no rows below its header; give one for each frame"),
    (["1", "2"], None, ", line 1: one column; a table has features and a label"),
    ([",v,label", *ROWS], None, ", column 1 has no name; name it, or leave it out (of pandas, "
     "to_csv(index=False) writes no index)"),
    (["u,u,label", *ROWS], None, " has 2 columns called 'u'; keep one"),
    (["class,v,label", *ROWS], None, " has columns 'class' and 'label'; say with `label` which "
     "column has the classes"),
    (["u,v,w", *ROWS], "x", " has no column 'x' for the label; its columns are 'u', 'v', 'w'"),
    (ROWS, "4", " has no column '4' for the label; its columns are 1 to 3, which have no names"),
    (["u,v,w", "1,red,a", *ROWS], None, ", line 2, column 2 (v): 'red' is not a number; features "
     "are numbers: turn the column into numbers, or leave it out"),
    ([*ROWS, "1,?,a"], None, ", line 7, column 2: '?' is not a number; leave the row out, or fill "
     "it in"),
    (["u;v;w", "1;2,5;a", *(";".join(row) for row in ROWS)], None, ", line 2, column 2 (v): '2,5' "
     "is not a number; write it with a decimal point"),
    ([*ROWS, "1,,a"], None, ", line 7, column 2: there is no value; leave the row out, or fill it "
     "in"),
    ([*ROWS, "1,2,"], None, ", line 7, column 3: there is no label; leave the row out, or fill it "
     "in"),
    ([*ROWS, "1,2"], None, ", line 7: 2 columns instead of 3"),
    (["u,w", "1,a", "2,a", "3,a"], None, ", lines 2 to 4, column 2 (w): every label is 'a', but 2 "
     "classes are the least; say with `label` which column has the classes"),
    (["u,w", "1,2", "2,2.5"], None, ", line 3, column 2 (w): the label 2.5 is no class; say with "
     "`label` which column has the classes"),
    ([*ROWS, "1,2,c", "1,2,c"], None, ", line 7, column 3: class 'c' has 2 of at least 3 rows; add "
     "some or leave it out, or if these are no classes, say with `label` which column has the "
     "classes"),
])
def test_tables_that_cannot_be_trained_on(lines, label, expected):
    assert message(read_table, write(*lines), label) == f"t.csv{expected}"


@pytest.mark.parametrize(("lines", "label", "y", "left_out"), [
    (["1,2"], None, None, ()),
    (["1,2,a"], None, ["a"], ()),
    (["a,1,2"], 1, ["a"], ()),
    (["v,id,w,u", "2,7,a,1"], "w", ["a"], ("id",)),
    (["v,id,w,u", "2,7,a,1"], None, None, ("id", "w")),
    (["v,Label,u", "2,3.0,1"], None, ["3"], ()),
    (["v,label,u", "2,,1"], None, None, ("label",)),
])
def test_rows_for_a_model(lines, label, y, left_out):
    found = read_frames(write(*lines), 2, ("u", "v"), label)
    assert found.x.tolist() == [[1, 2]]
    assert ((None if found.y is None else found.y.tolist()), found.left_out) == (y, left_out)


@pytest.mark.parametrize(("lines", "names", "expected"), [
    (["1,2,3,a"], (), ", line 1: 4 columns, but a frame of the model has 2 values, and a label is "
     "one more"),
    (["u,w", "1,2"], ("u", "v"), " has no column 'v'; it must have one for each feature of the "
     "model, or numbers alone"),
    (["u,v,label", "1,2,a", "1,2,"], ("u", "v"), ", line 3, column 3 (label): there is no label; "
     "leave the row out, or fill it in"),
    (["u,v,label", "1,2,0.5"], ("u", "v"), ", line 2, column 3 (label): the label 0.5 is no class; "
     "classes are text or whole numbers"),
])
def test_rows_that_a_model_cannot_take(lines, names, expected):
    assert message(read_frames, write(*lines), 2, names) == f"t.csv{expected}"
