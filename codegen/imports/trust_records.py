"""Which imports were confirmed: one file for each import of a project, in the user's state directory.

Promise: records are outside the project, in a directory that only this user may enter, and are replaced as a whole. A record
that cannot be read, or is not this user's own file, confirms nothing. Tools whose workspace contains that directory, such as
a home directory, cannot change it (``guard/trusted_code.py``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolkit.errors import SetupError
from toolkit.runtime.state_directory import CONFIRMED_IMPORTS, PrivateRecords

# So that changing between branches does not ask each time.
_MAX_KEPT: Final = 20


class RecordError(SetupError):
    """Confirmed imports cannot be kept."""


class TrustRecords:
    """The confirmed imports of one project."""

    def __init__(self, root: Path) -> None:
        self._root: Final = os.path.realpath(root)
        try:
            self._records: Final = PrivateRecords(CONFIRMED_IMPORTS, [self._root])
            self._folder: Final = self._records.folder
        except SetupError as error:
            reason = str(error).rpartition("; give ")[0]
            raise RecordError(
                f"confirmed imports cannot be kept: {reason}; set XDG_STATE_HOME to a folder of yours outside the project"
            ) from None

    def is_confirmed(self, name: str, digest: str) -> bool:
        return any(entry["digest"] == digest for entry in self._read(name))

    def last_confirmed(self, name: str) -> Mapping[str, str] | None:
        """The facts of the import when it was last confirmed."""
        entries = self._read(name)
        return entries[-1]["facts"] if entries else None

    def confirm(self, name: str, digest: str, facts: Mapping[str, str]) -> None:
        others = [entry for entry in self._read(name) if entry["digest"] != digest]
        entries = [*others, {"digest": digest, "facts": dict(facts)}][-_MAX_KEPT:]
        record = {"project": self._root, "import": name, "confirmed": entries}
        try:
            self._records.write(self._key(name), record)
        except OSError as error:
            raise RecordError(
                f"the confirmed import {name!r} cannot be kept in {self._folder!r}: {error.strerror}; make room or set"
                " XDG_STATE_HOME to another folder"
            ) from None

    def _key(self, name: str) -> str:
        return f"{self._root}\0{name}"

    def _read(self, name: str) -> list[dict[str, Any]]:
        """The entries of a record, oldest first; none if anything about it is wrong."""
        record = self._records.read(self._key(name))
        try:
            if (record["project"], record["import"]) != (self._root, name):
                return []
            return [{"digest": str(entry["digest"]), "facts": _texts(entry["facts"])} for entry in record["confirmed"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []


def _texts(value: Mapping[str, Any]) -> dict[str, str]:
    return {str(label): str(text) for label, text in value.items()}
