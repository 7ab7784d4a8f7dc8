"""``bash``: shell text, in the sandbox, in a shell of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.builtin.shell.result_text import report
from toolkit.builtin.shell.run_command import run_listening
from toolkit.generated import BashInput, BashOutput
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult


def run(args: BashInput, ctx: ToolContext) -> BashOutput:
    def start(on_output: OnOutput) -> ProcessResult:
        return ctx.process.shell(
            args.command,
            cwd=args.cwd,
            timeout=args.timeout_ms / 1000,
            max_output=0,  # it is kept here, not there
            network="network" in ctx.granted,
            on_output=on_output,
        )

    ending = run_listening(ctx, args.description or args.command, args.max_output_bytes, start)
    return BashOutput(command=args.command, **ending)


def text(output: BashOutput) -> str:
    return report(output)
