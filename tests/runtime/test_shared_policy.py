"""One policy in several toolkits: in each of them it is judged by the tools of that toolkit."""

from __future__ import annotations

import pytest

from acme.generated import AddInput, AddOutput, Rule, SecurityPolicy
from tests.runtime.conftest import MakeDoor
from toolkit import HandlerParts, Pack, Preview, ToolContext, ToolkitError, tool


def add(args: AddInput, ctx: ToolContext) -> AddOutput:
    return AddOutput(sum=args.a + args.b)


def preview(args: AddInput, ctx: ToolContext) -> Preview:
    return Preview(url="https://evil.example/")


def policy_on_hosts() -> SecurityPolicy:
    return SecurityPolicy(default="allow", rules=[Rule("deny", host="evil.example")])


def test_a_toolkit_whose_tool_touches_nothing_does_not_loosen_another(make_door: MakeDoor) -> None:
    policy = policy_on_hosts()
    reporting = make_door(policy, packs=[Pack({"add": HandlerParts(add, preview=preview)})])
    silent = make_door(policy, packs=[Pack({"add": add})])
    for _ in range(2):
        with pytest.raises(ToolkitError, match=r"TOOL_NOT_ALLOWED.*evil\.example"):
            reporting.invoke("add", {"a": 1, "b": 2})
        assert silent.invoke("add", {"a": 1, "b": 2}).content.sum == 3


def test_a_tool_of_the_same_name_that_a_handler_runs_is_judged_by_what_it_touches(make_door: MakeDoor) -> None:
    @tool(name="add", description="Add nothing.", preview=lambda args, ctx: Preview(url="https://evil.example/"))
    def other() -> str:
        return "ran"

    def run_other(args: AddInput, ctx: ToolContext) -> AddOutput:
        return AddOutput(sum=0, note=str(other.execute_raw("{}", ctx).value))

    door = make_door(policy_on_hosts(), packs=[Pack({"add": run_other})])
    assert "TOOL_NOT_ALLOWED" in door.invoke("add", {"a": 1, "b": 2}).content.note
