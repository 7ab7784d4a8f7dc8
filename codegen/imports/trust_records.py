"""Which imports were confirmed: one file for each import of a project, in the user's state directory.

Promise: records are outside the project, in a directory that only this user may enter, and are replaced as a whole. A record
that cannot be read, or is not this user's own file, confirms nothing. Tools whose workspace contains that directory, such as
a home directory, cannot change it (``guard/trusted_code.py``).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from toolkit.errors import SetupError
from toolkit.runtime.context.state_directory import StateDirectory

# So that changing between branches does not ask each time.
_MAX_KEPT: Final = 20
_MAX_BYTES: Final = 1 << 20


class RecordError(SetupError):
    """Confirmed imports cannot be kept."""


class TrustRecords:
    """The confirmed imports of one project."""

    def __init__(self, root: Path) -> None:
        self._root: Final = os.path.realpath(root)
        try:
            self._directory: Final = StateDirectory(None, [self._root])
            self._folder: Final = self._directory.confirmed_imports()
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
        self._write(name, json.dumps({"project": self._root, "import": name, "confirmed": entries}, indent=1))

    def _file(self, name: str) -> str:
        key = hashlib.sha256(os.fsencode(f"{self._root}\0{name}")).hexdigest()
        return os.path.join(self._folder, f"{key}.json")

    def _read(self, name: str) -> list[dict[str, Any]]:
        """The entries of a record, oldest first; none if anything about it is wrong."""
        try:
            handle = os.open(self._file(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file:
                info = os.fstat(handle)
                if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
                    return []
                record = json.loads(file.read(_MAX_BYTES))
            if (record["project"], record["import"]) != (self._root, name):
                return []
            return [{"digest": str(entry["digest"]), "facts": _texts(entry["facts"])} for entry in record["confirmed"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return []

    def _write(self, name: str, text: str) -> None:
        try:
            handle, staged = tempfile.mkstemp(dir=self._folder)  # with mode 0600
            try:
                with open(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(staged, self._file(name))
            except BaseException:
                with suppress(OSError):
                    os.unlink(staged)
                raise
        except OSError as error:
            raise RecordError(
                f"the confirmed import {name!r} cannot be kept in {self._folder!r}: {error.strerror}; make room or set"
                " XDG_STATE_HOME to another folder"
            ) from None


def _texts(value: Mapping[str, Any]) -> dict[str, str]:
    return {str(label): str(text) for label, text in value.items()}
