"""Checks of parameters."""

__all__ = ["positive"]


def positive(**values):
    """Raise unless every value is a whole number from 1 up; the keywords name them."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            noun = name.replace("_", " ")
            raise ValueError(f"{noun[0].upper()}{noun[1:]} must be a positive integer, "
                             f"not {value!r}")
