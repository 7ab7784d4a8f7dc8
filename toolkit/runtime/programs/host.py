"""Runs one program that has passed the checks: answers the frames of its interpreter until it ends.

Promise: everything that arrives is judged as a foreign call would be. A program can call only the tools that its text
names, and only as often as the settings say; a broken or unexpected frame, too much of anything, the end of its time and a
cancelled signal end it, and the interpreter with all that it started is killed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from toolkit.errors import ToolCancelled, ToolkitError, ToolNotAllowed
from toolkit.guard.process.output import HeadTail
from toolkit.runtime.context.signals import CancelSignal
from toolkit.runtime.programs.calls import Caller, CallOutcome, CallRequest, ProgramOrigin
from toolkit.runtime.programs.frames import BrokenFrame, Frame
from toolkit.runtime.programs.process import FramedProcess, ProcessEnded
from toolkit.runtime.programs.result import ProgramCall, ProgramError
from toolkit.runtime.programs.settings import ProgramSettings
from toolkit.wire.content import ContentBlock

_END_SECONDS: Final = 10.0


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
        until: float,
    ) -> None:
        self._process: Final = process
        self._caller: Final = caller
        self._settings: Final = settings
        self._id: Final = program_id
        self._allowed: Final = frozenset(allowed)
        self._outer: Final = signal
        self._until: Final = until
        # Cancelled at the latest when the program ends: calls that it did not wait for end with it.
        self._signal, self._unlink = CancelSignal.linked_to(signal)
        self._finished: Final[SimpleQueue[CallOutcome]] = SimpleQueue()
        self._waiting: Final[deque[CallRequest]] = deque()
        self._running: Final[set[int]] = set()
        self._count = 0
        self._printed: Final = HeadTail(settings.output_bytes)
        self._ran: Final = Ran()
        self._thread: Final = threading.get_ident()

    def run(self, request: dict[str, Any]) -> Ran:
        """Sends the program to its interpreter, and returns when it has ended."""
        forget = self._outer.listen(self._process.wake)
        try:
            self._process.send(self._until, {"run": self._id}, to_json(request))
            while (end := self._next()) is None:
                pass
            self._read_end(end)
        except TimeoutError:
            self._fail(f"the program took longer than {self._settings.seconds:g} s")
        except ProcessEnded as error:
            self._fail(self._explain_end(error))
        except (BrokenFrame, ProgramStopped) as error:
            self._fail(str(error))
        except ToolCancelled as error:
            self._fail(error.message)
        finally:
            forget()
            self._unlink()
            self._signal.cancel("the program has ended")
            self._wait_for_calls()
            if not self._ran.usable:
                self._process.close()
        self._ran.output = self._printed.data().decode("utf-8", "replace")
        return self._ran

    # -- frames --------------------------------------------------------------------------------------------------------

    def _next(self) -> Frame | None:
        """Handles what has arrived, and the calls that have ended; returns the last frame of the program."""
        for frame in self._process.receive(self._until, self._check):
            head = frame.head
            if "call" in head:
                self._accept(frame)
            elif "print" in head:
                self._printed.add(frame.body)
            elif "end" in head:
                return frame
            else:
                raise ProgramStopped("the interpreter of the program sent something that is not a call")
        self._answer_finished()
        return None

    def _check(self) -> None:
        if self._outer.cancelled:
            raise ToolCancelled(self._outer.reason)

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
        line, message = head.get("line"), head.get("message")
        self._set_error(line if isinstance(line, int) else 0, str(message)[:2000])
        return None

    def _explain_end(self, error: ProcessEnded) -> str:
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
        self._count += 1
        if self._count > self._settings.calls:
            raise ProgramStopped(f"the program made more than {self._settings.calls} calls")
        if request.tool not in self._allowed:
            refusal = ToolNotAllowed(f"the text of the program does not name {request.tool!r}, so it cannot call it")
            self._answer(CallOutcome(request, None, refusal))
        elif len(self._running) >= self._settings.parallel_calls:
            self._waiting.append(request)
        else:
            self._start(request)

    def _read_call(self, frame: Frame) -> CallRequest:
        head = frame.head
        number, tool, line = head["call"], head.get("tool"), head.get("line")
        is_new = isinstance(number, int) and 0 < number < 2**53 and number not in self._running
        if not is_new or not isinstance(tool, str) or not isinstance(line, int):
            raise ProgramStopped("the interpreter of the program sent a call that is not well formed")
        try:
            arguments = frame.body.decode()
        except UnicodeDecodeError:
            raise ProgramStopped("the interpreter of the program sent arguments that are not text") from None
        return CallRequest(number, tool, arguments, ProgramOrigin(self._id, line), head.get("waits") is True)

    def _start(self, request: CallRequest) -> None:
        self._running.add(request.number)
        seconds = max(0.001, self._until - time.monotonic())
        self._caller.start(request, seconds, self._signal, self._finish)

    def _finish(self, outcome: CallOutcome) -> None:
        """Called in any thread."""
        self._finished.put(outcome)
        if threading.get_ident() != self._thread:
            self._process.wake()

    def _answer_finished(self) -> None:
        while True:
            try:
                outcome = self._finished.get_nowait()
            except Empty:
                break
            self._running.discard(outcome.request.number)
            self._answer(outcome)
        while self._waiting and len(self._running) < self._settings.parallel_calls:
            self._start(self._waiting.popleft())

    def _wait_for_calls(self) -> None:
        """Waits for the calls that were cancelled because the program has ended."""
        while self._running:
            try:
                outcome = self._finished.get(timeout=_END_SECONDS)
            except Empty:
                return  # a handler that does not look at its signal; its call is over for the program
            self._running.discard(outcome.request.number)
            code = None if outcome.error is None else outcome.error.code
            self._ran.calls.append(ProgramCall(outcome.request.tool, outcome.request.origin.line, code))

    def _answer(self, outcome: CallOutcome) -> None:
        request, message, error = outcome
        code = None if error is None else error.code
        self._ran.calls.append(ProgramCall(request.tool, request.origin.line, code))
        head: dict[str, Any] = {"result": request.number}
        if error is not None:
            head |= {"code": error.code, "message": error.message}
            self._process.send(self._until, head, _details(error))
        elif message is not None:
            room = self._settings.attachments - len(self._ran.attachments)
            self._ran.attachments += message.attachments[:room]
            self._process.send(self._until, head, _content(message.content))

    def _set_error(self, line: int, message: str) -> None:
        self._ran.error = ProgramError(line, 0, message, "run")

    def _fail(self, message: str) -> None:
        """The interpreter is in an unknown state, or gone."""
        self._ran.usable = False
        self._set_error(0, message)


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
