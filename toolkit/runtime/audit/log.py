"""The audit log: what was called, what was decided, how it ended.

Promise: a call leaves a ``start`` record before its handler runs and an ``end`` record after; a refused one leaves its
``end``. If the log cannot take them, nothing runs. Where the records go is the business of a sink: a file that is written
at once or in batches (``file.py``), or an ``AuditSink`` of your own. Every text in a record is bounded,
because models choose names and call ids. The log never holds the values of arguments, and their digest leaves out what a
schema marks as ``x-secret``.

A call waits for the log no longer than it may last, and never in an event loop. The end of a call that has happened waits
only a moment; a thread then goes on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import count
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from pydantic import BaseModel
from pydantic_core import from_json

from toolkit.errors import SetupError, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.audit.file import MAX_LINES, BatchedSink, FileSink, may_not_wait, register, write_later
from toolkit.runtime.audit.settings import AuditFile, AuditSink, Check, MustWait
from toolkit.runtime.audit.verification import write_record
from toolkit.runtime.catalog import Tool
from toolkit.runtime.output import ToolMessage, json_writer
from toolkit.schema.accepts import compile_pattern, matches
from toolkit.schema.exact import holds_scalars
from toolkit.schema.keywords import APPLIED_IN_PLACE, REFERENCES, References, Schema, children
from toolkit.schema.models import ToolModel

if TYPE_CHECKING:
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.catalog import Tool
    from toolkit.runtime.path import Run, RunAsync
    from toolkit.runtime.programs.host import ProgramOrigin
    from toolkit.runtime.signals import CallSignal
    from toolkit.runtime.sync import Runner
    from toolkit.runtime.workers import Workers


# ----------------------------------------------------------------------------------------------------------------------
# Removes from arguments what their schema marks as secret, before the audit log sees them.

_REFERENCES: Final = frozenset(REFERENCES)
_EXPANDING: Final = frozenset((*REFERENCES, *APPLIED_IN_PLACE))


def redact(value: object, schema: Mapping[str, Any]) -> object:
    """A copy in which null replaces every value that some schema which may apply to it marks as ``x-secret``.

    All branches of a schema may apply. A value whose schema is behind a reference that cannot be followed is taken for a
    secret.

    >>> redact({"user": "me", "key": "k"}, {"properties": {"key": {"x-secret": True}}})
    {'user': 'me', 'key': None}
    """
    return _redact(value, [schema], References(schema))


def may_mark_secrets(schema: Mapping[str, Any]) -> bool:
    """Whether ``redact`` could find a secret: somewhere in the schema is a mark, or a reference to another place.

    >>> may_mark_secrets({"properties": {"path": {"type": "string"}}})
    False
    """
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "x-secret" in node or not _REFERENCES.isdisjoint(node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def _redact(value: object, schemas: list[Any], references: References) -> object:
    found = _all_in_place(schemas, references)
    if found is None or any(schema.get("x-secret") for schema in found):
        return None
    if isinstance(value, dict) and found:
        return {key: _redact(item, _for_property(found, key), references) for key, item in value.items()}
    if isinstance(value, list) and found:
        return [_redact(item, _for_item(found, at), references) for at, item in enumerate(value)]
    return value


def _all_in_place(schemas: list[Any], references: References) -> list[Schema] | None:
    """Every schema that may apply to the same value; None if a reference among them cannot be followed."""
    found: dict[int, Schema] = {}
    for schema in schemas:  # grows on the way
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        if _EXPANDING.isdisjoint(schema):
            continue
        for word in REFERENCES:
            if word in schema:
                target = references.find(schema[word])
                if target is None:
                    return None
                schemas.append(target.schema)
        schemas += [child for (word, *_), child in children(schema) if word in APPLIED_IN_PLACE]
    return list(found.values())


def _for_property(schemas: list[Schema], key: str) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        named, patterns = schema.get("properties"), schema.get("patternProperties")
        fitting = [named[key]] if isinstance(named, dict) and key in named else []
        if isinstance(patterns, dict):
            fitting += [inner for pattern, inner in patterns.items() if _may_match(pattern, key)]
        found += fitting or [schema.get("additionalProperties")]
        found.append(schema.get("unevaluatedProperties"))
    return found


def _may_match(pattern: str, key: str) -> bool:
    return compile_pattern(pattern) is None or matches(pattern, key)


def _for_item(schemas: list[Schema], at: int) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        first, rest = schema.get("prefixItems"), schema.get("items")
        if isinstance(rest, list):  # as drafts up to 2019-09 write ``prefixItems``
            first, rest = rest, schema.get("additionalItems")
        found.append(first[at] if isinstance(first, list) and at < len(first) else rest)
        found += (schema.get("contains"), schema.get("unevaluatedItems"))
    return found


logger: Final = logging.getLogger("toolkit")

_MAX_TEXT: Final = 1000
_KEPT: Final = 200
_SECONDS_FOR_AN_END: Final = 0.25
_RETRY_SECONDS: Final = 1.0
_SECONDS_BETWEEN_CHECKS: Final = 0.05
_NOT_WRITTEN: Final = "nothing was run, because the audit log cannot be written"


class AuditLog:
    """The log of one toolkit."""

    def __init__(
        self,
        audit: AuditFile | AuditSink,
        roots: Iterable[str],
        session_id: str,
        schema: Callable[[str], Mapping[str, Any] | None],
        *,
        in_loop: bool,
    ) -> None:
        self._opened: Final = _open_file(audit, roots) if isinstance(audit, AuditFile) else None
        """The sink that is closed with this log."""
        self._sink: Final[AuditSink] = self._opened or _given(audit)
        self._in_loop: Final = in_loop
        self.session: Final = _bounded(session_id)
        self._schema: Final = schema
        self._without_secrets: Final[dict[str, bool]] = {}
        self._directs: Final[list[DirectRecords]] = []
        self._late: deque[dict[str, Any]] = deque()
        """Ends of calls for which the log had no time yet."""
        self._late_turn = threading.RLock()
        self._writes_late = False
        self._is_closed = False
        self.new_call_id: Callable[[], str] = _make_call_ids()
        _open_logs.add(self)

    def begin(self, name: object, call_id: str | None, origin: ProgramOrigin | None = None) -> Record:
        """Makes the record of one call; ``origin`` is the program that makes it."""
        return Record(self, name, call_id, origin)

    def note_program(self, program: str, facts: Mapping[str, Any]) -> None:
        """Writes the line of a program before it runs; raises if it cannot be written, so that it does not run."""
        try:
            self.append(self.complete({"event": "program", "program": program, **facts}), _wait)
        except MustWait:
            raise _interrupted() from None

    @property
    def unwritten(self) -> int:
        """How many records were taken, but not written yet."""
        waiting = self._opened.unwritten if isinstance(self._opened, BatchedSink) else 0
        return len(self._late) + waiting

    def flush(self) -> None:
        """Stores everything that was recorded so far."""
        self.write_pending()
        self._sink.flush()

    def close(self) -> None:
        self._is_closed = True
        try:
            self.flush()
        except Exception as error:
            logger.critical("audit records could not be written", exc_info=error)
        finally:
            if self._opened is not None:
                self._opened.close()

    def complete(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A record with its time and session, in which every text is bounded."""
        return self.bound({**fields, "time": format_time(time.monotonic()).decode(), "session": self.session})

    @staticmethod
    def bound(record: dict[str, Any]) -> dict[str, Any]:
        """The record, in which every text is bounded now."""
        for key, value in record.items():
            if type(value) is str and len(value) > _MAX_TEXT:
                record[key] = _bounded(value)
        return record

    def direct_records(self, tool: Tool) -> DirectRecords | None:
        """Records the direct calls of a tool with little work; None if its calls must take the whole call path."""
        if not isinstance(self._opened, BatchedSink) or "execute" in tool.granted:
            return None

        records = DirectRecords(self, self._opened, tool)
        self._directs.append(records)
        return records

    def append(self, record: dict[str, Any], check: Check) -> None:
        """Stores a record before something runs; raises if that fails. ``MustWait`` is raised if it may not wait."""
        try:
            if self._late:
                self._write_late(check)
            self._sink.append(record, check)
        except (MustWait, ToolkitError) as error:
            if isinstance(error, SetupError):  # the file is no longer where it may be
                raise _not_written(error) from None
            raise
        except Exception as error:
            raise _not_written(error) from None

    def append_end(self, record: dict[str, Any]) -> None:
        """Stores the end of a call. It has happened, so this raises nothing; the next call does not start if it fails."""
        if self._in_loop and self._sink.blocking:
            self._put_off(record)
            return
        try:
            if self._late:
                raise MustWait
            self._sink.append(record, may_not_wait if self._in_loop else _short_wait())
        except MustWait:
            self._put_off(record)
        except Exception as error:
            _report_missing(record, error)

    def must_be_elsewhere(self) -> bool:
        """Whether a start may not be stored in this thread, because that takes long and an event loop runs here."""
        return self._in_loop and self._sink.blocking

    @property
    def check_in_loop(self) -> Check | None:
        """How long the first attempt to store a start may wait; None means as long as the call."""
        return may_not_wait if self._in_loop else None

    def _put_off(self, record: dict[str, Any]) -> None:
        self._late.append(record)
        register(self)
        if not write_later(self, 0):
            self.write_pending()

    def write_pending(self) -> None:
        """Stores the ends that are late."""
        try:
            self._write_late(_wait)
        except MustWait:
            write_later(self, _RETRY_SECONDS)

    def _write_late(self, check: Check) -> None:
        """Stores what is late, in order: each record stays in the queue until it is stored."""
        while not self._late_turn.acquire(timeout=_SECONDS_BETWEEN_CHECKS):
            check()
        try:
            if self._writes_late:
                raise MustWait  # a signal handler interrupted this very loop
            self._writes_late = True
            try:
                while self._late:
                    self._store_late(self._late[0], check)
                    self._late.popleft()
            finally:
                self._writes_late = False
        finally:
            self._late_turn.release()

    def _store_late(self, record: dict[str, Any], check: Check) -> None:
        try:
            self._sink.append(record, check)
        except MustWait:
            raise
        except ToolkitError as error:
            if not self._is_closed:
                raise
            _report_missing(record, error)
        except Exception as error:
            _report_missing(record, error)

    def start_again_in_child(self) -> None:
        """In a forked child: what is late is written by the parent, and ids must not repeat."""
        for records in self._directs:
            records.start_again()
        self._late, self._late_turn, self._writes_late = deque(), threading.RLock(), False
        self.new_call_id = _make_call_ids()

    def facts(self, name: str, arguments: object) -> dict[str, Any]:
        """Digest and size of arguments, without secrets; nothing for arguments that are not JSON."""
        if isinstance(arguments, BaseModel):
            arguments = arguments.__pydantic_serializer__.to_python(
                arguments, mode="json", by_alias=True, exclude_unset=True
            )
        if isinstance(arguments, str):
            return {"arguments_bytes": len(arguments.encode("utf-8", "surrogatepass"))}
        try:
            data = canonical(self.without_secrets(name, arguments))
        except (TypeError, ValueError, RecursionError):
            return {}
        return {"arguments": hashlib.sha256(data).hexdigest(), "arguments_bytes": len(data)}

    def without_secrets(self, name: str, arguments: object) -> object:
        """The arguments of a tool, without what its schema marks as secret."""
        return arguments if self.has_no_secrets(name) else redact(arguments, self._schema(name) or {})

    def has_no_secrets(self, name: str) -> bool:
        """Whether nothing in the schema of a tool can mark a secret; looked up once for each tool."""
        known = self._without_secrets.get(name)
        if known is None:
            schema = self._schema(name)
            known = self._without_secrets[name] = schema is not None and not may_mark_secrets(schema)
        return known


