"""What ``ToolkitContext(audit=...)`` takes: a path, a file with settings, or a sink of your own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from toolkit.errors import SetupError

# ----------------------------------------------------------------------------------------------------------------------
# Where the records of calls go: the interface of a log that is not a file.

Check: TypeAlias = Callable[[], None]
"""Called by who waits. It raises when the wait must end: the call was cancelled, or is past its deadline."""


@runtime_checkable
class AuditSink(Protocol):
    """Stores the records of calls, in the order in which they come. Used by several threads at once.

    The sink chains them, because only it knows which record is the last one when several processes append:
    ``chain_records([record], previous)`` returns the line to store and the hash of it. ``verify_lines`` checks such lines.

    Who makes a sink closes it; a toolkit that is closed only calls ``flush``.

    >>> class ListSink:
    ...     blocking = False
    ...     def __init__(self) -> None:
    ...         self.lines, self.last, self.lock = b"", AUDIT_BEGINNING, threading.Lock()
    ...     def append(self, record, check) -> None:
    ...         with self.lock:
    ...             line, self.last = chain_records([record], self.last)
    ...             self.lines += line
    ...     def flush(self) -> None:
    ...         pass
    >>> import tempfile, threading
    >>> from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
    >>> from toolkit.stores import AUDIT_BEGINNING, chain_records, verify_lines
    >>> sink = ListSink()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     context = ToolkitContext(folder, SecurityPolicy(default="allow"), audit=sink)
    ...     with create_agent_toolkit(context) as tk:
    ...         _ = tk.tools.tree()
    >>> verify_lines(sink.lines.splitlines(keepends=True)).problems
    ()
    """

    @property
    def blocking(self) -> bool:
        """Whether ``append`` may take long, because of a network or a disk. Async toolkits then call it in a thread."""
        ...

    def append(self, record: Mapping[str, Any], check: Check, /) -> None:
        """Stores a record, or raises: the call that it belongs to then does not run.

        Call ``check`` again and again while you wait, and let through what it raises. Nothing is stored then.
        """
        ...

    def flush(self) -> None:
        """Returns when everything that was appended is stored as safely as the sink promises."""
        ...


MakeRecord: TypeAlias = Callable[[], dict[str, Any]]
"""Makes a record when it is stored."""


class MustWait(Exception):
    """Raised by a ``check`` that allows no wait, and by a sink that the same thread is already appending to."""


_MAX_SECONDS = 60.0


@dataclass(frozen=True, slots=True, init=False)
class AuditFile:
    """An audit log in a file, for ``ToolkitContext(audit=...)``; a path alone means the defaults.

    :param path: where it is, outside the workspace and every other root.
    :param batch_seconds: None writes each record at once: a call that ran is in the file, even if the process is killed.
        A number hands records over and writes them together, at latest after so many seconds: calls are faster, and the
        records of that time are lost if the process is killed.
    :param fsync: wait until the disk has what was written: nothing is lost if the machine loses power, except what waits
        to be written in a batch.
    :param max_bytes: begin a new file when this one has so many bytes. The older ones are ``<path>.1``, ``<path>.2``, ...
    :param keep: how many older files are kept; None keeps all.
    :param touched: whether records say what a call touches: real paths, the words of commands, hosts. `toolkit policy learn`
        needs that.

    >>> AuditFile("audit.jsonl", batch_seconds=0.05, max_bytes=100_000_000).path
    'audit.jsonl'
    """

    path: str
    batch_seconds: float | None
    fsync: bool
    max_bytes: int | None
    keep: int | None
    touched: bool

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        batch_seconds: float | None = None,
        fsync: bool = False,
        max_bytes: int | None = None,
        keep: int | None = None,
        touched: bool = True,
    ) -> None:
        if batch_seconds is not None and not 0 < batch_seconds <= _MAX_SECONDS:
            raise SetupError(f"batch_seconds must be above 0 and at most {_MAX_SECONDS:g}, not {batch_seconds!r}")
        if max_bytes is not None and max_bytes < 1:
            raise SetupError(f"max_bytes must be at least 1, not {max_bytes!r}")
        if keep is not None and max_bytes is None:
            raise SetupError("keep says how many older files are kept; give max_bytes as well, so that there are any")
        if keep is not None and keep < 0:
            raise SetupError(f"keep must be at least 0, not {keep!r}")
        object.__setattr__(self, "path", os.fspath(path))
        object.__setattr__(self, "batch_seconds", batch_seconds)
        object.__setattr__(self, "fsync", fsync)
        object.__setattr__(self, "max_bytes", max_bytes)
        object.__setattr__(self, "keep", keep)
        object.__setattr__(self, "touched", touched)


def read_audit(given: object) -> AuditFile | AuditSink:
    """The log that a context was given: a path, ``AuditFile(...)`` or a sink."""
    if isinstance(given, AuditFile):
        return given
    if isinstance(given, str | os.PathLike):
        return AuditFile(given)
    if isinstance(given, AuditSink):
        return given
    what = type(given).__name__
    raise SetupError(f"audit takes a path, AuditFile(...) or an AuditSink (append, flush, blocking), not {what}")
