"""How every command prints: JSON for scripts, errors with their exit codes, a progress bar for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from toolkit.errors import GenerationError, SetupError, SpecError, ToolkitError


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, default=str, ensure_ascii=False, indent=2))


@contextmanager
def report_errors(as_json: bool, *, spec_mistakes: int = 1) -> Iterator[None]:
    """Prints our errors on stderr, or as JSON on stdout, and ends the command.

    Exit code 1: a call failed. ``spec_mistakes``: a spec is wrong or cannot be generated. 2: the set-up is wrong.
    """
    try:
        yield
    except ToolkitError as error:
        failure = {"code": error.code, "tool_name": error.tool_name, "message": error.message, "details": error.details}
        _print_error(error, failure, as_json)
        raise typer.Exit(1) from None
    except SetupError as error:
        problems = {"problems": list(error.problems)} if isinstance(error, SpecError) else {"error": str(error)}
        _print_error(error, problems, as_json)
        raise typer.Exit(spec_mistakes if isinstance(error, SpecError | GenerationError) else 2) from None


def _print_error(error: Exception, value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        typer.echo(str(error), err=True)


@contextmanager
def show_progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal; None for scripts. The function takes the number of steps done and their total."""
    if not sys.stderr.isatty():
        yield None
        return
    with typer.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def step(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield step
