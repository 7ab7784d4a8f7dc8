"""The default of an optional argument that has none: not ``None``, which would be a value."""

from __future__ import annotations

from typing import Final, final


@final
class Omit:
    """The type of ``OMIT``; an argument left at it is not sent at all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OMIT"

    def __bool__(self) -> bool:
        return False


OMIT: Final = Omit()
