"""The private directory of a toolkit, for what outlives a call. No tool can reach it.

Promise: it belongs to this user, no other user may enter it (mode 0700), and it is never inside the workspace or another
root, where a model could read or change it. Nothing is created before something must be kept.
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

from toolkit.errors import SetupError
from toolkit.user_state import CONFIRMED_IMPORTS as CONFIRMED_IMPORTS
from toolkit.user_state import REMEMBERED_APPROVALS as REMEMBERED_APPROVALS
from toolkit.user_state import TOKEN_RECORDS as TOKEN_RECORDS
from toolkit.user_state import remembered_approvals, token_records, user_state_directory

_THE_DEFAULT: Final = ("the default state directory", "set XDG_STATE_HOME to a folder, or give a state_dir,")


class StateDirectory:
    """Folders by name below one directory: the given one, or ``typed-toolkit`` below the user's state directory."""

    def __init__(self, given: str | None, roots: Iterable[str]) -> None:
        self._path: Final = os.path.realpath(given if given is not None else user_state_directory())
        for root in roots:
            if _is_inside(self._path, root):
                what, way_out = ("state_dir", "give a state_dir") if given is not None else _THE_DEFAULT
                raise SetupError(
                    f"{what} {self._path!r} is inside {root!r}, where tools can reach it; {way_out} outside of it"
                )
            for kept in filter(os.path.isdir, token_records()):
                if _is_inside(os.path.realpath(kept), root):
                    raise SetupError(
                        f"the tokens of servers in {kept!r} are inside {root!r}, where tools could read them; choose a "
                        "smaller workspace, or move that folder and set XDG_STATE_HOME"
                    )
            for kept in filter(os.path.isdir, remembered_approvals()):
                if _is_inside(os.path.realpath(kept), root):
                    raise SetupError(
                        f"the remembered approvals in {kept!r} are inside {root!r}, where tools could add some; choose a "
                        "smaller workspace, or move that folder and set XDG_STATE_HOME"
                    )

    def folder(self, name: str) -> str:
        """The path of one folder, created if necessary."""
        path = self.path(name)
        try:
            for made in (self._path, path):
                os.makedirs(made, mode=0o700, exist_ok=True)
                _require_own(made)
        except OSError as error:
            raise SetupError(
                f"the state directory {path!r} cannot be created: {error.strerror}; give another state_dir"
            ) from error
        return path

    def path(self, name: str) -> str:
        """Where a folder is or will be; the caller creates it."""
        return os.path.join(self._path, name)

    def existing(self, name: str) -> str | None:
        """The path of one folder if it exists."""
        path = self.path(name)
        return path if os.path.isdir(path) else None


def _is_inside(path: str, root: str) -> bool:
    real = os.path.realpath(root)
    return os.path.commonpath([real, path]) == real


def _require_own(path: str) -> None:
    """Refuses a directory of another user; removes the permissions of others from ours."""
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise SetupError(f"the state directory {path!r} is not a directory of this user; give another state_dir")
    if stat.S_IMODE(info.st_mode) & 0o077:
        os.chmod(path, 0o700)


# ----------------------------------------------------------------------------------------------------------------------
# JSON records of this user that outlive every toolkit, in the private state directory: confirmed imports, tokens.
#
# Promise: a record is a file that only this user may read (mode 0600) in a directory that only this user may enter, outside
# every given root, and is replaced as a whole. What cannot be read, or is not this user's own file, counts as absent.

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
