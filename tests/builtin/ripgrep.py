"""ripgrep as the oracle for ``grep`` and ``glob``: what it finds in the same tree with the same pattern."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toolkit.visible import display

PROGRAM = Path(sys.executable).with_name("rg")
FLAGS = ("--no-config", "--no-ignore-global", "--no-ignore-parent", "--no-require-git", "--no-messages")

needs_ripgrep = pytest.mark.skipif(
    not PROGRAM.exists(), reason="ripgrep is not installed, so there is nothing to compare"
)


class Found(NamedTuple):
    path: str
    line: int
    column: int | None
    text: str


def _run(root: Path, *arguments: str) -> bytes | None:
    """Its output; None if it refuses the pattern."""
    done = subprocess.run([PROGRAM, *FLAGS, *arguments], cwd=root, capture_output=True, check=False)
    return None if done.returncode == 2 and not done.stdout else done.stdout


def files(root: Path, *arguments: str) -> set[str]:
    """The files it would search, as tools show their paths."""
    printed = _run(root, "--files", "--null", *arguments) or b""
    return {shown(path) for path in printed.split(b"\0") if path}


def lines(root: Path, pattern: str, *arguments: str) -> set[Found] | None:
    """The matching lines; None if it refuses the pattern."""
    printed = _run(root, "--json", *arguments, "-e", pattern, "--", ".")
    if printed is None:
        return None
    events = [json.loads(event) for event in printed.splitlines()]
    return {_found(event["data"]) for event in events if event["type"] == "match"}


def _found(data: dict[str, Any]) -> Found:
    line = _bytes(data["lines"])
    places = data["submatches"]
    column = len(line[: places[0]["start"]].decode()) + 1 if places else None
    return Found(shown(_bytes(data["path"])), data["line_number"], column, line.removesuffix(b"\n").decode())


def _bytes(value: dict[str, str]) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def shown(path: bytes) -> str:
    return display(os.fsdecode(path.removeprefix(b"./")))
