"""The dependency keys of the built-in tools' stores; each may be overridden by its id."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from toolkit.errors import SetupError
from toolkit.inject.key import DependencyKey
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.output.cache.null_cache import NullCache
from toolkit.runtime.stores.approvals import ApprovalStore, FileApprovalStore
from toolkit.runtime.stores.locks import WriteLocks
from toolkit.runtime.stores.output_files import FileOutputCache
from toolkit.runtime.stores.outputs import AsyncOutputCache, OutputCache
from toolkit.runtime.stores.subagent import SubagentRunner
from toolkit.runtime.stores.todo_files import FileTodoStore
from toolkit.runtime.stores.todos import TodoStore
from toolkit.runtime.stores.waiting import as_blocking

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
        from toolkit.runtime.output.cache.blocking_cache import BlockingCache

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
