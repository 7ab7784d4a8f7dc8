"""Whether a log is as it was written: checks the chain, and reads the records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from toolkit.errors import SetupError
from toolkit.runtime.audit.lines import (
    AUDIT_BEGINNING,
    HASH,
    SEAL,
    Seal,
    old_digest,
    old_seal,
    parse_record,
    read_seal,
    records_before,
    seal_before_hash,
    seal_digest,
)
from toolkit.runtime.audit.rotation import older_file

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
                if b'"hash"' in line and self._accept_old(line):
                    block.clear()
                    expected = seal_before_hash(self._previous)
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

    def _accept_old(self, line: bytes) -> bool:
        """Takes a line of version 0.1, if it is one."""
        record = parse_record(line)
        seal = None if record is None or not line.endswith(b"\n") else old_seal(record)
        return seal is not None and self._explain(seal)

    def _explain(self, seal: Seal) -> bool:
        """Looks at lines that are not simply right, up to one with a seal. False if that is not a record."""
        last = parse_record(self._block[-1])
        if last is None:
            return False
        lines = self._since_torn()
        first = parse_record(lines[0]) or {}
        if self._number == len(self._block):
            self._begin_chain(first, seal)
        if seal.previous != self._previous:
            self._tell(
                f"line {self._number} does not follow the line before it: something was changed, removed or added"
            )
        if seal_digest(b"".join(lines)) != seal.hash and (len(lines) > 1 or old_digest(last) != seal.hash):
            lines = self._without_garbage(lines)
            if seal_digest(b"".join(lines)) != seal.hash and (len(lines) > 1 or old_digest(last) != seal.hash):
                self._tell(f"{self._shown(len(lines))} changed")
        self._accept(list(map(_as_new, lines)), seal.hash)
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


def _as_new(line: bytes) -> bytes:
    """What is looked at in a line, where new lines have it."""
    record = parse_record(line) or {}
    event, call = record.get("event"), record.get("call")
    return b'{"event":"%b","call":"%b"' % (str(event).encode(), ascii(call)[1:-1].encode())


def refuse_foreign_file(path: str | os.PathLike[str]) -> None:
    """Raises if no line of the file is a record of an audit log. One that was cut off while it was written may be."""
    first = b""
    with open(path, "rb") as file:
        for line in file:
            if read_seal(line) is not None or _is_ours(parse_record(line) or {}):
                return
            first = first or line
    if first and not (first.startswith(b'{"') and not first.endswith(b"\n")):
        raise SetupError(f"{os.fspath(path)}:1:1: this is not an audit log; give the file of ToolkitContext(audit=...)")


def _is_ours(record: dict[str, Any]) -> bool:
    """Whether a line without a seal as it is written now is of a log: of a batch, or of version 0.1."""
    return old_seal(record) is not None or {"event", "time", "session"} <= record.keys()


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
                if old_seal(record) is not None:
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
