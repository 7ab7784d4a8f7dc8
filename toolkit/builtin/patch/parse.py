"""Parses a patch in either format."""

from __future__ import annotations

from typing import Final

from toolkit.builtin.patch.envelope import BEGIN, END, is_envelope, parse_envelope
from toolkit.builtin.patch.git_diff import is_git_diff, parse_git_diff
from toolkit.builtin.patch.model import Patch, invalid
from toolkit.errors import InvalidArguments, ToolFailed

MAX_BYTES: Final = 10 * 1024 * 1024
MAX_LINES: Final = 1_000_000
MAX_OPERATIONS: Final = 2000
MAX_PATH_PARTS: Final = 20_000


def parse_patch(text: str) -> Patch:
    """The patch; raises ``INVALID_PATCH`` with the wrong line and what was expected there."""
    _refuse_malformed(text)
    lines = text.split("\n")
    if is_envelope(lines):
        patch = parse_envelope(lines)
    elif is_git_diff(lines):
        patch = parse_git_diff(lines)
    else:
        first = next((number for number, line in enumerate(lines, 1) if line.strip()), 1)
        raise invalid(first, f"expected '{BEGIN}' as the first line and '{END}' as the last, or a git diff")
    _refuse_too_many_files(patch)
    return patch


def _refuse_too_many_files(patch: Patch) -> None:
    count = len(patch.operations)
    if count > MAX_OPERATIONS:
        message = (
            f"the patch names {count} files, but at most {MAX_OPERATIONS} are allowed; split it. Nothing was changed"
        )
        raise ToolFailed("TOO_LARGE", message)
    names = (name for one in patch.operations for name in (one.path, one.target))
    if sum(name.count("/") + 1 for name in names) > MAX_PATH_PARTS:
        raise ToolFailed(
            "TOO_LARGE", "the paths in the patch have too many parts in all; split it. Nothing was changed"
        )


def _refuse_malformed(text: str) -> None:
    try:
        size = len(text) if len(text) > MAX_BYTES else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidArguments("the patch must not contain lone surrogates") from None
    if size > MAX_BYTES or text.count("\n") >= MAX_LINES:
        problem = f"the patch has {size} bytes and {text.count(chr(10)) + 1} lines"
        limits = f"at most {MAX_BYTES} bytes and {MAX_LINES} lines are allowed"
        raise ToolFailed("TOO_LARGE", f"{problem}, but {limits}; split it. Nothing was changed")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        message = f"line {line} of the patch: a NUL character, which text files do not contain. Nothing was changed"
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, line=line)
