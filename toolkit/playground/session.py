"""One playground: a toolkit over what is served, its calls, and where they are recorded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolkit.playground.answers.timeline import describe_audit
from toolkit.playground.answers.token_costs import measure_tools
from toolkit.playground.answers.tools import describe_tool, list_tools
from toolkit.playground.answers.verdicts import explain_call
from toolkit.playground.calls.approval_desk import ApprovalDesk
from toolkit.playground.calls.running_calls import RunningCalls
from toolkit.runtime.call.view import core_of

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.toolkit import Core
    from toolkit.serve.setup.served_tools import ServedTools


@dataclass
class PlaygroundSession:
    """What the addresses of the page work on."""

    served: ServedTools
    policy: SecurityPolicy[Any]
    toolkit: AsyncRunner
    approvals: ApprovalDesk
    calls: RunningCalls
    audit_is_temporary: bool

    @classmethod
    def open(cls, served: ServedTools, *, audit_is_temporary: bool) -> PlaygroundSession:
        """Builds the toolkit. Raises ``SetupError`` for what is wrong with the policy, the workspace or the audit log."""
        policy = served.load_policy()
        approvals = ApprovalDesk()
        context = served.make_context(policy, approver=approvals.ask)
        toolkit = served.module.create_async_agent_toolkit(context)
        return cls(served, policy, toolkit, approvals, RunningCalls(toolkit), audit_is_temporary)

    @cached_property
    def core(self) -> Core:
        return core_of(self.toolkit)

    @cached_property
    def _turns_to_explain(self) -> asyncio.Semaphore:
        """Verdicts are found in threads, and may read files; a page that types fast gets no more of them than two."""
        return asyncio.Semaphore(2)

    async def describe(self) -> dict[str, Any]:
        """What the head of the page says. The first answer tries out the sandbox, which starts a process."""
        return await asyncio.to_thread(self._describe)

    def _describe(self) -> dict[str, Any]:
        from toolkit import __version__

        return {
            "version": __version__,
            "package": self.core.catalog.package,
            "workspace": self.core.context.workspace,
            "allows": self.served.describe(),
            "sandbox": self.core.guards.process.choice.reason,
            "audit": str(self.served.audit),
            "auditIsTemporary": self.audit_is_temporary,
        }

    async def list_tools(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(list_tools, self.core)

    async def describe_tool(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(describe_tool, self.core, name)

    async def explain(self, name: str, arguments: str) -> dict[str, Any]:
        async with self._turns_to_explain:
            return await asyncio.to_thread(explain_call, self.core, self.policy, name, arguments)

    async def describe_audit(self) -> dict[str, Any]:
        return await asyncio.to_thread(describe_audit, str(self.served.audit), self.core.context.session_id)

    async def measure_tools(self) -> dict[str, Any]:
        return await asyncio.to_thread(
            lambda: measure_tools(self.toolkit.get_allowed_tools(), self.toolkit.signatures())
        )

    def stop(self) -> None:
        """Cancels what runs; called in the event loop when the server is told to stop."""
        self.calls.cancel_all("the playground was stopped")

    async def close(self) -> None:
        """Waits for the calls, and closes the toolkit."""
        self.stop()
        await self.calls.wait()
        await self.toolkit.close()
