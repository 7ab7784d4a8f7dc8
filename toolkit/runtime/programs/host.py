"""Runs one program that has passed the checks: answers the frames of its interpreter until it ends.

Promise: everything that arrives is judged as a foreign call would be. A program can call only the tools that its text
names, and only as often as the settings say; a broken or unexpected frame, too much of anything, the end of its time and a
cancelled signal end it, and the interpreter with all that it started is killed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from toolkit.errors import ToolCancelled, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.process.guard import HeadTail
from toolkit.runtime.path import as_toolkit_error
from toolkit.runtime.programs.frames import BrokenFrame, Frame
from toolkit.runtime.programs.process import FramedProcess, ProcessEnded
from toolkit.runtime.programs.result import ProgramCall, ProgramError, ProgramSettings, TimeLimit
from toolkit.runtime.signals import CancelSignal
from toolkit.wire.content import ContentBlock

if TYPE_CHECKING:
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.output import ToolMessage
    from toolkit.runtime.sync import Runner


# ----------------------------------------------------------------------------------------------------------------------
# The calls that a program makes, on the side of the toolkit: each takes the ordinary call path.


class ProgramOrigin(NamedTuple):
    """Which program makes a call, and in which line."""

    program: str
    line: int


class CallRequest(NamedTuple):
    """A call as it arrived."""

    number: int
    tool: str
    arguments: str
    origin: ProgramOrigin
    waits: bool
    """Whether the program does nothing else until it has the result."""

    @property
    def call_id(self) -> str:
        return f"{self.origin.program}.{self.number}"


class CallOutcome(NamedTuple):
    """The message of a call, or the error that it raised."""

    request: CallRequest
    message: ToolMessage[Any, Any] | None
    error: ToolkitError | None


Done = Callable[[CallOutcome], None]


class Caller(Protocol):
    """Runs calls for a program; ``done`` may be called in another thread."""

    def start(self, request: CallRequest, seconds: float, signal: CancelSignal, done: Done) -> None: ...

    def refuse(self, request: CallRequest, refusal: ToolkitError) -> None:
        """Records a call that is not made."""


class SyncCaller:
    """Runs calls with a sync toolkit: in the caller's thread, unless the program goes on meanwhile."""

    def __init__(self, view: Runner) -> None:
        self._view: Final = view

    def start(self, request: CallRequest, seconds: float, signal: CancelSignal, done: Done) -> None:
        view = self._view
        if request.waits or not view._core.catalog.tools[request.tool].parallel:
            done(self._run(request, seconds, signal))
        else:
            view._core.workers.submit(lambda: done(self._run(request, seconds, signal)))

    def refuse(self, request: CallRequest, refusal: ToolkitError) -> None:
        _record_refusal(self._view, request, refusal)

    def _run(self, request: CallRequest, seconds: float, signal: CancelSignal) -> CallOutcome:
        view = self._view._for_program(request.origin, _limit(self._view, request, seconds), signal)
        try:
            return CallOutcome(request, view._execute_raw(request.tool, request.arguments, request.call_id), None)
        except Exception as error:
            return CallOutcome(request, None, as_toolkit_error(error, request.tool))


