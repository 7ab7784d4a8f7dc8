"""Parses a model's call without running it: the name is known, the arguments are validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.runtime import path as steps
from toolkit.runtime.arguments import Reader
from toolkit.runtime.catalog.tool import Tool

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import Catalog
    from toolkit.runtime.output.parsed_call import ParsedCall
    from toolkit.wire.call import ToolCall


def parse_call(catalog: Catalog, call: ToolCall) -> ParsedCall[Any, Any]:
    """The call with validated arguments. The policy is not asked and nothing runs; raises as ``invoke`` does."""
    info = catalog.tools.get(call.name) if isinstance(call.name, str) else None
    if info is None:
        raise steps.not_found(call.name, catalog.tools)
    reader = Reader(catalog.model(info, "Input"))
    tool = Tool(info, reader, reader)
    text = call.unread_text
    arguments = steps.as_object(tool, call.arguments if text is None else text, is_text=text is not None)
    from toolkit.runtime.output.parsed_call import ParsedCall

    return ParsedCall(call.id, tool.name, steps.validate(tool, arguments)[0])
