"""Typed access to the keys of one object. A wrong value is reported and replaced, so that reading continues."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from toolkit.schema.checks import explain_split_text
from toolkit.schema.problems import Problems, below, is_misspelt, kind, quote, unknown_key
from toolkit.schema.spec import Json

_IN_OTHER_FORMATS: Final = {"parameters": "inputSchema"}
"""What tools of OpenAI and Gemini call a key of a spec."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The keys of the object at ``pointer``; an absent key reads as None, or as an empty list."""

    value: dict[str, Json]
    pointer: str
    problems: Problems

    def at(self, key: str) -> str:
        return below(self.pointer, key)

    def add(self, message: str, key: str) -> None:
        self.problems.add(message, self.at(key))

    def refuse_unknown(self, known: Collection[str]) -> None:
        for key in self.value:
            if key not in known and not key.startswith("x-"):
                split = explain_split_text(key, self.value) if self.value[key] is None else None
                meant = _IN_OTHER_FORMATS.get(key)
                own = f"here it is {meant!r}" if meant in known else "keys of your own start with 'x-'"
                self.add(f"unknown key {quote(key)}: {split}" if split else unknown_key(key, known, own), key)

    def require(self, key: str, why: str, known: Collection[str] = ()) -> None:
        """Reports a missing key, unless one that is not ``known`` looks as if it were meant to be it."""
        if key in self.value or any(_IN_OTHER_FORMATS.get(other) == key for other in self.value):
            return
        if not (known and is_misspelt(key, self.value, known)):
            self.problems.add(f"{key!r} is missing: {why}", self.pointer)

    def string(self, key: str) -> str | None:
        value = self.value.get(key)
        if isinstance(value, str):
            return value
        self._refuse(key, "a string")
        return None

    def boolean(self, key: str) -> bool | None:
        value = self.value.get(key)
        if isinstance(value, bool):
            return value
        self._refuse(key, "true or false")
        return None

    def items(self, key: str) -> list[Json]:
        value = self.value.get(key)
        if isinstance(value, list):
            return value
        self._refuse(key, "a list")
        return []

    def mapping(self, key: str) -> dict[str, Json] | None:
        value = self.value.get(key)
        if isinstance(value, dict):
            return value
        self._refuse(key, "an object")
        return None

    def _refuse(self, key: str, wanted: str) -> None:
        if key in self.value:
            self.add(f"{key!r} must be {wanted}, not {kind(self.value[key])}", key)
