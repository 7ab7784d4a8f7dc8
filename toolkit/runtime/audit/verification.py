"""The chain of a log: how records become sealed lines, which files hold them, and whether they are as they were written."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NamedTuple

from pydantic_core import PydanticSerializationError, from_json, to_json

from toolkit.errors import SetupError

# ----------------------------------------------------------------------------------------------------------------------
# Records as lines of a log: how they are written, chained and read.
#
# A line is one record as JSON, in ASCII. A line that ends in ``previous`` and ``hash`` seals itself and the lines before it
# that have none: ``hash`` is the SHA-256 of their bytes up to it, and ``previous`` is the hash of the seal before. A record
# that is written alone is sealed alone; a batch has one seal. So a check hashes bytes and parses nothing.

AUDIT_BEGINNING: Final = "0" * 64
"""The hash to which the first record is chained."""

_PREVIOUS: Final = b',"previous":"'
_HASH: Final = b'","hash":"'
_HASH_AT: Final = -77
_PREVIOUS_AT: Final = -154
"""Where both are in a sealed line, from its end: hashes have 64 characters, and the line ends in ``"}`` and a newline."""
_TAIL: Final = 64 * 1024


def chain_records(records: Iterable[Mapping[str, Any]], previous: str) -> tuple[bytes, str]:
    """The lines of these records, chained to the hash of the record before them, and the hash of the last.

    A sink calls it while nobody else can append, and stores both.

    >>> lines, last = chain_records([{"event": "start"}, {"event": "end"}], AUDIT_BEGINNING)
    >>> lines.splitlines()[0]
    b'{"event":"start"}'
    >>> lines.endswith(f',"previous":"{AUDIT_BEGINNING}","hash":"{last}"}}'.encode() + bytes([10]))
    True
    """
    return chain_lines(map(write_record, records), previous)


def chain_lines(lines: Iterable[bytes], previous: str) -> tuple[bytes, str]:
    """The same for records that ``write_record`` has written."""
    sealed = b"%b%b%b" % (b"\n".join(lines)[:-1], _PREVIOUS, previous.encode())
    # The hash is of everything before the key ``hash``.
    last = hashlib.sha256(sealed + b'"').hexdigest()
    return b'%b%b%b"}\n' % (sealed, _HASH, last.encode()), last


def write_record(record: Mapping[str, Any]) -> bytes:
    """One record as JSON, in ASCII: readers split lines at other characters, too."""
    try:
        return to_json(record, ensure_ascii=True)
    except PydanticSerializationError:  # lone surrogates
        return json.dumps(record, separators=(",", ":")).encode()


class Seal(NamedTuple):
    """What the end of a sealed line says."""

    previous: str
    hash: str


def read_seal(line: bytes) -> Seal | None:
    """The seal of a line with its newline; None if it has none."""
    if line[_HASH_AT : _HASH_AT + 10] != _HASH or line[_PREVIOUS_AT : _PREVIOUS_AT + 13] != _PREVIOUS:
        return None
    if line[-3:] != b'"}\n':
        return None
    return Seal(line[_PREVIOUS_AT + 13 : _HASH_AT].decode("ascii", "replace"), line[-67:-3].decode("ascii", "replace"))


SEAL: Final = slice(_PREVIOUS_AT, _HASH_AT + 10)
"""Where a sealed line has what ``seal_before_hash`` returns."""
HASH: Final = slice(-67, -3)


def seal_before_hash(previous: str) -> bytes:
    """The seal of a line that follows this hash, up to its own."""
    return b"%b%b%b" % (_PREVIOUS, previous.encode(), _HASH)


def seal_digest(lines: bytes) -> str:
    """The hash that the seal at the end of these lines must have."""
    return hashlib.sha256(lines[: _HASH_AT + 1]).hexdigest()


