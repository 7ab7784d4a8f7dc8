"""When programs may see the files of the workspace themselves: only if no rule is about reading them.

The sandbox shows the workspace as a whole. Rules on paths, and approvals, bind the tools that read files, and would not
hold for what a program opens by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.runtime.catalog.catalog import ToolInfo
    from toolkit.runtime.context.toolkit_context import ToolkitContext


def refuse_shown_workspace(
    context: ToolkitContext[Any], policy: SecurityPolicy[Any], tools: Iterable[ToolInfo]
) -> None:
    """Raises ``SetupError`` if the settings show programs the workspace, and the policy limits who may read what there."""
    if context.programs is None or context.programs.workspace != "read-only":
        return
    if "read" not in context.permissions:
        raise _refusal("this context does not grant the permission 'read'")
    for tool in tools:
        if "read" in tool.required and "write" not in tool.required and _is_limited(policy, tool):
            raise _refusal(f"the policy limits which files {tool.name} may read")


def _is_limited(policy: SecurityPolicy[Any], tool: ToolInfo) -> bool:
    name, permissions = tool.name, tool.required
    if policy.denied_paths(name, permissions) or policy.ask_rules(name, permissions):
        return True
    verdict = policy.admit(name, permissions)
    is_offered = verdict is None or verdict.decision != "deny"
    return is_offered and policy.allowed_places(name, permissions) is not None


def _refusal(why: str) -> SetupError:
    return SetupError(
        f"programs: workspace='read-only' cannot be used, because {why}, and a program could read all of them; "
        "leave it out (programs then read files with tools), or remove the limit"
    )