class AsyncCaller:
    """Runs calls with an async toolkit, in the event loop of whoever awaits the program."""

    def __init__(self, view: AsyncRunner, loop: asyncio.AbstractEventLoop) -> None:
        self._view: Final = view
        self._loop: Final = loop
        self._one_by_one: Final = asyncio.Lock()

    def start(self, request: CallRequest, seconds: float, signal: CancelSignal, done: Done) -> None:
        future: Future[CallOutcome] = asyncio.run_coroutine_threadsafe(
            self._run_in_turn(request, seconds, signal), self._loop
        )
        future.add_done_callback(lambda ended: done(_outcome(request, ended)))

    def refuse(self, request: CallRequest, refusal: ToolkitError) -> None:
        _record_refusal(self._view, request, refusal)

    async def _run_in_turn(self, request: CallRequest, seconds: float, signal: CancelSignal) -> CallOutcome:
        if self._view._core.catalog.tools[request.tool].parallel:
            return await self._run(request, seconds, signal)
        async with self._one_by_one:
            return await self._run(request, seconds, signal)

    async def _run(self, request: CallRequest, seconds: float, signal: CancelSignal) -> CallOutcome:
        view = self._view._for_program(request.origin, _limit(self._view, request, seconds), signal)
        try:
            message = await view._execute_raw(request.tool, request.arguments, request.call_id)
            return CallOutcome(request, message, None)
        except Exception as error:
            return CallOutcome(request, None, as_toolkit_error(error, request.tool))


def _record_refusal(view: Runner | AsyncRunner, request: CallRequest, refusal: ToolkitError) -> None:
    """The audit log has every refusal, also of calls that do not get to the call path."""
    audit = view._core.audit
    if audit is not None:
        audit.begin(request.tool, request.call_id, request.origin).end_failed(refusal, request.arguments)


def _limit(view: Runner | AsyncRunner, request: CallRequest, seconds: float) -> float | None:
    """The deadline of a call: none if its tool never waits, because watching the time costs more than such a call."""
    return seconds if view._core.catalog.tools[request.tool].blocking else None


def _outcome(request: CallRequest, ended: Future[CallOutcome]) -> CallOutcome:
    """What the future of a call holds, also if its loop was closed."""
    try:
        return ended.result()
    except BaseException as error:
        return CallOutcome(request, None, as_toolkit_error(error, request.tool))


_END_SECONDS: Final = 2.0
"""How long calls that were cancelled may take to end. Only handlers that look at no signal take longer."""
_MAX_WAITING: Final = 32 << 20
"""Characters of arguments that may wait until another call ends. Calls wait only if more arrive than may run at once."""
_MAX_UNREAD: Final = 16 << 20
"""Bytes of results that a program has not read yet; as long as there are more, no other call starts."""
_MAX_MESSAGE: Final = 4000
_MAX_NAME: Final = 200
_MAX_LINE: Final = 1 << 31


class ProgramStopped(Exception):
    """The interpreter cannot be used any more; the message says why, for whoever wrote the program."""


@dataclass(slots=True)
class Ran:
    """How a program ended."""

    value: Any = None
    error: ProgramError | None = None
    output: str = ""
    calls: list[ProgramCall] = field(default_factory=list)
    attachments: list[ContentBlock] = field(default_factory=list)
    usable: bool = True
    """Whether its interpreter can run another one."""