def parse_record(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None if it is none."""
    try:
        record = from_json(line)
    except ValueError:
        try:
            record = json.loads(line)  # lone surrogates
        except ValueError:
            return None
    return record if isinstance(record, dict) else None


class FileEnd(NamedTuple):
    """How a log ends."""

    hash: str | None
    """That of the last seal; None if there is none."""
    torn: bool
    """Whether a writer died before it sealed its lines."""
    has_newline: bool


def read_end(file: int, size: int) -> FileEnd:
    """Looks for the last seal of a file, from its end."""
    reach = _TAIL
    while size:
        begin = max(0, size - reach)
        data = os.pread(file, size - begin, begin)
        lines = io.BytesIO(data).readlines()  # only a newline ends a line
        whole = lines if begin == 0 else lines[1:]
        has_newline = data.endswith(b"\n")
        for at in reversed(range(len(whole))):
            # A line of which only the newline is missing is whole.
            line = whole[at] if whole[at].endswith(b"\n") else whole[at] + b"\n"
            if (seal := read_seal(line)) is not None:
                return FileEnd(seal.hash, _is_torn(whole[at + 1 :]), has_newline)
        if begin == 0:
            return FileEnd(None, _is_torn(whole), has_newline)
        reach *= 4
    return FileEnd(None, False, True)


def _is_torn(lines: list[bytes]) -> bool:
    """Whether what follows the last seal is what a writer left that was killed: records, and part of one."""
    if not lines:
        return False
    return not lines[-1].endswith(b"\n") or parse_record(lines[-1]) is not None


def count_records(file: int) -> int:
    """How many records there are up to the end of an open log, those of the files before it included."""
    count, first = 0, True
    with open(os.dup(file), "rb") as lines:
        lines.seek(0)
        for line in lines:
            if line.startswith(b'{"') and line.endswith(b"}\n"):
                if first:
                    count = records_before(line)
                count += 1
            first = False
    return count


def records_before(first_line: bytes) -> int:
    """How many records are in the files before the one that begins with this line."""
    record = parse_record(first_line) if b'"before":' in first_line else None
    before = None if record is None else record.get("before")
    return before if isinstance(before, int) and before > 0 else 0


# ----------------------------------------------------------------------------------------------------------------------
# The older files of a log: ``audit.jsonl.1`` is the one before ``audit.jsonl``, ``audit.jsonl.2`` the one before that.


def older_file(path: str, number: int) -> str:
    """The name of the file that is so many files older.

    >>> older_file("audit.jsonl", 2)
    'audit.jsonl.2'
    """
    return f"{path}.{number}"


def shift_files(path: str, keep: int | None) -> None:
    """Gives the log the name of the newest older file, and each older file that of the next one.

    Files after the first ``keep`` are removed. A writer that dies in between leaves a gap in the names, which the next one
    fills; no file is overwritten.
    """
    free = 1
    while os.path.lexists(older_file(path, free)):
        free += 1
    for number in reversed(range(1, free)):
        os.rename(older_file(path, number), older_file(path, number + 1))
    os.rename(path, older_file(path, 1))
    if keep is not None:
        for number in range(keep + 1, free + 1):
            with suppress(FileNotFoundError):
                os.unlink(older_file(path, number))


def is_older_file(path: str, identity: tuple[int, int]) -> bool:
    """Whether an open file, known by its device and number, is now an older file of this log."""
    number = 1
    while True:
        try:
            info = os.stat(older_file(path, number), follow_symlinks=False)
        except OSError:
            return False
        if (info.st_dev, info.st_ino) == identity:
            return True
        number += 1


_START: Final = b'{"event":"start","call":"'
_END: Final = b'{"event":"end","call":"'


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
    removed: int = 0
    """How many records were in older files that are no longer kept. They count in the head."""


def verify(path: str | os.PathLike[str], head: AuditHead | None = None) -> AuditReport:
    """Checks the chain through all files of a log; with a head that was kept elsewhere, also that its record is unchanged.

    A file that is not an audit log is a ``SetupError``; an empty file is a log without calls.
    """
    refuse_foreign_file(path)
    chain = _LogChain(head)
    with ExitStack() as stack:
        files = _open_files(os.fspath(path), stack)
        for name, file in files:
            chain.begin_file("" if len(files) == 1 else f"{os.path.basename(name)}: ")
            chain.read(file)
        return chain.report()


def verify_lines(lines: Iterable[bytes], head: AuditHead | None = None) -> AuditReport:
    """The same for lines that are kept elsewhere, as ``chain_records`` made them: each ends in a newline.

    >>> from toolkit.stores import AUDIT_BEGINNING, chain_records
    >>> line, _ = chain_records([{"event": "end", "call": "1"}], AUDIT_BEGINNING)
    >>> verify_lines([line]).problems, verify_lines([line.replace(b"1", b"2", 1)]).problems
    ((), ('line 1 was changed',))
    """
    chain = _LogChain(head)
    chain.read(lines)
    return chain.report()


class _LogChain:
    """The chain up to some line."""

    def __init__(self, head: AuditHead | None) -> None:
        self._head: Final = head
        self._problems: list[str] = []
        self._previous = AUDIT_BEGINNING
        self._count = 0
        self._removed = 0
        self._calls: set[bytes] = set()
        self._block: list[bytes] = []
        """The lines since the last seal."""
        self._number = 0
        self._file = ""

    def begin_file(self, name: str) -> None:
        """Another file of the log follows."""
        self._end_file()
        self._file, self._number = name, 0

    def read(self, lines: Iterable[bytes]) -> None:
        block = self._block
        expected = seal_before_hash(self._previous)
        for number, line in enumerate(lines, 1):
            block.append(line)
            self._number = number
            if line[SEAL] == expected and number > len(block):
                # Most seals: they follow the one before, and are right.
                digest = seal_digest(line if len(block) == 1 else b"".join(block))
                if line[HASH] == digest.encode():
                    self._accept(block, digest)
                    expected = seal_before_hash(digest)
                    block.clear()
                    continue
            seal = read_seal(line)
            if seal is None:
                continue
            if self._explain(seal):
                block.clear()
            expected = seal_before_hash(self._previous)
        self._end_file()

    def report(self) -> AuditReport:
        self._end_file()
        head = self._head
        if head is not None and self._count < head.lines:
            self._problems.append(
                f"there are {self._count} records, but there were {head.lines} when the head was taken:"
                " the tail was cut off"
            )
        elif head is not None and 0 < head.lines <= self._removed:
            self._problems.append("the record of the given head is in a file that is no longer kept; use a later head")
        return AuditReport(
            AuditHead(self._count, self._previous), len(self._calls), tuple(self._problems), self._removed
        )

    # -- one seal ------------------------------------------------------------------------------------------------------

    def _accept(self, lines: list[bytes], digest: str) -> None:
        """Takes the records of a seal as they are."""
        calls, head, before = self._calls, self._head, self._count
        for line in lines:
            if line.startswith(_START):
                calls.add(line[25 : line.index(b'"', 25)])
            elif line.startswith(_END):
                calls.discard(line[23 : line.index(b'"', 23)])
        self._count += len(lines)
        self._previous = digest
        is_there = head is not None and before < head.lines <= self._count
        if is_there and AuditHead(self._count, digest) != head:
            self._tell(f"line {self._number} does not match the given head")

    def _explain(self, seal: Seal) -> bool:
        """Looks at lines that are not simply right, up to one with a seal. False if that is not a record."""
        if parse_record(self._block[-1]) is None:
            return False
        lines = self._since_torn()
        first = parse_record(lines[0]) or {}
        if self._number == len(self._block):
            self._begin_chain(first, seal)
        if seal.previous != self._previous:
            self._tell(
                f"line {self._number} does not follow the line before it: something was changed, removed or added"
            )
        if seal_digest(b"".join(lines)) != seal.hash:
            lines = self._without_garbage(lines)
            if seal_digest(b"".join(lines)) != seal.hash:
                self._tell(f"{self._shown(len(lines))} changed")
        self._accept(list(map(_as_written, lines)), seal.hash)
        return True

    def _begin_chain(self, first: dict[str, Any], seal: Seal) -> None:
        """The first record of a file says how many there were before, if there were any."""
        before = first.get("before")
        if first.get("lost") is True:
            self._tell(f"the file before this one was removed while it was in use, with up to {before} records")
        if isinstance(before, int) and before > 0 and not self._count and self._previous == AUDIT_BEGINNING:
            self._previous, self._count, self._removed = seal.previous, before, before

    def _since_torn(self) -> list[bytes]:
        """The lines that belong to a seal: not those of a writer that died before it sealed them, and was noticed."""
        for at in reversed(range(len(self._block))):
            line = self._block[at]
            if b'"torn":' in line and (parse_record(line) or {}).get("torn") is True:
                return self._block[at:]
        return list(self._block)

    def _without_garbage(self, lines: list[bytes]) -> list[bytes]:
        begin = self._number - len(lines) + 1
        for number, line in enumerate(lines, begin):
            if parse_record(line) is None:
                self._tell(f"line {number} is not a record")
        return [line for line in lines if parse_record(line) is not None]

    def _shown(self, lines: int) -> str:
        return f"line {self._number} was" if lines == 1 else f"lines {self._number - lines + 1} to {self._number} were"

    def _end_file(self) -> None:
        if self._block:
            self._tell("the last line is not a complete record: its writer was interrupted, or it was cut off")
            self._block.clear()

    def _tell(self, problem: str) -> None:
        self._problems.append(f"{self._file}{problem}")


def _as_written(line: bytes) -> bytes:
    """What `_accept` looks at in a line, where untouched lines have it."""
    record = parse_record(line) or {}
    event, call = record.get("event"), record.get("call")
    return b'{"event":"%b","call":"%b"' % (str(event).encode(), ascii(call)[1:-1].encode())


def refuse_foreign_file(path: str | os.PathLike[str]) -> None:
    """Raises if no line of the file is a record of an audit log. One that was cut off while it was written may be."""
    first = b""
    with open(path, "rb") as file:
        for line in file:
            # A line of a batch has no seal.
            if read_seal(line) is not None or {"event", "time", "session"} <= (parse_record(line) or {}).keys():
                return
            first = first or line
    if first and not (first.startswith(b'{"') and not first.endswith(b"\n")):
        raise SetupError(f"{os.fspath(path)}:1:1: this is not an audit log; give the file of ToolkitContext(audit=...)")


def read_records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of all files of a log in their order, without lines that are not records."""
    refuse_foreign_file(path)
    return _read_records(os.fspath(path))


def _read_records(path: str) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        for _, file in _open_files(path, stack):
            block: list[dict[str, Any]] = []
            for line in file:
                record = parse_record(line) if line.endswith(b"\n") else None
                if record is None:
                    continue
                if record.get("torn") is True:
                    block.clear()
                block.append(record)
                if read_seal(line) is not None:
                    yield from block
                    block.clear()


def _open_files(path: str, stack: ExitStack) -> list[tuple[str, BinaryIO]]:
    """The files of a log, the oldest first: those that the first record of the next one says it follows."""
    newest = stack.enter_context(open(path, "rb"))  # noqa: SIM115
    files: list[tuple[str, BinaryIO]] = [(path, newest)]
    number = 1
    while records_before(files[-1][1].readline()):
        # A writer that died while it gave the files new names left a gap.
        found = [name for name in (older_file(path, number), older_file(path, number + 1)) if os.path.isfile(name)]
        if not found:
            break
        number = int(found[0].rpartition(".")[2]) + 1
        files.append((found[0], stack.enter_context(open(found[0], "rb"))))  # noqa: SIM115
    for _, file in files:
        file.seek(0)
    return files[::-1]
