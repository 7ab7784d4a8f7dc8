"""What belongs to one client session: its toolkit, its long outputs as resources, and what it is sent apart from answers.

Promise: no other session can read what a toolkit keeps (long outputs, todos).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import warnings
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final, get_args
from urllib.parse import parse_qsl, quote, unquote

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    LoggingLevel,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolkit.errors import ToolkitError
from toolkit.runtime.toolkit import core_of
from toolkit.runtime.turns import Load

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import RequestId

    from toolkit.runtime.approvals import Approver
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.stores.outputs import CachedOutput, OutputCache
    from toolkit.serve.setup import ServedTools
    from toolkit.wire.content import ContentBlock


# ----------------------------------------------------------------------------------------------------------------------
# Long outputs as resources: what a tool's text shows only in part can be read whole, by lines.

_SCHEME: Final = "toolkit-output:///"
_URI: Final = re.compile(rf"{re.escape(_SCHEME)}([^?#]+)(?:\?([^#]*))?\Z")
_MAX_BYTES: Final = 128 * 1024
"""How much of an output one answer holds: escaped as JSON, still less than the megabyte that the official client takes over
HTTP. The rest is read by line numbers."""
_MAX_BLOCK_BYTES: Final = 700 * 1024
"""The same for an output of media, which have no lines. Base64 needs no escapes."""
_MAX_LISTED: Final = 100

TEMPLATE: Final = ResourceTemplate(
    uri_template=f"{_SCHEME}{{ref}}{{?offset,limit}}",
    name="kept output",
    description="The whole output of a call whose answer was cut. `offset` is the first line, from 1; `limit` counts lines.",
)


class NoSuchOutput(Exception):
    """A URI that names no kept output of this session."""

    code: Final = INVALID_PARAMS


def output_uri(ref: str) -> str:
    """The address of a kept output."""
    return f"{_SCHEME}{quote(ref, safe='')}"


class KeptOutputs:
    """The outputs of one session that a client can list: the last ones whose answers were cut."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, str] = OrderedDict()

    def add(self, ref: str, tool_name: str) -> None:
        self._names[ref] = tool_name
        while len(self._names) > _MAX_LISTED:
            self._names.popitem(last=False)

    def list(self) -> list[Resource]:
        """The newest first."""
        return [
            Resource(uri=output_uri(ref), name=f"whole output of {name}", mime_type="text/plain")
            for ref, name in reversed(self._names.items())
        ]


def read_output(uri: str, cache: OutputCache, session_id: str) -> ReadResourceResult:
    """One kept output, or a part of it. Refs of other sessions do not exist here."""
    match = _URI.match(uri)
    if match is None:
        raise NoSuchOutput(f"unknown resource {uri!r}; the resources of this server are {TEMPLATE.uri_template}")
    offset, limit = _lines_wanted(match[2] or "")
    try:
        with cache.open(session_id, unquote(match[1])) as kept:
            if blocks := kept.blocks():
                return ReadResourceResult(contents=list(_block_contents(uri, blocks)))
            return ReadResourceResult(contents=_text_contents(uri.partition("?")[0], kept, offset, limit))
    except ToolkitError as error:
        raise NoSuchOutput(error.message) from None


def _lines_wanted(query: str) -> tuple[int, int | None]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    numbers = {name: value for name, value in given.items() if name in ("offset", "limit")}
    wrong = [
        name for name, value in given.items() if name not in numbers or not re.fullmatch(r"[1-9][0-9]{0,8}", value)
    ]
    if wrong:
        raise NoSuchOutput(f"{wrong[0]!r} is wrong; write ?offset=LINE&limit=LINES with whole numbers from 1")
    return int(numbers.get("offset", 1)), int(numbers["limit"]) if "limit" in numbers else None


def _text_contents(
    uri: str, kept: CachedOutput, offset: int, limit: int | None
) -> list[TextResourceContents | BlobResourceContents]:
    """The lines, as many as fit; then where to go on. Of a line that does not fit, its beginning."""
    last = kept.total_lines if limit is None else min(kept.total_lines, offset + limit - 1)
    start, end = kept.start_of(offset), kept.start_of(last + 1)
    data = b"".join(_take(kept, start, min(end, start + _MAX_BYTES)))
    note = ""
    if start + len(data) < end:
        whole = data.count(b"\n")
        data = data[: data.rindex(b"\n") + 1] if whole else data
        following = offset + max(whole, 1)
        cut = "" if whole else f"the rest of line {offset} is too long to be shown; "
        note = f"[{cut}read {uri}?offset={following} for the lines from {following} to {kept.total_lines}]"
    contents: list[TextResourceContents | BlobResourceContents] = [
        TextResourceContents(uri=uri, mime_type=kept.media_type or "text/plain", text=data.decode(errors="replace"))
    ]
    if note:
        contents.append(TextResourceContents(uri=uri, mime_type="text/plain", text=note))
    return contents


