"""``ask``: who is asked, what they see, what each answer does, and what an approval is bound to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acme.generated import AddInput, AddOutput, Rule, SecurityPolicy
from tests.runtime.conftest import MakeDoor
from toolkit import ApprovalRequest, Approve, CancelSignal, Deny, Edit, Respond, ToolCall, ToolkitError

ASK_ADD: dict[str, Any] = {"tools": {"add": "ask"}}


class Person:
    """Somebody who answers, and remembers what was asked."""

    def __init__(self, answer: Any, before: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.before = before
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        self.before()
        return self.answer


class AsyncPerson(Person):
    async def __call__(self, request: ApprovalRequest) -> Any:
        return super().__call__(request)


@pytest.fixture(params=[Person, AsyncPerson])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def code(door: Any, name: str, arguments: Any) -> str:
    with pytest.raises(ToolkitError) as failure:
        door.invoke(name, arguments)
    assert failure.value.tool_name == name
    return str(failure.value)


def test_approved_calls_run_as_shown(make_door: MakeDoor, kind: Any) -> None:
    person = kind(Approve())
    door = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=person, session_id="s-1")
    assert door.invoke("add", {"a": 1.0, "b": 2}).content == AddOutput(sum=3)
    (request,) = person.asked
    assert (request.tool_name, request.arguments, request.session_id) == ("add", AddInput(a=1, b=2), "s-1")
    assert request.because == "the policy says ask for this tool"
    door.call(ToolCall("call-7", "add", {"a": 1, "b": 2}))
    assert person.asked[1].call_id == "call-7"
    assert person.asked[0].digest == person.asked[1].digest
    door.invoke("add", {"a": 1, "b": 3})
    assert person.asked[2].digest != person.asked[1].digest


def test_denied_calls_tell_the_words(make_door: MakeDoor, kind: Any) -> None:
    door = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=kind(Deny("use subtract")))
    assert code(door, "add", {"a": 1, "b": 2}) == "TOOL_NOT_ALLOWED: 'add' was not approved: use subtract"


def test_nobody_is_asked_about_calls_that_are_wrong_or_allowed(make_door: MakeDoor, kind: Any) -> None:
    person = kind(Approve())
    door = make_door(SecurityPolicy(default="allow", **ASK_ADD), approver=person)
    assert code(door, "add", {"a": 1}).startswith("INVALID_TOOL_ARGUMENTS")
    door.invoke("shout", {"text": "x"})
    assert person.asked == []


def test_edited_arguments_are_validated_and_run(make_door: MakeDoor, kind: Any) -> None:
    door = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=kind(Edit({"a": 10, "b": 20})))
    assert door.invoke("add", {"a": 1, "b": 2}).content.sum == 30
    wrong = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=kind(Edit({"a": "ten", "b": 20})))
    assert code(wrong, "add", {"a": 1, "b": 2}).startswith("INVALID_TOOL_ARGUMENTS: a:")


def test_an_edit_cannot_reach_what_a_rule_denies(make_door: MakeDoor, kind: Any) -> None:
    rules: list[Rule] = [Rule("deny", path="secrets/**"), Rule("ask", tools=["read_file"])]
    door = make_door(SecurityPolicy(default="deny", rules=rules), approver=kind(Edit({"path": "Secrets/key"})))
    assert code(door, "read_file", {"path": "a.txt"}).startswith(
        "TOOL_NOT_ALLOWED: 'read_file' is not allowed: decided by Rule('deny'"
    )


def test_a_response_takes_the_place_of_the_run(make_door: MakeDoor, kind: Any) -> None:
    door = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=kind(Respond({"sum": 42})))
    assert door.invoke("add", {"a": 1, "b": 2}).content == AddOutput(sum=42)
    wrong = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=kind(Respond("nonsense")))
    assert code(wrong, "add", {"a": 1, "b": 2}) == (
        "TOOL_FAILED: INVALID_OUTPUT: the answer of the approver does not match the tool's output schema:"
        " the answer: Input should be a valid dictionary or instance of AddOutput"
    )


@pytest.mark.parametrize("answer", [None, True, "yes", 1])
def test_anything_else_is_no_approval(make_door: MakeDoor, kind: Any, answer: Any) -> None:
    door = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=kind(answer))
    assert code(door, "add", {"a": 1, "b": 2}) == (
        f"TOOL_NOT_ALLOWED: the approver returned {type(answer).__name__}, which is not an answer;"
        " it must return Approve(), Deny(...), Edit(...) or Respond(...)"
    )


@pytest.mark.parametrize("is_async", [False, True])
def test_an_approver_that_fails_is_no_approval(make_door: MakeDoor, is_async: bool) -> None:
    def broken(request: ApprovalRequest) -> Any:
        raise RuntimeError("no terminal")

    async def later(request: ApprovalRequest) -> Any:
        raise RuntimeError("no terminal")

    broken = later if is_async else broken
    door = make_door(SecurityPolicy(default="deny", **ASK_ADD), approver=broken)
    failed = "TOOL_NOT_ALLOWED: 'add' was not approved: the approver failed; the cause is in the log under "
    assert code(door, "add", {"a": 1, "b": 2}).startswith(failed)


class Crowd:
    """A person who waits a moment to see whether another question comes before the first is answered."""

    def __init__(self) -> None:
        self.open = 0
        self.most_at_once = 0
        self.another = threading.Event()

    def __call__(self, request: ApprovalRequest) -> Approve:
        self.open += 1
        self.most_at_once = max(self.most_at_once, self.open)
        if self.open > 1:
            self.another.set()
        self.another.wait(0.1)
        self.open -= 1
        return Approve()


def test_a_person_is_asked_about_one_call_at_a_time(make_door: MakeDoor, tmp_path: Path) -> None:
    person = Crowd()
    door = make_door(SecurityPolicy(default="deny", tools={"read_file": "ask"}), approver=person)
    (tmp_path / "workspace" / "a.txt").write_text("hello")
    calls = [ToolCall(str(number), "read_file", {"path": "a.txt"}) for number in range(3)]
    assert [result.kind for result in door.call_all(calls)] == ["text"] * 3
    assert person.most_at_once == 1


def test_an_async_approver_may_be_asked_about_several_calls_at_once(make_door: MakeDoor, tmp_path: Path) -> None:
    """A user interface can then show all questions that are open."""
    asked: list[str | None] = []
    all_asked = asyncio.Event()

    async def answer_when_all_are_asked(request: ApprovalRequest) -> Approve:
        asked.append(request.call_id)
        if len(asked) == 3:
            all_asked.set()
        await all_asked.wait()
        return Approve()

    door = make_door(SecurityPolicy(default="deny", tools={"read_file": "ask"}), approver=answer_when_all_are_asked)
    (tmp_path / "workspace" / "a.txt").write_text("hello")
    door.call_all([ToolCall(str(number), "read_file", {"path": "a.txt"}) for number in range(3)])
    assert sorted(map(str, asked)) == ["0", "1", "2"]


def test_nobody_is_asked_about_a_call_that_was_cancelled_while_it_waited_its_turn(
    make_door: MakeDoor, tmp_path: Path
) -> None:
    stop = CancelSignal()
    person = Person(Approve(), lambda: stop.cancel("the user pressed stop"))
    door = make_door(SecurityPolicy(default="deny", tools={"read_file": "ask"}), approver=person)
    (tmp_path / "workspace" / "a.txt").write_text("hello")
    calls = [ToolCall(str(number), "read_file", {"path": "a.txt"}) for number in range(3)]
    results = door.with_options(signal=stop).call_all(calls)
    waited = "TOOL_CANCELLED: the user pressed stop, while it waited for an approval; nothing was run"
    assert {result.value for result in results} <= {waited, "TOOL_CANCELLED: the user pressed stop"}
    assert len(person.asked) == 1


def test_a_file_that_changes_while_somebody_thinks_voids_the_approval(
    make_door: MakeDoor, kind: Any, tmp_path: Path
) -> None:
    file = tmp_path / "workspace" / "a.txt"
    person = kind(Approve(), lambda: file.write_text("changed meanwhile"))
    door = make_door(SecurityPolicy(default="deny", tools={"read_file": "ask"}), approver=person)
    file.write_text("as shown")
    words = code(door, "read_file", {"path": "a.txt"})
    assert words.startswith("TOOL_NOT_ALLOWED: 'a.txt' changed while the call waited for approval")
    person.before = lambda: None
    assert door.invoke("read_file", {"path": "a.txt"}).content.content == "changed meanwhile"
    assert person.asked[0].preview.reads == ("a.txt",)
    file.unlink()
    person.before = lambda: file.write_text("came into being")
    assert "changed while" in code(door, "read_file", {"path": "a.txt"})


def test_a_file_that_changes_meanwhile_voids_an_edit_as_well(make_door: MakeDoor, kind: Any, tmp_path: Path) -> None:
    """Who edits the arguments has seen the diff against the file as it was."""
    file = tmp_path / "workspace" / "a.txt"
    answer = Edit({"path": "a.txt", "content": "edited"})
    person = kind(answer, lambda: file.write_text("changed meanwhile"))
    door = make_door(SecurityPolicy(default="deny", tools={"write_file": "ask"}), approver=person)
    file.write_text("as shown")
    words = code(door, "write_file", {"path": "a.txt", "content": "new"})
    assert words.startswith("TOOL_NOT_ALLOWED: 'a.txt' changed while the call waited for approval")
    assert file.read_text() == "changed meanwhile"


def test_ask_counts_as_offered_only_with_somebody_to_ask(make_door: MakeDoor) -> None:
    policy = SecurityPolicy(default="deny", **ASK_ADD)
    assert [tool.name for tool in make_door(policy, approver=Person(Approve())).get_allowed_tools()] == ["add"]
    assert make_door(policy).get_allowed_tools() == []
    assert "no approver is configured: ask the user, or configure an approver" in code(
        make_door(policy), "add", {"a": 1, "b": 2}
    )


def test_rules_on_paths_decide_call_by_call(make_door: MakeDoor, tmp_path: Path) -> None:
    rules: list[Rule] = [
        Rule("deny", path="secrets/**", justification="keys"),
        Rule("allow", path="docs/**"),
        Rule("ask", path="*.cfg"),
    ]
    person = Person(Approve())
    door = make_door(SecurityPolicy(default="deny", rules=rules), approver=person)
    for path in ("secrets/key", "docs/a.md", "app.cfg", "src/a.py"):
        file = tmp_path / "workspace" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    assert door.invoke("read_file", {"path": "docs/a.md"}).content.content == "docs/a.md"
    assert door.invoke("read_file", {"path": "app.cfg"}).content.content == "app.cfg"
    assert [request.preview.reads for request in person.asked] == [("app.cfg",)]
    assert "(keys)" in code(door, "read_file", {"path": "secrets/key"})
    assert "the policy's default is deny" in code(door, "read_file", {"path": "src/a.py"})
    offered = {tool.name for tool in door.get_allowed_tools()}
    assert {"read_file", "list", "tree", "edit"} <= offered
    assert offered.isdisjoint({"done", "exec_command", "todowrite", "webfetch", "add"}), "no rule on paths covers them"


@pytest.mark.slow
def test_denied_paths_hold_through_links_and_walks(make_door: MakeDoor, tmp_path: Path) -> None:
    door = make_door(SecurityPolicy(default="allow", rules=[Rule("deny", path="secrets")]))
    root = tmp_path / "workspace"
    (root / "secrets").mkdir()
    (root / "secrets" / "key").write_text("hidden")
    (root / "innocent.txt").symlink_to("secrets/key")
    (root / "also").symlink_to("secrets")
    for path in ("innocent.txt", "also/key", "SECRETS/key", "a/../secrets/key", "secrets"):
        words = code(door, "read_file", {"path": path})
        assert words.split(":")[0] in ("TOOL_NOT_ALLOWED", "SANDBOX_VIOLATION") or "NOT_FOUND" in words, words
        assert "hidden" not in words
    listed = door.invoke("list", {"recursive": True}).content
    assert [entry.path for entry in listed.entries] == ["also", "innocent.txt"]
    assert "secrets" not in door.invoke("tree", {}).text()


def test_rules_on_what_a_tool_does_not_tell_are_refused_when_the_toolkit_is_built(make_door: MakeDoor) -> None:
    with pytest.raises(
        ValueError,
        match=r"has a command condition, but 'read_file' declares no command: its spec needs an 'x-resource'",
    ):
        make_door(SecurityPolicy(rules=[Rule("deny", tools=["read_file"], command="rm")]))


def test_policy_explains_itself(make_door: MakeDoor) -> None:
    policy = SecurityPolicy(default="deny", rules=[Rule("allow", path="docs/**", justification="public")])
    with pytest.raises(ValueError, match="only after a toolkit was built with it"):
        policy.explain("read_file", {"path": "docs/a"})
    make_door(policy)
    verdict = policy.explain("read_file", {"path": "docs/a"})
    assert (verdict.decision, verdict.because) == ("allow", "decided by Rule('allow', path='docs/**') (public)")
    assert policy.explain("read_file", {"path": "src/a"}).decision == "deny"


def test_a_policy_file_inside_the_workspace_is_refused(make_door: MakeDoor, tmp_path: Path) -> None:
    outside = tmp_path / "policy.toml"
    outside.write_text('default = "allow"\n')
    make_door(SecurityPolicy.load(outside))
    inside = tmp_path / "workspace" / "policy.toml"
    inside.write_text('default = "allow"\n')
    for path in (inside, tmp_path / "link.toml"):
        if path != inside:
            path.symlink_to(inside)
        with pytest.raises(ValueError, match="is inside the workspace or another root of the tools, where they could"):
            make_door(SecurityPolicy.load(path))
