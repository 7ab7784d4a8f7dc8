"""The policy: allow, ask or deny, by tool, by permission and by what a call touches.

The order is fixed and does not depend on how rules are listed: a deny rule is final, then come ask rules, then allow rules.
If no rule matches, ``tools[name]`` decides, else ``default``. A deny or ask rule matches if *anything* that the call touches
matches it; allow rules must cover *everything* that it touches.
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
FindHints: TypeAlias = Callable[[str], Collection[Hint]]
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
    """The decision of the policy on a call, and the reason."""

    decision: Decision
    because: str


class SecurityPolicy(Generic[NameT]):
    """Which calls are allowed. Generated packages export it with their own tool names filled in, so that an unknown name is
    a type error. At run time an unknown name is an error when the toolkit is built.

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
        self._find_hints: FindHints | None = None
        for tool in self.tools:
            if not isinstance(tool, str):
                raise PolicyError(f"'tools' maps tool names to decisions; {tool!r} is not a name")
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise PolicyError(f"'rules' must be Rule(...) objects, not {type(rule).__name__}")
        for where, decision in [("default", default), *self.tools.items()]:
            if decision not in DECISIONS:
                raise PolicyError(f"the decision for {where!r} must be allow, ask or deny, not {decision!r}")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SecurityPolicy[NameT]:
        """Read a policy from a TOML file: ``default``, a table ``[tools]`` and any number of ``[[rules]]``.

        The file must be outside the workspace; that is checked when a toolkit is built with it.
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
        policy = cls(**_check_table(data, name))
        policy.source = os.path.realpath(path)
        return policy

    # -- judging -----------------------------------------------------------------------------------------------------

    def admit(self, name: str, permissions: Collection[Permission]) -> Verdict | None:
        """The verdict by the name alone; None if it depends on what a call touches.

        A tool whose calls can never be allowed is denied here, before any arguments are read.
        """
        rules = [rule for rule in self._covering_rules(name, permissions) if self._can_apply(rule, name)]
        for rule in rules:
            if rule.decision == "deny" and not rule.is_conditional:
                return _verdict(rule)
        fallback = self._fallback(name)
        if not any(rule.is_conditional for rule in rules):
            return next(
                (_verdict(rule) for word in ("ask", "allow") for rule in rules if rule.decision == word), fallback
            )
        if fallback.decision == "deny" and all(rule.decision == "deny" for rule in rules):
            return fallback
        return None

    def judge(self, name: str, permissions: Collection[Permission], preview: Preview) -> Verdict:
        """The verdict on one call, by everything that it touches."""
        rules = self._covering_rules(name, permissions)
        touched = Touched.from_preview(preview, need_commands=any(rule.command is not None for rule in rules))
        for decision in ("deny", "ask"):
            for rule in rules:
                if rule.decision == decision and rule.touches(touched):
                    return _verdict(rule)
        allowing = [rule for rule in rules if rule.decision == "allow"]
        covering = next((rule for rule in allowing if not rule.is_conditional), None) or touched.covered_by(allowing)
        if covering is not None:
            return _verdict(covering)
        fallback, reason = self._fallback(name), touched.why_uncovered(allowing)
        return Verdict(fallback.decision, f"{fallback.because} ({reason})") if reason else fallback

    def explain(self, name: NameT, args: Mapping[str, Any]) -> Verdict:
        """Which rule decides a call with these arguments. A toolkit must have been built with the policy."""
        if self._touches is None:
            raise PolicyError(
                "a policy can explain a call only after a toolkit was built with it; see `toolkit policy explain`"
            )
        permissions, preview = self._touches(name, args)
        return self.admit(name, permissions) or self.judge(name, permissions, preview)

    def withholds(self, name: str, permission: Permission) -> bool:
        """Whether a deny or ask rule withholds an optional permission from a tool.

        The rule's condition does not matter: what a command does with the network, for example, cannot be judged per call.
        """
        rules = self._covering_rules(name, (permission,))
        return any(rule.permission == permission and rule.decision != "allow" for rule in rules)

    def denied_paths(self, name: str, permissions: Collection[Permission]) -> tuple[str, ...]:
        """Path globs that no call of the tool may touch. The sandbox enforces them through links, patches and walks."""
        rules = self._covering_rules(name, permissions)
        return tuple(rule.path for rule in rules if rule.decision == "deny" and rule.path is not None)

    def _covering_rules(self, name: str, permissions: Collection[Permission]) -> list[Rule[NameT]]:
        """The rules that cover a tool. Without a toolkit its hints are unknown, so every hint is assumed to hold."""
        needs_hints = any(rule.hint is not None for rule in self.rules)
        hints = self._find_hints(name) if needs_hints and self._find_hints is not None else HINTS
        return [rule for rule in self.rules if rule.covers(name, permissions, hints)]

    def _can_apply(self, rule: Rule[NameT], name: str) -> bool:
        """Whether calls of the tool can touch what the rule is about; a path rule does not apply to `done`."""
        return rule.condition is None or name not in self._known or rule.condition in self._known[name]

    def _fallback(self, name: str) -> Verdict:
        for tool, own in self.tools.items():
            if tool == name:
                return Verdict(own, f"the policy says {own} for this tool")
        return Verdict(self.default, f"the policy's default is {self.default}")

    # -- use by a toolkit --------------------------------------------------------------------------------------------

    def attach(
        self, known: Mapping[str, Collection[str]], touches: Touches, roots: Sequence[str], find_hints: FindHints
    ) -> None:
        """Check the policy against the tools of a toolkit. ``known`` maps each name to the kinds of things the tool touches.

        A misspelt deny rule would protect nothing, and a path rule cannot apply to a tool that declares no paths.
        """
        problems = [
            f"the policy names {name!r}, which is not a tool.{nearest(name, known)}"
            for name in dict.fromkeys([*self.tools, *(tool for rule in self.rules for tool in rule.tools or ())])
            if name not in known
        ]
        for rule in self.rules:
            problems += [
                f"{rule!r} has a {rule.condition} condition, but {name!r} declares no {rule.condition}: its spec needs an"
                " 'x-resource', or its handler a 'preview'"
                for name in rule.tools or ()
                if name in known and rule.condition is not None and rule.condition not in known[name]
            ]
        if self.source is not None and any(_is_below(self.source, root) for root in roots):
            problems.append("the policy file is inside the workspace, where tools could change it; move it out")
        if problems:
            raise PolicyError("\n".join(problems))
        self._touches, self._known, self._find_hints = touches, known, find_hints


def _verdict(rule: Rule[Any]) -> Verdict:
    justification = f" ({rule.justification})" if rule.justification else ""
    return Verdict(rule.decision, f"decided by {rule!r}{justification}")


def _is_below(path: str, root: str) -> bool:
    real = os.path.realpath(root)
    return os.path.commonpath([real, path]) == real


def _check_table(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The arguments for ``SecurityPolicy`` from a TOML file; all problems are reported at once."""
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
