"""The audit log: what was called, what was decided, how it ended. Append-only JSON Lines, each chained to the one before.

Promise: a call leaves a ``start`` line before its handler runs and an ``end`` line after; a refused one leaves its ``end``.
If the log cannot be written, nothing runs. ``verify`` finds a line that was changed, removed, inserted or moved. Several
processes may write one file. Every text in a line is bounded, because models choose names and call ids. The log never
holds the values of arguments, and their digest leaves out what a schema marks as ``x-secret``.

Limit: anyone who may write the file can rewrite the whole chain, or cut off its tail. Both are found by comparison with a
head that is stored elsewhere (``toolkit audit head``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from toolkit.errors import SetupError, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.audit.redact import may_mark_secrets, redact
from toolkit.runtime.catalog.tool import Tool
from toolkit.runtime.output.message import ToolMessage

if TYPE_CHECKING:
    from toolkit.runtime.programs.calls import ProgramOrigin

BEGINNING: Final = "0" * 64
"""The hash to which the first line is chained."""

logger: Final = logging.getLogger("toolkit")

_TAIL: Final = 64 * 1024
_MAX_TEXT: Final = 1000
_KEPT: Final = 200


class AuditLog:
    """The log of one toolkit, in a file that may be shared."""

    def __init__(
        self, path: str, roots: Iterable[str], session_id: str, schema: Callable[[str], Mapping[str, Any] | None]
    ) -> None:
        self._file = _open_file(path, roots)
        self._session: Final = session_id
        self._schema: Final = schema
        self._without_secrets: Final[dict[str, bool]] = {}
        self._lock: Final = threading.Lock()
        self._end = -1
        self._head = BEGINNING

    def begin(self, name: object, call_id: str | None, origin: ProgramOrigin | None = None) -> Record:
        """Makes the record of one call; ``origin`` is the program that makes it."""
        return Record(self, name, call_id, origin)

    def note_program(self, program: str, facts: Mapping[str, Any]) -> None:
        """Writes the line of a program before it runs; raises if it cannot be written, so that it does not run."""
        try:
            self._append({"event": "program", "program": program, **facts})
        except OSError as error:
            logger.error("the audit log cannot be written", exc_info=error)
            raise ToolFailed("IO", "nothing was run, because the audit log cannot be written") from None

    def close(self) -> None:
        with self._lock:
            os.close(self._file)
            # The descriptor may be reused for another file, so nothing may be written to it any more.
            self._file = -1

    def _append(self, fields: dict[str, Any]) -> None:
        """Appends a line, chained to the last line in the file, while no other process writes."""
        with self._lock:
            if self._file < 0:
                return  # closed with its toolkit, which refuses later calls
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                torn = self._read_head()
                line = {"time": _now(), "session": self._session, **fields, "previous": self._head}
                for key, value in line.items():
                    if type(value) is str and len(value) > _MAX_TEXT:
                        line[key] = _bound(value)
                if torn:
                    # A writer died while writing; its incomplete line stays, and is ignored.
                    line["torn"] = True
                line["hash"] = head = line_digest(line)
                self._write(b"\n" * torn + write_line(line) + b"\n")
                self._head = head
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _write(self, data: bytes) -> None:
        before = self._end
        written = os.write(self._file, data)
        if written != len(data):
            os.ftruncate(self._file, before)
            raise OSError("the disk is full")
        self._end = before + written

    def _read_head(self) -> bool:
        """Reads the hash of the last line if the file has changed; returns whether the file ends in an incomplete line."""
        size = os.fstat(self._file).st_size
        if size == self._end:
            return False
        tail, torn = _last_line(self._file, size)
        self._head = BEGINNING if tail is None else str(tail["hash"])
        self._end = size
        return torn

    def _facts(self, name: str, arguments: object) -> dict[str, Any]:
        """Digest and size of arguments, without secrets; nothing for arguments that are not JSON."""
        if isinstance(arguments, BaseModel):
            arguments = arguments.__pydantic_serializer__.to_python(
                arguments, mode="json", by_alias=True, exclude_unset=True
            )
        if isinstance(arguments, str):
            return {"arguments_bytes": len(arguments.encode("utf-8", "surrogatepass"))}
        try:
            data = _canonical(arguments if self._has_no_secrets(name) else redact(arguments, self._schema(name) or {}))
        except (TypeError, ValueError, RecursionError):
            return {}
        return {"arguments": hashlib.sha256(data).hexdigest(), "arguments_bytes": len(data)}

    def _has_no_secrets(self, name: str) -> bool:
        """Whether nothing in the schema of a tool can mark a secret; looked up once for each tool."""
        known = self._without_secrets.get(name)
        if known is None:
            schema = self._schema(name)
            known = self._without_secrets[name] = schema is not None and not may_mark_secrets(schema)
        return known


class Record:
    """The lines of one call."""

    __slots__ = ("_began", "_call", "_facts", "_log", "_started", "_verdict")

    def __init__(self, log: AuditLog, name: object, call_id: str | None, origin: ProgramOrigin | None = None) -> None:
        self._log = log
        self._began = time.monotonic()
        self._call: dict[str, Any] = {
            "call": secrets.token_hex(8),
            "call_id": call_id,
            "tool": name if isinstance(name, str) else None,
        }
        if origin is not None:
            self._call |= {"program": origin.program, "line": origin.line}
        self._facts: dict[str, Any] = {}
        self._verdict: dict[str, str] = {}
        self._started = False

    def note_decision(self, verdict: Verdict, tier: str | None, answer: object = None) -> None:
        """Notes what the policy decided, and what the approver answered if one was asked."""
        self._verdict = {"decision": verdict.decision, "rule": verdict.because}
        if answer is not None:
            self._verdict["answer"] = type(answer).__name__.lower()
        if tier is not None:
            self._verdict["sandbox"] = tier

    def start(self, tool: Tool, args: BaseModel) -> None:
        """Writes the ``start`` line; raises if it cannot be written, so that the handler does not run."""
        self._facts = self._log._facts(tool.name, args)
        try:
            self._log._append({"event": "start", **self._call, **self._verdict, **self._facts})
        except OSError as error:
            logger.error("the audit log cannot be written", exc_info=error)
            raise ToolFailed("IO", "nothing was run, because the audit log cannot be written") from None
        self._started = True

    def end_failed(self, error: BaseException, arguments: object) -> None:
        """Writes the ``end`` line of a call that raised."""
        code = error.code if isinstance(error, ToolkitError) else "INTERNAL"
        outcome: dict[str, Any] = {"outcome": code}
        if isinstance(error, ToolFailed):
            outcome["reason"] = error.reason
        if isinstance(error, ToolNotAllowed) and not self._verdict:
            self._verdict = {"decision": str(error.details.get("decision", "deny")), "rule": error.message}
        name = self._call["tool"]
        if not self._started and name is not None:
            self._facts = self._log._facts(name, arguments)
        self._end(outcome)

    def end_succeeded(self, message: ToolMessage[Any, Any]) -> None:
        """Writes the ``end`` line of a successful call."""
        content = message.content
        data = b""
        if isinstance(content, BaseModel):
            data = content.__pydantic_serializer__.to_json(content, by_alias=True, exclude_unset=True)
        self._end({"outcome": "ok", "output_bytes": len(data)})

    def _end(self, outcome: dict[str, Any]) -> None:
        duration = round((time.monotonic() - self._began) * 1000, 3)
        try:
            line = {"event": "end", **self._call, **self._verdict, **self._facts, **outcome, "duration_ms": duration}
            self._log._append(line)
        except OSError as error:
            # The call has happened; the next one will not start.
            call = {key: value[:_KEPT] if isinstance(value, str) else value for key, value in self._call.items()}
            logger.critical("the end of a call is missing in the audit log: %s", call, exc_info=error)


@dataclass(frozen=True, slots=True)
class AuditHead:
    """How many records a log has, and the hash of the last. Kept elsewhere, it proves that the tail was not cut off."""

    lines: int
    hash: str

    def __str__(self) -> str:
        return f"{self.lines}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> AuditHead:
        """Parses what ``str`` returned.

        >>> AuditHead.parse("0:" + "0" * 64).lines
        0
        """
        lines, _, digest = text.strip().partition(":")
        if not lines.isdecimal() or len(digest) != 64:
            raise SetupError(f"a head has the form lines:hash, as printed by `toolkit audit head`, not {text!r}")
        return cls(int(lines), digest)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What ``verify`` found: the head, the number of calls without an end, and every problem with its line."""

    head: AuditHead
    open_calls: int
    problems: tuple[str, ...]