class Record:
    """The two records of one call."""

    __slots__ = ("_began", "_call", "_facts", "_log", "_started", "_unwritten", "_verdict")

    def __init__(self, log: AuditLog, name: object, call_id: str | None, origin: ProgramOrigin | None = None) -> None:
        self._log = log
        self._began = time.monotonic()
        self._call: dict[str, Any] = {
            "call": log.new_call_id(),
            "call_id": call_id,
            "tool": name if isinstance(name, str) else None,
        }
        if origin is not None:
            self._call |= {"program": origin.program, "line": origin.line}
        self._facts: dict[str, Any] = {}
        self._verdict: dict[str, str] = {}
        self._started = False
        self._unwritten: dict[str, Any] | None = None

    def note_decision(self, verdict: Verdict, tier: str | None, answer: object = None) -> None:
        """Notes what the policy decided, and what the approver answered if one was asked."""
        self._verdict = {"decision": verdict.decision, "rule": verdict.because}
        if answer is not None:
            self._verdict["answer"] = type(answer).__name__.lower()
        if tier is not None:
            self._verdict["sandbox"] = tier

    def start(self, tool: Tool, args: BaseModel, check: Check) -> None:
        """Stores the ``start``; raises if that is not possible, so that the handler does not run.

        In an event loop it does not wait: ``finish_start`` does the rest.
        """
        log = self._log
        self._facts = log.facts(tool.name, args)
        record = log.complete({"event": "start", **self._call, **self._verdict, **self._facts})
        self._started = True
        if log.must_be_elsewhere():
            self._unwritten = record
            return
        try:
            log.append(record, log.check_in_loop or check)
        except MustWait:
            if log.check_in_loop is None:
                raise _interrupted() from None
            self._unwritten = record

    async def finish_start(self, workers: Workers, signal: CallSignal) -> None:
        """Stores a ``start`` for which the event loop would have had to wait, in a thread."""
        record, self._unwritten = self._unwritten, None
        if record is None:
            return
        import asyncio

        from toolkit.runtime.async_ import await_handler

        storing = workers.submit(lambda: self._log.append(record, signal.check))
        try:
            await await_handler(asyncio.wrap_future(storing), signal, storing.cancel, lambda: workers.abandon(storing))
        except MustWait:
            raise _interrupted() from None

    def end_failed(self, error: BaseException, arguments: object) -> None:
        """Stores the ``end`` of a call that raised."""
        code = error.code if isinstance(error, ToolkitError) else "INTERNAL"
        outcome: dict[str, Any] = {"outcome": code}
        if isinstance(error, ToolFailed):
            outcome["reason"] = error.reason
        if isinstance(error, ToolNotAllowed) and not self._verdict:
            self._verdict = {"decision": str(error.details.get("decision", "deny")), "rule": error.message}
        name = self._call["tool"]
        if not self._started and name is not None:
            self._facts = self._log.facts(name, arguments)
        self._end(outcome)

    def end_succeeded(self, message: ToolMessage[Any, Any]) -> None:
        """Stores the ``end`` of a successful call."""
        content = message.content
        data = b""
        if isinstance(content, BaseModel):
            with suppress(ValueError):  # the call has happened, whatever its output is
                data = content.__pydantic_serializer__.to_json(content, by_alias=True, exclude_unset=True)
        self._end({"outcome": "ok", "output_bytes": len(data)})

    def _end(self, outcome: dict[str, Any]) -> None:
        duration = round((time.monotonic() - self._began) * 1000, 3)
        fields = {"event": "end", **self._call, **self._verdict, **self._facts, **outcome, "duration_ms": duration}
        self._log.append_end(self._log.complete(fields))


