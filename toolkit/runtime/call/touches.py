"""Finds what a call would touch: from the handler's ``preview``, or from the spec's ``x-resource`` marks."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from toolkit.errors import SetupError
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.catalog.catalog import ToolInfo
from toolkit.runtime.catalog.handler_parts import HandlerParts
from toolkit.runtime.catalog.tool import Tool
from toolkit.runtime.context.tool_context import ToolContext

_CONDITIONS: Final = {"read-path": "path", "write-path": "path", "argv": "command", "shell": "command", "url": "host"}
# "cwd" and "env" belong to a command and are not conditions of their own.
RESOURCE_KINDS: Final = (*_CONDITIONS, "cwd", "env")


def touched_kinds(info: ToolInfo, handler: HandlerParts[..., Any] | None) -> frozenset[str]:
    """Which conditions of rules can apply to a tool; a handler with a ``preview`` may report anything."""
    if handler is not None and handler.preview is not None:
        return frozenset(_CONDITIONS.values())
    return frozenset(_CONDITIONS[kind] for _, kind in info.resources if kind in _CONDITIONS)


def preview_call(tool: Tool, args: BaseModel, ctx: ToolContext) -> Preview:
    """The preview of one call, before it runs."""
    if tool.preview is None:
        return _preview_from_marks(tool.info, args, ctx._core.context.workspace)
    try:
        made = tool.preview(args, ctx)
    finally:
        if ctx._scope is not None:
            ctx._scope.close()
    if not isinstance(made, Preview):
        raise SetupError(f"the preview of {tool.name!r} returned {type(made).__name__}, not a Preview")
    return made


def _preview_from_marks(info: ToolInfo, args: BaseModel, workspace: str) -> Preview:
    found: dict[str, list[str]] = {kind: [] for kind in _CONDITIONS}
    argv: tuple[str, ...] | None = None
    cwd = "."
    variables: tuple[str, ...] = ()
    for field, kind in info.resources:
        value = getattr(args, field)
        if value is None:
            continue
        if kind == "argv":
            argv = tuple(value)
        elif kind == "cwd":
            cwd = "." if value == workspace else str(value)
        elif kind == "env":
            variables = tuple(map(str, value))
        else:
            found[kind] += value if isinstance(value, list) else [value]
    return Preview(
        reads=tuple(found["read-path"]),
        writes=tuple(found["write-path"]),
        argv=argv,
        # Two shell texts are judged as one that runs both.
        shell="; ".join(found["shell"]) if found["shell"] else None,
        url=found["url"][0] if found["url"] else None,
        cwd=cwd,
        variables=variables,
    )
