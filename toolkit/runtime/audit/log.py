"""The audit log: what was called, what was decided, how it ended.

Promise: a call leaves a ``start`` record before its handler runs and an ``end`` record after; a refused one leaves its
``end``. If the log cannot take them, nothing runs. Where the records go is the business of a sink: a file that is written
at once (``file.py``) or in batches (``batches.py``), or somebody else's (``sink.py``). Every text in a record is bounded,
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
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from toolkit.errors import SetupError, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.audit.background import register, write_later
from toolkit.runtime.audit.batches import BatchedSink
from toolkit.runtime.audit.file import FileSink, may_not_wait
from toolkit.runtime.audit.redact import may_mark_secrets, redact
from toolkit.runtime.audit.settings import AuditFile
from toolkit.runtime.audit.sink import AuditSink, Check, MustWait
from toolkit.runtime.catalog.tool import Tool
from toolkit.runtime.output.message import ToolMessage

if TYPE_CHECKING:
    from toolkit.runtime.audit.direct_records import DirectRecords
    from toolkit.runtime.programs.calls import ProgramOrigin
    from toolkit.runtime.signals import CallSignal
    from toolkit.runtime.workers import Workers

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
        from toolkit.runtime.audit.direct_records import DirectRecords

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

        from toolkit.runtime.call.waiting.async_wait_for_handler import await_handler

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
