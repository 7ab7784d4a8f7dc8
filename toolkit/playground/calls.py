"""The calls that run now: their events, and the approvals they wait for.

A call ends when its tool does, when it is cancelled, or when nobody reads its events.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic_core import to_jsonable_python

from toolkit.errors import ToolCancelled
from toolkit.guard.policy.rule import describe_hints
from toolkit.playground.answers import describe_result
from toolkit.playground.requests import to_json
from toolkit.runtime.approvals import Answer, ApprovalRequest, Deny
from toolkit.runtime.progress import Progress
from toolkit.runtime.signals import CancelSignal
from toolkit.wire.call import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from toolkit.runtime.async_ import AsyncRunner


# ----------------------------------------------------------------------------------------------------------------------
# The events of one call on their way to the page, which may read more slowly than the call reports.

PageEvent: TypeAlias = dict[str, Any]

MAX_WAITING: Final = 64 * 1024
"""The most characters of progress that wait for the reader. Older ones are dropped, and counted."""
MAX_PIECES: Final = 500
_MAX_TITLE: Final = 1000
_MAX_DATA: Final = 50


class Outbox:
    """Keeps what the page has not read yet. Progress is joined and bounded; the other events of a call are few."""

    def __init__(self) -> None:
        self._events: Final[list[PageEvent | _Waiting]] = []
        self._changed: Final = asyncio.Event()
        self._closed = False

    def add(self, event: PageEvent) -> None:
        """Adds an event that must arrive."""
        self._events.append(event)
        self._changed.set()

    def add_progress(self, progress: Progress) -> None:
        """Adds progress. It joins the progress that waits already."""
        last = self._events[-1] if self._events else None
        waiting = last if isinstance(last, _Waiting) else None
        if waiting is None:
            waiting = _Waiting()
            self._events.append(waiting)
        waiting.add(progress)
        self._changed.set()

    def close(self) -> None:
        """After this, ``take`` returns None once everything was taken."""
        self._closed = True
        self._changed.set()

    async def take(self) -> list[PageEvent] | None:
        """Waits for events, and takes all of them; None at the end."""
        while not self._events:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        taken = [event.as_event() if isinstance(event, _Waiting) else event for event in self._events]
        self._events.clear()
        return taken


class _Waiting:
    """Progress that waits for the reader, as one event."""

    def __init__(self) -> None:
        self._title: str | None = None
        self._pieces: Final[deque[tuple[str, str]]] = deque()
        self._characters = 0
        self._dropped = 0
        self._data: dict[str, Any] = {}

    def add(self, progress: Progress) -> None:
        if progress.title is not None:
            self._title = progress.title[:_MAX_TITLE]
        data = dict(progress.data)
        text = data.pop("text", None)
        if isinstance(text, str):
            self._add_text(str(data.pop("stream", ""))[:_MAX_TITLE], text)
        for key, value in list(data.items())[:_MAX_DATA]:
            self._data[str(key)[:_MAX_TITLE]] = _plain(value)

    def _add_text(self, stream: str, text: str) -> None:
        self._characters += len(text)
        if self._pieces and self._pieces[-1][0] == stream:
            text = self._pieces.pop()[1] + text
        self._pieces.append((stream, text))
        while self._characters > MAX_WAITING or len(self._pieces) > MAX_PIECES:
            oldest, text = self._pieces.popleft()
            cut = len(text) if len(self._pieces) >= MAX_PIECES else min(len(text), self._characters - MAX_WAITING)
            self._characters -= cut
            self._dropped += cut
            if cut < len(text):
                self._pieces.appendleft((oldest, text[cut:]))

    def as_event(self) -> PageEvent:
        pieces = [{"stream": stream, "text": text} for stream, text in self._pieces]
        return {
            "event": "progress",
            "title": self._title,
            "pieces": pieces,
            "dropped": self._dropped,
            "data": self._data,
        }


def _plain(value: object) -> Any:
    """A value of a tool's progress as JSON; long ones are cut, because any tool can report anything."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(to_jsonable_python(value, fallback=repr))
    return text[:_MAX_TITLE]


MAX_CALLS: Final = 4
"""How many calls run at once. A browser opens six connections to a server: answers and cancelling need the others."""

CURRENT_CALL: Final[ContextVar[RunningCall]] = ContextVar("CURRENT_CALL")
"""The call for which a task works: the calls of a program ask for approval under ids of their own."""


@dataclass(slots=True, eq=False)
class RunningCall:
    """One call, its events, and what cancels it."""

    tool: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    outbox: Outbox = field(default_factory=Outbox)
    signal: CancelSignal = field(default_factory=CancelSignal)
    task: asyncio.Task[None] | None = None

    async def end(self, reason: str) -> None:
        """Cancels the call if it still runs, and waits for its end."""
        self.signal.cancel(reason)
        if self.task is not None:
            await asyncio.wait({self.task})


