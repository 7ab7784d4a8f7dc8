"""A profile: the tools that a part of a program may ever call, fixed when its package was generated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolkit.guard.policy.narrowed import NarrowedPolicy

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.runtime.context.toolkit_context import ToolkitContext

NamesT = TypeVar("NamesT", bound=tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Profile(Generic[NamesT]):
    """``[tool.toolkit.profiles.<name>]`` at run time. Generated packages make it."""

    name: str
    tools: NamesT
    policy: SecurityPolicy[str]

    def narrow(self, context: ToolkitContext[Any]) -> ToolkitContext[Any]:
        """A copy of a context whose policy allows nothing that the profile does not."""
        return context.with_policy(NarrowedPolicy(self.name, self.tools, self.policy, context.policy))
