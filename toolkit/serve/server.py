"""The MCP server: which requests it answers, and with what."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
)

from toolkit import __version__
from toolkit.guard.restarts import restarts
from toolkit.serve.approvals import ElicitingApprover
from toolkit.serve.calls import run_call
from toolkit.serve.http.operations import Metric
from toolkit.serve.mcp_server.answers import OwnAnswers, SharedAnswers
from toolkit.serve.mcp_server.client_log import ClientLog
from toolkit.serve.mcp_server.clients import Clients, session_key
from toolkit.serve.mcp_server.listing import list_tools
from toolkit.serve.mcp_server.roots import find_other_folder
from toolkit.serve.mcp_server.sessions import SessionToolkits
from toolkit.serve.mcp_server.turns import CallTurns
from toolkit.serve.sessions import TEMPLATE, NoSuchOutput, read_output
from toolkit.serve.setup.policy_watch import file_state, watch_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from toolkit.serve.setup.served_tools import ServedTools

NAME: Final = "typed-toolkit"


class ToolkitServer:
    """Serves the tools of one workspace to any number of clients."""

    def __init__(self, served: ServedTools, tell: Callable[[str], None]) -> None:
        """``tell`` prints a line for whoever started the server. Raises ``SetupError``."""
        self._served: Final = served
        self._tell: Final = tell
        # Before the policy is read: a change in between must not be missed.
        self._policy_state: Final = None if served.policy_file is None else file_state(served.policy_file)
        shared = served.shared
        self._answers: Final = OwnAnswers() if shared is None else SharedAnswers(shared.stores.approvals)
        self._sessions: Final = SessionToolkits(served, ElicitingApprover(self._answers))
        self._clients: Final = Clients()
        self._listening: Final = ListenHandler(self._clients.bus)
        self._turns: Final = CallTurns()
        self._counts: Final[Counter[tuple[str, str]]] = Counter()
        """Calls that have ended, by tool and outcome."""
        self.is_stopping = False
        self.protocol: Final = self._make_protocol()

    def _make_protocol(self) -> Server[None]:
        server = _AnnouncingServer(
            NAME,
            version=__version__,
            title="typed-toolkit",
            instructions=f"Tools that work in one folder, the workspace. {self._served.describe_to_clients()}",
            lifespan=lambda _: self._work(),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._listening,
        )
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        shared = self._served.shared
        keys = (
            RequestStateSecurity.ephemeral() if shared is None else RequestStateSecurity(keys=[shared.derive("state")])
        )
        server.middleware.append(RequestStateBoundary(keys, default_audience=NAME))
        server.middleware.append(self._remember)
        return server

    @asynccontextmanager
    async def _work(self) -> AsyncIterator[None]:
        """What goes on beside the requests; at the end everything is closed."""
        logger, log = (
            logging.getLogger("toolkit"),
            ClientLog(self._clients, self._served.module.CATALOG.tools.__contains__),
        )
        logger.addHandler(log)
        level = logger.level
        logger.setLevel(logging.DEBUG)  # each client chooses what it gets
        watching = None
        if self._served.policy_file is not None:
            watching = asyncio.create_task(
                watch_policy(self._served.policy_file, self._policy_state, self._replace_policy)
            )
        try:
            yield
        finally:
            logger.removeHandler(log)
            logger.setLevel(level)
            if watching is not None:
                watching.cancel()
            self.stop()
            await self._sessions.close()

    def stop(self) -> None:
        """Ends the streams on which clients wait for changes, so that the server can end."""
        self.is_stopping = True
        self._listening.close()

    def metrics(self) -> list[Metric]:
        """What the server is doing, as numbers."""
        load = self._sessions.load()
        ended: dict[tuple[tuple[str, str], ...], float] = {
            (("tool", tool), ("outcome", outcome)): number for (tool, outcome), number in sorted(self._counts.items())
        }
        return [
            Metric(
                "toolkit_calls_running", "gauge", "Calls of clients that have their turn.", {(): self._turns.running}
            ),
            Metric(
                "toolkit_calls_waiting",
                "gauge",
                "Calls of clients that wait for their turn.",
                {(): self._turns.waiting},
            ),
            Metric("toolkit_calls_total", "counter", "Calls of clients that have ended, by tool and outcome.", ended),
            Metric("toolkit_handlers_running", "gauge", "Handlers that run in threads.", {(): load.running}),
            Metric(
                "toolkit_handlers_waiting", "gauge", "Handlers that wait for a thread or a turn.", {(): load.waiting}
            ),
            Metric(
                "toolkit_handlers_abandoned", "gauge", "Handlers that run though nobody waits.", {(): load.abandoned}
            ),
            Metric("toolkit_audit_records_waiting", "gauge", "Audit records not written yet.", {(): load.unwritten}),
            Metric(
                "toolkit_helper_restarts_total",
                "counter",
                "Helper processes that ended by themselves and were started again.",
                {(("helper", helper),): number for helper, number in restarts().items()},
            ),
            Metric("toolkit_sessions_open", "gauge", "Sessions whose toolkit is open.", {(): self._sessions.count}),
        ]

    @property
    def is_shared(self) -> bool:
        """Whether a client may talk to this process now, and to another one with its next request."""
        return self._served.shared is not None

    def count_tools(self) -> int:
        """How many tools a client will see."""
        return len(self._sessions.default.toolkit.get_allowed_tools())

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _remember(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._clients.remember(ctx)
        return await call_next(ctx)

    async def _list_tools(
        self, ctx: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None
    ) -> ListToolsResult:
        await self._compare_folders(ctx)
        async with self._sessions.use(session_key(ctx)) as session:
            return ListToolsResult(tools=list_tools(session.toolkit, ctx.protocol_version))

    async def _compare_folders(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Tells a client that works elsewhere where the tools work: at its first request that can carry the question."""
        if self._clients.is_greeted(ctx):
            return
        warning = await find_other_folder(ctx, self._served.workspace)
        if warning is not None:
            self._tell(warning)
            await self._clients.tell_one(ctx, "warning", warning)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        result = await run_call(self._sessions, self._turns, self._answers, ctx, params)
        # Names come from clients: only those of tools become labels.
        known = params.name if params.name in self._served.module.CATALOG.tools else "unknown"
        self._counts[known, _outcome(result)] += 1
        return result

    async def _list_resources(
        self, ctx: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        async with self._sessions.use(session_key(ctx)) as session:
            return ListResourcesResult(resources=session.kept.list())

    async def _list_templates(
        self, ctx: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def _read_resource(
        self, ctx: ServerRequestContext[Any, Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        async with self._sessions.use(session_key(ctx)) as session:
            try:
                # In a thread: an output may be long, and so may the way to the disk.
                return await asyncio.to_thread(read_output, str(params.uri), session.open_cache(), session.session_id)
            except NoSuchOutput as error:
                raise MCPError(error.code, str(error), {"uri": str(params.uri)}) from None

    async def _set_level(self, ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
        self._clients.set_level(ctx, params.level)
        return EmptyResult()

    # -- the policy file -------------------------------------------------------------------------------------------------

    async def _replace_policy(self, problem: str | None) -> None:
        """Called when the file has changed: uses what it holds now, or keeps the earlier policy and says why."""
        from toolkit.errors import SetupError

        before = self._sessions.default.toolkit.get_allowed_tools()
        try:
            if problem is None:
                await self._sessions.replace_policy()
        except SetupError as error:
            problem = str(error)
        if problem is not None:
            self._tell(f"the policy was not replaced, the earlier one stays in force: {problem}")
            # Without the mistake: it shows where the file is.
            await self._clients.note("error", "the policy file has a mistake; the earlier policy stays in force")
            return
        self._tell(f"the policy was replaced: {self._served.policy_file}")
        if self._sessions.default.toolkit.get_allowed_tools() != before:
            await self._clients.tell_tools_changed()


def _outcome(result: CallToolResult | InputRequiredResult) -> str:
    if isinstance(result, InputRequiredResult):
        return "asked"
    return "error" if result.is_error else "ok"


class _AnnouncingServer(Server[None]):
    """Announces that its list of tools may change; the SDK's transport over HTTP asks for the defaults."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        announced = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(announced, experimental_capabilities, extensions)
