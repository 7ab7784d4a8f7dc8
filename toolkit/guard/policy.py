"""Who may be called: allow, ask or deny, by tool and by permission.

The order is fixed and does not depend on how rules are listed: a deny rule is final, then ask rules, then allow rules;
what no rule covers is decided by ``tools[name]``, else by ``default``. Rules on what a call touches (paths, commands,
hosts) are judged later on the road, behind validation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar, get_args

from toolkit.errors import PolicyError, nearest
from toolkit.guard.permission import PERMISSIONS, Permission

Decision: TypeAlias = Literal["allow", "ask", "deny"]
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)

NameT = TypeVar("NameT", bound=str)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says of a tool, and the words behind it."""

    decision: Decision
    because: str


class Rule(Generic[NameT]):
    """One decision for some tools; without ``tools`` and ``permission`` it covers every tool.

    ``tools=[]`` covers nothing: an empty list is never "no restriction".

    >>> Rule("deny", permission="network", justification="offline run")
    Rule('deny', permission='network')
    """

    __slots__ = ("decision", "justification", "permission", "tools")

    def __init__(
        self,
        decision: Decision,
        *,
        tools: Sequence[NameT] | None = None,
        permission: Permission | None = None,
        justification: str | None = None,
    ) -> None:
        if decision not in DECISIONS:
            raise PolicyError(f"a rule's decision is allow, ask or deny, not {decision!r}")
        if permission is not None and permission not in PERMISSIONS:
            raise PolicyError(f"no permission is called {permission!r}; there are {', '.join(PERMISSIONS)}")
        if isinstance(tools, str):
            raise PolicyError(f"a rule's tools are a list of names: write tools=[{tools!r}]")
        self.decision: Final = decision
        self.tools: Final[tuple[NameT, ...] | None] = None if tools is None else tuple(tools)
        self.permission: Final = permission
        self.justification: Final = justification

    def covers(self, name: str, permissions: Collection[Permission]) -> bool:
        """Whether the rule speaks of this tool, which needs these permissions."""
        named = self.tools is None or name in self.tools
        return named and (self.permission is None or self.permission in permissions)

    def __repr__(self) -> str:
        tools = "" if self.tools is None else f", tools={list(self.tools)!r}"
        permission = "" if self.permission is None else f", permission={self.permission!r}"
        return f"Rule({self.decision!r}{tools}{permission})"


class SecurityPolicy(Generic[NameT]):
    """Which tools may be called. Generated packages export it with their own tool names filled in, so that an unknown
    name is a type error; at run time it is an error when the toolkit is built.

    >>> SecurityPolicy(default="deny", tools={"read_file": "allow"}).verdict("read_file", ["read"]).decision
    'allow'
    """

    __slots__ = ("default", "rules", "tools")

    def __init__(
        self,
        default: Decision = "deny",
        tools: Mapping[NameT, Decision] | None = None,
        rules: Iterable[Rule[NameT]] = (),
    ) -> None:
        self.default: Final = default
        self.tools: Final[dict[NameT, Decision]] = dict(tools or {})
        self.rules: Final = tuple(rules)
        for where, decision in [("default", default), *self.tools.items()]:
            if decision not in DECISIONS:
                raise PolicyError(f"the decision for {where!r} must be allow, ask or deny, not {decision!r}")

    def verdict(self, name: str, permissions: Collection[Permission]) -> Verdict:
        """What is decided for a tool by its name and the permissions it needs."""
        for decision in ("deny", "ask", "allow"):
            for rule in self.rules:
                if rule.decision == decision and rule.covers(name, permissions):
                    words = f" ({rule.justification})" if rule.justification else ""
                    return Verdict(rule.decision, f"a rule of the policy says {decision}{words}")
        for tool, own in self.tools.items():
            if tool == name:
                return Verdict(own, f"the policy says {own} for this tool")
        return Verdict(self.default, f"the policy's default is {self.default}")

    def check_names(self, known: Collection[str]) -> None:
        """Every tool the policy names must exist: a misspelt deny would otherwise protect nothing."""
        named = [*self.tools, *(tool for rule in self.rules for tool in rule.tools or ())]
        unknown = [name for name in dict.fromkeys(named) if name not in known]
        if unknown:
            lines = (f"the policy names {name!r}, which is no tool.{nearest(name, known)}" for name in unknown)
            raise PolicyError("\n".join(lines))
