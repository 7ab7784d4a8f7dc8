"""How every command prints: text for people, JSON for scripts, errors with their exit codes, questions, progress.

On a terminal there are colours and tables, elsewhere plain text (``takes_colour``).

Promise: what acts on a terminal instead of being shown (escape sequences, bidi overrides, invisible characters) is printed as
an escape, whoever wrote it: a spec, a server, a file name, an exception. JSON stays equal JSON. Commands print only through
this module; ``show_stderr_plainly`` covers what others print there: tracebacks, warnings, log records, wrong usage.

Not covered: what a tool's own code prints to standard output by itself.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias

from toolkit.errors import GenerationError, SetupError, SpecError, ToolkitError
from toolkit.visible import escape_hidden, escape_hidden_json, escape_hidden_lines

if TYPE_CHECKING:
    from threading import Event


# ----------------------------------------------------------------------------------------------------------------------
# Colours: only the eight basic ones, which every terminal theme makes readable.

Style: TypeAlias = Literal["bold", "dim", "red", "green", "cyan", "magenta"]

_CODES: Final[dict[Style, str]] = {
    "bold": "1", "dim": "2", "red": "1;31", "green": "32", "cyan": "36", "magenta": "35",
}  # fmt: skip
DECISION_STYLES: Final[dict[str, Style]] = {"allow": "green", "ask": "magenta", "deny": "red"}


@dataclass(frozen=True, slots=True)
class Styled:
    """A piece of a line, and how it looks where colours are shown."""

    text: str
    style: Style | None = None


def takes_colour(stream: TextIO | None) -> bool:
    """A terminal does, unless NO_COLOR is set (https://no-color.org) or it is dumb. With FORCE_COLOR every stream does."""
    if os.environ.get("NO_COLOR") or stream is None:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Style | None) -> str:
    """The text with the codes that a terminal reads.

    >>> paint("no", "red")
    '\\x1b[1;31mno\\x1b[0m'
    """
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and style else text


_HEADING: Final = re.compile(r"^(\w[\w ]*:)(?= |$)")
_ENTRY: Final = re.compile(r"^(  )(-[^\s,]*(?:, -\S+)*(?: / --\S+)?|[a-z][\w-]*)(?=  |$| [A-Z\[<])")
_EXAMPLE: Final = re.compile(r"^(  +)(toolkit .*)$")


def paint_help(text: str) -> str:
    """The page of ``--help`` with colours: headings, and the names of options and commands.

    >>> paint_help("Options:\\n  --json  Print JSON.")
    '\\x1b[1mOptions:\\x1b[0m\\n  \\x1b[36m--json\\x1b[0m  Print JSON.'
    """
    return "\n".join(map(_paint_help_line, text.split("\n")))


def _paint_help_line(line: str) -> str:
    if found := _EXAMPLE.match(line):
        return f"{found[1]}{paint(found[2], 'cyan')}"
    if found := _HEADING.match(line):
        return f"{paint(found[1], 'bold')}{line[found.end() :]}"
    if found := _ENTRY.match(line):
        return f"{found[1]}{paint(found[2], 'cyan')}{line[found.end() :]}"
    return line


def print_line(text: str) -> None:
    """One line for people, on standard output. Line ends in it are escaped: foreign text cannot add a line of its own."""
    line = escape_hidden(text)
    if line.isascii():  # every stream takes it: no need to import typer
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    else:
        _echo(line)


def print_styled(*pieces: str | Styled) -> None:
    """As ``print_line``, of several pieces, some of which have a colour on a terminal."""
    if not takes_colour(sys.stdout):
        print_line("".join(piece if isinstance(piece, str) else piece.text for piece in pieces))
        return
    shown = (
        escape_hidden(piece) if isinstance(piece, str) else paint(escape_hidden(piece.text), piece.style)
        for piece in pieces
    )
    # Typer would remove the codes where FORCE_COLOR asks for them.
    sys.stdout.write(f"{''.join(shown)}\n")
    sys.stdout.flush()


