"""Records of direct calls in a log that is written in batches: what is the same for every call of a tool is written once.

A call only notes what happened. The thread that writes the batch makes lines of it, which are those of ``log.Record``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from itertools import count
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from pydantic import BaseModel
from pydantic_core import from_json

from toolkit.errors import ToolFailed, ToolkitError
from toolkit.models.base import ToolModel
from toolkit.models.scalars import holds_scalars
from toolkit.runtime.audit.batches import MAX_LINES, BatchedSink
from toolkit.runtime.audit.lines import write_record
from toolkit.runtime.audit.log import AuditLog, canonical, format_time
from toolkit.runtime.output.message import ToolMessage, json_writer

if TYPE_CHECKING:
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.call.direct import Run, RunAsync
    from toolkit.runtime.catalog.tool import Tool
    from toolkit.runtime.sync import Runner

_MAX_WAITING_BYTES: Final = 65_536
"""Arguments of more bytes are not kept until a batch is written."""


_Call: TypeAlias = "list[Any]"
"""What both records of a call have in common: its number, its call id, its arguments (JSON), when it began, and the text
that was made of it. A list, because a class would take longer to make."""


class DirectRecords:
    """The records of the calls of one tool."""

    def __init__(self, log: AuditLog, sink: BatchedSink, tool: Tool) -> None:
        verdict = tool.always
        assert verdict is not None
        self._log: Final = log
        self._sink: Final = sink
        self._numbers: Final = count()
        self._name: Final = tool.name
        model = tool.input.model
        self._write_arguments: Final = _writer(model)
        self._is_canonical: Final = _writes_canonical(model) and log.has_no_secrets(tool.name)
        self._measure: Final = tool.form.to_json or _write_output
        facts = {"tool": tool.name, "decision": verdict.decision, "rule": verdict.because}
        self._facts: Final = write_record(log.bound(facts))[1:-1]
        self._session: Final = write_record({"session": log.session})[1:]
        self._random = b""
        self.start_again()

    def start_again(self) -> None:
        """Other ids from now on: a forked child must not use those of its parent."""
        self._random = token_hex(6).encode()

    def around(self, run: Run) -> Run:
        """A direct call that is recorded. If the log is stuck, or the arguments cannot be written, the call path decides."""
        name, sink, numbers, now = self._name, self._sink, self._numbers, monotonic
        write, measure, start, end = self._write_arguments, self._measure, self._start_line, self._end_line
        waiting = sink.waiting
        hand_over = waiting.append

        def recorded(view: Runner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]:
            try:
                data = write(args)
            except ValueError:
                return view._run(name, args, call_id)
            if sink.is_stuck or (len(waiting) >= MAX_LINES and sink.is_full()) or len(data) > _MAX_WAITING_BYTES:
                return view._run(name, args, call_id)
            call = [next(numbers), call_id, data, now(), None]
            hand_over((start, call))
            if not sink.is_due:
                sink.write_soon()
            try:
                message = run(view, args, call_id)
            except BaseException as error:
                self._end_failed(call, error)
                raise
            try:
                size = len(measure(message.content))
            except ValueError:  # the call has happened, whatever its output is
                size = 0
            hand_over((end, call, None, size, now()))
            if not sink.is_due:
                sink.write_soon()
            return message

        return recorded

    def around_async(self, run: RunAsync) -> RunAsync:
        """The same, awaited."""
        name, sink, numbers, now = self._name, self._sink, self._numbers, monotonic
        write, measure, start, end = self._write_arguments, self._measure, self._start_line, self._end_line
        waiting = sink.waiting
        hand_over = waiting.append

        async def recorded(view: AsyncRunner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]:
            try:
                data = write(args)
            except ValueError:
                return await view._run(name, args, call_id)
            if sink.is_stuck or (len(waiting) >= MAX_LINES and sink.is_full()) or len(data) > _MAX_WAITING_BYTES:
                return await view._run(name, args, call_id)
            call = [next(numbers), call_id, data, now(), None]
            hand_over((start, call))
            if not sink.is_due:
                sink.write_soon()
            try:
                message = await run(view, args, call_id)
            except BaseException as error:
                self._end_failed(call, error)
                raise
            try:
                size = len(measure(message.content))
            except ValueError:  # the call has happened, whatever its output is
                size = 0
            hand_over((end, call, None, size, now()))
            if not sink.is_due:
                sink.write_soon()
            return message

        return recorded

    def _end_failed(self, call: _Call, error: BaseException) -> None:
        """Hands the ``end`` of a call over that raised: an interruption is a cancellation."""
        outcome = json.dumps(error.code if isinstance(error, ToolkitError) else "TOOL_CANCELLED")
        if isinstance(error, ToolFailed):
            outcome += f',"reason":{json.dumps(error.reason)}'
        self._sink.waiting.append((self._end_line, call, outcome.encode(), 0, monotonic()))
        if not self._sink.is_due:
            self._sink.write_soon()

    # -- in the thread that writes ---------------------------------------------------------------------------------------

    def _start_line(self, noted: tuple[Any, _Call]) -> bytes:
        call = noted[1]
        return b'{"event":"start",%b,"time":"%b",%b' % (self._describe(call), format_time(call[3]), self._session)

    def _end_line(self, noted: tuple[Any, _Call, bytes | None, int, float]) -> bytes:
        _, call, failure, size, ended = noted
        outcome = b'"ok","output_bytes":%d' % size if failure is None else failure
        text = call[4] or self._describe(call)
        took = 1000 * (ended - call[3])
        return b'{"event":"end",%b,"outcome":%b,"duration_ms":%.3f,"time":"%b",%b' % (
            *(text, outcome, took, format_time(ended)),
            self._session,
        )

    def _describe(self, call: _Call) -> bytes:
        number, call_id, data = call[:3]
        if not self._is_canonical:
            data = canonical(self._log.without_secrets(self._name, from_json(data)))
        shown = b"null" if call_id is None else write_record(self._log.bound({"": call_id}))[4:-1]
        digest = sha256(data).hexdigest().encode()
        call[4] = text = b'"call":"%b%04x","call_id":%b,%b,"arguments":"%b","arguments_bytes":%d' % (
            *(self._random, number, shown, self._facts, digest),
            len(data),
        )
        call[2] = b""
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
    whole = not any(_may_be_fraction(field.annotation) for field in model.model_fields.values())
    return whole and names == sorted(names) and holds_scalars(model)


def _may_be_fraction(annotation: object) -> bool:
    return annotation is float or any(map(_may_be_fraction, get_args(annotation)))
