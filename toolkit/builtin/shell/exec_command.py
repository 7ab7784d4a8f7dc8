"""``exec_command``: runs one program with its arguments in the sandbox."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, cast

from toolkit.builtin.shell.output import render_result, run_command
from toolkit.errors import ToolFailed
from toolkit.generated import ExecCommandInput, ExecCommandOutput
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult

# Shell builtins that are not programs, though models often call them like one.
_SHELL_BUILTINS: Final = frozenset(
    ["alias", "cd", "eval", "exec", "export", "popd", "pushd", "set", "source", "type", "ulimit", "umask", "unset"]
)


def run(args: ExecCommandInput, ctx: ToolContext) -> ExecCommandOutput:
    def start(on_output: OnOutput) -> ProcessResult:
        return ctx.process.run(
            args.command,
            cwd=args.cwd,
            stdin=None if args.stdin is None else args.stdin.encode(),
            env=args.env or {},
            timeout=args.timeout_ms / 1000,
            max_output=0,  # run_command keeps the output
            network=ctx.command_network,
            on_output=on_output,
        )

    try:
        fields = run_command(ctx, shlex.join(args.command), args.max_output_bytes, start)
    except ToolFailed as error:
        if error.reason != "COMMAND_NOT_FOUND":
            raise
        near = cast("list[str]", error.details.get("near", []))
        raise ToolFailed(error.reason, error.message + _hint(args.command, near), near=near) from None
    return ExecCommandOutput(command=args.command, **fields)


def _hint(command: list[str], near: list[str]) -> str:
    """What to do: most often shell text was given, and there is no shell."""
    program = command[0]
    if len(program.split()) > 1:
        return "; give the program and each argument as a separate item, or use bash for shell text"
    if program in _SHELL_BUILTINS:
        return f"; {program} is a shell builtin: set cwd or env, or use bash for shell text"
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""


def text(output: ExecCommandOutput) -> str:
    return render_result(output)
