"""Where the records of calls go: the interface of a log that is not a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

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
    ...     with create_agent_toolkit(context) as toolkit:
    ...         _ = toolkit.tools.tree()
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


class MustWait(Exception):
    """Raised by a ``check`` that allows no wait, and by a sink that the same thread is already appending to."""
