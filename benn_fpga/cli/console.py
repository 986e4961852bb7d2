"""Tables on stdout."""

import sys

__all__ = ["percent", "plain", "show", "table"]

_PLAIN_WIDTH = 120  # of tables that go to a file or a pipe


def percent(fraction):
    return f"{100 * fraction:.2f} %"


def plain(text):
    """``text`` with all that is not printable escaped: model files and names are untrusted."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def table(title, columns, rows):
    """A table below its title; a column whose name starts with ``>`` is aligned to the right."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text
    grid = Table(box=box.SIMPLE_HEAD,
                 show_header=any(column.strip(">") for column in columns))
    for n, column in enumerate(columns):
        right = column.startswith(">")
        # What the rows are called stays whole; other columns are folded if need be.
        grid.add_column(column.removeprefix(">"), justify="right" if right else "left",
                        overflow="fold", no_wrap=n == 0)
    for row in rows:
        # As Text, in which rich looks for neither markup nor :emoji:.
        grid.add_row(*(Text("" if cell is None else plain(str(cell))) for cell in row))
    return Group(Text(plain(title), style="bold"), grid)


def show(tables):
    """Print tables on stdout, without colour or cut-off text if it is not a terminal."""
    from rich.console import Console

    class Pipeable(Console):
        def on_broken_pipe(self):
            raise BrokenPipeError

    console = Pipeable(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, markup=False,
                      highlight=False)
    for item in tables:
        console.print(item)