def _open_file(settings: AuditFile, roots: Iterable[str]) -> FileSink | BatchedSink:
    file = FileSink(settings, roots)
    return file if settings.batch_seconds is None else BatchedSink(file, settings.batch_seconds)


def _given(audit: AuditFile | AuditSink) -> AuditSink:
    assert not isinstance(audit, AuditFile)
    return audit


def _wait() -> None:
    """Waits as long as the sink does."""


def _short_wait() -> Check:
    give_up = time.monotonic() + _SECONDS_FOR_AN_END

    def check() -> None:
        if time.monotonic() > give_up:
            raise MustWait

    return check


def _not_written(error: Exception) -> ToolFailed:
    logger.error("the audit log cannot be written", exc_info=error)
    return ToolFailed("IO", _NOT_WRITTEN)


def _interrupted() -> ToolFailed:
    why = "this is called by a signal handler that interrupted a write to the audit log; call again outside of it"
    return ToolFailed("CONFLICT", f"nothing was run: {why}")


def _report_missing(record: Mapping[str, Any], error: Exception) -> None:
    # The call has happened; the next one will not start.
    call = {key: value[:_KEPT] if isinstance(value, str) else value for key, value in record.items()}
    logger.critical("the end of a call is missing in the audit log: %s", call, exc_info=error)


