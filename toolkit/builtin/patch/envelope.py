"""Parses the format that starts with ``*** Begin Patch``, which locates changes by the lines around them.

Like Codex, it tolerates frequent mistakes of models: white space around the marker lines, a here-document around the
patch, an empty line without a leading space for an empty line to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.builtin.patch.model import WHITE_SPACE, Hunk, Patch, PatchOperation, invalid
from toolkit.errors import ToolFailed
from toolkit.visible import escape_hidden

BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_PLACE: Final = "@@"
_ANCHOR: Final = "@@ "
_HERE: Final = ("<<EOF", "<<'EOF'", '<<"EOF"')
_HEADERS: Final = f"'{_ADD}<path>', '{_UPDATE}<path>', '{_DELETE}<path>' or '{END}'"
_MAX_QUOTED: Final = 100


def is_envelope(lines: Sequence[str]) -> bool:
    """Whether the first line that is not empty starts an envelope."""
    first = next((line.strip(WHITE_SPACE) for line in lines if line.strip(WHITE_SPACE)), "")
    return first == BEGIN or first in _HERE


def parse_envelope(lines: Sequence[str]) -> Patch:
    """The patch in these lines; raises ``INVALID_PATCH`` with the number of the wrong line."""
    first, last = _find_bounds(lines)
    reader = _EnvelopeReader()
    for number in range(first + 1, last):
        reader.read(number + 1, lines[number].removesuffix("\r"))
    reader.finish(last + 1)
    if not reader.operations:
        raise invalid(first + 2, f"no file is named between '{BEGIN}' and '{END}'; expected {_HEADERS}")
    return Patch("envelope", reader.operations)


def _find_bounds(lines: Sequence[str]) -> tuple[int, int]:
    """The line numbers of the first and last marker."""
    written = [number for number, line in enumerate(lines) if line.strip(WHITE_SPACE)]
    first, last = written[0], written[-1]
    if lines[first].strip(WHITE_SPACE) in _HERE and lines[last].strip(WHITE_SPACE).endswith("EOF"):
        first, last = first + 1, last - 1
    if first >= last or lines[first].strip(WHITE_SPACE) != BEGIN:
        raise invalid(first + 1, f"expected '{BEGIN}', and '{END}' as the last line")
    if lines[last].strip(WHITE_SPACE) != END:
        raise invalid(last + 1, f"expected '{END}' as the last line, not {_quote(lines[last])}")
    return first, last


class _EnvelopeReader:
    """Reads line by line; what a line may be depends on the last header."""

    def __init__(self) -> None:
        self.operations: list[PatchOperation] = []
        self._ended_at: int | None = None

    def read(self, number: int, line: str) -> None:
        if self._ended_at is not None:
            if line.strip(WHITE_SPACE):
                raise invalid(number, f"nothing may follow '{END}' in line {self._ended_at}")
            return
        operation = self.operations[-1] if self.operations else None
        if operation is None or operation.verb in ("add", "delete"):
            self._read_outside(number, line, operation)
        else:
            self._read_update(number, line, operation)

    def finish(self, number: int) -> None:
        """Check the end of the patch."""
        if self._ended_at is not None:
            raise invalid(number, f"nothing may follow '{END}' in line {self._ended_at}")
        self._close(number)

    def _read_outside(self, number: int, line: str, operation: PatchOperation | None) -> None:
        if self._read_header(number, line.strip(WHITE_SPACE)):
            return
        if operation is None or operation.content is None:
            raise invalid(number, f"expected {_HEADERS}, not {_quote(line)}")
        if not line.startswith("+"):
            raise invalid(number, f"expected a line of the new file that starts with '+', or {_HEADERS}")
        operation.content.append(line[1:])

    def _read_header(self, number: int, line: str) -> bool:
        """Read a header; False if the line is not one."""
        if line == END:
            self._close(number)
            self._ended_at = number
        elif line.startswith(_ADD):
            self._begin(PatchOperation(number, "add", line.removeprefix(_ADD), content=[]))
        elif line.startswith(_DELETE):
            self._begin(PatchOperation(number, "delete", line.removeprefix(_DELETE)))
        elif line.startswith(_UPDATE):
            self._begin(PatchOperation(number, "update", line.removeprefix(_UPDATE)))
        else:
            return False
        return True

    def _begin(self, operation: PatchOperation) -> None:
        self._close(operation.line)
        self.operations.append(operation)

    def _close(self, number: int) -> None:
        """Check that the last file is complete: an update must have hunks with lines."""
        operation = self.operations[-1] if self.operations else None
        if operation is None or operation.verb in ("add", "delete"):
            return
        if not operation.hunks:
            problem = f"the update of '{operation.path}' has no hunk; expected '{_PLACE}' and lines"
            way_out = "; to only move the file, give one line to keep" if operation.verb == "move" else ""
            raise invalid(operation.line, problem + way_out)
        if not operation.hunks[-1].rows:
            raise _no_rows(number)

    def _read_update(self, number: int, line: str, operation: PatchOperation) -> None:
        # A line to keep starts with a blank, so only trailing white space is ignored.
        marker = line.rstrip(WHITE_SPACE)
        if self._read_header(number, marker):
            return
        hunk = operation.hunks[-1] if operation.hunks else None
        is_place = marker == _PLACE or marker.startswith(_ANCHOR)
        if hunk is not None and hunk.at_end and not is_place:
            if marker:
                raise invalid(number, f"after '{_END_OF_FILE}', expected '{_PLACE}' or {_HEADERS}")
        elif hunk is None and operation.new_path is None and marker.startswith(_MOVE):
            operation.verb, operation.new_path = "move", marker.removeprefix(_MOVE)
        elif is_place:
            if hunk is not None and not hunk.rows:
                raise _no_rows(number)
            anchor = marker.removeprefix(_ANCHOR) if marker != _PLACE else None
            operation.hunks.append(Hunk(number, anchor=anchor))
        elif marker == _END_OF_FILE:
            if hunk is not None and not hunk.rows:
                raise _no_rows(number)
            if hunk is not None:
                hunk.at_end = True
        else:
            self._read_row(number, line, operation)

    def _read_row(self, number: int, line: str, operation: PatchOperation) -> None:
        row = line or " "
        if row[0] not in " +-":
            what = "a line of the hunk that starts with ' ', '+' or '-'"
            raise invalid(number, f"expected {what}, or '{_PLACE}', or {_HEADERS}, not {_quote(line)}")
        if not operation.hunks:
            operation.hunks.append(Hunk(number))
        operation.hunks[-1].rows.append(row)


def _no_rows(number: int) -> ToolFailed:
    return invalid(
        number, f"the hunk above has no lines; expected lines that start with ' ', '+' or '-' after '{_PLACE}'"
    )


def _quote(line: str) -> str:
    shown = line.strip(WHITE_SPACE)
    return f"'{escape_hidden(shown if len(shown) <= _MAX_QUOTED else shown[:_MAX_QUOTED] + '…')}'"
