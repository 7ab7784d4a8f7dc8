"""JSON records of this user that outlive every toolkit, in the private state directory: confirmed imports, tokens.

Promise: a record is a file that only this user may read (mode 0600) in a directory that only this user may enter, outside
every given root, and is replaced as a whole. What cannot be read, or is not this user's own file, counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from toolkit.guard.user_state import CONFIRMED_IMPORTS as CONFIRMED_IMPORTS
from toolkit.runtime.context.state_directory import StateDirectory

_MAX_BYTES: Final = 1 << 20


class PrivateRecords:
    """The records of one folder in the user's state directory. Nothing is created before something must be kept.

    :param folder: the name of the folder.
    :param roots: directories that tools can reach; the state directory must not be inside one.
    """

    def __init__(self, folder: str, roots: Iterable[str]) -> None:
        self._directory: Final = StateDirectory(None, roots)
        self._name: Final = folder

    @property
    def folder(self) -> str:
        """Where the records are; created if necessary. Raises ``SetupError`` if there is no such place."""
        return self._directory.folder(self._name)

    def read(self, key: str) -> Any:
        """The record of ``key``; None if there is none, or anything about its file is wrong."""
        folder = self._directory.existing(self._name)
        if folder is None:
            return None
        try:
            handle = os.open(_file(folder, key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file:
                info = os.fstat(handle)
                if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
                    return None
                return json.loads(file.read(_MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return None

    def write(self, key: str, value: object) -> None:
        """Replace the record of ``key``; raises ``OSError`` or ``SetupError``."""
        folder = self.folder
        handle, staged = tempfile.mkstemp(dir=folder)  # with mode 0600
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1)
            os.replace(staged, _file(folder, key))
        except BaseException:
            with suppress(OSError):
                os.unlink(staged)
            raise


def _file(folder: str, key: str) -> str:
    return os.path.join(folder, f"{hashlib.sha256(os.fsencode(key)).hexdigest()}.json")