class ProgramHost:
    """Answers the calls of one program."""

    def __init__(
        self,
        process: FramedProcess,
        caller: Caller,
        settings: ProgramSettings,
        program_id: str,
        allowed: Collection[str],
        signal: CancelSignal,
        time_limit: TimeLimit,
    ) -> None:
        self._process: Final = process
        self._caller: Final = caller
        self._settings: Final = settings
        self._id: Final = program_id
        self._allowed: Final = frozenset(allowed)
        self._outer: Final = signal
        self._time_limit: Final = time_limit
        # Cancelled at the latest when the program ends: calls that it did not wait for end with it.
        self._signal, self._unlink = CancelSignal.linked_to(signal)
        self._finished: Final[SimpleQueue[CallOutcome]] = SimpleQueue()
        self._waiting: Final[deque[CallRequest]] = deque()
        self._waiting_size = 0
        self._numbers: Final[set[int]] = set()
        self._running: Final[dict[int, CallRequest]] = {}
        self._printed: Final = HeadTail(settings.output_bytes)
        self._ran: Final = Ran()
        self._thread: Final = threading.get_ident()

    def run(self, request: bytes) -> Ran:
        """Sends the program to its interpreter, and returns when it has ended."""
        forget = self._outer.listen(self._process.wake)
        try:
            self._refuse_late_frames(self._process.take_arrived())
            self._process.send({"run": self._id}, request)
            while (end := self._next()) is None:
                pass
            self._read_end(end)
        except TimeoutError:
            self._fail(self._time_limit.message)
        except ProcessEnded as error:
            self._fail(self._explain_end(error))
        except (BrokenFrame, ProgramStopped) as error:
            self._fail(str(error))
        except ToolCancelled as error:
            self._fail(error.message)
        except BaseException:
            self._ran.usable = False
            raise
        finally:
            forget()
            self._end_everything()
        self._ran.output = self._printed.data().decode("utf-8", "replace")
        return self._ran

    def _end_everything(self) -> None:
        """The program first, so that it does not go on while its calls end."""
        try:
            if not self._ran.usable:
                self._process.close()
        finally:
            self._unlink()
            self._signal.cancel("the program has ended")
            self._wait_for_calls()

    # -- frames --------------------------------------------------------------------------------------------------------

    def _next(self) -> Frame | None:
        """Handles what has arrived, and the calls that have ended; returns the last frame of the program."""
        frames = self._process.receive(self._time_limit.until, self._outer.check)
        for index, frame in enumerate(frames):
            head = frame.head
            if "call" in head:
                self._accept(frame)
            elif "print" in head:
                self._printed.add(frame.body)
            elif "end" in head:
                self._refuse_late_frames(frames[index + 1 :])
                return frame
            else:
                raise ProgramStopped("the interpreter of the program sent something that is not a call")
        self._go_on()
        return None

    def _refuse_late_frames(self, frames: Sequence[Frame]) -> None:
        """What arrives after the end of a program: what its threads still print is dropped, and nothing else is expected."""
        if any("print" not in frame.head for frame in frames):
            raise ProgramStopped("the interpreter was ended: a program that had ended went on with calls of tools")

    def _read_end(self, frame: Frame) -> None:
        head, body = frame
        if head["end"] == "ok":
            if len(body) > self._settings.value_bytes:
                return self._set_error(0, f"the value of the program has {len(body)} bytes; {self._too_large()}")
            try:
                self._ran.value = from_json(body, allow_inf_nan=False)
            except ValueError:
                raise ProgramStopped("the value of the program is not valid JSON") from None
            return None
        self._set_error(_line(head), str(head.get("message"))[:_MAX_MESSAGE])
        return None

    def _explain_end(self, error: ProcessEnded) -> str:
        if self._outer.cancelled:  # perhaps the toolkit was closed, which ends all its processes
            return self._outer.reason
        if error.ended_by == "memory":
            return f"the program used more than {self._settings.memory >> 20} MiB of memory"
        if error.ended_by is not None:
            return f"the program was ended, because it used too much: {error.ended_by}"
        return "the process of the program ended before the program did"

    def _too_large(self) -> str:
        return f"at most {self._settings.value_bytes} are allowed: return less, or write it to a file with a tool"

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _accept(self, frame: Frame) -> None:
        request = self._read_call(frame)
        self._numbers.add(request.number)
        if len(self._numbers) > self._settings.calls:
            raise ProgramStopped(f"the program made more than {self._settings.calls} calls")
        if request.tool not in self._allowed:
            refusal = ToolNotAllowed(f"the text of the program does not name {request.tool!r}, so it cannot call it")
            self._caller.refuse(request, refusal)
            self._answer(CallOutcome(request, None, refusal))
        elif not self._waiting and self._can_start:
            self._start(request)
        else:
            self._waiting.append(request)
            self._waiting_size += len(request.arguments)
            if self._waiting_size > _MAX_WAITING:
                raise ProgramStopped(
                    f"the arguments of calls that wait for others have more than {_MAX_WAITING >> 20} Mi characters; "
                    "make fewer of them at once"
                )

    def _read_call(self, frame: Frame) -> CallRequest:
        head = frame.head
        number, tool = head["call"], head.get("tool")
        is_new = type(number) is int and 0 < number < 2**53 and number not in self._numbers
        if not is_new or not isinstance(tool, str) or len(tool) > _MAX_NAME:
            raise ProgramStopped("the interpreter of the program sent a call that is not well formed")
        try:
            arguments = frame.body.decode()
        except UnicodeDecodeError:
            raise ProgramStopped("the interpreter of the program sent arguments that are not text") from None
        return CallRequest(number, tool, arguments, ProgramOrigin(self._id, _line(head)), head.get("waits") is True)

    @property
    def _can_start(self) -> bool:
        return len(self._running) < self._settings.parallel_calls and self._process.unsent <= _MAX_UNREAD

    def _start(self, request: CallRequest) -> None:
        self._running[request.number] = request
        seconds = max(0.001, self._time_limit.until - time.monotonic())
        self._caller.start(request, seconds, self._signal, self._finish)

    def _finish(self, outcome: CallOutcome) -> None:
        """Called in any thread."""
        self._finished.put(outcome)
        if threading.get_ident() != self._thread:
            self._process.wake()

    def _go_on(self) -> None:
        """Answers the calls that have ended, and starts those that waited, until nothing more can be done at once: calls
        that run in this thread have ended when they are started."""
        while True:
            self._answer_finished()
            if not self._waiting or not self._can_start:
                return
            self._outer.check()
            request = self._waiting.popleft()
            self._waiting_size -= len(request.arguments)
            self._start(request)

    def _answer_finished(self) -> None:
        while True:
            try:
                outcome = self._finished.get_nowait()
            except Empty:
                return
            del self._running[outcome.request.number]
            self._answer(outcome)

    def _wait_for_calls(self) -> None:
        """Waits for the calls that were cancelled because the program has ended."""
        until = time.monotonic() + _END_SECONDS
        while self._running:
            try:
                outcome = self._finished.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
            del self._running[outcome.request.number]
            self._list_call(outcome.request, outcome.error)
        for request in self._running.values():  # their handlers go on, so they belong into the list
            self._list_call(request, ToolCancelled("the program has ended"))

    def _list_call(self, request: CallRequest, error: ToolkitError | None) -> None:
        code = None if error is None else error.code
        self._ran.calls.append(ProgramCall(request.tool, request.origin.line, code))

    def _answer(self, outcome: CallOutcome) -> None:
        request, message, error = outcome
        body = b""
        if message is not None:
            try:
                body = _content(message.content)
            except ValueError:
                error = ToolFailed("IO", "the output of the tool cannot be written as JSON")
        self._list_call(request, error)
        head: dict[str, Any] = {"result": request.number}
        if error is not None:
            head |= {"code": error.code, "message": error.message[:_MAX_MESSAGE]}
            body = _details(error)
        elif message is not None:
            room = self._settings.attachments - len(self._ran.attachments)
            self._ran.attachments += message.attachments[:room]
        self._process.send(head, body)

    def _set_error(self, line: int, message: str) -> None:
        self._ran.error = ProgramError(line, 0, message, "run")

    def _fail(self, message: str) -> None:
        """The interpreter is in an unknown state, or gone."""
        self._ran.usable = False
        self._set_error(0, message)


def _line(head: Mapping[str, Any]) -> int:
    """The line that a frame names; 0 if it cannot be one."""
    line = head.get("line")
    return line if type(line) is int and 0 < line < _MAX_LINE else 0


def _content(content: object) -> bytes:
    """The output of a tool as the program reads it."""
    if isinstance(content, BaseModel):
        return content.__pydantic_serializer__.to_json(content, by_alias=True, exclude_unset=True)
    return to_json(content)


def _details(error: ToolkitError) -> bytes:
    try:
        return to_json(error.details)
    except ValueError:  # what a handler put there cannot be written
        return b"{}"
