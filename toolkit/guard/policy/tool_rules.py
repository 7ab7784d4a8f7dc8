"""The rules of a policy that cover one tool, sorted once, so that a call is compared only with those that may match it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from toolkit.guard.policy.rule import Rule
from toolkit.guard.policy.touched import Touched

if TYPE_CHECKING:
    from toolkit.guard.fs.consent import LocatedPath
    from toolkit.guard.policy.preview import Preview


class ToolRules:
    """The rules that cover one tool, by decision, each in the order of the policy."""

    __slots__ = ("_need_commands", "allowing", "any_allowing", "asking", "denying")

    def __init__(self, rules: Iterable[Rule[Any]]) -> None:
        covering = tuple(rules)
        self.denying: Final = RuleGroup(rule for rule in covering if rule.decision == "deny")
        self.asking: Final = RuleGroup(rule for rule in covering if rule.decision == "ask")
        self.allowing: Final = [rule for rule in covering if rule.decision == "allow"]
        self.any_allowing: Final = next((rule for rule in self.allowing if not rule.is_conditional), None)
        """An allow rule without a condition."""
        self._need_commands: Final = any(rule.command is not None for rule in covering)

    def find_touched(self, preview: Preview, places: tuple[LocatedPath, ...] | None) -> Touched:
        """What a call touches, in the form that the rules compare."""
        return Touched.from_preview(preview, need_commands=self._need_commands, places=places)


class RuleGroup:
    """Rules that deny, or rules that ask."""

    __slots__ = ("_hosts", "_parents", "_sorted", "rules")

    def __init__(self, rules: Iterable[Rule[Any]]) -> None:
        self.rules: Final = tuple(rules)
        patterns = [rule.host_pattern for rule in self.rules if rule.host_pattern is not None]
        self._hosts: Final = frozenset(pattern.host.text for pattern in patterns if not pattern.below)
        self._parents: Final = tuple(pattern.suffix for pattern in patterns if pattern.below)
        self._sorted: Final[dict[tuple[bool, bool, bool], tuple[Rule[Any], ...]]] = {}

    def find(self, touched: Touched) -> Rule[Any] | None:
        """The first rule that matches anything the call touches."""
        if not self.rules:
            return None
        kinds = bool(touched.paths or touched.places), touched.commands is not None, self._may_match_host(touched)
        rules = self._sorted.get(kinds)
        if rules is None:
            rules = self._sorted[kinds] = self._rules_about(*kinds)
        for rule in rules:
            if rule.touches(touched):
                return rule
        return None

    def _may_match_host(self, touched: Touched) -> bool:
        """Whether a rule on hosts may match: every URL that cannot be read does."""
        for host in touched.hosts:
            if host.text in self._hosts or host.text.endswith(self._parents):
                return True
        return touched.opaque_url

    def _rules_about(self, paths: bool, commands: bool, hosts: bool) -> tuple[Rule[Any], ...]:
        touched = {None: True, "path": paths, "command": commands, "host": hosts}
        return tuple(rule for rule in self.rules if touched[rule.condition])
