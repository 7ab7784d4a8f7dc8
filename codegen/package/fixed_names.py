"""Names that generated modules define or import whatever their tools are. No toolkit class may have one of them."""

from __future__ import annotations

import builtins
from typing import Final

EXPORTS: Final[dict[str, tuple[str, ...]]] = {
    "async_facade": ("AsyncTools", "create_async_agent_toolkit"),
    "bind": ("bind",),
    "catalog": ("CATALOG", "parse_call"),
    "context": ("Rule", "SecurityPolicy", "ToolkitContext"),
    "facade": ("Tools", "create_agent_toolkit"),
    "names": ("TOOL_NAMES", "ToolName", "is_tool_name"),
    "unions": ("AnyToolCall", "AnyToolMessage"),
}
"""What a generated package exports, by module."""

_IN_FACADES: Final = frozenset(
    {
        "Any", "AnyToolMessage", "ArgsOfNoTool", "AsyncRunner", "AsyncTools", "CATALOG", "CallTool", "CallToolAsync",
        "DynamicContext", "Iterable", "JsonObjectForUnknownName", "Literal", "NameOfNoTool", "OMIT", "Omit", "PACKS",
        "PackSource", "Runner", "TYPE_CHECKING", "ToolMessage", "ToolkitContext", "Tools", "TypeAlias", "annotations",
        "builtins", "create_agent_toolkit", "create_async_agent_toolkit", "overload", "send_only_given", "WireDate",
        "WireDateTime", "WireTime", "WireUUID", "WireUrl",
    }
)  # fmt: skip

TAKEN_CLASSES: Final = frozenset(
    {"AsyncToolkit", *_IN_FACADES, *dir(builtins), *(name for names in EXPORTS.values() for name in names)}
)
