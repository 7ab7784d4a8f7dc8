"""``bash``: runs shell text in the sandbox, in a new shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.builtin.shell.output import render_result, run_command
from toolkit.generated import BashInput, BashOutput
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult


def run(args: BashInput, ctx: ToolContext) -> BashOutput:
    def start(on_output: OnOutput) -> ProcessResult:
        return ctx.process.shell(
            args.command,
            cwd=args.cwd,
            timeout=args.timeout_ms / 1000,
            max_output=0,  # run_command keeps the output
            network=ctx.command_network,
            on_output=on_output,
        )

    fields = run_command(ctx, args.description or args.command, args.max_output_bytes, start)
    return BashOutput(command=args.command, **fields)


def text(output: BashOutput) -> str:
    return render_result(output)
