"""How the ``task`` tool hands work to another agent: an interface the application implements."""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from toolkit.guard.permission import ALL_PERMISSIONS, Permission
from toolkit.runtime.context.signals import CallSignal
from toolkit.runtime.context.toolkit_context import ToolkitContext

SubagentStatus: TypeAlias = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class SubagentRequest:
    """What a subagent is to do, and for whom. ``session_id`` is set when an earlier one is to go on."""

    description: str
    prompt: str
    subagent_type: str | None
    session_id: str | None
    parent: ToolkitContext[Any]
    signal: CallSignal
    call_id: str | None = None

    @property
    def permissions(self) -> frozenset[Permission]:
        """What the parent may do, and so the most a subagent may."""
        return self.parent.permissions

    def child_context(
        self, session_id: str, *, permissions: Collection[Permission] = ALL_PERMISSIONS, agent: str | None = None
    ) -> ToolkitContext[Any]:
        """A context for the subagent's own toolkit: the parent's workspace, policy, sandbox and approver, and of the
        wanted permissions those the parent has."""
        name = agent or self.subagent_type or "subagent"
        return self.parent.narrowed(permissions, session_id=session_id, agent=name)


@dataclass(frozen=True, slots=True)
class SubagentResult:
    """How it ended, what it says, and the session to ask for when it is to go on."""

    status: SubagentStatus
    output: str
    session_id: str


class SubagentRunner(Protocol):
    """Runs subagents; put in place with ``ToolkitContext(overrides={SUBAGENT_RUNNER.id: lambda: runner})``."""

    def run(self, request: SubagentRequest, /) -> SubagentResult | Awaitable[SubagentResult]:
        """Runs one to its end, sync or async; looks at ``request.signal`` to stop when it is told to."""