def verify(path: str | os.PathLike[str], head: AuditHead | None = None) -> AuditReport:
    """Checks the chain line by line; with a head that was kept elsewhere, also that its line is unchanged.

    A file that is not an audit log is a ``SetupError``; an empty file is a log without calls.
    """
    refuse_foreign_file(path)
    problems: list[str] = []
    previous, count, calls = BEGINNING, 0, set[str]()
    torn_before = False
    for number, line in _lines(path):
        if line is None:
            torn_before = True
            continue
        count += 1
        if torn_before and not line.get("torn"):
            problems.append(f"line {number - 1} is not a record")
        if line["previous"] != previous:
            problems.append(
                f"line {number} does not follow the line before it: something was changed, removed or added"
            )
        if line_digest({key: value for key, value in line.items() if key != "hash"}) != line["hash"]:
            problems.append(f"line {number} was changed")
        torn_before, previous = False, line["hash"]
        if line.get("event") == "start":
            calls.add(line.get("call", ""))
        elif line.get("event") == "end":
            calls.discard(line.get("call", ""))
        if head is not None and count == head.lines and line["hash"] != head.hash:
            problems.append(f"line {number} does not match the given head")
    if torn_before:
        problems.append("the last line is not a complete record: its writer was interrupted, or it was cut off")
    if head is not None and count < head.lines:
        problems.append(
            f"there are {count} records, but there were {head.lines} when the head was taken: the tail was cut off"
        )
    return AuditReport(AuditHead(count, previous), len(calls), tuple(problems))


