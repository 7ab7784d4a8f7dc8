"""Keeps what tools write from being imported as ours; called when a toolkit is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from toolkit.guard.late_imports import guard_imports

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
    from toolkit.runtime.context.toolkit_context import ToolkitContext

_CHANGES_FILES: Final = frozenset({"write", "execute"})
_warned: Final[set[str]] = set()


def protect_imports(
    context: ToolkitContext[Any], policy: SecurityPolicy[Any], generated: Catalog, tools: Iterable[ToolInfo]
) -> None:
    """From here on, nothing of ours is imported from a place where ``tools`` may write.

    Warns once if such a place is on ``sys.path``: what a user's own code imports from there is not ours to refuse.
    """
    # The packages of a toolkit that only reads count as well: another one of this process may write them.
    roots = [context.workspace, *context.write_roots] if context.mode == "workspace-write" else []
    exposed = guard_imports(roots, generated.packages)
    new = [root for root in exposed if root not in _warned]
    if not new or not any(_may_change_files(context, policy, tool) for tool in tools):
        return
    import logging

    logger = logging.getLogger("toolkit.imports")
    _warned.update(new)
    for root in new:
        logger.warning(
            "tools may write in %s, which is on sys.path: a module that your own code imports from there later may be "
            "one that a tool wrote. Start the program from another directory, install your package, or use `python -P`",
            root,
        )


def _may_change_files(context: ToolkitContext[Any], policy: SecurityPolicy[Any], tool: ToolInfo) -> bool:
    if _CHANGES_FILES.isdisjoint((*tool.required, *tool.optional)) or not context.permissions.issuperset(tool.required):
        return False
    verdict = policy.admit(tool.name, tool.required)
    return verdict is None or verdict.decision != "deny"
