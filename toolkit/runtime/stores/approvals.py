"""The interface of stores for approvals that wait for a person, while no process waits; and the store in files."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, runtime_checkable

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.private_files import PrivateFiles, digest_of, reason_of

MAX_APPROVAL_BYTES: Final = 1024 * 1024
"""How long one suspended call may be, as text."""
MAX_APPROVALS: Final = 100
"""How many may wait in one session."""


@runtime_checkable
class ApprovalStore(Protocol):
    """Keeps what was suspended until somebody takes it, once.

    Every operation belongs to a session. Failures are raised as ``ToolFailed``; ``toolkit.testing.ApprovalStoreLaws`` tests
    a store of your own.
    """

    def put(self, session_id: str, approval_id: str, value: str, *, digest: str, seconds: float) -> bool:
        """Keeps a text for so many seconds, bound to a digest. False if the id is known, also if it was taken already."""

    def take(self, session_id: str, approval_id: str, *, digest: str) -> str | None:
        """The text, for exactly one caller. None if it is unknown, expired or taken already, or if its digest is another
        one; then it stays."""


class AsyncApprovalStore(Protocol):
    """An ``ApprovalStore`` whose methods are awaited."""

    async def put(self, session_id: str, approval_id: str, value: str, *, digest: str, seconds: float) -> bool: ...

    async def take(self, session_id: str, approval_id: str, *, digest: str) -> str | None: ...


class FileApprovalStore:
    """One file per suspended call in a private directory, which any number of processes may share.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FileApprovalStore(folder)
    ...     store.put("session", "call_1", "the call as JSON", digest="sha256:1f", seconds=3600)
    ...     store.take("session", "call_1", digest="sha256:1f"), store.take("session", "call_1", digest="sha256:1f")
    True
    ('the call as JSON', None)

    :param max_bytes: how long one text may be.
    :param max_per_session: how many may wait in one session.
    """

    def __init__(
        self, directory: str, *, max_bytes: int = MAX_APPROVAL_BYTES, max_per_session: int = MAX_APPROVALS
    ) -> None:
        self._files: Final = PrivateFiles(directory)
        self._max_bytes: Final = max_bytes
        self._max_per_session: Final = max_per_session

    def put(self, session_id: str, approval_id: str, value: str, *, digest: str, seconds: float) -> bool:
        check_approval(value, seconds, self._max_bytes)
        waiting, taken = _names(session_id, approval_id)
        with self._using():
            if self._files.read(waiting) is not None or self._files.read(taken) is not None:
                return False
            if self._files.count(waiting.partition("-")[0]) >= self._max_per_session:
                raise too_many_approvals(self._max_per_session)
            expires = time.time() + seconds
            kept = {"digest": digest, "value": value, "expires": expires}
            self._files.write(waiting, json.dumps(kept).encode(), expires=expires)
            return True

    def take(self, session_id: str, approval_id: str, *, digest: str) -> str | None:
        waiting, taken = _names(session_id, approval_id)
        with self._using():
            data = self._files.read(waiting)
            if data is None or self._files.read(taken) is not None:
                return None
            kept: dict[str, Any] = json.loads(data)
            if not same_digest(kept["digest"], digest):
                return None
            # The id stays known until it expires, so that nobody can put it a second time.
            self._files.write(taken, b"{}", expires=kept["expires"])
            self._files.remove(waiting)
            value: str = kept["value"]
            return value

    @contextmanager
    def _using(self) -> Iterator[None]:
        try:
            with self._files.locked():
                yield
        except OSError as error:
            raise ToolFailed("IO", f"the store of approvals failed: {reason_of(error)}") from error


def check_approval(value: str, seconds: float, max_bytes: int) -> None:
    """Raises for what no store keeps."""
    if not 0 < seconds < float("inf"):
        raise ValueError(f"an approval must expire: seconds must be a number above 0, not {seconds!r}")
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise ToolFailed("TOO_LARGE", f"the suspended call takes {size} bytes, but at most {max_bytes} are kept")


def too_many_approvals(limit: int) -> ToolFailed:
    """The error for a session in which too many wait."""
    words = f"{limit} approvals wait in this session already; answer some of them, or let them expire"
    return ToolFailed("TOO_LARGE", words)


def same_digest(one: str, other: str) -> bool:
    """Compares without revealing how much of it is right."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _names(session_id: str, approval_id: str) -> tuple[str, str]:
    """The files of a text that waits, and of one that was taken."""
    rest = f"{digest_of(session_id)[:32]}-{digest_of(approval_id)[:32]}"
    return f"waiting.{rest}", f"taken.{rest}"
