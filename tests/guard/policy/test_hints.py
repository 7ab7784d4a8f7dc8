"""Rules that select tools by their self-declared hints: they tighten a policy and never widen it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.projects import Project, tool
from toolkit.errors import PolicyError
from toolkit.guard import HINTS, Permission, Preview, Rule, SecurityPolicy
from toolkit.guard.policy.rule import effective_hints

SERVER: tuple[Permission, ...] = ("execute",)


@pytest.mark.parametrize(
    ("annotations", "permissions", "holds"),
    [
        # MCP's own defaults for a tool that runs elsewhere
        ({}, SERVER, "destructive not-idempotent not-read-only open-world"),
        ({"readOnlyHint": True}, SERVER, "open-world"),
        ({"readOnlyHint": True, "openWorldHint": False}, SERVER, ""),
        ({"destructiveHint": False}, SERVER, "not-idempotent not-read-only open-world"),
        ({"destructiveHint": False, "idempotentHint": True, "openWorldHint": False}, SERVER, "not-read-only"),
        # whoever contradicts themselves is taken at their worst
        ({"readOnlyHint": True, "destructiveHint": True}, SERVER, "destructive open-world"),
        # no hint is a text or a number
        ({"readOnlyHint": "true", "destructiveHint": 0}, SERVER, "destructive not-idempotent not-read-only open-world"),
        # a tool that may not do it
        ({}, ("read",), ""),
        ({}, (), ""),
        ({}, ("read", "write"), "destructive not-idempotent not-read-only"),
        ({"readOnlyHint": False}, ("read",), "destructive not-idempotent not-read-only"),
        ({"openWorldHint": True}, (), "open-world"),
    ],
)
def test_what_holds_for_a_tool(annotations: dict[str, Any], permissions: tuple[Permission, ...], holds: str) -> None:
    assert " ".join(sorted(effective_hints(annotations, permissions))) == holds


@pytest.mark.parametrize("hint", HINTS)
def test_an_allow_rule_has_no_hint(hint: Any) -> None:
    with pytest.raises(PolicyError, match="a declaration of the server may tighten a policy, never widen it"):
        Rule("allow", hint=hint)
    assert repr(Rule("deny", hint=hint)) == f"Rule('deny', hint={hint!r})"


def test_a_hint_nobody_knows_is_refused() -> None:
    wrong: Any = "dangerous"
    with pytest.raises(PolicyError, match="a rule's hint must be one of destructive, open-world, not-read-only"):
        Rule("deny", hint=wrong)


def test_without_a_toolkit_every_hint_may_hold() -> None:
    policy = SecurityPolicy[str]("allow", rules=[Rule("deny", hint="destructive")])
    assert policy._judge("anything", (), Preview()).decision == "deny"


def test_rules_in_files_select_by_hints(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('default = "allow"\n[[rules]]\ndecision = "ask"\nhint = "not-read-only"\npermission = "execute"\n')
    (rule,) = SecurityPolicy[str].load(file).rules
    assert (rule.hint, rule.permission) == ("not-read-only", "execute")
    file.write_text('[[rules]]\ndecision = "allow"\nhint = "destructive"\n')
    with pytest.raises(PolicyError, match=r"policy\.toml:3:1: .*never widen it"):
        SecurityPolicy[str].load(file)


TOOLS = [
    tool("look", permissions=["write"], annotations={"readOnlyHint": True, "idempotentHint": True}),
    tool("change", permissions=["write"], annotations={"destructiveHint": False}),
    tool("remove", permissions=["write"]),
]
SCRIPT = """
import sys
from acme.generated import Rule, SecurityPolicy, ToolkitContext, bind, create_agent_toolkit
from toolkit import Deny

def run(args, ctx):
    return {"rows": [], "total": 0}

seen = []
def person(request):
    seen.append((request.tool_name, dict(request.annotations)))
    return Deny("no")

policy = SecurityPolicy("allow", rules=[Rule("ask", hint="not-read-only"), Rule("deny", hint="destructive")])
context = ToolkitContext(".", policy, approver=person)
with create_agent_toolkit(context, packs=[bind(look=run, change=run, remove=run)]) as toolkit:
    loaded = [name for name in sys.modules if name.startswith("acme.generated.models.")]
    print([tool.name for tool in toolkit.get_allowed_tools()], loaded)
    for name in ("look", "change", "remove"):
        print(name, policy.explain(name, {"query": "x"}))
        try:
            toolkit.invoke(name, {"query": "x"})
            print("ran")
        except Exception as error:
            print(error)
print(seen)
"""


@pytest.mark.slow
def test_a_toolkit_knows_what_its_tools_say(tmp_path: Path) -> None:
    project = Project(tmp_path, TOOLS)
    project.generate()
    assert project.python(SCRIPT).stdout.splitlines() == [
        "['change', 'look'] []",
        "look Verdict(decision='allow', because=\"the policy's default is allow\")",
        "ran",
        "change Verdict(decision='ask', because=\"decided by Rule('ask', hint='not-read-only')\")",
        "TOOL_NOT_ALLOWED: 'change' was not approved: no",
        "remove Verdict(decision='deny', because=\"decided by Rule('deny', hint='destructive')\")",
        "TOOL_NOT_ALLOWED: 'remove' is not allowed: decided by Rule('deny', hint='destructive')",
        "[('change', {'destructiveHint': False})]",
    ]
