"""``tools/call``: one call of a client, with progress, cancellation and approvals."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp_types import CallToolResult, InputRequiredResult

from toolkit.errors import ToolkitError
from toolkit.runtime.call.view import core_of
from toolkit.runtime.progress import Progress
from toolkit.runtime.signals import CancelSignal
from toolkit.serve.approvals import CURRENT, AskedCall, ask_by_result
from toolkit.serve.mcp_server.clients import finish_sending, ignore_failure, session_key
from toolkit.serve.mcp_server.listing import served_output_schema
from toolkit.serve.mcp_server.results import as_call_result, failed
from toolkit.serve.mcp_server.turns import MAX_WAITING, CallTurns, Turn
from toolkit.wire.call import ToolCall
from toolkit.wire.json_types import JsonObject
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams

    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.serve.mcp_server.answers import Answers
    from toolkit.serve.mcp_server.sessions import SessionToolkit, SessionToolkits

_MAX_PROGRESS_CHARACTERS: Final = 2000
_MAX_PROGRESS_WAITING: Final = 16


async def run_call(
    sessions: SessionToolkits,
    turns: CallTurns,
    answers: Answers,
    ctx: ServerRequestContext[Any, Any],
    params: CallToolRequestParams,
) -> CallToolResult | InputRequiredResult:
    """Runs the call of a client. What fails is a result that the model reads, never an error of the protocol."""
    async with turns.take() as turn:
        if turn is None:
            return failed(f"the server is busy: {MAX_WAITING} calls wait already; call the tool again later")
        # Not before it is its turn: the policy may have changed meanwhile.
        async with sessions.use(session_key(ctx)) as session:
            return await _run_in_turn(session, turn, answers, ctx, params)


async def _run_in_turn(
    session: SessionToolkit,
    turn: Turn,
    answers: Answers,
    ctx: ServerRequestContext[Any, Any],
    params: CallToolRequestParams,
) -> CallToolResult | InputRequiredResult:
    call = ToolCall(f"mcp_{secrets.token_hex(8)}", params.name, JsonObject(params.arguments or {}))
    asked = AskedCall(call.id, ctx, CancelSignal(), turn, params.request_state, params.input_responses or {})
    result = await _run_until_cancelled(session.toolkit, call, asked)
    if asked.pending is not None:
        try:
            return await ask_by_result(asked.pending, answers)
        except ToolkitError as error:  # the store of answers failed
            return failed(str(error))
    if result.ref_if_kept is not None:
        session.kept.add(result.ref_if_kept, result.name)
    row = core_of(session.toolkit).catalog.definitions.get(result.name)
    has_schema = row is not None and served_output_schema(row, ctx.protocol_version) is not None
    return as_call_result(result, has_schema=has_schema)


async def _run_until_cancelled(toolkit: AsyncRunner, call: ToolCall, asked: AskedCall) -> ToolResult:
    """The result of a call. If the client cancels it, this waits until the tool has really ended."""
    token = CURRENT.set(asked)
    # A task of its own: the SDK cancels ours again at every `await`, so it could not wait for the end of the tool.
    running = asyncio.create_task(_follow(toolkit, call, asked))
    CURRENT.reset(token)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        asked.signal.cancel("the client cancelled the call")
        with anyio.CancelScope(shield=True):
            await asyncio.wait({running})
        raise


async def _follow(toolkit: AsyncRunner, call: ToolCall, asked: AskedCall) -> ToolResult:
    sender = _ProgressSender(asked.ctx)
    try:
        async for event in toolkit.with_options(signal=asked.signal).stream(call):
            if isinstance(event, ToolResult):
                return event
            sender.send(event)
        raise AssertionError("a stream of a call ends with its result")
    finally:
        await sender.close()
        await finish_sending(asked.sending)


class _ProgressSender:
    """Sends progress to the client, no faster than it reads: while one event is being sent, only the newest are kept."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx: Final = ctx
        self._waiting: Final[deque[Progress]] = deque(maxlen=_MAX_PROGRESS_WAITING)
        self._count = 0
        self._sending: asyncio.Task[None] | None = None

    def send(self, event: Progress) -> None:
        self._waiting.append(event)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
            self._sending.add_done_callback(ignore_failure)

    async def close(self) -> None:
        """Sends what waits, and nothing after this: progress must not come after the result."""
        if self._sending is not None:
            await finish_sending({self._sending})

    async def _send(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            self._count += 1
            await self._ctx.session.report_progress(float(self._count), message=_progress_text(event))


def _progress_text(event: Progress) -> str:
    text = event.data.get("text")
    shown = event.title or (text if isinstance(text, str) else "") or event.tool_name
    return shown[-_MAX_PROGRESS_CHARACTERS:]
