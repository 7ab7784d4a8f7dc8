"""The notes of a review, for whoever ran the command: short, and with a way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.guard.files.path import display
from toolkit.guard.review.put_back import Change

_SHOWN: Final = 10
_MAX_TEXT: Final = 250


def describe(
    git: Sequence[Change], kept: Sequence[Change], code: Sequence[Change], problems: Sequence[str], batch: str
) -> list[str]:
    """One note for repositories, one for kept files, one for the interpreter's code, one for what could not be checked;
    ``batch`` is where copies are."""
    copies = f" A copy is in the state directory, in put-back/{batch}." if batch else ""
    notes = []
    if git:
        notes.append(
            f"put back: {_list(git)}. Git would run it, or be led elsewhere, later.{copies} "
            'Use ToolkitContext(git="write") if commands may change this'
        )
    if kept:
        notes.append(
            f"put back: {_list(kept)}. Such files can run code for the user later, so commands do not change them.{copies} "
            "Use write_file, edit or apply_patch, which ask for approval, or ToolkitContext(ask_before_writing=[...])"
        )
    if code:
        notes.append(
            f"put back: {_list(code)}. The toolkit or its interpreter loads code or settings from there, so tools cannot "
            f"change it.{copies}"
        )
    if problems:
        where = "; ".join(map(_shorten, problems[:_SHOWN]))
        notes.append(
            f"not checked: the review of repositories after the command did not finish ({where}). "
            "Look at .git directories and hooks before you run git"
        )
    return notes


def _shorten(text: str) -> str:
    shown = display(text)
    return shown if len(shown) <= _MAX_TEXT else f"{shown[:50]}…{shown[-_MAX_TEXT + 50 :]}"


def _list(changes: Sequence[Change]) -> str:
    shown = [
        f"{_shorten(change.path)} was {change.act} by the command"
        + ("" if change.undone else "; it was too large to be put back, so it was removed")
        for change in changes[:_SHOWN]
    ]
    more = len(changes) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])
