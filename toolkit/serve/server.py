"""The MCP server: the requests it answers, what people answered it, and the log messages it sends to clients."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import anyio
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    EmptyResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RootsCapability,
    SetLevelRequestParams,
)

from toolkit import __version__
from toolkit.forks import restarts
from toolkit.serve.approvals import CURRENT, AskedCall, ElicitingApprover
from toolkit.serve.calls import CallTurns, list_tools, run_call
from toolkit.serve.http import Metric
from toolkit.serve.sessions import (
    TEMPLATE,
    Clients,
    NoSuchOutput,
    SessionToolkits,
    ignore_failure,
    read_output,
    send_log,
    session_key,
)
from toolkit.serve.setup import file_state, watch_policy

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp_types import LoggingLevel

    from toolkit.runtime.approvals import ApprovalRequest
    from toolkit.serve.setup import ServedTools
    from toolkit.stores import ApprovalStore


# ----------------------------------------------------------------------------------------------------------------------
# People's answers, each used once: this process remembers them, or the store that several processes share.

_MAX_USED: Final = 10_000
_QUESTION_SECONDS: Final = 60 * 60
"""How long a question stays open where several processes share it."""


class Answers(Protocol):
    """Which answers were asked for, and not used yet."""

    async def expect(self, request: ApprovalRequest) -> str:
        """A new name for the answer to this question."""

    async def use(self, request: ApprovalRequest, name: str) -> bool:
        """Whether this answer may be used now. It may not be a second time."""


class OwnAnswers:
    """The answers to the questions of one process, which alone can read the state of its questions."""

    def __init__(self) -> None:
        self._used: Final[OrderedDict[str, None]] = OrderedDict()

    async def expect(self, request: ApprovalRequest) -> str:
        return secrets.token_hex(16)

    async def use(self, request: ApprovalRequest, name: str) -> bool:
        if name in self._used:
            return False
        self._used[name] = None
        while len(self._used) > _MAX_USED:
            self._used.popitem(last=False)
        return True


class SharedAnswers:
    """The answers to the questions of several processes: whoever takes one from the store has it."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store: Final = store

    async def expect(self, request: ApprovalRequest) -> str:
        name = secrets.token_hex(16)
        await asyncio.to_thread(
            self._store.put,
            request.session_id,
            name,
            request.tool_name,
            digest=request.digest,
            seconds=_QUESTION_SECONDS,
        )
        return name

    async def use(self, request: ApprovalRequest, name: str) -> bool:
        found = await asyncio.to_thread(self._store.take, request.session_id, name, digest=request.digest)
        return found is not None


# ----------------------------------------------------------------------------------------------------------------------
# What handlers log during a call (``ctx.logger``), for the client that made the call. People read it, models do not.

_MAX_PER_CALL: Final = 100
_MAX_CHARACTERS: Final = 2000
_PREFIX: Final = "toolkit."


class ClientLog(logging.Handler):
    """Passes the messages of handlers on. Tracebacks and messages of the toolkit itself stay in the server's own log: they
    show paths of this machine."""

    def __init__(self, clients: Clients, is_tool: Callable[[str], bool]) -> None:
        super().__init__()
        self._clients: Final = clients
        self._is_tool: Final = is_tool
        self._loop: Final = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._pass_on(record)
        except Exception:  # a message that cannot be formatted, or a loop that is closed: never the tool's problem
            self.handleError(record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        call = CURRENT.get()
        name, level = record.name.removeprefix(_PREFIX), _level(record.levelno)
        if call is None or not self._is_tool(name) or not self._clients.wants(call.ctx, level):
            return
        if call.logged < _MAX_PER_CALL:
            call.logged += 1
            text = record.getMessage()[:_MAX_CHARACTERS]
            self._loop.call_soon_threadsafe(self._start, call, level, text, name)

    def _start(self, call: AskedCall, level: LoggingLevel, text: str, name: str) -> None:
        task = self._loop.create_task(send_log(call.ctx.session, level, text, name, call.ctx.request_id))
        call.sending.add(task)
        task.add_done_callback(ignore_failure)


def _level(number: int) -> LoggingLevel:
    if number >= logging.CRITICAL:
        return "critical"
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"


# ----------------------------------------------------------------------------------------------------------------------
# The folders that a client works in, compared with the workspace.

_FOLDERS_SECONDS: Final = 2.0
"""How long the first list of tools waits for a client that announced folders and does not name them."""
_MAX_SHOWN: Final = 500


async def find_other_folder(ctx: ServerRequestContext[Any, Any], workspace: Path) -> str | None:
    """A sentence if the client works in other folders than the tools; None if it does not, or does not say.

    A client's folders never widen what the tools may reach: the workspace is chosen where the server is started.
    """
    asked = ClientCapabilities(roots=RootsCapability())
    if not ctx.session.can_send_request or not ctx.session.check_client_capability(asked):
        return None
    beside = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = None
    with anyio.move_on_after(_FOLDERS_SECONDS):
        try:
            answer = await ctx.session.send_request(ListRootsRequest(), ListRootsResult, metadata=beside)
        except Exception:  # the client announced roots and does not answer, or answers nonsense
            return None
    folders = [] if answer is None else list(_folders(str(root.uri) for root in answer.roots))
    if not folders or any(_overlap(folder, workspace) for folder in folders):
        return None
    theirs = folders[0][:_MAX_SHOWN]
    return (
        f"the client works in {theirs}, but the tools work in {workspace};"
        f" start the server with --workspace {theirs} if that is not meant"
    )


def _folders(uris: Iterable[str]) -> Iterable[str]:
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            yield unquote(parts.path)


def _overlap(folder: str, workspace: Path) -> bool:
    """Whether one of the two contains the other."""
    first, second = os.path.realpath(folder), os.path.realpath(workspace)
    return os.path.commonpath([first, second]) in (first, second)


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
        """Whether a client may talk to this process now, and to a different one with its next request."""
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
