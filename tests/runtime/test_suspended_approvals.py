"""A call that needs a person is put away, and resumed later by another toolkit: as it was shown, and once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acme.generated import Rule, SecurityPolicy
from tests.runtime.conftest import Door, MakeDoor
from toolkit import (
    ApprovalPending,
    Approve,
    Deny,
    Edit,
    Respond,
    SetupError,
    Suspend,
    SuspendedCall,
    ToolCall,
    ToolNotAllowed,
)
from toolkit.stores import FileApprovalStore

ASKS = SecurityPolicy(default="allow", tools={"write_file": "ask"})
ARGUMENTS = {"path": "a.txt", "content": "new"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    path = tmp_path / "workspace" / "a.txt"
    path.write_text("old")
    return path


@pytest.fixture
def make(make_door: MakeDoor, tmp_path: Path) -> MakeDoor:
    """Each door is a toolkit of its own; they share nothing but the state directory."""

    def make_one(policy: Any = ASKS, **context: Any) -> Door:
        context.setdefault("approver", lambda request: Suspend())
        return make_door(policy, state_dir=tmp_path / "state", **context)

    return make_one


def put_away(door: Door, **arguments: str) -> str:
    with pytest.raises(ApprovalPending) as caught:
        door.invoke("write_file", {**ARGUMENTS, **arguments})
    return caught.value.suspended.to_json()


def test_it_is_resumed_by_another_toolkit(make: MakeDoor, file: Path) -> None:
    text = put_away(make())
    assert file.read_text() == "old"
    shown = SuspendedCall.from_json(text)
    assert (shown.tool_name, shown.arguments, shown.writes) == ("write_file", ARGUMENTS, ("a.txt",))
    assert shown.diff is not None and "-old" in shown.diff and "+new" in shown.diff
    assert make().resume(shown, Approve()).content.path == "a.txt"
    assert file.read_text() == "new"


def test_an_answer_counts_once(make: MakeDoor, file: Path) -> None:
    suspended = SuspendedCall.from_json(put_away(make()))
    make().resume(suspended, Approve())
    file.write_text("old")
    with pytest.raises(ToolNotAllowed, match="was used already"):
        make().resume(suspended, Approve())
    assert file.read_text() == "old"


def test_what_a_model_reads_says_that_nothing_was_run(make: MakeDoor, file: Path) -> None:
    saved: list[SuspendedCall] = []
    door = make(approver=lambda request: Suspend(save=saved.append))
    result = door.call(ToolCall("7", "write_file", ARGUMENTS))
    assert result.value == (
        "TOOL_NOT_ALLOWED: 'write_file' waits for the approval of a person; nothing was run. Go on with something else"
    )
    assert saved[0].call_id == "7"
    make().resume(saved[0], Approve())
    assert file.read_text() == "new"


@pytest.mark.parametrize(
    ("answer", "content"),
    [(Edit({"path": "a.txt", "content": "edited"}), "edited"), (Approve(), "new")],
)
def test_every_answer_means_what_it_means_at_once(make: MakeDoor, file: Path, answer: Any, content: str) -> None:
    make().resume(SuspendedCall.from_json(put_away(make())), answer)
    assert file.read_text() == content


def test_a_denial_and_an_answer_in_the_place_of_the_tool(make: MakeDoor, file: Path) -> None:
    with pytest.raises(ToolNotAllowed, match="was not approved: not today"):
        make().resume(SuspendedCall.from_json(put_away(make())), Deny("not today"))
    written = {"path": "a.txt", "created": False, "bytes_written": 3, "sha256": "0" * 64, "diff": ""}
    message = make().resume(SuspendedCall.from_json(put_away(make())), Respond(written))
    assert message.content.bytes_written == 3
    assert file.read_text() == "old"


def test_a_file_that_changed_meanwhile_voids_it(make: MakeDoor, file: Path) -> None:
    suspended = SuspendedCall.from_json(put_away(make()))
    file.write_text("theirs")
    with pytest.raises(ToolNotAllowed, match="is not what was shown to be approved"):
        make().resume(suspended, Approve())
    assert file.read_text() == "theirs"


def test_the_same_content_in_another_file_does_not(make: MakeDoor, file: Path) -> None:
    """On another machine every file has another inode and another time."""
    suspended = SuspendedCall.from_json(put_away(make()))
    file.unlink()
    file.write_text("old")
    make().resume(suspended, Approve())
    assert file.read_text() == "new"


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"path": "a.txt", "content": "evil"}},
        {"tool_name": "apply_patch"},
        {"arguments": {"path": "b.txt", "content": "new"}},
    ],
)
def test_changed_text_is_found_out(make: MakeDoor, file: Path, change: dict[str, Any]) -> None:
    changed = json.dumps({**json.loads(put_away(make())), **change})
    policy = SecurityPolicy(default="allow", tools={"write_file": "ask", "apply_patch": "ask"})
    with pytest.raises(
        Exception, match=r"is not what was shown to be approved|INVALID_TOOL_ARGUMENTS|required argument"
    ):
        make(policy).resume(SuspendedCall.from_json(changed), Approve())
    assert {path.name: path.read_text() for path in file.parent.iterdir()} == {"a.txt": "old"}


@pytest.mark.parametrize(
    "shown",
    [
        {"diff": "-old\n+harmless\n"},
        {"shell": "ls"},
        {"argv": ["ls"]},
        {"because": "the user wants it"},
        {"writes": []},
        {"cwd": "elsewhere"},
        {"url": "https://example.org/"},
    ],
)
def test_an_answer_to_another_text_is_no_answer(make: MakeDoor, file: Path, shown: dict[str, Any]) -> None:
    """Who can change what a person reads must not choose what is run."""
    text = put_away(make())
    with pytest.raises(ToolNotAllowed, match="is not what was shown to be approved"):
        make().resume(SuspendedCall.from_json(json.dumps({**json.loads(text), **shown})), Approve())
    assert file.read_text() == "old"
    reordered = json.dumps(json.loads(text), sort_keys=True, indent=2)
    make().resume(SuspendedCall.from_json(reordered), Approve())
    assert file.read_text() == "new"


def test_the_policy_of_today_decides(make: MakeDoor, file: Path) -> None:
    suspended = SuspendedCall.from_json(put_away(make()))
    with pytest.raises(ToolNotAllowed, match=r"is not allowed|denies"):
        make(SecurityPolicy(default="allow", rules=[Rule("deny", path="*.txt")])).resume(suspended, Approve())
    assert file.read_text() == "old"
    suspended = SuspendedCall.from_json(put_away(make()))
    for answer in (Approve(), Deny("no")):
        with pytest.raises(ToolNotAllowed, match="the policy does not ask about this call of 'write_file' any more"):
            make(SecurityPolicy(default="allow")).resume(suspended, answer)
    assert file.read_text() == "old"


def test_an_approval_expires(make: MakeDoor, file: Path) -> None:
    door = make(approver=lambda request: Suspend(seconds=1e-6))
    suspended = SuspendedCall.from_json(put_away(door))
    with pytest.raises(ToolNotAllowed, match="has expired"):
        make().resume(suspended, Approve())


def test_a_call_that_cannot_be_saved_is_refused(make: MakeDoor, file: Path) -> None:
    def fail(call: SuspendedCall) -> None:
        raise OSError("the queue is full")

    with pytest.raises(ToolNotAllowed, match="the approver failed"):
        make(approver=lambda request: Suspend(save=fail)).invoke("write_file", ARGUMENTS)


def test_an_async_approver_suspends_as_well(make: MakeDoor, file: Path) -> None:
    async def ask(request: Any) -> Suspend:
        return Suspend()

    make().resume(SuspendedCall.from_json(put_away(make(approver=ask))), Approve())
    assert file.read_text() == "new"


def test_the_store_is_a_dependency(make: MakeDoor, file: Path, tmp_path: Path) -> None:
    store = FileApprovalStore(str(tmp_path / "elsewhere"))
    overrides = {"approval_store": lambda: store}
    suspended = SuspendedCall.from_json(put_away(make(overrides=overrides)))
    with pytest.raises(ToolNotAllowed, match="is not known here"):
        make().resume(suspended, Approve())
    make(overrides=overrides).resume(suspended, Approve())
    assert file.read_text() == "new"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"version": 1}', "x" * 10, '{"version": 2, "id": "x"}', "[" * 5000]
)
def test_text_that_is_no_suspended_call(text: str) -> None:
    with pytest.raises(SetupError, match=r"not a suspended call|another version"):
        SuspendedCall.from_json(text)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_times_that_are_none(seconds: float) -> None:
    with pytest.raises(SetupError, match="seconds must be a number greater than 0"):
        Suspend(seconds=seconds)