def _take(kept: CachedOutput, start: int, end: int) -> Iterator[bytes]:
    for chunk in kept.chunks(start):
        yield chunk[: end - start]
        start += len(chunk)
        if start >= end:
            return


def _block_contents(
    uri: str, blocks: tuple[ContentBlock, ...]
) -> Iterator[TextResourceContents | BlobResourceContents]:
    """Texts and media, as far as they fit; what does not is named with its size."""
    room = _MAX_BLOCK_BYTES
    for block in blocks:
        kind, size = block.media_type or "text/plain", len(block.text or block.data or "")
        if size > room:
            note = f"[{block.type} of {size} bytes, too large for one answer: call the tool again for a smaller part]"
            yield TextResourceContents(uri=uri, mime_type="text/plain", text=note)
            continue
        room -= size
        if block.text is not None:
            yield TextResourceContents(uri=uri, mime_type=kind, text=block.text)
        elif block.data is not None:
            yield BlobResourceContents(uri=uri, mime_type=block.media_type, blob=block.data)


MAX_SESSIONS: Final = 100
"""Sessions of clients at the same time; further ones are refused until one ends."""
_MAX_OPEN: Final = 16
"""Toolkits that stay open. One that is closed is opened again by the next call of its session, and finds what it kept."""


class SessionToolkit:
    """The toolkit of one session, open."""

    def __init__(self, toolkit: AsyncRunner, kept: KeptOutputs) -> None:
        self.toolkit: Final = toolkit
        self.kept: Final = kept
        self.users = 0
        self.is_retired = False

    @property
    def session_id(self) -> str:
        return core_of(self.toolkit).context.session_id

    def open_cache(self) -> OutputCache:
        return core_of(self.toolkit).output_cache()


class SessionToolkits:
    """Opens toolkits by session, and closes those that nobody uses."""

    def __init__(self, served: ServedTools, approver: Approver) -> None:
        self._served: Final = served
        self._approver: Final = approver
        self._secret: Final = secrets.token_bytes(32) if served.shared is None else served.shared.derive("sessions")
        self._open: Final[OrderedDict[str, SessionToolkit]] = OrderedDict()
        self._kept: Final[OrderedDict[str, KeptOutputs]] = OrderedDict()
        self._policy: Any = served.load_policy()
        # A policy that does not fit the tools is an error before the first client comes.
        self._open[""] = self._make("", self._policy)

    @property
    def default(self) -> SessionToolkit:
        """The toolkit of clients without a session. It is always open."""
        return self._open[""]

    @property
    def count(self) -> int:
        """How many toolkits are open."""
        return len(self._open)

    def load(self) -> Load:
        """What the toolkits of all sessions do at this moment."""
        loads = [entry.toolkit.load for entry in self._open.values()]
        return Load(*(sum(numbers) for numbers in zip(*map(astuple, loads), strict=True))) if loads else Load(0, 0, 0)

    @asynccontextmanager
    async def use(self, key: str) -> AsyncIterator[SessionToolkit]:
        """The toolkit of a session; it stays open at least until the end of the block, whatever happens meanwhile."""
        entry = self._open.get(key)
        if entry is None:
            entry = self._open[key] = self._make(key, self._policy)
        self._open.move_to_end(key)
        entry.users += 1  # before anything is awaited: another session must not close it
        try:
            await self._close_unused()
            yield entry
        finally:
            entry.users -= 1
            if entry.is_retired and not entry.users:
                await _close(entry)

    async def replace_policy(self) -> None:
        """Loads the policy again, and uses it for calls from now on. Raises ``PolicyError``, and nothing changes."""
        policy = self._served.load_policy()
        fresh = self._make("", policy)
        self._policy = policy
        old = list(self._open.values())
        self._open.clear()
        self._open[""] = fresh
        for entry in old:
            await self._retire(entry)

    async def close(self) -> None:
        """Closes every toolkit. Calls that still run fail."""
        entries = list(self._open.values())
        self._open.clear()
        for entry in entries:
            entry.is_retired = True
            await _close(entry)

    def _make(self, key: str, policy: Any) -> SessionToolkit:
        # A name for the state directory that says nothing about the id that the client sends.
        name = hashlib.sha256(self._secret + key.encode()).hexdigest()[:32]
        context = self._served.make_context(policy, approver=self._approver, session_id=name)
        return SessionToolkit(self._served.module.create_async_agent_toolkit(context), self._kept_by(key))

    def _kept_by(self, key: str) -> KeptOutputs:
        kept = self._kept.setdefault(key, KeptOutputs())
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_SESSIONS + 1:
            self._kept.popitem(last=False)
        return kept

    async def _close_unused(self) -> None:
        unused = [key for key, entry in self._open.items() if key and not entry.users]
        surplus = [self._open.pop(key) for key in unused[: max(0, len(self._open) - _MAX_OPEN)]]
        for entry in surplus:
            await self._retire(entry)

    @staticmethod
    async def _retire(entry: SessionToolkit) -> None:
        entry.is_retired = True
        if not entry.users:
            await _close(entry)


