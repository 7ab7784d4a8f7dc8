"""What suspended calls are bound to: kept until the call is resumed, then gone."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
import time
from contextlib import suppress
from typing import Final, Protocol

from toolkit.errors import ToolFailed

_SUFFIX: Final = ".json"


class ApprovalStore(Protocol):
    """Keeps the digest of each suspended call. Whoever takes one first has it; nobody else gets it."""

    def put(self, id: str, digest: str, *, seconds: float) -> None:
        """Keeps a digest under an id that was never used before, for so many seconds."""

    def take(self, id: str) -> str | None:
        """The digest, once; None if it was taken, has expired or was never there."""


class MemoryApprovalStore:
    """Keeps digests in memory, until the process ends.

    >>> store = MemoryApprovalStore()
    >>> store.put("call", "d1", seconds=60)
    >>> store.take("call"), store.take("call")
    ('d1', None)
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def put(self, id: str, digest: str, *, seconds: float) -> None:
        with self._lock:
            now = time.time()
            self._kept = {one: kept for one, kept in self._kept.items() if kept[1] > now}
            self._kept[id] = (digest, now + seconds)

    def take(self, id: str) -> str | None:
        with self._lock:
            digest, expires = self._kept.pop(id, ("", 0.0))
        return digest if expires > time.time() else None


class FileApprovalStore:
    """One file for each suspended call in a private directory. Taking one is a rename, which only one process can make."""

    def __init__(self, directory: str) -> None:
        self._directory: Final = directory

    def put(self, id: str, digest: str, *, seconds: float) -> None:
        self._remove_expired()
        target = self._file(id)
        draft = f"{target}.{secrets.token_hex(8)}"
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            with open(draft, "x", encoding="utf-8", opener=_open_private) as file:
                json.dump({"digest": digest, "expires": time.time() + seconds}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except OSError as error:
            with suppress(OSError):
                os.unlink(draft)
            raise ToolFailed("IO", f"the call could not be put away ({error.strerror}); nothing was run") from error

    def take(self, id: str) -> str | None:
        mine = f"{self._file(id)}.{secrets.token_hex(8)}"
        try:
            os.rename(self._file(id), mine)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolFailed("IO", f"the approval cannot be read ({error.strerror}); nothing was run") from error
        try:
            digest, expires = _read(mine)
        finally:
            with suppress(OSError):
                os.unlink(mine)
        return digest if expires > time.time() else None

    def _remove_expired(self) -> None:
        with suppress(OSError):
            for entry in os.scandir(self._directory):
                if entry.name.endswith(_SUFFIX) and _read(entry.path)[1] <= time.time():
                    with suppress(OSError):
                        os.unlink(entry.path)

    def _file(self, id: str) -> str:
        # An id may be any text; it must not become a path.
        name = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
        return os.path.join(self._directory, f"{name}{_SUFFIX}")


def _read(path: str) -> tuple[str, float]:
    """Digest and time of expiry; an unreadable file holds no approval."""
    try:
        with open(path, encoding="utf-8") as file:
            row = json.load(file)
        return str(row["digest"]), float(row["expires"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0.0


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
