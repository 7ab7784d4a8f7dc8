"""Who may do what: allow, ask or deny, by tool, by permission and by what a call touches.

The order is fixed and does not depend on how rules are listed: a deny rule is final, then ask rules, then allow rules;
what no rule matches is decided by ``tools[name]``, else by ``default``. A deny or ask rule matches when *anything* the call
touches matches it; allow rules must cover *everything* it touches.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from toolkit.errors import PolicyError, nearest
from toolkit.guard.permission import Permission
from toolkit.guard.policy.hints import HINTS, Hint
from toolkit.guard.policy.preview import Preview
from toolkit.guard.policy.rule import DECISIONS, Decision, Rule, Touched

NameT = TypeVar("NameT", bound=str)

Admission: TypeAlias = Literal["allow", "ask", "deny", "depends"]
Hinted: TypeAlias = Callable[[str], Collection[Hint]]
Touches: TypeAlias = Callable[[str, Mapping[str, Any]], tuple[Collection[Permission], Preview]]

_KEYS: Final = ("default", "tools", "rules")
_RULE_KEYS: Final = (
    "decision",
    "tools",
    "permission",
    "hint",
    "path",
    "command",
    "host",
    "justification",
    "match",
    "not_match",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says of a call, and the words behind it."""

    decision: Decision
    because: str


class SecurityPolicy(Generic[NameT]):
    """What may be called. Generated packages export it with their own tool names filled in, so that an unknown name is a
    type error; at run time it is an error when the toolkit is built.

    >>> policy = SecurityPolicy(default="deny", tools={"read_file": "allow"}, rules=[Rule("deny", path="secrets/**")])
    >>> policy.judge("read_file", ["read"], Preview(reads=("a.py",))).decision
    'allow'
    >>> policy.judge("read_file", ["read"], Preview(reads=("secrets/key",))).decision
    'deny'
    """

    def __init__(
        self,
        default: Decision = "deny",
        tools: Mapping[NameT, Decision] | None = None,
        rules: Iterable[Rule[NameT]] = (),
    ) -> None:
        self.default: Final = default
        self.tools: Final[dict[NameT, Decision]] = dict(tools or {})
        self.rules: Final = tuple(rules)
        self.source: str | None = None
        self._touches: Touches | None = None
        self._known: Mapping[str, Collection[str]] = {}
        self._hinted: Hinted | None = None
        for tool in self.tools:
            if not isinstance(tool, str):
                raise PolicyError(f"tools maps names to decisions; {tool!r} is no name")
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise PolicyError(f"rules are Rule(...) objects, not {type(rule).__name__}")
        for where, decision in [("default", default), *self.tools.items()]:
            if decision not in DECISIONS:
                raise PolicyError(f"the decision for {where!r} must be allow, ask or deny, not {decision!r}")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SecurityPolicy[NameT]:
        """A policy from a TOML file: ``default``, a table ``[tools]`` and any number of ``[[rules]]``.

        The file must lie outside the workspace it rules; that is checked when a toolkit is built with it.
        """
        name = os.path.basename(path)
        try:
            with open(path, "rb") as file:
                data = tomllib.load(file)
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise PolicyError(f"the policy cannot be read: {reason} @ {name}") from None
        except RecursionError:
            raise PolicyError(f"the policy cannot be read: it is nested too deeply @ {name}") from None
        policy = cls(**_checked_table(data, name))
        policy.source = os.path.realpath(path)
        return policy

    # -- judging -----------------------------------------------------------------------------------------------------

    def admit(self, name: str, permissions: Collection[Permission]) -> Verdict | None:
        """What is decided by the name alone; None where it depends on what a call touches.

        A tool for which no call could pass is denied here, before anybody looks at arguments.
        """
        rules = [rule for rule in self._covering(name, permissions) if self._concerns(rule, name)]
        for rule in rules:
            if rule.decision == "deny" and not rule.conditional:
                return _verdict(rule)
        fallback = self._fallback(name)
        if not any(rule.conditional for rule in rules):
            return next(
                (_verdict(rule) for word in ("ask", "allow") for rule in rules if rule.decision == word), fallback
            )
        if fallback.decision == "deny" and all(rule.decision == "deny" for rule in rules):
            return fallback
        return None

    def judge(self, name: str, permissions: Collection[Permission], preview: Preview) -> Verdict:
        """What is decided for one call, by everything it touches."""
        rules = self._covering(name, permissions)
        touched = Touched.of(preview, need_commands=any(rule.command is not None for rule in rules))
        for decision in ("deny", "ask"):
            for rule in rules:
                if rule.decision == decision and rule.touches(touched):
                    return _verdict(rule)
        allowing = [rule for rule in rules if rule.decision == "allow"]
        covering = next((rule for rule in allowing if not rule.conditional), None) or touched.covered_by(allowing)
        return _verdict(covering) if covering is not None else self._fallback(name)

    def explain(self, name: NameT, args: Mapping[str, Any]) -> Verdict:
        """Which rule decides a call with these arguments; the policy must belong to a toolkit, which knows its tools."""
        if self._touches is None:
            raise PolicyError(
                "a policy can explain itself once a toolkit was built with it; see `toolkit policy explain`"
            )
        permissions, preview = self._touches(name, args)
        return self.admit(name, permissions) or self.judge(name, permissions, preview)

    def withholds(self, name: str, permission: Permission) -> bool:
        """Whether a deny or ask rule on a permission keeps it from a tool that could do without it.

        Whatever its condition: what a command does with the network, say, cannot be judged call by call.
        """
        rules = self._covering(name, (permission,))
        return any(rule.permission == permission and rule.decision != "allow" for rule in rules)

    def denied_paths(self, name: str, permissions: Collection[Permission]) -> tuple[str, ...]:
        """Path globs no call of the tool may touch, for the sandbox to hold them through links, patches and walks."""
        rules = self._covering(name, permissions)
        return tuple(rule.path for rule in rules if rule.decision == "deny" and rule.path is not None)

    def _covering(self, name: str, permissions: Collection[Permission]) -> list[Rule[NameT]]:
        """The rules that speak of a tool. Without a toolkit nobody knows what it says of itself: every hint may hold."""
        asks = any(rule.hint is not None for rule in self.rules)
        hints = self._hinted(name) if asks and self._hinted is not None else HINTS
        return [rule for rule in self.rules if rule.covers(name, permissions, hints)]

    def _concerns(self, rule: Rule[NameT], name: str) -> bool:
        """Whether calls of the tool can touch what the rule is about; a rule on paths says nothing of `done`."""
        return rule.condition is None or name not in self._known or rule.condition in self._known[name]

    def _fallback(self, name: str) -> Verdict:
        for tool, own in self.tools.items():
            if tool == name:
                return Verdict(own, f"the policy says {own} for this tool")
        return Verdict(self.default, f"the policy's default is {self.default}")

    # -- belonging to a toolkit --------------------------------------------------------------------------------------

    def attach(
        self, known: Mapping[str, Collection[str]], touches: Touches, roots: Sequence[str], hinted: Hinted
    ) -> None:
        """Checks the policy against the tools it rules: each name with the kinds of things the tool is known to touch.

        A misspelt deny would protect nothing, and a rule on paths means nothing for a tool that tells none.
        """
        problems = [
            f"the policy names {name!r}, which is no tool.{nearest(name, known)}"
            for name in dict.fromkeys([*self.tools, *(tool for rule in self.rules for tool in rule.tools or ())])
            if name not in known
        ]
        for rule in self.rules:
            problems += [
                f"{rule!r} speaks of a {rule.condition}, but {name!r} tells of none: its spec needs an 'x-resource',"
                " or its handler a 'preview'"
                for name in rule.tools or ()
                if name in known and rule.condition is not None and rule.condition not in known[name]
            ]
        if self.source is not None and any(_is_below(self.source, root) for root in roots):
            problems.append("the policy file lies inside the workspace, where tools could change it; move it out")
        if problems:
            raise PolicyError("\n".join(problems))
        self._touches, self._known, self._hinted = touches, known, hinted


