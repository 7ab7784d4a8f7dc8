"""Unified diffs as git writes them, and plain ones; what git itself would skip around them is skipped.

Only the contents of files are taken from a diff, and whether they are executable. Links, submodules and binary patches
are refused, whatever else the diff holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.builtin.patch.git_names import NOWHERE, read_name, read_two_names, without_prefix
from toolkit.builtin.patch.model import Hunk, Operation, Patch, Verb, invalid
from toolkit.errors import ToolFailed

_GIT: Final = "diff --git "
_RANGE: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MODE: Final = re.compile(r"([0-7]{1,7})\s*$")
_INDEX: Final = re.compile(r"[0-9a-f]+\.\.[0-9a-f]+ ([0-7]{1,7})$")
_KIND: Final = 0o170000
_REGULAR: Final = 0o100000
_KINDS: Final = {0o120000: "a symbolic link", 0o160000: "a submodule", 0o040000: "a directory"}


def is_git_diff(lines: Sequence[str]) -> bool:
    """Whether there is a header of a diff somewhere."""
    return any(
        line.startswith(_GIT) or (line.startswith("--- ") and lines[number].startswith("+++ "))
        for number, line in enumerate(lines[:-1], 1)
    ) or lines[-1].startswith(_GIT)


def parse_git_diff(lines: Sequence[str]) -> Patch:
    """The patch in these lines, or ``INVALID_PATCH`` with the line that is wrong."""
    if not lines[-1]:
        lines = lines[:-1]  # what comes behind the last line feed is no line
    # A header never ends in a carriage return by itself: then they were added to all lines on their way.
    headers = [line for line in lines if line.startswith((_GIT, "--- ", "+++ ", "@@ -"))]
    if all(line.endswith("\r") for line in headers):
        lines = [line.removesuffix("\r") for line in lines]
    return Patch("git", _Reader(lines).operations())


@dataclass(slots=True)
class _Header:
    """What stands before the hunks of one file."""

    line: int
    old: str | None = None
    new: str | None = None
    verb: Verb = "update"
    executable: bool | None = None


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_GIT):
                found.append(self._operation(self._git_header()))
            elif line.startswith("--- ") and self._peek(1).startswith("+++ "):
                header = _Header(self._at + 1)
                found.append(self._operation(header))
            elif _RANGE.match(line):
                raise invalid(self._at + 1, "expected '--- a/<path>' and '+++ b/<path>' before this hunk")
            elif _is_binary(line):
                raise _binary(self._at + 1)
            elif line.startswith(("diff --cc ", "diff --combined ", "@@@ ")):
                raise invalid(
                    self._at + 1, "a combined diff of a merge cannot be applied; expected one against one parent"
                )
            else:
                self._at += 1
        return found

    def _peek(self, ahead: int) -> str:
        return self._lines[self._at + ahead] if self._at + ahead < len(self._lines) else ""

    # -- headers ---------------------------------------------------------------------------------------------------------

    def _git_header(self) -> _Header:
        header = _Header(self._at + 1)
        names = read_two_names(self._lines[self._at].removeprefix(_GIT), header.line)
        if names is not None:
            header.old, header.new = without_prefix(*names)
        self._at += 1
        while self._at < len(self._lines) and self._extended(header, self._lines[self._at]):
            self._at += 1
        return header

    def _extended(self, header: _Header, line: str) -> bool:
        """Take in one line of the header; whether it was one."""
        number = self._at + 1
        rest = line.partition(" ")[2]
        if _is_binary(line):
            raise _binary(number)
        if line.startswith("index "):
            found = _INDEX.match(rest)
            if found is not None:
                _is_executable(found[1], number)
        elif line.startswith(("old mode ", "new mode ", "new file mode ", "deleted file mode ")):
            executable = _is_executable(line.rpartition("mode ")[2], number)
            header.executable = header.executable if line.startswith(("old", "deleted")) else executable
            header.verb = "add" if line.startswith("new file") else "delete" if line.startswith("del") else header.verb
        elif line.startswith(("rename from ", "copy from ")):
            header.old = read_name(rest.removeprefix("from "), number)
        elif line.startswith(("rename to ", "copy to ")):
            header.new = read_name(rest.removeprefix("to "), number)
            header.verb = "move" if line.startswith("rename") else "copy"
        else:
            return line.startswith(("similarity index ", "dissimilarity index "))
        return True

    def _operation(self, header: _Header) -> Operation:
        if self._peek(0).startswith("--- "):
            self._read_names(header)
        hunks: list[Hunk] = []
        while _RANGE.match(self._peek(0)):
            hunks.append(self._hunk())
        return _made(header, hunks)

    def _read_names(self, header: _Header) -> None:
        """The lines ``---`` and ``+++``, which say the names once more or for the first time."""
        line = self._at + 1
        if not self._peek(1).startswith("+++ "):
            raise invalid(line + 1, "expected '+++ b/<path>'")
        old = read_name(self._peek(0).removeprefix("--- "), line)
        new = read_name(self._peek(1).removeprefix("+++ "), line + 1)
        self._at += 2
        if NOWHERE in (old, new):
            if old == new:
                raise invalid(line, f"expected the name of a file in one of the two lines, not '{NOWHERE}' in both")
            header.verb = "add" if old == NOWHERE else "delete"
            name, prefix = (new, "b/") if old == NOWHERE else (old, "a/")
            forms = [(name[2:],) * 2, (name,) * 2] if header.old or name.startswith(prefix) else [(name, name)]
        else:
            forms = [without_prefix(old, new), (old, new)]
        if header.old is None or header.new is None:
            header.old, header.new = forms[0]
            if header.old != header.new:
                raise invalid(line, "the two names differ: expected one file, or 'rename from' and 'rename to' above")
        elif (header.old, header.new) not in forms:
            raise invalid(line, "the names here are not those of the header above")

    # -- hunks -----------------------------------------------------------------------------------------------------------

    def _hunk(self) -> Hunk:
        found = _RANGE.match(self._lines[self._at])
        assert found is not None
        old_start, old_count, _, new_count = (1 if number is None else int(number) for number in found.groups())
        hunk = Hunk(self._at + 1, old_start=old_start)
        old_left, new_left = old_count, new_count
        self._at += 1
        while (old_left or new_left) and self._at < len(self._lines):
            row = self._lines[self._at] or " "
            if row[0] == "\\":
                self._open_end(hunk)
                continue
            if row[0] not in " +-" or (row[0] != "+" and not old_left) or (row[0] != "-" and not new_left):
                break
            old_left -= row[0] != "+"
            new_left -= row[0] != "-"
            hunk.rows.append(row)
            self._at += 1
        if self._peek(0).startswith("\\") and hunk.rows:
            self._open_end(hunk)
        if old_left or new_left or self._goes_on():
            raise self._miscounted(hunk)
        return hunk

    def _open_end(self, hunk: Hunk) -> None:
        """``\\ No newline at end of file`` speaks of the row above it."""
        mark = hunk.rows[-1][0] if hunk.rows else " "
        hunk.old_is_open |= mark != "+"
        hunk.new_is_open |= mark != "-"
        self._at += 1

    def _goes_on(self) -> bool:
        """Whether a row follows that the hunk did not count."""
        row = self._peek(0)
        return row.startswith(("+", "-", " ")) and not row.startswith(("--- ", "+++ ")) and row.rstrip() != "--"

    def _miscounted(self, hunk: Hunk) -> ToolFailed:
        rows = list(hunk.rows)
        at = self._at
        while (
            at < len(self._lines)
            and self._lines[at][:1] in ("+", "-", " ")
            and self._lines[at][:4] not in ("--- ", "+++ ")
        ):
            rows.append(self._lines[at])
            at += 1
        old = sum(row[0] != "+" for row in rows)
        new = sum(row[0] != "-" for row in rows)
        found = _RANGE.match(self._lines[hunk.line - 1])
        assert found is not None
        words = f"the hunk has {old} old and {new} new lines, not as many as its header says"
        return invalid(hunk.line, f"{words}; expected '@@ -{found[1]},{old} +{found[3]},{new} @@'")


def _is_binary(line: str) -> bool:
    return line.startswith("GIT binary patch") or (line.startswith("Binary files ") and line.endswith(" differ"))


def _binary(line: int) -> ToolFailed:
    words = f"line {line} of the patch: binary files cannot be patched; leave the file out. Nothing was changed"
    return ToolFailed("BINARY_NOT_SUPPORTED", words, line=line)


def _is_executable(text: str, line: int) -> bool:
    """Whether a mode means an executable file; one that means no file at all is refused."""
    found = _MODE.match(text)
    if found is None:
        raise invalid(line, "expected a mode such as 100644")
    mode = int(found[1], 8)
    if mode & _KIND != _REGULAR:
        kind = _KINDS.get(mode & _KIND, "something that is no file")
        raise invalid(line, f"mode {found[1]} means {kind}, and a patch may only concern files")
    return bool(mode & 0o111)


def _made(header: _Header, hunks: list[Hunk]) -> Operation:
    """The operation of a header and its hunks, if they fit together."""
    path, new = header.old, header.new
    if path is None or new is None:
        raise invalid(header.line, "expected the names of the file, in '--- a/<path>' and '+++ b/<path>'")
    operation = Operation(header.line, header.verb, path, hunks=hunks, executable=header.executable)
    if header.verb in ("move", "copy"):
        operation.new_path = new
    elif header.verb == "add":
        if len(hunks) > 1 or any(row[0] != "+" for hunk in hunks for row in hunk.rows):
            raise invalid(header.line, "a new file has one hunk, in which every line starts with '+'")
        operation.content = [row[1:] for hunk in hunks for row in hunk.rows]
        operation.content_is_open = any(hunk.new_is_open for hunk in hunks)
        operation.hunks = []
    elif header.verb == "delete":
        operation.executable = None
        if any(row[0] == "+" for hunk in hunks for row in hunk.rows):
            raise invalid(header.line, "a deleted file cannot have lines that start with '+'")
    elif not hunks and header.executable is None:
        raise invalid(
            header.line, f"nothing is said of what changes in '{path}'; expected a hunk that starts with '@@ -'"
        )
    return operation
