"""``describe_tools``: the signatures of some tools, for a model that was told only their names."""

from __future__ import annotations

from toolkit.generated import DescribeToolsInput, DescribeToolsOutput
from toolkit.runtime.tool_context import ToolContext


def run(args: DescribeToolsInput, ctx: ToolContext) -> DescribeToolsOutput:
    ctx.metadata(title=f"Described {', '.join(args.names)}")
    return DescribeToolsOutput(signatures=ctx._tool_texts.describe(args.names))


def text(output: DescribeToolsOutput) -> str:
    return output.signatures
