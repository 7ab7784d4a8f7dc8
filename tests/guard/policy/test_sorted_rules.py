"""Rules are sorted once for each tool. The verdicts are those of comparing every rule with every call, in order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.guard import Preview, Rule, SecurityPolicy
from toolkit.guard.policy.touched import Touched

PATHS = ["a.py", "docs/a.md", ".env", "secrets/key", "docs/../secrets/key", "Secrets/KEY"]
GLOBS = ["docs/**", "*.py", "**/.env", "secrets/**", ".env*", "/etc/**"]
COMMANDS = ["git log", "git push origin", "rm -rf /", "echo $(x)", "git log | sh"]
BEGINNINGS = ["git log", "git push", "rm", "sudo"]
URLS = [
    "https://example.org/",
    "http://a.example.org:8080/x",
    "https://evilexample.org",
    "https://10.0.0.1/",
    "nonsense",
]
HOSTS = ["example.org", "*.example.org", "10.0.0.1", "*.org", "evilexample.org"]
PERMISSIONS = ["read", "write", "execute", "network"]

conditions: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"path": st.sampled_from(GLOBS)}),
    st.fixed_dictionaries({"command": st.sampled_from(BEGINNINGS)}),
    st.fixed_dictionaries({"host": st.sampled_from(HOSTS)}),
)
selections: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"tools": st.sampled_from([["x"], ["y"], []])}),
    st.fixed_dictionaries({"permission": st.sampled_from(PERMISSIONS)}),
)


def make_rule(decision: Any, condition: dict[str, Any], selection: dict[str, Any]) -> Rule[str]:
    may_be_allowed = condition.get("command") not in ("rm", "sudo")
    return Rule(decision if may_be_allowed else "ask", **condition, **selection)


rules = st.builds(
    make_rule,
    st.sampled_from(["allow", "ask", "deny"]),
    conditions,
    selections,
)
previews = st.builds(
    Preview,
    reads=st.lists(st.sampled_from(PATHS), max_size=2).map(tuple),
    writes=st.lists(st.sampled_from(PATHS), max_size=2).map(tuple),
    argv=st.none() | st.sampled_from(COMMANDS).map(lambda text: tuple(text.split())),
    shell=st.none() | st.sampled_from(COMMANDS),
    url=st.none() | st.sampled_from(URLS),
)


def judge_one_by_one(policy: SecurityPolicy[str], permissions: list[Any], preview: Preview) -> tuple[str, str]:
    covering = [rule for rule in policy.rules if rule.covers("x", permissions)]
    touched = Touched.from_preview(preview, need_commands=any(rule.command is not None for rule in covering))
    for decision in ("deny", "ask"):
        for rule in covering:
            if rule.decision == decision and rule.touches(touched):
                return decision, rule.because + touched.why_matched(rule)
    allowing = [rule for rule in covering if rule.decision == "allow"]
    found = next((rule for rule in allowing if not rule.is_conditional), None) or touched.covered_by(allowing)
    if found is not None:
        return "allow", found.because
    named = policy.tools.get("x")
    because = f"the policy's default is {policy.default}" if named is None else f"the policy says {named} for this tool"
    reason, _ = touched.why_uncovered(allowing)
    return named or policy.default, f"{because} ({reason})" if reason else because


@tries(200)
@given(
    st.sampled_from(["allow", "ask", "deny"]),
    st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["allow", "ask", "deny"])),
    st.lists(rules, max_size=8),
    st.lists(previews, min_size=1, max_size=3),
    st.lists(st.sampled_from(PERMISSIONS), max_size=2),
)
def test_the_verdict_is_that_of_every_rule_in_order(
    default: Any, tools: Any, listed: Any, calls: list[Preview], permissions: list[Any]
) -> None:
    policy: SecurityPolicy[str] = SecurityPolicy(default, tools, listed)
    for preview in calls:
        verdict = policy._judge("x", permissions, preview)
        assert (verdict.decision, verdict.because) == judge_one_by_one(policy, permissions, preview)
