"""Long descriptions: files beside specs and modules, with the few words that are filled in when a toolkit is built."""

from __future__ import annotations

from typing import Final

MAX_DESCRIPTION_FILE: Final = 256 * 1024
PLACEHOLDERS: Final = ("workspace", "directory", "cwd")


def unknown_placeholders(text: str) -> list[str]:
    """What stands in ``${...}`` and is nothing that gets filled in.

    >>> unknown_placeholders("in ${workspace}, as ${user}")
    ['user']
    """
    # Split, not matched: a pattern would take quadratic time on a text full of unclosed "${".
    pieces = [piece.partition("}") for piece in text.split("${")[1:]]
    return [name for name, closed, _ in pieces if closed and name not in PLACEHOLDERS]


def filled(text: str, workspace: str) -> str:
    """The text for one toolkit. Every placeholder stands for its workspace: a tool knows no other directory.

    >>> filled("Works in ${workspace}.", "/project")
    'Works in /project.'
    """
    for word in PLACEHOLDERS:
        text = text.replace(f"${{{word}}}", workspace)
    return text
