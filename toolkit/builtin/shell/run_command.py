"""What ``exec_command`` and ``bash`` share: running the command while collecting its output, and the output fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict

from toolkit.builtin.shell.output_buffer import OutputCollector, shorten
from toolkit.builtin.shell.output_progress import ProgressReporter
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult

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


def run_command(ctx: ToolContext, title: str, limit: int, start: Start) -> CommandFields:
    """Run a command with ``start``, which passes its output to the function it is given, and keep ``limit`` bytes of it."""
    ctx.metadata(title=_on_one_line(title))
    reporter = ProgressReporter(ctx) if ctx.watched else None
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
    )


def _on_one_line(text: str) -> str:
    line = escape_hidden(" ".join(text.split()))
    return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1] + "…"
