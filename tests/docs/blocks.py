"""The code blocks of a page, and what the page says about each.

A page is a script. Its blocks are taken in order, in an empty folder:

- A block whose first line is a comment with a file name (``# acme/tools/add.yaml``) is that file. ``# pyproject.toml, continued``
  is added to the file. For languages without comments, ``<!-- file: openai_tools.json -->`` above the block names it.
- All other Python blocks of a page form one program, which runs where its last part stands. Lines ``# prints: text`` are its output.
- ``sh`` blocks are run and must succeed. ``console`` blocks are run, and their output is compared with what is shown;
  ``...`` stands for any text.
- A comment above a block says why something is not done with it. ``<!-- not run: needs a key -->``: it is only type-checked.
  ``<!-- not checked: ... -->``: it is run, or is a file, but no type checker reads it. ``<!-- not used: ... -->``: neither.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

Exemption: TypeAlias = Literal["", "not run", "not checked", "not used"]

RUN: Final = ("sh", "console")
DATA: Final = ("toml", "yaml", "json")
SHOWN: Final = ("text", "mermaid", "diff")
"""Blocks that hold no program and no data."""

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n`]*\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"<!--\s*(?P<key>file|not run|not checked|not used):\s*(?P<value>[^>]+?)\s*-->\s*\Z")
_FILE = re.compile(r"# (?P<name>[\w.-]+(/[\w.-]+)*\.\w+)(?P<more>, continued)?")


@dataclass(frozen=True, slots=True)
class Block:
    """``line`` is that of its first line of code, counted from 1. ``file`` is empty for a part of the page's program."""

    line: int
    language: str
    text: str
    file: str = ""
    continued: bool = False
    exemption: Exemption = ""
    reason: str = ""


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [_read_block(text, found) for found in _FENCE.finditer(text)]


def _read_block(page: str, found: re.Match[str]) -> Block:
    before = page[: found.start()]
    line = before.count("\n") + 2
    text = textwrap.dedent(found["text"])
    said = _read_comments(before)
    named = _FILE.fullmatch(text.partition("\n")[0])
    exemption: Exemption = "not used" if "not used" in said else "not checked" if "not checked" in said else ""
    if "not run" in said:
        exemption = "not run"
    file = said.get("file") or (named["name"] if named else "")
    continued = bool(named and named["more"])
    return Block(line, found["language"], text, file, continued, exemption, said.get(exemption, ""))


def _read_comments(before: str) -> dict[str, str]:
    """The comments directly above a block, by their key."""
    said: dict[str, str] = {}
    while found := _COMMENT.search(before):
        said[found["key"]] = found["value"]
        before = before[: found.start()]
    return said
