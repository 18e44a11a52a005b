"""A cache key for values that cannot be hashed, such as the plain JSON in a record."""

from __future__ import annotations

from typing import Any


class Held:
    """Holds a value, so that its identity is not reused meanwhile. Equal to another one with the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value
