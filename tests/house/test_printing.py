"""Commands print through one module, which shows characters that would act on a terminal."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.projects import REPOSITORY

PRINTS = "toolkit/cli/report.py"
PRINTING = {"echo", "secho", "echo_via_pager", "confirm", "prompt", "progressbar", "print"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def printing(file: Path) -> set[str]:
    """What a file prints with: functions of typer, ``print``, and writing to a standard stream."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="typer" | "click"), attr=name)) if name in PRINTING:
                found.add(name)
            case ast.Call(func=ast.Name(id=name)) if name in PRINTING:
                found.add(name)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr="write" | "buffer"):
                found.add(f"sys.{stream}") if stream in STREAMS else None
    return found


def test_only_the_report_prints() -> None:
    files = sorted((REPOSITORY / "toolkit" / "cli").rglob("*.py"))
    others = {file.name: found for file in files if file != REPOSITORY / PRINTS and (found := printing(file))}
    assert others == {}
    assert "echo" in printing(REPOSITORY / PRINTS)
