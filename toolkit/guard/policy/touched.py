"""What one call touches, in the form that the rules of a policy compare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from toolkit.errors import ToolkitError
from toolkit.guard.network.hosts import Host, Url
from toolkit.guard.policy.rule import Decision

if TYPE_CHECKING:
    from toolkit.guard.files.consent import LocatedPath
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.commands import TouchedCommands
    from toolkit.guard.policy.policy import SecurityPolicy, Verdict
    from toolkit.guard.policy.preview import Preview
    from toolkit.guard.policy.rule import Rule


class Touched(NamedTuple):
    """A preview in the form that rules compare: paths by the places they lead to, commands as words, URLs as hosts."""

    paths: tuple[str, ...]
    places: tuple[LocatedPath, ...] | None
    """Where the paths lead; None for a tool whose files only it can find. Then their text is compared."""
    commands: TouchedCommands | None
    """What is run; None if nothing is, or if no rule is about commands."""
    runs_something: bool
    hosts: tuple[Host, ...]
    opaque_url: bool
    """Whether there is a URL that cannot be read."""

    @staticmethod
    def from_preview(
        preview: Preview, *, need_commands: bool, places: tuple[LocatedPath, ...] | None = None
    ) -> Touched:
        """Commands are read only if a command rule covers the tool."""
        runs_something = preview.argv is not None or preview.shell is not None
        host = None if preview.url is None else _host_of(preview.url)
        return Touched(
            paths=preview.paths,
            places=places,
            commands=_touched_commands(preview) if runs_something and need_commands else None,
            runs_something=runs_something,
            hosts=() if host is None else (host,),
            opaque_url=preview.url is not None and host is None,
        )

    def covered_by(self, rules: Sequence[Rule[Any]]) -> Rule[Any] | None:
        """One of the rules that together cover everything the call touches; None if they do not cover everything."""
        if self.opaque_url or (self.runs_something and self.commands is None):
            return None
        if self.places is None:
            found = [next((rule for rule in rules if rule.allows_path(path)), None) for path in self.paths]
        else:
            reals = [place.real for place in self.places]
            found = [
                next((rule for rule in rules if real is not None and rule.allows_real(real)), None) for real in reals
            ]
        found += [next((rule for rule in rules if rule.allows_host(host)), None) for host in self.hosts]
        if self.commands is not None:
            cover = self.commands.find_cover([rule.spelled for rule in rules])
            found.append(None if cover is None else rules[cover])
        return found[0] if found and all(rule is not None for rule in found) else None

    def why_matched(self, rule: Rule[Any]) -> str:
        """Why a deny or ask rule on commands matches what does not look like it; else empty."""
        if rule.spelled is None or self.commands is None:
            return ""
        reason = self.commands.why_matched(rule.spelled)
        return f" ({reason})" if reason else ""

    def why_uncovered(self, rules: Sequence[Rule[Any]]) -> tuple[str, str | None]:
        """Why allow rules do not cover the call, if one of them has the program of a command of it or covers a path as it is
        written, else empty; and the command of the exact rule, if that would do.

        Where a path leads is not said: nobody may have allowed to look there."""
        for place in self.places or ():
            is_covered = place.real is not None and any(rule.allows_real(place.real) for rule in rules)
            if not is_covered and any(rule.allows_path(place.text) for rule in rules):
                return f"{place.text!r} leads to a place that no allow rule covers", None
        if self.commands is None:
            return "", None
        near, reason, exact = self.commands.why_uncovered([rule.spelled for rule in rules])
        return (f"{rules[near]!r}: {reason}" if near is not None else reason), exact


def _host_of(url: str) -> Host | None:
    """The host of a URL; None if the URL cannot be read."""
    try:
        return Url.parse(url).host
    except ToolkitError:
        return None


def _touched_commands(preview: Preview) -> TouchedCommands:
    from toolkit.guard.policy.commands import TouchedCommands

    return TouchedCommands.from_preview(preview)


class ToolRules:
    """The rules that cover one tool, by decision, each in the order of the policy.

    They are sorted once, so that a call is compared only with those that may match it.
    """

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


# -- what was considered -----------------------------------------------------------------------------------------------

Outcome: TypeAlias = Literal["decides", "matches", "does not match", "not needed"]


@dataclass(frozen=True, slots=True)
class Considered:
    """One line of a policy that could have decided the call."""

    place: str | None
    """``file:line:column``; None for a policy that was not read from a file."""
    decision: Decision
    text: str
    outcome: Outcome


def list_considered(
    policy: SecurityPolicy[Any],
    verdict: Verdict,
    name: str,
    permissions: Collection[Permission],
    preview: Preview,
    places: tuple[LocatedPath, ...] | None,
) -> tuple[Considered, ...]:
    """In the order in which they count: deny rules, ask rules, allow rules, the tool's entry, the default."""
    found: list[Considered] = []
    has_decided = False
    for considered, because in _candidates(policy, name, permissions, preview, places):
        outcome = "not needed" if has_decided else considered.outcome
        if not has_decided and verdict.because.startswith(because):
            has_decided, outcome = True, "decides"
        found.append(Considered(considered.place, considered.decision, considered.text, outcome))
    return tuple(found)


def list_remembered(verdict: Verdict, considered: Sequence[Considered]) -> tuple[Considered, ...]:
    """The same for a call that was approved before: that decides, in the place of what asked."""
    first = Considered(None, verdict.decision, "an approval that was remembered", "decides")
    return (first, *(replace(one, outcome="matches") if one.outcome == "decides" else one for one in considered))


def _candidates(
    policy: SecurityPolicy[Any],
    name: str,
    permissions: Collection[Permission],
    preview: Preview,
    places: tuple[LocatedPath, ...] | None,
) -> Iterator[tuple[Considered, str]]:
    rules = policy._covering_rules(name, permissions)
    touched = Touched.from_preview(
        preview, need_commands=any(rule.command is not None for rule in rules), places=places
    )
    for decision in ("deny", "ask", "allow"):
        for rule in rules:
            if rule.decision == decision:
                outcome: Outcome = "matches" if _matches(rule, touched) else "does not match"
                place = policy._locate(("rules", policy.rules.index(rule)))
                yield Considered(place, rule.decision, repr(rule), outcome), rule.because
    fallback = policy._fallback(name)
    if name in policy.tools:
        place = policy._locate(("tools", name))
        yield Considered(place, fallback.decision, f"tools[{name!r}]", "not needed"), fallback.because
    elif policy._needs_name(name):
        yield (
            Considered(None, fallback.decision, "no entry in tools and no rule names it", "not needed"),
            fallback.because,
        )
    else:
        yield Considered(policy._locate(("default",)), policy.default, "default", "not needed"), fallback.because


def _matches(rule: Rule[Any], touched: Touched) -> bool:
    if rule.decision != "allow":
        return rule.touches(touched)
    return not rule.is_conditional or touched.covered_by([rule]) is not None
