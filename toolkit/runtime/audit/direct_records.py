"""Records of direct calls in a log that is written in batches: what is the same for every call of a tool is written once.

A call only notes what happened. The thread that writes the batch makes lines of it, which are those of ``log.Record``.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import from_json

from toolkit.errors import ToolFailed, ToolkitError
from toolkit.models.base import ToolModel
from toolkit.models.scalars import holds_scalars
from toolkit.runtime.audit.batches import BatchedSink
from toolkit.runtime.audit.file import may_not_wait
from toolkit.runtime.audit.lines import write_record
from toolkit.runtime.audit.log import AuditLog, canonical, format_time
from toolkit.runtime.output.message import ToolMessage, json_writer

if TYPE_CHECKING:
    from toolkit.runtime.call.async_runner import AsyncRunner
    from toolkit.runtime.call.direct import Run, RunAsync
    from toolkit.runtime.call.runner import Runner
    from toolkit.runtime.catalog.tool import Tool

_MAX_WAITING_BYTES: Final = 65_536
"""Arguments of more bytes are not kept until a batch is written."""


class _Call:
    """What both records of a call have in common."""

    __slots__ = ("arguments", "began", "call_id", "number", "text")

    def __init__(self, number: int, call_id: str | None, arguments: bytes) -> None:
        self.number = number
        self.call_id = call_id
        self.arguments = arguments
        self.text: bytes | None = None
        self.began = time.monotonic()


class DirectRecords:
    """The records of the calls of one tool."""

    def __init__(self, log: AuditLog, sink: BatchedSink, tool: Tool) -> None:
        verdict = tool.always
        assert verdict is not None
        self._log: Final = log
        self.sink: Final = sink
        self._numbers: Final = count()
        self._name: Final = tool.name
        model = tool.input.model
        self._write_arguments: Final = _writer(model)
        self._is_canonical: Final = _writes_canonical(model) and log.has_no_secrets(tool.name)
        self.measure_output: Final = tool.form.to_json or _write_output
        facts = {"tool": tool.name, "decision": verdict.decision, "rule": verdict.because}
        self._facts: Final = write_record(log.bound(facts))[1:-1]
        self._session: Final = write_record({"session": log.session})[1:]
        self._random = b""
        self.start_again()

    def start_again(self) -> None:
        """Other ids from now on: a forked child must not use those of its parent."""
        self._random = token_hex(6).encode()

    def begin(self, args: BaseModel, call_id: str | None) -> _Call | None:
        """Hands the ``start`` over; None if the log is stuck or the arguments cannot be written: the call path decides."""
        sink = self.sink
        if sink.is_stuck:
            return None
        try:
            data = self._write_arguments(args)
        except ValueError:
            return None
        call = _Call(next(self._numbers), call_id, data)
        if len(data) > _MAX_WAITING_BYTES:
            self._describe(call)
        sink.hand_over((self._start_line, call), may_not_wait)
        return call

    def end(self, call: _Call, message: ToolMessage[Any, Any]) -> None:
        """Hands the ``end`` of a successful call over."""
        size = len(self.measure_output(message.content))
        self.sink.hand_over((self._end_line, call, b'"ok","output_bytes":%d' % size, time.monotonic()), may_not_wait)

    def end_failed(self, call: _Call, error: BaseException) -> None:
        """Hands the ``end`` of a call over that raised: an interruption is a cancellation."""
        outcome = json.dumps(error.code if isinstance(error, ToolkitError) else "TOOL_CANCELLED")
        if isinstance(error, ToolFailed):
            outcome += f',"reason":{json.dumps(error.reason)}'
        self.sink.hand_over((self._end_line, call, outcome.encode(), time.monotonic()), may_not_wait)

    def around(self, run: Run) -> Run:
        """A direct call that is recorded."""
        begin, end, name = self.begin, self.end, self._name

        def recorded(view: Runner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]:
            call = begin(args, call_id)
            if call is None:
                return view._run(name, args, call_id)
            try:
                message = run(view, args, call_id)
            except BaseException as error:
                self.end_failed(call, error)
                raise
            end(call, message)
            return message

        return recorded

    def around_async(self, run: RunAsync) -> RunAsync:
        """The same, awaited."""
        begin, end, name = self.begin, self.end, self._name

        async def recorded(view: AsyncRunner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]:
            call = begin(args, call_id)
            if call is None:
                return await view._run(name, args, call_id)
            try:
                message = await run(view, args, call_id)
            except BaseException as error:
                self.end_failed(call, error)
                raise
            end(call, message)
            return message

        return recorded

    # -- in the thread that writes ---------------------------------------------------------------------------------------

    def _start_line(self, noted: tuple[Any, _Call]) -> bytes:
        call = noted[1]
        text = call.text or self._describe(call)
        return b'{"event":"start",%b,"time":"%b",%b' % (text, format_time(call.began), self._session)

    def _end_line(self, noted: tuple[Any, _Call, bytes, float]) -> bytes:
        _, call, outcome, ended = noted
        return b'{"event":"end",%b,"outcome":%b,"duration_ms":%.3f,"time":"%b",%b' % (
            call.text or self._describe(call),
            outcome,
            1000 * (ended - call.began),
            format_time(ended),
            self._session,
        )

    def _describe(self, call: _Call) -> bytes:
        data = call.arguments
        call.arguments = b""
        if not self._is_canonical:
            data = canonical(self._log.without_secrets(self._name, from_json(data)))
        call_id = b"null" if call.call_id is None else write_record(self._log.bound({"": call.call_id}))[4:-1]
        call.text = text = b'"call":"%b%04x","call_id":%b,%b,"arguments":"%b","arguments_bytes":%d' % (
            self._random,
            call.number,
            call_id,
            self._facts,
            hashlib.sha256(data).hexdigest().encode(),
            len(data),
        )
        return text


def _writer(model: type[BaseModel]) -> Callable[[Any], bytes]:
    if issubclass(model, ToolModel):
        return json_writer(model)
    return partial(model.__pydantic_serializer__.to_json, by_alias=True, exclude_unset=True)


def _write_output(content: object) -> bytes:
    if not isinstance(content, BaseModel):
        return b""
    return content.__pydantic_serializer__.to_json(content, by_alias=True, exclude_unset=True)


def _writes_canonical(model: type[BaseModel]) -> bool:
    """Whether the arguments are written with their names in order, and each as in the canonical form: no fractions."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    plain = all(field.annotation in (str, int, bool) for field in model.model_fields.values())
    return plain and names == sorted(names) and holds_scalars(model)
