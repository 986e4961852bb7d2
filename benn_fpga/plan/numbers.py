"""Numbers by name that never change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Numbers"]


class Numbers(Mapping[str, int]):
    """A mapping of names to numbers that can be hashed, in the order in which it is given."""

    def __init__(self, numbers: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        self._numbers = dict(numbers)

    def __getitem__(self, name: str) -> int:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __hash__(self) -> int:
        return hash(frozenset(self._numbers.items()))

    def __repr__(self) -> str:
        return f"Numbers({self._numbers})"
