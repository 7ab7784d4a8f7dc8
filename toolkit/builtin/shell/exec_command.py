"""``exec_command``: one program with its arguments, in the sandbox."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, cast

from toolkit.builtin.shell.result_text import report
from toolkit.builtin.shell.run_command import run_listening
from toolkit.errors import ToolFailed
from toolkit.generated import ExecCommandInput, ExecCommandOutput
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.process.guard import OnOutput, ProcessResult

# Words of a shell that are no programs, though they are often called like one.
_SHELL_WORDS: Final = frozenset(
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
            max_output=0,  # it is kept here, not there
            network="network" in ctx.granted,
            on_output=on_output,
        )

    try:
        ending = run_listening(ctx, shlex.join(args.command), args.max_output_bytes, start)
    except ToolFailed as error:
        if error.reason != "COMMAND_NOT_FOUND":
            raise
        near = cast("list[str]", error.details.get("near", []))
        raise ToolFailed(error.reason, error.message + _hint(args.command, near), near=near) from None
    return ExecCommandOutput(command=args.command, **ending)


def _hint(command: list[str], near: list[str]) -> str:
    """The way out: most often shell text was given to something that is no shell."""
    program = command[0]
    if len(program.split()) > 1:
        return "; give the program and each argument as an item of its own, and shell text to bash"
    if program in _SHELL_WORDS:
        return f"; {program} is a word of the shell: set cwd or env, or give shell text to bash"
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""


def text(output: ExecCommandOutput) -> str:
    return report(output)