class RunningCalls:
    """Starts calls, and finds them by id until they have ended."""

    def __init__(self, toolkit: AsyncRunner) -> None:
        self._toolkit: Final = toolkit
        self._calls: Final[dict[str, RunningCall]] = {}
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._calls)

    def start(self, tool: str, arguments: str) -> RunningCall | None:
        """Starts a call with arguments as a model writes them; None if too many calls run."""
        if len(self._calls) >= MAX_CALLS or self._is_stopped:
            return None
        call = RunningCall(tool)
        self._calls[call.id] = call
        call.task = asyncio.create_task(self._run(call, arguments))
        return call

    def find(self, id: str) -> RunningCall | None:
        return self._calls.get(id)

    def cancel_all(self, reason: str) -> None:
        """Cancels every call, and starts no other."""
        self._is_stopped = True
        for call in list(self._calls.values()):
            call.signal.cancel(reason)

    async def wait(self) -> None:
        """Waits until no call runs."""
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, call: RunningCall, arguments: str) -> None:
        CURRENT_CALL.set(call)  # in the context of this task only
        request = ToolCall(call.id, call.tool, {}, raw_arguments=arguments)
        began = asyncio.get_running_loop().time()
        call.outbox.add({"event": "started", "call": call.id, "tool": call.tool})
        try:
            stream = self._toolkit.with_options(signal=call.signal).stream(request)
            async with aclosing(cast("AsyncGenerator[Progress | ToolResult]", stream)) as events:
                async for event in events:
                    if isinstance(event, ToolResult):
                        took = asyncio.get_running_loop().time() - began
                        call.outbox.add(await asyncio.to_thread(describe_result, event, round(took * 1000, 1)))
                    else:
                        call.outbox.add_progress(event)
        finally:
            call.outbox.close()
            self._calls.pop(call.id, None)


# ----------------------------------------------------------------------------------------------------------------------
# The response to a call: its events as lines of JSON, while they happen.


class EventStream:
    """An ASGI application that answers one request.

    Starlette's own streaming response notices a client that has gone only when it sends something, with servers of newer
    revisions of ASGI. A call may be silent for minutes, so this one waits for the client's end beside the events.
    """

    def __init__(self, call: RunningCall) -> None:
        self._call: Final = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_wait_until_gone(receive))
        try:
            headers = [(b"content-type", b"application/x-ndjson; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (events := await self._next_events(gone)) is not None:
                # It waits while the client does not read. Progress is joined and bounded meanwhile.
                await send({"type": "http.response.body", "body": b"".join(map(_line, events)), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._call.end("the page no longer listens to the call")

    async def _next_events(self, gone: asyncio.Future[None]) -> list[PageEvent] | None:
        """The next events; None at the end of the call, or if the client has gone."""
        taking = asyncio.ensure_future(self._call.outbox.take())
        try:
            both: set[asyncio.Future[Any]] = {taking, gone}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return None if gone.done() else taking.result()
        finally:
            taking.cancel()


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _line(event: PageEvent) -> bytes:
    return to_json(event) + b"\n"


# ----------------------------------------------------------------------------------------------------------------------
# Approvals: a call waits here until the page answers, or until the call is cancelled.

MAX_PENDING: Final = 20
"""The most approvals that wait at once; programs can ask for many."""
MAX_SHOWN: Final = 200_000
"""The most characters of a diff that the page shows."""


class ApprovalDesk:
    """The approver of the playground's toolkit.

    A waiting approver does not see its call's signal, so the desk listens to it. It finds the call by a context variable,
    because a program's calls have ids of their own.
    """

    def __init__(self) -> None:
        self._pending: Final[dict[str, asyncio.Future[Answer]]] = {}

    async def ask(self, request: ApprovalRequest) -> Answer:
        """Shows the request on the page, and waits for the answer. Cancelling the call ends the wait."""
        call = CURRENT_CALL.get(None)
        if call is None or len(self._pending) >= MAX_PENDING:
            return Deny("nobody could be asked" if call is None else "too many approvals are waiting")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        id = secrets.token_hex(8)

        def give_up() -> None:
            if not answer.done():
                answer.set_exception(ToolCancelled(call.signal.reason))

        def on_cancel() -> None:
            loop.call_soon_threadsafe(give_up)

        self._pending[id] = answer
        forget = call.signal.listen(on_cancel)
        try:
            call.outbox.add({"event": "approval", "approval": id, "call": call.id, **describe_request(request)})
            return await answer
        finally:
            forget()
            del self._pending[id]

    def answer(self, id: str, answer: Answer) -> bool:
        """Passes an answer on; False if nothing with this id waits for one."""
        waiting = self._pending.get(id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True


def describe_request(request: ApprovalRequest) -> PageEvent:
    """What a person must see to decide."""
    preview = request.preview
    diff = preview.diff
    arguments: dict[str, Any] = request.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {
        "tool": request.tool_name,
        "because": request.because,
        "arguments": arguments,
        "diff": None if diff is None else diff[:MAX_SHOWN],
        "diffDropped": 0 if diff is None else max(0, len(diff) - MAX_SHOWN),
        "argv": preview.argv,
        "shell": preview.shell,
        "cwd": preview.cwd,
        "variables": preview.variables,
        "url": preview.url,
        "reads": preview.reads,
        "writes": preview.writes,
        "realPaths": dict(request.real_paths),
        "tools": preview.tools,
        "hints": describe_hints(request.annotations),
        "digest": request.digest,
    }