def render_help(text: str) -> str:
    """A page of help as standard output shows it. It may hold descriptions of tools, which anybody can have written."""
    shown = escape_hidden_lines(text)
    return paint_help(shown) if takes_colour(sys.stdout) else shown


def print_help(text: str) -> None:
    sys.stdout.write(f"{render_help(text)}\n")
    sys.stdout.flush()


def is_on_terminal() -> bool:
    """Whether a person reads standard output: tables fit the width there. Scripts get every text whole."""
    return sys.stdout.isatty()


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str | Styled]],
    *,
    cut: bool = False,
    indent: int = 0,
    widths: Sequence[int] = (),
) -> None:
    """A table: on a terminal as wide as it is (long cells of the last column are wrapped, or cut), else columns of text.

    Without ``headers`` (empty texts) there is no line for them. ``widths`` are at least those of the first columns.
    """
    cells = [[_visible(cell) for cell in row] for row in rows]
    least = [*widths, *[0] * (len(headers) - len(widths))]
    if is_on_terminal():
        _draw_table(headers, cells, cut, indent, least)
        return
    columns = zip(headers, *([cell.text for cell in row] for row in cells), strict=True)
    wide = [max(width, *map(len, column)) for width, column in zip(least, columns, strict=True)]
    for row in [[Styled(header) for header in headers], *cells] if any(headers) else cells:
        line = "  ".join(f"{cell.text:<{width}}" for cell, width in zip(row, wide, strict=True))
        print_line(f"{' ' * indent}{line}".rstrip())


def _visible(cell: str | Styled) -> Styled:
    """The text of a cell on one line, as a terminal may show it."""
    text, style = (cell, None) if isinstance(cell, str) else (cell.text, cell.style)
    return Styled(escape_hidden(" ".join(text.split())), style)


def _draw_table(
    headers: Sequence[str], rows: Sequence[Sequence[Styled]], cut: bool, indent: int, least: Sequence[int]
) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=any(headers), header_style="bold", padding=(0, 2, 0, 0))
    for position, (header, width) in enumerate(zip(headers, least, strict=True)):
        # Only the last column gives way where there is not enough room; without `cut`, all but the first.
        is_whole = position < len(headers) - 1 if cut else position == 0
        table.add_column(Text(header), no_wrap=is_whole, min_width=width or None)
    for row in rows:
        cells = (
            Text(
                cell.text, _RICH_STYLES.get(cell.style, ""), no_wrap=cut or None, overflow="ellipsis" if cut else "fold"
            )
            for cell in row
        )
        table.add_row(*cells)
    colours: Any = "standard" if takes_colour(sys.stdout) else None
    console = Console(file=sys.stdout, color_system=colours, highlight=False, markup=False, emoji=False)
    console.print(Padding(table, (0, 0, 0, indent)) if indent else table)


def print_paragraphs(text: str) -> None:
    """Text that somebody else wrote, indented so that none of its lines passes for one of ours; wrapped on a terminal."""
    import shutil
    import textwrap

    lines = escape_hidden_lines(text).split("\n")
    if is_on_terminal():
        width = min(shutil.get_terminal_size().columns, 100)
        lines = [part for line in lines for part in textwrap.wrap(line, width - 2, break_long_words=False) or [""]]
    _echo("\n".join(f"  {line}".rstrip() for line in lines))


