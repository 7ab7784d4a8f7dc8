"""``run_program``: runs a program that the model wrote, after it was checked."""

from __future__ import annotations

import json

from toolkit.generated import RunProgramInput, RunProgramOutput, RunProgramOutputCall, RunProgramOutputError
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.tool_context import ToolContext


async def run(args: RunProgramInput, ctx: ToolContext) -> RunProgramOutput:
    result = await ctx.programs.run(args.source, args.inputs)
    ctx.attach(*result.attachments)
    return RunProgramOutput(
        ran=result.ran,
        value=result.value,
        output=result.output,
        errors=[
            RunProgramOutputError(line=one.line, column=one.column, message=one.message, kind=one.kind)
            for one in result.errors
        ],
        calls=[RunProgramOutputCall(tool=one.tool, line=one.line, error=one.error) for one in result.calls],
    )


def preview(args: RunProgramInput, ctx: ToolContext) -> Preview:
    return Preview(tools=ctx.programs.tools_of(args.source))


def text(output: RunProgramOutput) -> str:
    if not output.ran:
        return "\n".join(["The program was not run. Fix these lines and send it again:", *_lines(output)])
    parts = []
    if output.errors:
        parts += ["The program failed:", *_lines(output), _made(output)]
    if output.output:
        parts += ["output:", output.output.rstrip("\n")]
    if not output.errors:
        parts += [f"value: {json.dumps(output.value, ensure_ascii=False)}"]
    return "\n".join(parts)


def _lines(output: RunProgramOutput) -> list[str]:
    return [f"line {error.line}: {error.message}" if error.line else error.message for error in output.errors]


def _made(output: RunProgramOutput) -> str:
    """What has happened already: a program that is sent again must not repeat it."""
    if not output.calls:
        return "It had made no calls."
    calls = ", ".join(
        f"{call.tool} (line {call.line}{f', {call.error}' if call.error else ''})" for call in output.calls
    )
    return f"It had made these calls: {calls}"
