"""The default of an optional argument without a default of its own. It is not ``None``, which would be a value."""

from __future__ import annotations

from typing import Final, final


@final
class Omit:
    """The type of ``OMIT``; an argument with this value is not sent."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OMIT"

    def __bool__(self) -> bool:
        return False


OMIT: Final = Omit()
