"""How the ``task`` tool passes work to another agent: an interface that the application implements."""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from toolkit.guard.permission import ALL_PERMISSIONS, Permission
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.signals import CallSignal

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
