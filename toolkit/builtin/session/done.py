"""``done``: the model reports that it is finished. A loop may end on it but does not have to."""

from __future__ import annotations

from toolkit.generated import DoneInput, DoneOutput
from toolkit.runtime.tool_context import ToolContext


def run(args: DoneInput, ctx: ToolContext) -> DoneOutput:
    ctx.metadata(title="Done", completed=True)
    return DoneOutput(message=args.message)


def text(output: DoneOutput) -> str:
    return output.message
