"""What the author of a schema called a type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameHint:
    """The author's names for a type; several of a kind, where equal types have become one."""

    titles: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    """Its keys in ``$defs`` or ``definitions``."""

    def __or__(self, other: NameHint) -> NameHint:
        titles, definitions = self.titles + other.titles, self.definitions + other.definitions
        return NameHint(tuple(dict.fromkeys(titles)), tuple(dict.fromkeys(definitions)))
