"""Parses unified diffs, with or without git's headers; text around them is skipped, as git does.

Only the contents of files, and whether they are executable, are taken from a diff. Links, submodules and binary patches are
refused, whatever else the diff contains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.builtin.patch.git_names import NOWHERE, read_name, read_two_names, without_prefix
from toolkit.builtin.patch.model import Hunk, Patch, PatchOperation, Verb, invalid
from toolkit.errors import ToolFailed

_GIT: Final = "diff --git "
_RANGE: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MODE: Final = re.compile(r"([0-7]{1,7})\s*$")
_INDEX: Final = re.compile(r"[0-9a-f]+\.\.[0-9a-f]+ ([0-7]{1,7})$")
_KIND: Final = 0o170000
_REGULAR: Final = 0o100000
_KINDS: Final = {0o120000: "a symbolic link", 0o160000: "a submodule", 0o040000: "a directory"}


def is_git_diff(lines: Sequence[str]) -> bool:
    """Whether any line is the header of a diff."""
    return any(
        line.startswith(_GIT) or (line.startswith("--- ") and lines[number].startswith("+++ "))
        for number, line in enumerate(lines[:-1], 1)
    ) or lines[-1].startswith(_GIT)


def parse_git_diff(lines: Sequence[str]) -> Patch:
    """The patch in these lines; raises ``INVALID_PATCH`` with the number of the wrong line."""
    if not lines[-1]:
        lines = lines[:-1]  # nothing follows the last line feed
    # Git never ends a header in a carriage return: if all have one, something added it to every line.
    headers = [line for line in lines if line.startswith((_GIT, "--- ", "+++ ", "@@ -"))]
    if all(line.endswith("\r") for line in headers):
        lines = [line.removesuffix("\r") for line in lines]
    return Patch("git", _GitDiffReader(lines).read())


@dataclass(slots=True)
class _FileHeader:
    """The header of one file, before its hunks."""

    line: int
    old: str | None = None
    new: str | None = None
    verb: Verb = "update"
    executable: bool | None = None


class _GitDiffReader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0

    def read(self) -> list[PatchOperation]:
        found: list[PatchOperation] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_GIT):
                found.append(self._read_operation(self._read_git_header()))
            elif line.startswith("--- ") and self._peek(1).startswith("+++ "):
                header = _FileHeader(self._at + 1)
                found.append(self._read_operation(header))
            elif _RANGE.match(line):
                raise invalid(self._at + 1, "expected '--- a/<path>' and '+++ b/<path>' before this hunk")
            elif _is_binary(line):
                raise _binary_refusal(self._at + 1)
            elif line.startswith(("diff --cc ", "diff --combined ", "@@@ ")):
                raise invalid(
                    self._at + 1, "a combined diff of a merge cannot be applied; expected a diff against one parent"
                )
            else:
                self._at += 1
        return found

    def _peek(self, ahead: int) -> str:
        return self._lines[self._at + ahead] if self._at + ahead < len(self._lines) else ""

    # -- headers ---------------------------------------------------------------------------------------------------------

    def _read_git_header(self) -> _FileHeader:
        header = _FileHeader(self._at + 1)
        names = read_two_names(self._lines[self._at].removeprefix(_GIT), header.line)
        if names is not None:
            header.old, header.new = without_prefix(*names)
        self._at += 1
        while self._at < len(self._lines) and self._read_extended(header, self._lines[self._at]):
            self._at += 1
        return header

    def _read_extended(self, header: _FileHeader, line: str) -> bool:
        """Read one line of an extended header; False if it is not one."""
        number = self._at + 1
        rest = line.partition(" ")[2]
        if _is_binary(line):
            raise _binary_refusal(number)
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

    def _read_operation(self, header: _FileHeader) -> PatchOperation:
        if self._peek(0).startswith("--- "):
            self._read_names(header)
        hunks: list[Hunk] = []
        while _RANGE.match(self._peek(0)):
            hunks.append(self._read_hunk())
        return _build_operation(header, hunks)

    def _read_names(self, header: _FileHeader) -> None:
        """Read the lines ``---`` and ``+++``, which repeat the names or give them for the first time."""
        line = self._at + 1
        if not self._peek(1).startswith("+++ "):
            raise invalid(line + 1, "expected '+++ b/<path>'")
        old = read_name(self._peek(0).removeprefix("--- "), line)
        new = read_name(self._peek(1).removeprefix("+++ "), line + 1)
        self._at += 2
        if NOWHERE in (old, new):
            if old == new:
                raise invalid(line, f"expected a file name in one of the two lines, not '{NOWHERE}' in both")
            header.verb = "add" if old == NOWHERE else "delete"
            name, prefix = (new, "b/") if old == NOWHERE else (old, "a/")
            forms = [(name[2:],) * 2, (name,) * 2] if header.old or name.startswith(prefix) else [(name, name)]
        else:
            forms = [without_prefix(old, new), (old, new)]
        if header.old is None or header.new is None:
            header.old, header.new = forms[0]
            if header.old != header.new:
                raise invalid(
                    line, "the two names differ; expected the same name, or 'rename from' and 'rename to' above"
                )
        elif (header.old, header.new) not in forms:
            raise invalid(line, "the names here differ from those in the header above")

    # -- hunks -----------------------------------------------------------------------------------------------------------

    def _read_hunk(self) -> Hunk:
        found = _RANGE.match(self._lines[self._at])
        assert found is not None
        old_start, old_count, _, new_count = (1 if number is None else int(number) for number in found.groups())
        hunk = Hunk(self._at + 1, old_start=old_start)
        old_left, new_left = old_count, new_count
        self._at += 1
        while (old_left or new_left) and self._at < len(self._lines):
            row = self._lines[self._at] or " "
            if row[0] == "\\":
                self._read_no_newline(hunk)
                continue
            if row[0] not in " +-" or (row[0] != "+" and not old_left) or (row[0] != "-" and not new_left):
                break
            old_left -= row[0] != "+"
            new_left -= row[0] != "-"
            hunk.rows.append(row)
            self._at += 1
        if self._peek(0).startswith("\\") and hunk.rows:
            self._read_no_newline(hunk)
        if old_left or new_left or self._has_more_rows():
            raise self._count_error(hunk)
        return hunk

    def _read_no_newline(self, hunk: Hunk) -> None:
        """Read ``\\ No newline at end of file``, which is about the row above it."""
        mark = hunk.rows[-1][0] if hunk.rows else " "
        hunk.old_is_open |= mark != "+"
        hunk.new_is_open |= mark != "-"
        self._at += 1

    def _has_more_rows(self) -> bool:
        """Whether a row follows that the header of the hunk does not count."""
        row = self._peek(0)
        return row.startswith(("+", "-", " ")) and not row.startswith(("--- ", "+++ ")) and row.rstrip() != "--"

    def _count_error(self, hunk: Hunk) -> ToolFailed:
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
        problem = f"the hunk has {old} old and {new} new lines, but its header counts differently"
        return invalid(hunk.line, f"{problem}; expected '@@ -{found[1]},{old} +{found[3]},{new} @@'")


def _is_binary(line: str) -> bool:
    return line.startswith("GIT binary patch") or (line.startswith("Binary files ") and line.endswith(" differ"))


def _binary_refusal(line: int) -> ToolFailed:
    message = f"line {line} of the patch: binary files cannot be patched; leave the file out. Nothing was changed"
    return ToolFailed("BINARY_NOT_SUPPORTED", message, line=line)


def _is_executable(text: str, line: int) -> bool:
    """Whether a mode is that of an executable file; modes of anything but a regular file are refused."""
    found = _MODE.match(text)
    if found is None:
        raise invalid(line, "expected a mode such as 100644")
    mode = int(found[1], 8)
    if mode & _KIND != _REGULAR:
        kind = _KINDS.get(mode & _KIND, "something that is not a file")
        raise invalid(line, f"mode {found[1]} means {kind}; a patch may only change regular files")
    return bool(mode & 0o111)


def _build_operation(header: _FileHeader, hunks: list[Hunk]) -> PatchOperation:
    """The operation of a header and its hunks; refuses hunks that do not fit the header."""
    path, new = header.old, header.new
    if path is None or new is None:
        raise invalid(header.line, "expected the names of the file, in '--- a/<path>' and '+++ b/<path>'")
    operation = PatchOperation(header.line, header.verb, path, hunks=hunks, executable=header.executable)
    if header.verb in ("move", "copy"):
        operation.new_path = new
    elif header.verb == "add":
        if len(hunks) > 1 or any(row[0] != "+" for hunk in hunks for row in hunk.rows):
            raise invalid(header.line, "expected one hunk for a new file, with '+' before every line")
        operation.content = [row[1:] for hunk in hunks for row in hunk.rows]
        operation.content_is_open = any(hunk.new_is_open for hunk in hunks)
        operation.hunks = []
    elif header.verb == "delete":
        operation.executable = None
        if any(row[0] == "+" for hunk in hunks for row in hunk.rows):
            raise invalid(header.line, "a deleted file cannot have lines that start with '+'")
    elif not hunks and header.executable is None:
        raise invalid(
            header.line, f"the patch does not say what changes in '{path}'; expected a hunk that starts with '@@ -'"
        )
    return operation
