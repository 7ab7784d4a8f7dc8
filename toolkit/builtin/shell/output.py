"""What ``exec_command`` and ``bash`` share: running a command, collecting its output, reporting progress, and the result."""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypedDict, cast

from toolkit.generated import BashOutput, ExecCommandOutput
from toolkit.guard.process.guard import HeadTail
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden, hidden_characters

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult


# ----------------------------------------------------------------------------------------------------------------------
# The bytes of a program as text for a model: nothing is hidden, and nothing acts on a terminal.
#
# Tabs and line feeds stay. A carriage return, with or without a line feed after it, is the end of a line, so that every
# state of a progress bar gets its own line. Every other control character (escape codes, NUL), every invisible format
# character (bidi overrides, tags) and every byte that is not UTF-8 is written as an escape such as ``\x1b`` or ``\u202e``.
# Backslashes stay as they are, so the escaping cannot be reversed.
#
# A program may write gigabytes, so no step here runs Python code for each character.

_MAX_REPLACED: Final = 4
"""Up to so many different hidden characters, replacing one after the other is faster than looking up every character."""

# Not printable for Python, yet visible or needed: no-break and ideographic spaces, joiners.
_ALSO_PLAIN: Final = "\xa0\u202f\u3000\u200c\u200d"


class OutputEscaper:
    """Escapes one stream, chunk by chunk; a character or line end that is split between chunks waits for its other half.

    >>> escaper = OutputEscaper()
    >>> escaper.feed(b"50%\\r100%\\r"), escaper.feed(b"\\ncaf\\xc3"), escaper.feed(b"\\xa9 \\x1b[0m\\xff"), escaper.end()
    ('50%\\n100%', '\\ncaf', 'é \\\\x1b[0m\\\\xff', '')
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._held = ""
        """A carriage return at the end of a chunk, until the next one shows whether a line feed follows."""

    def feed(self, data: bytes) -> str:
        """The text of this chunk, as far as it is complete."""
        return self._escape(self._decode(data), is_end=False)

    def end(self) -> str:
        """The rest of the text, which was waiting for more."""
        return self._escape(self._decode(b"", True), is_end=True)

    def _escape(self, text: str, *, is_end: bool) -> str:
        if "\r" in text or self._held:
            text = self._held + text
            self._held = "" if is_end or not text.endswith("\r") else "\r"
            text = text.removesuffix(self._held).replace("\r\n", "\n").replace("\r", "\n")
        # Colours are by far the most common escape.
        text = text.replace("\x1b", "\\x1b")
        return text if _is_plain(text) else _escape_hidden(text)


def _is_plain(text: str) -> bool:
    rest = text.replace("\n", "").replace("\t", "")
    if rest.isprintable() or rest.isascii():
        return rest.isprintable()
    for character in _ALSO_PLAIN:
        rest = rest.replace(character, "")
    return rest.isprintable()


def _escape_hidden(text: str) -> str:
    """Looks at each different character once, however often it occurs."""
    characters = set(text)
    hidden = {character: _show_hidden(character) for character in characters & hidden_characters()}
    for kept in "\t\n":
        hidden.pop(kept, None)
    if len(hidden) <= _MAX_REPLACED:
        for character, shown in hidden.items():
            text = text.replace(character, shown)
        return text
    return "".join(map({**dict(zip(characters, characters, strict=True)), **hidden}.__getitem__, text))


def _show_hidden(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python represents a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


# ----------------------------------------------------------------------------------------------------------------------
# Collecting a command's output while it runs: head and tail of each stream in memory, and everything in the output cache
# once a stream is longer than may be returned.
#
# Memory stays flat however much is written: two limits of text, and a few bytes for every change between the streams until
# something has to be left out.

Stream: TypeAlias = Literal["stdout", "stderr"]
OnText: TypeAlias = Callable[[Stream, str], None]

STREAMS: Final[tuple[Stream, Stream]] = ("stdout", "stderr")


class FullOutputWriter(Protocol):
    """Takes an output that is too long to be returned."""

    def write(self, data: bytes) -> None: ...


class OutputCollector:
    """Both streams of one command: ``add`` what comes, ``finish``, and read ``streams``.

    ``on_text`` gets every piece of text. ``open_writer`` is called once, when a stream first exceeds ``limit``; the writer
    gets everything from the first byte on, both streams in the order in which they came.
    """

    def __init__(self, limit: int, on_text: OnText | None, open_writer: Callable[[], FullOutputWriter]) -> None:
        self.streams: Final[Mapping[Stream, HeadTail]] = {"stdout": HeadTail(limit), "stderr": HeadTail(limit)}
        self._escapers: Final[Mapping[Stream, OutputEscaper]] = {"stdout": OutputEscaper(), "stderr": OutputEscaper()}
        self._on_text = on_text
        self._open_writer = open_writer
        self._writer: FullOutputWriter | None = None
        self._turns = array("I", [0])
        """How many bytes came from stdout, then from stderr, then from stdout again, and so on; until there is a writer."""

    def add(self, name: str, data: bytes) -> None:
        """The next bytes of a stream."""
        stream = cast("Stream", name)
        self._add_text(stream, self._escapers[stream].feed(data))

    def finish(self) -> None:
        """Call it once after the last ``add``."""
        for stream in STREAMS:
            self._add_text(stream, self._escapers[stream].end())

    def _add_text(self, stream: Stream, text: str) -> None:
        if not text:
            return
        if self._on_text is not None:
            self._on_text(stream, text)
        piece = text.encode()
        if self._writer is None and not self.streams[stream].fits(len(piece)):
            self._writer = self._open_writer()
            self._writer.write(self._everything_so_far())
        self.streams[stream].add(piece)
        if self._writer is not None:
            self._writer.write(piece)
        else:
            self._count_turn(stream, len(piece))

    def _count_turn(self, stream: Stream, size: int) -> None:
        if STREAMS[(len(self._turns) - 1) % 2] == stream:
            self._turns[-1] += size
        else:
            self._turns.append(size)

    def _everything_so_far(self) -> bytes:
        """Both streams in the order in which they came."""
        sources = [memoryview(self.streams[stream].whole()) for stream in STREAMS]
        gathered = bytearray()
        for turn, size in enumerate(self._turns):
            gathered += sources[turn % 2][:size]
            sources[turn % 2] = sources[turn % 2][size:]
        return bytes(gathered)


def shorten(stream: HeadTail) -> str:
    """The text of a stream; where something is left out, a line says how much.

    >>> stream = HeadTail(8)
    >>> stream.add("one\\ntwo\\nthree\\n".encode())
    >>> print(shorten(stream))
    one
    [... 6 bytes left out ...]
    …ree
    <BLANKLINE>
    """
    if not stream.is_truncated:
        return stream.whole().decode()
    kept_head, before_tail, kept_tail = stream.parts()
    # A character that was cut is left out with the rest. A line that was cut is marked, or it would look like a whole one.
    head, tail = kept_head.decode(errors="ignore"), kept_tail.decode(errors="ignore")
    missing = stream.total - len(head.encode()) - len(tail.encode())
    end_mark = "" if head.endswith("\n") else "…\n"
    start_mark = "" if before_tail == b"\n" or not tail else "…"
    return f"{head}{end_mark}[... {missing} bytes left out ...]\n{start_mark}{tail}"


# ----------------------------------------------------------------------------------------------------------------------
# Reporting a command's output as progress events while it runs.
#
# No clock is used: output is reported line by line at first, and the more has been reported, the more is collected before
# the next event. So even a program that writes letter by letter makes only a few hundred events per megabyte.

PIECES: Final = 64
"""A piece is at least this fraction (1/64) of what was reported before it."""
MAX_PIECE: Final = 1 << 16
LONG_LINE: Final = 80
"""A line of this many characters is reported before its end has come."""
MAX_REPORTED: Final = 1 << 24
"""After this many characters of a stream only their number is reported: a listener may be slower than the command."""
COUNT_EVERY: Final = 1 << 20


class ProgressReporter:
    """Reports to one call's listeners: ``stream`` and ``text``, or past a limit ``stream`` and the ``characters`` so far."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._streams = {name: _StreamProgress() for name in STREAMS}

    def report(self, stream: Stream, text: str) -> None:
        state = self._streams[stream]
        state.characters += len(text)
        if state.sent >= MAX_REPORTED:
            if state.characters - state.counted >= COUNT_EVERY:
                state.counted = state.characters
                self._ctx.progress(stream=stream, characters=state.characters)
            return
        state.waiting.append(text)
        waiting = state.characters - state.sent
        if waiting >= min(MAX_PIECE, state.sent // PIECES) and ("\n" in text or waiting >= LONG_LINE):
            self._send(stream)

    def finish(self) -> None:
        """Report what is still waiting."""
        for stream in STREAMS:
            self._send(stream)

    def _send(self, stream: Stream) -> None:
        state = self._streams[stream]
        if state.waiting:
            self._ctx.progress(stream=stream, text="".join(state.waiting))
            state.waiting.clear()
            state.sent = state.counted = state.characters


class _StreamProgress:
    """How much of one stream has been reported."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.characters = 0
        self.sent = 0
        self.counted = 0


Start: TypeAlias = "Callable[[OnOutput], ProcessResult]"

_MAX_TITLE: Final = 100


class CommandFields(TypedDict):
    """The fields of both outputs besides ``command``."""

    cwd: str
    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    timed_out: bool
    duration_ms: int
    sandbox: Literal["full", "reduced", "none"]
    network: bool
    hidden: list[str]


def run_command(ctx: ToolContext, title: str, limit: int, start: Start) -> CommandFields:
    """Run a command with ``start``, which passes its output to the function it is given, and keep ``limit`` bytes of it."""
    ctx.metadata(title=_on_one_line(title))
    reporter = ProgressReporter(ctx) if ctx._watched else None
    collector = OutputCollector(limit, None if reporter is None else reporter.report, lambda: ctx.output)
    result = start(collector.add)
    collector.finish()
    if reporter is not None:
        reporter.finish()
    stdout, stderr = collector.streams["stdout"], collector.streams["stderr"]
    return CommandFields(
        cwd=escape_hidden(result.cwd),
        exit_code=result.exit_code,
        signal=result.signal_name,
        stdout=shorten(stdout),
        stderr=shorten(stderr),
        stdout_truncated=stdout.is_truncated,
        stderr_truncated=stderr.is_truncated,
        timed_out=result.timed_out,
        duration_ms=result.duration_ms,
        sandbox=result.tier,
        network=result.network != "none",
        hidden=list(map(str, result.hidden)),
    )


def _on_one_line(text: str) -> str:
    line = escape_hidden(" ".join(text.split()))
    return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1] + "…"


# ----------------------------------------------------------------------------------------------------------------------
# A command's result as a model reads it: how it ended unless it succeeded, stdout, stderr, and a hint about the sandbox.

_SEARCHED: Final = 4096
"""How many characters at the end of each stream are searched for signs of the sandbox."""
_REFUSED: Final = re.compile(r"Read-only file system|Permission denied|Operation not permitted|E(?:ACCES|PERM|ROFS)\b")
# Git goes on, and often succeeds, if it cannot write the settings of a branch.
_REFUSED_REPOSITORY: Final = re.compile(
    r"could not (?:write|lock) config file .{0,200}\.git/|\.git/.{0,200}: Read-only file system"
)
_UNREACHABLE: Final = re.compile(
    r"Network is unreachable|[Cc]onnection refused|[Cc]ould(?: not|n't) (?:resolve|connect)|[Ff]ailed to connect|"
    r"[Nn]ame resolution|[Nn]ame or service not known|E(?:AI_AGAIN|NETUNREACH|NOTFOUND)\b"
)
# How curl, git and Python report a tunnel that the proxy of the guarded network refused; they do not show its reason.
_REFUSED_HOST: Final = re.compile(r"CONNECT tunnel failed, response 403|Tunnel connection failed: 403")

CommandOutput: TypeAlias = ExecCommandOutput | BashOutput


def render_result(output: CommandOutput) -> str:
    """The text of a result."""
    lines = _exit_lines(output)
    if output.stdout:
        lines.append(output.stdout.removesuffix("\n"))
    if output.stderr:
        lines += ["[stderr]", output.stderr.removesuffix("\n")]
    if not output.stdout and not output.stderr:
        lines.append("[no output]")
    if output.hidden:
        lines.append(f"[hidden from this command: {', '.join(output.hidden)}]")
    return "\n".join([*lines, *_sandbox_hints(output)])


def _exit_lines(output: CommandOutput) -> list[str]:
    if output.timed_out:
        return ["[timed out and killed; raise timeout_ms if it needs longer]"]
    if output.signal is not None:
        return [f"[ended by {output.signal}]"]
    return [f"[exit code {output.exit_code}]"] if output.exit_code else []


def _sandbox_hints(output: CommandOutput) -> list[str]:
    """A possible reason for a failure; or that there was no sandbox."""
    if output.sandbox == "none":
        return ["[ran without a sandbox]"]
    ends = f"{output.stdout[-_SEARCHED:]}\n{output.stderr[-_SEARCHED:]}"
    if _REFUSED_REPOSITORY.search(ends):
        return ["[sandbox: this part of .git is read-only for commands; the setting is ToolkitContext(git=...)]"]
    if not output.exit_code:
        return []
    if output.network and _REFUSED_HOST.search(ends):
        return [
            "[sandbox: this host is not allowed; Network(allow_hosts=[...]) and the policy decide what commands reach]"
        ]
    if _REFUSED.search(ends) and not output.hidden:
        offline = "" if output.network else "; there is no network beyond it"
        return [f"[sandbox: most places outside the workspace and $TMPDIR are read-only or hidden{offline}]"]
    if not output.network and _UNREACHABLE.search(ends):
        return ['[sandbox: there is no network beyond it; the setting is command_network="guarded"]']
    return []