async def _close(entry: SessionToolkit) -> None:
    # The task may have been cancelled; what is open must be closed all the same.
    with anyio.CancelScope(shield=True):
        await entry.toolkit.close()


# ----------------------------------------------------------------------------------------------------------------------
# Connected clients: what they are sent apart from answers to their requests.

_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)
SEND_SECONDS: Final = 5.0
"""How long a client may take to read a note before it goes without."""
SESSION_HEADER: Final = "mcp-session-id"


def session_key(ctx: ServerRequestContext[Any, Any]) -> str:
    """The session of a request. Over stdio there is one; from 2026-07-28 on the protocol has none."""
    if ctx.request is None or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return ""
    key: str = ctx.request.headers.get(SESSION_HEADER, "")
    return key


class Clients:
    """The clients of a server. Those of older revisions get notes on their connection, the others by subscription."""

    def __init__(self) -> None:
        self.bus: Final = InMemorySubscriptionBus()
        self._sessions: Final[OrderedDict[str, ServerSession]] = OrderedDict()
        self._levels: Final[dict[str, LoggingLevel]] = {}
        self._greeted: Final[set[str]] = set()

    def remember(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Called for every request."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        key = session_key(ctx)
        if ctx.request is not None and not key:
            return  # the request that opens a session has no id yet; the next one has
        self._sessions[key] = ctx.session
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            gone, _ = self._sessions.popitem(last=False)
            self._levels.pop(gone, None)
            self._greeted.discard(gone)

    def is_greeted(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether this was asked before about the client of a request. Clients of the newest revision have no connection."""
        key = session_key(ctx)
        if key in self._greeted or key not in self._sessions:
            return True
        self._greeted.add(key)
        return False

    def set_level(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel) -> None:
        self._levels[session_key(ctx)] = level

    def wants(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel) -> bool:
        """Whether a client wants log messages of this level. One that did not say so gets all of them."""
        return _LEVELS.index(level) >= _LEVELS.index(self._levels.get(session_key(ctx), "debug"))

    async def tell_tools_changed(self) -> None:
        """The list of tools has changed."""
        await self.bus.publish(ToolsListChanged())
        await self._tell_all(lambda session: session.send_tool_list_changed())

    async def tell_one(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel, text: str) -> None:
        """A log message for the client of a request."""
        if self.wants(ctx, level):
            await _send_in_time(
                lambda session: send_log(session, level, text, "typed-toolkit", ctx.request_id), ctx.session
            )

    async def note(self, level: LoggingLevel, text: str) -> None:
        """A log message for everybody who is connected and wants such messages."""
        wanted = {
            key for key in self._sessions if _LEVELS.index(level) >= _LEVELS.index(self._levels.get(key, "debug"))
        }
        await self._tell_all(lambda session: send_log(session, level, text, "typed-toolkit"), wanted)

    async def _tell_all(self, send: Callable[[ServerSession], Awaitable[None]], keys: set[str] | None = None) -> None:
        """A client that does not read holds nobody up for long."""
        async with anyio.create_task_group() as group:
            for key, session in list(self._sessions.items()):
                if keys is None or key in keys:
                    group.start_soon(_send_in_time, send, session)


async def _send_in_time(send: Callable[[ServerSession], Awaitable[None]], session: ServerSession) -> None:
    with anyio.move_on_after(SEND_SECONDS):
        try:
            await send(session)
        except Exception:  # the client is gone: whatever its transport raises then
            return


async def send_log(
    session: ServerSession, level: LoggingLevel, text: str, logger: str, request_id: RequestId | None = None
) -> None:
    """A log message to one client, beside the answer to a request if one is named.

    The protocol calls this old-fashioned, and so does the SDK, but clients show it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        sending = session.send_log_message(level, text, logger, request_id)
    await sending


async def finish_sending(tasks: set[asyncio.Task[None]]) -> None:
    """Waits until a client has read what is on its way to it. One that does not read goes without."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=SEND_SECONDS)
        for task in late:
            task.cancel()


def ignore_failure(task: asyncio.Task[None]) -> None:
    """For what is sent beside an answer: a client that is gone does not get it."""
    if not task.cancelled():
        task.exception()
