"""Which tools a toolkit offers to a model, and how it describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import ToolInfo
    from toolkit.runtime.toolkit import Core
    from toolkit.wire.definition import ToolDefinition


def allowed_tools(core: Core) -> list[ToolDefinition]:
    """Definitions of the tools that the policy may allow, in catalog order."""
    return [define(core, info) for info in offered_tools(core)]


def offered_tools(core: Core) -> list[ToolInfo]:
    """The tools that the policy may allow, in catalog order."""
    return [info for info in core.catalog.tools.values() if why_not_offered(core, info) is None]


def why_not_offered(core: Core, info: ToolInfo) -> str | None:
    """Why no call of a tool can succeed, or None."""
    if info.name not in core.handlers:
        return f"{info.name!r} has no handler in this toolkit"
    if _cannot_write(core, info):
        return f"{info.name!r} writes files, and this context is read-only"
    try:
        return core.admission(info)[0]
    except ToolFailed as error:
        if error.reason == "SYSTEM":  # it may be gone when the tool is called
            return None
        raise


def define(core: Core, info: ToolInfo) -> ToolDefinition:
    """The definition of a tool for a model: name, description and schema."""
    from toolkit.runtime.catalog.schema_marks import strip_marks
    from toolkit.spec.description import fill_placeholders
    from toolkit.wire.definition import ToolDefinition
    from toolkit.wire.json_types import JsonObject

    row = core.catalog.definitions[info.name]
    text = fill_placeholders(row["longDescription"] or row["description"], core.context.workspace)
    return ToolDefinition(info.name, text, JsonObject(strip_marks(row["inputSchema"])))


def describe(core: Core) -> str:
    """How many tools the policy may allow, and where they work. Starts nothing: tools that need a sandbox count."""
    tools = core.catalog.tools.values()
    allowed = sum(info.name in core.handlers and _may_be_allowed(core, info) for info in tools)
    closed = ", closed" if core.resources.is_closed else ""
    return f"{allowed} of {len(tools)} tools allowed, workspace {core.context.workspace!r}{closed}"


def _may_be_allowed(core: Core, info: ToolInfo) -> bool:
    if _cannot_write(core, info) or not core.context.permissions.issuperset(info.required):
        return False
    verdict = core.policy.admit(info.name, info.required)
    return verdict is None or verdict.decision in ("allow", "ask" if core.context.approver else "allow")


def _cannot_write(core: Core, info: ToolInfo) -> bool:
    """Whether a tool must write in a context that is read-only."""
    return core.context.mode == "read-only" and "write" in info.required
