"""The handler of the tool that is described by a spec."""

from __future__ import annotations

from pydantic import BaseModel

from toolkit import ContentOutput, Pack, ToolContext


def repeat(args: BaseModel, ctx: ToolContext) -> ContentOutput:
    return ContentOutput(text=args.model_dump_json(by_alias=True, exclude_unset=True))


HANDLERS = Pack({"json_schema_2020_12_tool": repeat})
