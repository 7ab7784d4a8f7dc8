"""The audit log: what was called, what was decided, how it ended.

Promise: a call leaves a ``start`` record before its handler runs and an ``end`` record after; a refused one leaves its
``end``. If the log cannot take them, nothing runs. Where the records go is the business of a sink: a file that is written
at once or in batches (``file.py``), or an ``AuditSink`` of your own. Every text in a record is bounded,
because models choose names and call ids. Of the values of arguments, the log holds only what rules are about: real paths,
commands, hosts. Neither that nor the digest of the arguments has what a schema marks as ``x-secret``.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import from_json

from toolkit.errors import SetupError, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.audit.file import BatchedSink, FileSink, may_not_wait, register, write_later
from toolkit.runtime.audit.settings import AuditFile, AuditSink, Check, MakeRecord, MustWait
from toolkit.runtime.catalog import Tool
from toolkit.runtime.output import ToolMessage
from toolkit.runtime.touches import texts_of
from toolkit.schema.accepts import compile_pattern, matches
from toolkit.schema.keywords import APPLIED_IN_PLACE, REFERENCES, References, Schema, children

if TYPE_CHECKING:
    from toolkit.runtime.programs.host import ProgramOrigin
    from toolkit.runtime.signals import CallSignal
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


def _removed_texts(value: object, redacted: object) -> Iterator[str]:
    """Every text that ``redact`` has removed from a value."""
    if redacted is None:
        pending = [value]
        while pending:
            one = pending.pop()
            if isinstance(one, dict | list):
                pending += one.values() if isinstance(one, dict) else one
            elif one is not None and (text := str(one)):
                yield text
    elif isinstance(value, dict) and isinstance(redacted, dict):
        for key, item in value.items():
            yield from _removed_texts(item, redacted[key])
    elif isinstance(value, list) and isinstance(redacted, list):
        for item, left in zip(value, redacted, strict=True):
            yield from _removed_texts(item, left)


logger: Final = logging.getLogger("toolkit")

_MAX_TEXT: Final = 1000
_KEPT: Final = 200
_SECONDS_FOR_AN_END: Final = 0.25
_RETRY_SECONDS: Final = 1.0
_SECONDS_BETWEEN_CHECKS: Final = 0.05
_MAX_WAITING_BYTES: Final = 65_536
"""Arguments of more bytes are not kept until a batch is written."""
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
        self._sink: Final = self._opened or _given(audit)
        self._in_loop: Final = in_loop
        self.notes_touched: Final = audit.touched if isinstance(audit, AuditFile) else True
        self.session: Final = _bounded(session_id)
        self._schema: Final = schema
        self._without_secrets: Final[dict[str, bool]] = {}
        self._late: deque[MakeRecord] = deque()
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
            self.append(lambda: self.complete({"event": "program", "program": program, **facts}), _wait)
        except MustWait:
            raise _interrupted() from None

    @property
    def unwritten(self) -> int:
        """How many records were taken, but not written yet."""
        return len(self._late) + (self._sink.unwritten if isinstance(self._sink, BatchedSink) else 0)

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

    def complete(self, fields: dict[str, Any], at: float | None = None) -> dict[str, Any]:
        """A record with its time and session, in which every text is bounded. ``at`` is a moment of the monotonic clock."""
        time_text = format_time(monotonic() if at is None else at)
        record = {**fields, "time": time_text, "session": self.session}
        for key, value in record.items():
            if type(value) is str and len(value) > _MAX_TEXT:
                record[key] = _bounded(value)
        return record

    def append(self, make: MakeRecord, check: Check) -> None:
        """Stores a record before something runs; raises if that fails. ``MustWait`` is raised if it may not wait."""
        try:
            if self._late:
                self._write_late(check)
            self._store(make, check)
        except (MustWait, ToolkitError) as error:
            if isinstance(error, SetupError):  # the file is no longer where it may be
                raise _not_written(error) from None
            raise
        except Exception as error:
            raise _not_written(error) from None

    def append_end(self, make: MakeRecord) -> None:
        """Stores the end of a call. It has happened, so this raises nothing; the next call does not start if it fails."""
        if self._in_loop and self._sink.blocking:
            self._put_off(make)
            return
        try:
            if self._late:
                raise MustWait
            self._store(make, may_not_wait if self._in_loop else _short_wait())
        except MustWait:
            self._put_off(make)
        except Exception as error:
            _report_missing(make(), error)

    def _store(self, make: MakeRecord, check: Check) -> None:
        """Hands a record to the sink: made now, or with its batch, in the thread that writes it."""
        if isinstance(self._sink, BatchedSink):
            self._sink.append(make, check)
        else:
            self._sink.append(make(), check)

    def must_be_elsewhere(self) -> bool:
        """Whether a start may not be stored in this thread, because that takes long and an event loop runs here."""
        return self._in_loop and self._sink.blocking

    @property
    def check_in_loop(self) -> Check | None:
        """How long the first attempt to store a start may wait; None means as long as the call."""
        return may_not_wait if self._in_loop else None

    def _put_off(self, make: MakeRecord) -> None:
        self._late.append(make)
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

    def _store_late(self, make: MakeRecord, check: Check) -> None:
        try:
            self._store(make, check)
        except MustWait:
            raise
        except ToolkitError as error:
            if not self._is_closed:
                raise
            _report_missing(make(), error)
        except Exception as error:
            _report_missing(make(), error)

    def start_again_in_child(self) -> None:
        """In a forked child: what is late is written by the parent, and ids must not repeat."""
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

    def shows_secret(self, name: str, arguments: BaseModel, texts: Iterable[str]) -> bool:
        """Whether one of these texts has a value that the schema of a tool marks as secret."""
        if self.has_no_secrets(name):
            return False
        given = arguments.__pydantic_serializer__.to_python(arguments, mode="json", by_alias=True, exclude_unset=True)
        secrets_given = list(_removed_texts(given, self.without_secrets(name, given)))
        return any(secret in text for text in texts for secret in secrets_given)

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
    """The two records of one call. What they say is put into words when they are stored: with a batch, in another thread."""

    __slots__ = ("_arguments", "_began", "_call", "_facts", "_log", "_started", "_touched", "_unwritten", "_verdict")

    def __init__(self, log: AuditLog, name: object, call_id: str | None, origin: ProgramOrigin | None = None) -> None:
        self._log = log
        self._began = monotonic()
        self._call: dict[str, Any] = {
            "call": log.new_call_id(),
            "call_id": call_id,
            "tool": name if isinstance(name, str) else None,
        }
        if origin is not None:
            self._call |= {"program": origin.program, "line": origin.line}
        self._arguments: bytes | None = None
        """The arguments as JSON, until their facts are known."""
        self._facts: dict[str, Any] = {}
        self._touched: dict[str, Any] = {}
        self._verdict: dict[str, str] = {}
        self._started = False
        self._unwritten: MakeRecord | None = None

    def note_decision(self, verdict: Verdict, tier: str | None, answer: object = None) -> None:
        """Notes what the policy decided, and what the approver answered if one was asked."""
        self._verdict = {"decision": verdict.decision, "rule": verdict.because}
        if answer is not None:
            self._verdict["answer"] = type(answer).__name__.lower()
            scope = getattr(answer, "remember", None)
            if scope is not None:
                self._verdict["remember"] = scope
        if tier is not None:
            self._verdict["sandbox"] = tier

    @property
    def notes_touched(self) -> bool:
        """Whether the log wants to know what the call touches."""
        return self._log.notes_touched

    def note_touched(self, touched: dict[str, Any], args: BaseModel) -> None:
        """Notes what the call touches; nothing of it if a secret is in it."""
        if self._log.shows_secret(self._call["tool"], args, texts_of(touched)):
            touched = {"redacted": True}
        self._touched = {"touched": touched}

    def start(self, tool: Tool, args: BaseModel, check: Check) -> None:
        """Stores the ``start``; raises if that is not possible, so that the handler does not run.

        In an event loop it does not wait: ``finish_start`` does the rest.
        """
        log = self._log
        self._keep_arguments(args)
        self._started = True
        make = partial(self._make_start, monotonic())
        if log.must_be_elsewhere():
            self._unwritten = make
            return
        try:
            log.append(make, log.check_in_loop or check)
        except MustWait:
            if log.check_in_loop is None:
                raise _interrupted() from None
            self._unwritten = make

    async def finish_start(self, workers: Workers, signal: CallSignal) -> None:
        """Stores a ``start`` for which the event loop would have had to wait, in a thread."""
        make, self._unwritten = self._unwritten, None
        if make is None:
            return
        import asyncio

        from toolkit.runtime.async_ import await_handler

        storing = workers.submit(lambda: self._log.append(make, signal.check))
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

    def _keep_arguments(self, args: BaseModel) -> None:
        """Keeps the arguments as they are now: the handler, or who made them, may change them later."""
        try:
            data = args.__pydantic_serializer__.to_json(args, by_alias=True, exclude_unset=True)
        except ValueError:  # lone surrogates, for example
            self._facts = self._log.facts(self._call["tool"], args)
            return
        self._arguments = data
        if len(data) > _MAX_WAITING_BYTES:
            self._find_facts()

    def _find_facts(self) -> None:
        data, self._arguments = self._arguments, None
        if data is not None:
            with suppress(ValueError):  # a number with more digits than Python reads
                self._facts = self._log.facts(self._call["tool"], from_json(data))

    def _make_start(self, at: float) -> dict[str, Any]:
        self._find_facts()
        fields = {"event": "start", **self._call, **self._verdict, **self._touched, **self._facts}
        return self._log.complete(fields, at)

    def _end(self, outcome: dict[str, Any]) -> None:
        self._log.append_end(partial(self._make_end, outcome, monotonic()))

    def _make_end(self, outcome: dict[str, Any], at: float) -> dict[str, Any]:
        self._find_facts()
        took = round((at - self._began) * 1000, 3)
        touched = {} if self._started else self._touched
        fields = {
            "event": "end",
            **self._call,
            **self._verdict,
            **touched,
            **self._facts,
            **outcome,
            "duration_ms": took,
        }
        return self._log.complete(fields, at)


def _open_file(settings: AuditFile, roots: Iterable[str]) -> FileSink | BatchedSink:
    file = FileSink(settings, roots)
    return file if settings.batch_seconds is None else BatchedSink(file, settings.batch_seconds)


def _given(audit: AuditFile | AuditSink) -> AuditSink:
    assert not isinstance(audit, AuditFile)
    return audit


def _wait() -> None:
    """Waits as long as the sink does."""


def _short_wait() -> Check:
    give_up = monotonic() + _SECONDS_FOR_AN_END

    def check() -> None:
        if monotonic() > give_up:
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


def format_time(at: float) -> str:
    """The time in UTC at a moment of the monotonic clock that was just now, as in ``2026-01-31T12:00:00.000000+00:00``."""
    moment = datetime.fromtimestamp(time.time() - (monotonic() - at), UTC)
    return moment.isoformat(timespec="microseconds")


_open_logs: Final[weakref.WeakSet[AuditLog]] = weakref.WeakSet()


def _start_again_in_child() -> None:
    for log in list(_open_logs):
        log.start_again_in_child()


os.register_at_fork(after_in_child=_start_again_in_child)


# ----------------------------------------------------------------------------------------------------------------------
# The records of an audit log as calls: each has a start and an end, which are one thing for readers.


def join_records(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One record for each call, with what its start and its end say; and one for each program.

    ``time`` is that of the first record.

    >>> start = {"event": "start", "call": "c1", "time": "10:00"}
    >>> join_records([start, {"event": "end", "call": "c1", "time": "10:01", "outcome": "ok"}])
    [{'event': 'end', 'call': 'c1', 'time': '10:00', 'outcome': 'ok'}]
    """
    calls: dict[Any, Mapping[str, Any]] = {}
    for record in records:
        key = ("program", record.get("program")) if record.get("event") == "program" else record.get("call")
        before = calls.get(key, {})
        calls[key] = {**before, **record, "time": before.get("time", record.get("time"))}
    return list(calls.values())
