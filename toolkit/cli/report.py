"""How every command prints: text for people, JSON for scripts, errors with their exit codes, questions, a progress bar.

Promise: what acts on a terminal instead of being shown (escape sequences, bidi overrides, invisible characters) is printed as
an escape, whoever wrote it: a spec, a server, a file name, an exception. JSON stays equal JSON. Commands print only through
this module; ``show_stderr_plainly`` covers what others print there: tracebacks, warnings, log records, wrong usage.

Not covered: what a tool's own code prints to standard output by itself.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

from toolkit.errors import GenerationError, SetupError, SpecError, ToolkitError
from toolkit.visible import escape_hidden, escape_hidden_json, escape_hidden_lines


def print_line(text: str) -> None:
    """One line for people, on standard output. Line ends in it are escaped: foreign text cannot add a line of its own."""
    line = escape_hidden(text)
    if line.isascii():  # every stream takes it: no need to import typer
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    else:
        _echo(line)


def print_text(text: str) -> None:
    """Text of several lines for people, on standard output."""
    _echo(escape_hidden_lines(text))


def print_warning(line: str) -> None:
    """As ``print_line``, on standard error."""
    _echo(escape_hidden(line), err=True)


def print_json(value: Any) -> None:
    _echo(escape_hidden_json(json.dumps(value, default=str, ensure_ascii=False, indent=2)))


def _echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    import typer

    typer.echo(text, nl=nl, err=err)


def ask(question: str) -> bool:
    """Asks a person on the terminal; anything but yes means no, and so does the end of the input."""
    _echo(f"{escape_hidden(question)} [y/N]: ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        _echo("", err=True)
    return answer.strip().lower() in ("y", "yes")


def can_ask() -> bool:
    """Whether a person is at both ends: one who reads what we print and answers."""
    return sys.stdin.isatty() and _is_terminal()


def _is_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty()


def show_stderr_plainly() -> None:
    """From now on nothing that is written to ``sys.stderr`` acts on a terminal."""
    sys.stderr = _PlainStream(sys.stderr)


class _PlainStream(io.TextIOBase):
    """A text stream that shows hidden characters. It has no ``buffer``, which would go around it, and says that it is not a
    terminal, so that nobody colours text for it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_hidden_lines(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True


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
        raise SystemExit(1) from None
    except SetupError as error:
        problems = {"problems": list(error.problems)} if isinstance(error, SpecError) else {"error": str(error)}
        _print_error(error, problems, as_json)
        raise SystemExit(spec_mistakes if isinstance(error, SpecError | GenerationError) else 2) from None


def _print_error(error: Exception, value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        _echo(escape_hidden_lines(str(error)), err=True)


@contextmanager
def show_progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal; None for scripts. The function takes the number of steps done and their total.

    The bar appears with the first step, so that a question can be asked before.
    """
    if not _is_terminal():
        yield None
        return
    with ExitStack() as shown:
        bars: list[Any] = []

        def step(done: int, total: int) -> None:
            if not bars:
                import typer

                bars.append(shown.enter_context(typer.progressbar(length=total, label=label, file=sys.__stderr__)))
            bars[0].length = total
            bars[0].update(done - bars[0].pos)

        yield step
