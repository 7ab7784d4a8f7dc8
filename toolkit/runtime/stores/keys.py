"""The dependency keys of the built-in tools' stores; each may be overridden by its id."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.permission import ALL_PERMISSIONS, Permission
from toolkit.inject import DependencyKey
from toolkit.runtime.context import ToolkitContext
from toolkit.runtime.signals import CallSignal
from toolkit.runtime.stores.approvals import ApprovalStore, FileApprovalStore
from toolkit.runtime.stores.locks import WriteLocks
from toolkit.runtime.stores.output_files import FileOutputCache
from toolkit.runtime.stores.outputs import AsyncOutputCache, NullCache, OutputCache
from toolkit.runtime.stores.todos import FileTodoStore, TodoStore
from toolkit.runtime.stores.waiting import as_blocking

# ----------------------------------------------------------------------------------------------------------------------
# How the ``task`` tool passes work to another agent: an interface that the application implements.

SubagentStatus: TypeAlias = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class SubagentRequest:
    """The task of a subagent. ``session_id`` is set if an earlier subagent should continue."""

    description: str
    prompt: str
    subagent_type: str | None
    session_id: str | None
    parent: ToolkitContext[Any]
    signal: CallSignal
    call_id: str | None = None

    @property
    def permissions(self) -> frozenset[Permission]:
        """The permissions of the parent: a subagent cannot have more."""
        return self.parent.permissions

    def child_context(
        self, session_id: str, *, permissions: Collection[Permission] = ALL_PERMISSIONS, agent: str | None = None
    ) -> ToolkitContext[Any]:
        """A context for the subagent's own toolkit: the parent's workspace, policy, sandbox and approver, and those of
        the wanted permissions that the parent has."""
        name = agent or self.subagent_type or "subagent"
        return self.parent.narrow(permissions, session_id=session_id, agent=name)


@dataclass(frozen=True, slots=True)
class SubagentResult:
    """How it ended, its answer, and the session with which it can continue."""

    status: SubagentStatus
    output: str
    session_id: str


class SubagentRunner(Protocol):
    """Runs subagents; configured with ``ToolkitContext(overrides={SUBAGENT_RUNNER.id: lambda: runner})``."""

    def run(self, request: SubagentRequest, /) -> SubagentResult | Awaitable[SubagentResult]:
        """Runs one to its end, sync or async; checks ``request.signal`` to stop when the call is cancelled."""


logger: Final = logging.getLogger("toolkit")


def _outputs(context: ToolkitContext[Any]) -> Iterator[OutputCache]:
    try:
        cache: OutputCache = FileOutputCache(context.state.folder("outputs"))
    except SetupError as error:
        # Without a state directory there are no refs, but every answer.
        logger.warning("outputs cannot be stored: %s", error)
        cache = NullCache()
    yield cache
    cache.close()


def _as_blocking_cache(cache: Any) -> OutputCache:
    if isinstance(cache, AsyncOutputCache):
        from toolkit.runtime.stores.outputs import BlockingCache

        return BlockingCache(cache)
    given: OutputCache = cache
    return given


def _todos(context: ToolkitContext[Any]) -> TodoStore:
    return FileTodoStore(context.state.folder("todos"))


def _approvals(context: ToolkitContext[Any]) -> ApprovalStore:
    return FileApprovalStore(context.state.folder("approvals"))


def _no_locks() -> WriteLocks | None:
    return None


def _no_runner() -> SubagentRunner | None:
    return None


OUTPUT_CACHE: Final[DependencyKey[OutputCache]] = DependencyKey(
    "output_cache", _outputs, lifetime="run", adapt=_as_blocking_cache
)
"""Keeps whole outputs; by default in files in the state directory."""

TODO_STORE: Final[DependencyKey[TodoStore]] = DependencyKey("todo_store", _todos, lifetime="run", adapt=as_blocking)
"""Keeps todo lists; by default in files in the state directory."""

APPROVAL_STORE: Final[DependencyKey[ApprovalStore]] = DependencyKey(
    "approval_store", _approvals, lifetime="run", adapt=as_blocking
)
"""Keeps suspended approvals; by default in files in the state directory."""

WRITE_LOCKS: Final[DependencyKey[WriteLocks | None]] = DependencyKey(
    "write_locks", _no_locks, lifetime="run", adapt=as_blocking
)
"""Locks that the file tools hold around every change, for files that several machines share; None by default, as the locks
between the processes of this machine need no store."""

SUBAGENT_RUNNER: Final[DependencyKey[SubagentRunner | None]] = DependencyKey(
    "subagent_runner", _no_runner, lifetime="run"
)
"""Runs subagents for ``task``; None until the application overrides it."""
