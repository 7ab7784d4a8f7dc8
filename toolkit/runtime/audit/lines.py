"""Records as lines of a log: how they are written, chained and read.

A line is one record as JSON, in ASCII. A line that ends in ``previous`` and ``hash`` seals itself and the lines before it
that have none: ``hash`` is the SHA-256 of their bytes up to it, and ``previous`` is the hash of the seal before. A record
that is written alone is sealed alone; a batch has one seal. So a check hashes bytes and parses nothing.

Logs of version 0.1 have a hash in every line, which is that of its canonical JSON (``old_digest``).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import PydanticSerializationError, from_json, to_json

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
    """The seal of a line with its newline; None if it has none, or is an old one that is not written like this."""
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


def old_seal(record: Mapping[str, Any]) -> Seal | None:
    """The seal of a record, however its line is written; of records of version 0.1, too."""
    previous, digest = record.get("previous"), record.get("hash")
    return Seal(previous, digest) if isinstance(previous, str) and isinstance(digest, str) else None


def old_digest(record: Mapping[str, Any]) -> str:
    """The hash of a record in logs of version 0.1: of its canonical form, without the hash."""
    in_order = {key: record[key] for key in sorted(record) if key != "hash"}
    try:
        # Text, whole numbers and milliseconds are written as by `json`, in a third of the time.
        data = to_json(in_order)
    except PydanticSerializationError:  # lone surrogates
        text = json.dumps(in_order, separators=(",", ":"), ensure_ascii=False)
        data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


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
            record = None if (seal := read_seal(line)) is not None else parse_record(line)
            seal = seal or (record and old_seal(record)) or None
            if seal is not None:
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