def _make_call_ids() -> Callable[[], str]:
    """Ids that no other log has: random, then a number."""
    random, numbers = secrets.token_hex(6), count()
    return lambda: f"{random}{next(numbers):04x}"


def _bounded(text: str) -> str:
    """The text, or if it is long its beginning, its length, and a digest that distinguishes it from others."""
    if len(text) <= _MAX_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}… ({len(text)} characters, sha256 {digest})"


def canonical(value: object) -> bytes:
    """A value as JSON text that is the same for equal values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


_offset = time.time() - time.monotonic()
_last_second = -1, b""


def format_time(at: float) -> bytes:
    """The time in UTC at a moment of the monotonic clock that was just now, as in ``2026-01-31T12:00:00.000000+00:00``."""
    global _offset, _last_second
    second, fraction = divmod(at + _offset, 1)
    known, text = _last_second
    if known != second:
        # Once a second, as the clock may have been set.
        _offset = time.time() - time.monotonic()
        text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
        _last_second = int(second), text
    return b"%b.%06d+00:00" % (text, fraction * 1_000_000)


_open_logs: Final[weakref.WeakSet[AuditLog]] = weakref.WeakSet()


def _start_again_in_child() -> None:
    for log in list(_open_logs):
        log.start_again_in_child()


os.register_at_fork(after_in_child=_start_again_in_child)


# ----------------------------------------------------------------------------------------------------------------------
# Records of direct calls in a log that is written in batches: what is the same for every call of a tool is written once.
#
# A call only notes what happened. The thread that writes the batch makes lines of it, which are those of ``log.Record``.

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


# ----------------------------------------------------------------------------------------------------------------------
# The records of an audit log as calls: each has a start and an end, which are one thing for readers.


def join_records(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One record for each call: its end, or its start while there is no end; and one for each program.

    ``time`` is that of the first record.

    >>> start = {"event": "start", "call": "c1", "time": "10:00"}
    >>> join_records([start, {"event": "end", "call": "c1", "time": "10:01", "outcome": "ok"}])
    [{'event': 'end', 'call': 'c1', 'time': '10:00', 'outcome': 'ok'}]
    """
    calls: dict[Any, Mapping[str, Any]] = {}
    for record in records:
        key = ("program", record.get("program")) if record.get("event") == "program" else record.get("call")
        began = calls.get(key, record).get("time")
        calls[key] = {**record, "time": began}
    return list(calls.values())
