"""A wrong input, and what a command says about it.

A kind of inputs is a module next to this one with a list ``ROWS``; ``test_wrong_inputs.py`` lists the modules.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

from typer.testing import CliRunner

PYPROJECT = """
[tool.toolkit]
specs = "acme/tools"
package = "acme.generated"
"""


@dataclass(frozen=True, slots=True)
class WrongInput:
    """Files of a small project, relative to its folder, and the arguments of ``toolkit``.

    The snapshot shows the files in ``files``; those in ``around`` are as right as they are uninteresting.
    """

    title: str
    files: Mapping[str, str]
    command: Sequence[str] = ("generate",)
    around: Mapping[str, str] = field(default_factory=lambda: {"pyproject.toml": PYPROJECT})


def describe(row: WrongInput, folder: Path) -> str:
    """Runs the command in ``folder`` and returns the input, the whole output and the exit code, for people to read."""
    for path, text in {**row.around, **row.files}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_plain(text).encode("utf-8", "surrogateescape"))
    parts = [f"## {row.title}"]
    parts += [f"{path}:\n{indent(_visible(_plain(text)), '    ')}" for path, text in row.files.items()]
    with chdir(folder):
        output, code = _run(row.command)
    output = output.replace(os.fspath(folder.resolve()), "<project>").rstrip("\n")
    return "\n".join([*parts, f"$ toolkit {' '.join(row.command)}", output, f"exit code {code}", ""])


def _run(arguments: Sequence[str]) -> tuple[str, int]:
    from toolkit.cli.commands import app

    done = CliRunner().invoke(app, list(arguments), prog_name="toolkit")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output, done.exit_code


def _plain(text: str) -> str:
    return dedent(text).lstrip("\n")


def _visible(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").rstrip("\n")
