"""What ``exec_command`` and ``bash`` have in common: running the command while listening, and how it ended as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict

from toolkit.builtin.files.visible import visible
from toolkit.builtin.shell.output_buffer import Collector
from toolkit.builtin.shell.output_progress import Watcher
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult

Start: TypeAlias = "Callable[[OnOutput], ProcessResult]"

_MAX_TITLE: Final = 100


class Ending(TypedDict):
    """The fields both outputs have beside ``command``."""

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


def run_listening(ctx: ToolContext, title: str, limit: int, start: Start) -> Ending:
    """Runs what ``start`` runs, which tells its output to the function it is given."""
    ctx.metadata(title=_on_one_line(title))
    watcher = Watcher(ctx) if ctx.watched else None
    collector = Collector(limit, None if watcher is None else watcher.tell, lambda: ctx.output)
    result = start(collector.add)
    collector.finish()
    if watcher is not None:
        watcher.finish()
    stdout, stderr = collector.ends["stdout"], collector.ends["stderr"]
    return Ending(
        cwd=visible(result.cwd),
        exit_code=result.exit_code,
        signal=result.signal_name,
        stdout=stdout.text(),
        stderr=stderr.text(),
        stdout_truncated=stdout.is_cut,
        stderr_truncated=stderr.is_cut,
        timed_out=result.timed_out,
        duration_ms=result.duration_ms,
        sandbox=result.tier,
        network=result.network,
    )


def _on_one_line(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1] + "…"
