"""``tools/call`` with progress, cancellation and results, and ``tools/list``: the tools that a client may call."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types import ContentBlock as McpBlock
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from toolkit.errors import ToolkitError
from toolkit.guard.policy.rule import effective_hints
from toolkit.runtime.catalog import strip_marks
from toolkit.runtime.progress import Progress
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.toolkit import View, core_of
from toolkit.serve.approvals import CURRENT, AskedCall, ask_by_result
from toolkit.serve.sessions import finish_sending, ignore_failure, output_uri, session_key
from toolkit.serve.setup import says_what_it_does
from toolkit.wire.call import JsonObject, ToolCall, ToolResult
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams

    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.catalog import ToolInfo
    from toolkit.serve.server import Answers
    from toolkit.serve.sessions import SessionToolkit, SessionToolkits
    from toolkit.wire.definition import ToolDefinition


# ----------------------------------------------------------------------------------------------------------------------
# Turns: how many calls run at the same time.

_MAX_RUNNING: Final = 32
MAX_WAITING: Final = 256


class Turn:
    """The right of one call to run. It is given back while a person thinks: others need not wait for that.

    A program may ask about several calls at once. It has its turn again when the last of them is answered.
    """

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns: Final = turns
        self._is_held = True
        self._questions = 0

    def ask(self) -> None:
        """A question is open from now on."""
        self._questions += 1
        self.give_back()

    async def take_again(self) -> None:
        """A question was answered. Waits for a turn if no other one is open."""
        self._questions -= 1
        if not self._questions and not self._is_held:
            # Before anything is awaited, so that it is taken once. Whoever gives it back meanwhile is even with the end of
            # the wait: one release, one acquisition.
            self._is_held = True
            try:
                await self._turns.acquire()
            except BaseException:
                self._is_held = False
                raise

    def give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._turns.release()


class CallTurns:
    """Lets some calls run, and some more wait. Calls beyond those are refused."""

    def __init__(self) -> None:
        self._turns: Final = asyncio.Semaphore(_MAX_RUNNING)
        self.waiting = 0
        self.running = 0
        """Also those that wait for a person."""

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Turn | None]:
        """The turn of a call; None if too many wait already."""
        if self.waiting >= MAX_WAITING:
            yield None
            return
        self.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.waiting -= 1
        turn = Turn(self._turns)
        self.running += 1
        try:
            yield turn
        finally:
            self.running -= 1
            turn.give_back()


# ----------------------------------------------------------------------------------------------------------------------
# The result of a call as MCP content: the text that a model reads, media, the typed output, a link to what was cut.

_UNKNOWN_TYPE: Final = "application/octet-stream"


def as_call_result(result: ToolResult, *, has_schema: bool) -> CallToolResult:
    """``has_schema`` says whether the client was told an output schema: it expects structured content then."""
    if result.kind == "error":
        return failed(str(result.value))
    content = list(_content(result))
    ref = result.ref_if_kept
    if ref is not None:
        content.append(ResourceLink(uri=output_uri(ref), name=f"whole output of {result.name}", mime_type="text/plain"))
    return CallToolResult(content=content, structured_content=_structured(result.output, has_schema=has_schema))


def failed(text: str) -> CallToolResult:
    """A call without a result: the model reads why, and what to do."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _content(result: ToolResult) -> Iterator[McpBlock]:
    value: Any = result.value
    if result.kind == "multimodal":
        yield from as_mcp_blocks(value)
    elif result.kind == "text":
        yield TextContent(text=value)
    else:
        yield TextContent(text=json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def as_mcp_blocks(blocks: Iterable[ContentBlock]) -> Iterator[McpBlock]:
    """Blocks of ours in MCP's forms. What has only an address is a link; another provider's file can only be named."""
    for position, block in enumerate(blocks):
        kind = block.media_type or _UNKNOWN_TYPE
        if block.text is not None:
            yield TextContent(text=block.text)
        elif block.url is not None:
            yield ResourceLink(uri=block.url, name=block.filename or block.type, mime_type=block.media_type)
        elif block.data is None:
            yield TextContent(text=f"[{block.type} {block.file_id!r}, a file of {block.provider or 'a provider'}]")
        elif block.type == "image":
            yield ImageContent(data=block.data, mime_type=kind)
        elif block.type == "audio":
            yield AudioContent(data=block.data, mime_type=kind)
        else:
            uri = f"attachment:{position}/{block.filename or block.type}"
            yield EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=kind, blob=block.data))


def _structured(output: object, *, has_schema: bool) -> Any:
    if isinstance(output, ContentOutput):
        return output.structured if isinstance(output.structured, dict) else None
    if not has_schema:
        return None
    if isinstance(output, BaseModel):
        # Unset means absent: an optional field must not become null where the schema forbids null.
        return output.__pydantic_serializer__.to_python(output, mode="json", by_alias=True, exclude_unset=True)
    return to_jsonable_python(output, by_alias=True)


# ----------------------------------------------------------------------------------------------------------------------
# What ``tools/list`` answers: the tools that the policy may allow, with both schemas and their hints.


def list_tools(toolkit: View, protocol_version: str) -> list[Tool]:
    """The tools to offer, in catalog order."""
    core = core_of(toolkit)
    rows = core.catalog.definitions
    return [_as_mcp(core.define(info), info, rows[info.name], protocol_version) for info in core.offered_tools()]


def _as_mcp(definition: ToolDefinition, info: ToolInfo, row: Mapping[str, Any], protocol_version: str) -> Tool:
    return Tool(
        name=definition.name,
        title=row["title"],
        description=definition.description,
        input_schema=dict(definition.parameters),
        output_schema=served_output_schema(row, protocol_version),
        annotations=_annotations(info, row["annotations"] or {}),
    )


def served_output_schema(row: Mapping[str, Any], protocol_version: str) -> dict[str, Any] | None:
    """The output schema of a tool, if it has one that the client's revision of the protocol can carry.

    Until 2025-11-25 outputs are objects. Lists and plain values are sent there as text alone.
    """
    schema = row["outputSchema"]
    if schema is None or protocol_version not in MODERN_PROTOCOL_VERSIONS and schema.get("type") != "object":
        return None
    stripped: dict[str, Any] = strip_marks(schema)
    return stripped


def _annotations(info: ToolInfo, declared: Mapping[str, Any]) -> ToolAnnotations:
    """What clients may show or ask about: what a tool declares, and what its permissions say where it declares nothing.

    A tool that needs the permission to write is never shown as read-only. About a tool that declares nothing at all nothing
    is said, and the protocol assumes the worst.
    """
    if not declared and not says_what_it_does(info, declared):
        return ToolAnnotations()
    honest = {**declared, "readOnlyHint": False} if "write" in info.required else declared
    hints = effective_hints(honest, (*info.required, *info.optional))
    only_reads = "not-read-only" not in hints
    return ToolAnnotations(
        title=declared.get("title"),
        read_only_hint=only_reads if says_what_it_does(info, declared) else None,
        destructive_hint="destructive" in hints,
        idempotent_hint="not-idempotent" not in hints,
        open_world_hint="open-world" in hints,
    )


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