def _verdict(rule: Rule[Any]) -> Verdict:
    words = f" ({rule.justification})" if rule.justification else ""
    return Verdict(rule.decision, f"{rule!r} decides{words}")


def _is_below(path: str, root: str) -> bool:
    real = os.path.realpath(root)
    return os.path.commonpath([real, path]) == real


def _checked_table(data: dict[str, Any], name: str) -> dict[str, Any]:
    problems = [f"unknown key {key!r}.{nearest(key, _KEYS)} @ {name}:/{key}" for key in data if key not in _KEYS]
    rules: list[Rule[Any]] = []
    tables = data.get("rules", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        problems.append(f"'rules' must be a list of tables: write [[rules]] @ {name}:/rules")
        tables = []
    for index, table in enumerate(tables):
        place = f"{name}:/rules/{index}"
        unknown = [key for key in table if key not in _RULE_KEYS]
        problems += [f"unknown key {key!r}.{nearest(key, _RULE_KEYS)} @ {place}/{key}" for key in unknown]
        try:
            rules.append(Rule(**{key: value for key, value in table.items() if key in _RULE_KEYS}))
        except (PolicyError, TypeError) as error:
            problems.append(f"{error} @ {place}")
    tools = data.get("tools", {})
    if not isinstance(tools, dict):
        problems.append(f"'tools' must be a table of decisions @ {name}:/tools")
    if problems:
        raise PolicyError("\n".join(problems))
    return {"default": cast("Decision", data.get("default", "deny")), "tools": tools, "rules": rules}