_RICH_STYLES: Final[dict[Style | None, str]] = {
    "bold": "bold", "dim": "dim", "red": "bold red", "green": "green", "cyan": "cyan", "magenta": "magenta",
}  # fmt: skip


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "spec"), count(2, "spec")
    ('1 spec', '2 specs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_text(text: str) -> None:
    """Text of several lines for people, on standard output."""
    _echo(escape_hidden_lines(text))


def print_warning(line: str) -> None:
    """As ``print_line``, on standard error."""
    _echo(escape_hidden(line), err=True)


def write_warning(line: str) -> None:
    """As ``print_warning``, for a thread that may still wait here when the process ends: nothing of Python is locked."""
    data = f"{escape_hidden(line)}\n".encode(errors="backslashreplace")
    with suppress(OSError):  # the terminal is gone
        while data:
            data = data[os.write(2, data) :]


def print_error(message: str, *more: str) -> None:
    """``Error: ...`` and further lines, on standard error."""
    title = "Error:"
    if takes_colour(sys.__stderr__) and sys.__stderr__ is not None:
        # Not through ``sys.stderr``, which would show the codes.
        sys.__stderr__.write(f"{paint(title, 'red')} {escape_hidden_lines(message)}\n")
        sys.__stderr__.flush()
    else:
        _echo(f"{title} {escape_hidden_lines(message)}", err=True)
    for line in more:
        print_warning(line)


def report_interrupt() -> int:
    """Ctrl-C: one line, after the ``^C`` that a terminal shows, and the exit code that shells expect."""
    _echo("\ninterrupted" if _is_terminal() else "interrupted", err=True)
    return 130


def report_crash(error: Exception) -> int:
    """What nobody expected: one line, and the traceback only for those who ask for it. Returns the exit code."""
    if os.environ.get("TOOLKIT_DEBUG"):
        import traceback

        _echo(escape_hidden_lines("".join(traceback.format_exception(error)).rstrip("\n")), err=True)
    hint = "set TOOLKIT_DEBUG=1 to see where"
    if isinstance(error, OSError) and error.strerror:
        print_error(f"{error.strerror}{f': {error.filename!r}' if error.filename else ''}; {hint}")
        return 2
    what = f"{type(error).__name__}: {error}".strip(": ").splitlines()[0]
    print_error(f"unexpected {what}; this is a bug in typed-toolkit: {hint}, and report it with what is printed then")
    return 70


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

    Exit code 1: a call failed. ``spec_mistakes``: a spec is wrong or cannot be generated. 2: the set-up is wrong, even if
    that shows only when it is used, as with a package to include that is not installed.
    """
    try:
        yield
    except ToolkitError as error:
        failure = {"code": error.code, "tool_name": error.tool_name, "message": error.message, "details": error.details}
        _print_error(error, failure, as_json)
        raise SystemExit(1) from None
    except SetupError as error:
        found = [finding.as_json() for finding in error.findings]
        problems = {"problems": found} if found else {"error": str(error)}
        _print_error(error, problems, as_json)
        in_settings = bool(error.findings) and all(found.source == "pyproject.toml" for found in error.findings)
        in_spec = isinstance(error, SpecError | GenerationError) and not in_settings
        raise SystemExit(spec_mistakes if in_spec else 2) from None


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


@contextmanager
def show_waiting(label: str) -> Iterator[None]:
    """On a terminal a line that counts the seconds, from the first one on until the end. For work without steps to count."""
    if not _is_terminal():
        yield
        return
    from threading import Event, Thread

    ended = Event()
    counter = Thread(target=_count_seconds, args=(escape_hidden(label), ended), daemon=True)
    counter.start()
    try:
        yield
    finally:
        ended.set()
        counter.join()


def _count_seconds(label: str, ended: Event) -> None:
    import shutil
    from time import monotonic

    stream, line = sys.__stderr__, ""
    assert stream is not None
    width = shutil.get_terminal_size().columns - 1  # a longer line would be wrapped, and stay
    start = monotonic()
    while not ended.wait(1):
        seconds = f": {monotonic() - start:.0f} s"
        line = f"{label[: width - len(seconds)]}{seconds}"
        stream.write(f"\r{line}")
        stream.flush()
    stream.write(f"\r{' ' * len(line)}\r" if line else "")
    stream.flush()