def refuse_foreign_file(path: str | os.PathLike[str]) -> None:
    """Raises if no line of the file is a record of an audit log. One that was cut off while it was written may be."""
    first = b""
    with open(path, "rb") as file:
        for raw in file:
            if _parse_record(raw) is not None:
                return
            first = first or raw
    if first and not (first.startswith(b'{"') and not first.endswith(b"\n")):
        raise SetupError(f"{os.fspath(path)}:1:1: this is not an audit log; give the file of ToolkitContext(audit=...)")


def read_records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a log in their order, without lines that are not records."""
    refuse_foreign_file(path)
    return (line for _, line in _lines(path) if line is not None)


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Every line with its number; None for a line that is not a record."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            yield number, _parse_record(raw) if raw.endswith(b"\n") else None


def _parse_record(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    whole = isinstance(line, dict) and isinstance(line.get("hash"), str) and isinstance(line.get("previous"), str)
    return line if whole else None


def _last_line(file: int, size: int) -> tuple[dict[str, Any] | None, bool]:
    """The last record, and whether the file ends in an incomplete line."""
    if size == 0:
        return None, False
    reach = _TAIL
    while True:
        begin = max(0, size - reach)
        data = os.pread(file, size - begin, begin)
        torn = not data.endswith(b"\n")
        lines = data.split(b"\n")
        whole = lines if begin == 0 else lines[1:]
        for raw in reversed(whole[:-1]):
            record = _parse_record(raw)
            if record is not None:
                return record, torn
        if begin == 0:
            return None, torn
        reach *= 4


def _open_file(path: str, roots: Iterable[str]) -> int:
    real = os.path.realpath(path)
    for root in roots:
        inside = os.path.realpath(root)
        if os.path.commonpath([inside, real]) == inside:
            raise SetupError(
                f"the audit log {path!r} is inside {root!r}, where tools can reach it; give a path outside of it"
            )
    try:
        file = os.open(real, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except FileNotFoundError as error:
        raise SetupError(f"the audit log {path!r} cannot be made: its folder does not exist; create it") from error
    except OSError as error:
        raise SetupError(f"the audit log {path!r} cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise SetupError(f"the audit log {path!r} is not a regular file")
    return file


def _bound(text: str) -> str:
    """The beginning of a long text, its length, and a digest that distinguishes it from others."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}… ({len(text)} characters, sha256 {digest})"


def line_digest(line: Mapping[str, Any]) -> str:
    """The digest of a line: of its canonical form, which does not depend on how it was written."""
    in_order = {key: line[key] for key in sorted(line)}
    try:
        # Text, whole numbers and milliseconds are written as by `_canonical`, in a third of the time.
        data = to_json(in_order)
    except PydanticSerializationError:  # lone surrogates
        data = _canonical(in_order)
    return hashlib.sha256(data).hexdigest()


def write_line(line: Mapping[str, Any]) -> bytes:
    """A line for the file, in ASCII: readers split lines at other characters, too."""
    try:
        data = to_json(line)
    except PydanticSerializationError:  # lone surrogates
        data = b""
    return data if data and data.isascii() else json.dumps(line).encode()


def _canonical(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
