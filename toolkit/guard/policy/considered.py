"""What a policy looked at to decide one call: its rules for the tool, the tool's own entry, the default."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from toolkit.guard.policy.rule import Decision, Rule
from toolkit.guard.policy.touched import Touched

if TYPE_CHECKING:
    from toolkit.guard.fs.consent import LocatedPath
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import SecurityPolicy, Verdict
    from toolkit.guard.policy.preview import Preview

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


def _candidates(
    policy: SecurityPolicy[Any],
    name: str,
    permissions: Collection[Permission],
    preview: Preview,
    places: tuple[LocatedPath, ...] | None,
) -> Iterator[tuple[Considered, str]]:
    rules = policy.covering_rules(name, permissions)
    touched = Touched.from_preview(
        preview, need_commands=any(rule.command is not None for rule in rules), places=places
    )
    for decision in ("deny", "ask", "allow"):
        for rule in rules:
            if rule.decision == decision:
                outcome: Outcome = "matches" if _matches(rule, touched) else "does not match"
                place = policy.locate(("rules", policy.rules.index(rule)))
                yield Considered(place, rule.decision, repr(rule), outcome), rule.because
    fallback = policy.fallback(name)
    if name in policy.tools:
        place = policy.locate(("tools", name))
        yield Considered(place, fallback.decision, f"tools[{name!r}]", "not needed"), fallback.because
    elif policy.must_be_named(name):
        yield (
            Considered(None, fallback.decision, "no entry in tools and no rule names it", "not needed"),
            fallback.because,
        )
    else:
        yield Considered(policy.locate(("default",)), policy.default, "default", "not needed"), fallback.because


def _matches(rule: Rule[Any], touched: Touched) -> bool:
    if rule.decision != "allow":
        return rule.touches(touched)
    return not rule.is_conditional or touched.covered_by([rule]) is not None
