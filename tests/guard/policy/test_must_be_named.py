"""Tools that a policy must name: neither its default nor a rule for all tools allows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import Project, tool
from toolkit import SecurityPolicy as BuiltInPolicy
from toolkit import ToolkitContext, ToolNotAllowed, create_agent_toolkit
from toolkit.guard import Decision, Preview, Rule, SecurityPolicy

ALLOW_ALL = Rule[str]("allow")
ASK_ALL = Rule[str]("ask")
HERE, THERE = Preview(reads=("src/a.py",)), Preview(reads=("docs/a.md",))


def policy_for_x(default: Decision, tools: dict[str, Decision], rules: list[Rule[str]]) -> SecurityPolicy[str]:
    policy = SecurityPolicy[str](default, tools, rules)
    policy._require_names(["x"])
    return policy


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("default", "tools", "rules", "decision"),
    [
        # not named
        ("allow", {}, [], "deny"),
        ("ask", {}, [], "deny"),
        ("allow", {"y": "allow"}, [], "deny"),
        ("allow", {}, [ALLOW_ALL], "deny"),
        ("allow", {}, [Rule("allow", permission="read")], "deny"),
        ("allow", {}, [Rule("allow", tools=["y"])], "deny"),
        ("allow", {}, [ASK_ALL], "deny"),
        # named, but not to allow it
        ("allow", {"x": "deny"}, [], "deny"),
        ("allow", {"x": "deny"}, [ALLOW_ALL], "deny"),
        ("allow", {}, [Rule("deny", tools=["x"])], "deny"),
        ("allow", {"x": "deny"}, [ASK_ALL], "deny"),
        # named
        ("deny", {"x": "allow"}, [], "allow"),
        ("deny", {"x": "ask"}, [], "ask"),
        ("deny", {}, [Rule("allow", tools=["x"])], "allow"),
        ("deny", {}, [Rule("ask", tools=["y", "x"])], "ask"),
        # what holds for all tools may tighten that, and not widen it
        ("deny", {"x": "allow"}, [ASK_ALL], "ask"),
        ("deny", {"x": "allow"}, [Rule("deny", permission="read")], "deny"),
        ("allow", {"x": "ask"}, [ALLOW_ALL], "ask"),
        ("deny", {}, [Rule("allow", tools=["x"]), ASK_ALL], "ask"),
    ],
)
def test_what_decides(default: Decision, tools: dict[str, Decision], rules: list[Rule[str]], decision: str) -> None:
    policy = policy_for_x(default, tools, rules)
    verdict = policy._admit("x", ["read"])
    assert verdict is not None
    assert verdict.decision == decision
    assert policy._judge("x", ["read"], HERE).decision == decision


def test_a_rule_with_a_condition_allows_what_it_covers_and_nothing_else() -> None:
    policy = policy_for_x("allow", {}, [Rule("allow", tools=["x"], path="src/**"), ALLOW_ALL])
    assert policy._admit("x", ["read"]) is None
    assert policy._judge("x", ["read"], HERE).decision == "allow"
    assert policy._judge("x", ["read"], THERE).decision == "deny"
    assert policy._allowed_places("x", ["read"]) is not None  # the sandbox holds its calls to the rule


def test_other_tools_are_judged_as_before() -> None:
    verdict = policy_for_x("allow", {}, [])._admit("y", ["read"])
    assert verdict is not None
    assert verdict.decision == "allow"


def test_toolkits_that_share_a_policy_do_not_widen_it_for_each_other() -> None:
    policy = policy_for_x("allow", {}, [])
    policy._require_names(["z"])
    verdicts = [policy._admit(name, []) for name in ("x", "z")]
    assert [verdict.decision for verdict in verdicts if verdict is not None] == ["deny", "deny"]


# -- in a toolkit ------------------------------------------------------------------------------------------------------


def test_a_toolkit_does_not_offer_it_and_says_why(tmp_path: Path) -> None:
    policy = BuiltInPolicy(default="allow")
    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        offered = [definition.name for definition in toolkit.get_allowed_tools()]
        assert "read_file" in offered
        assert "search_tools" not in offered
        with pytest.raises(ToolNotAllowed, match="a tool like this must be named by the policy"):
            toolkit.tools.search_tools(query="files")
        verdict = policy.explain("search_tools", {"query": "files"})
        assert (verdict.decision, verdict.because) == ("deny", "a tool like this must be named by the policy")
        [considered] = verdict.considered
        assert (considered.decision, considered.outcome) == ("deny", "decides")
        assert considered.text == "no entry in tools and no rule names it"


def test_a_policy_that_names_it_offers_it(tmp_path: Path) -> None:
    policy = BuiltInPolicy(default="deny", tools={"search_tools": "allow"})
    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        assert [definition.name for definition in toolkit.get_allowed_tools()] == ["search_tools"]


def test_a_spec_of_a_users_own_can_say_so(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("launch", mustBeNamed=True), tool("plain")])
    project.generate()
    done = project.python(
        "from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit\n"
        "from toolkit import Pack\n"
        "pack = Pack({'launch': print, 'plain': print})\n"
        "for policy in (SecurityPolicy('allow'), SecurityPolicy('allow', {'launch': 'allow'})):\n"
        "    with create_agent_toolkit(ToolkitContext('.', policy), packs=[pack]) as toolkit:\n"
        "        print(*(one.name for one in toolkit.get_allowed_tools()))\n"
    )
    assert done.stdout.splitlines() == ["plain", "launch plain"]
