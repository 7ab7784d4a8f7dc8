"""Calls from the page: progress, approvals, cancelling, and what is left of a call when it has ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builtin.commands import OPEN_LINE, line_in
from tests.playground.running import RunningPlayground


def approval_of(events: Any) -> dict[str, Any]:
    """The next approval that a call waits for."""
    return next(event for event in events if event["event"] == "approval")


def answer(running: RunningPlayground, approval: dict[str, Any], **body: Any) -> int:
    return running.post(f"/api/approvals/{approval['approval']}", body).status_code


def test_progress_comes_while_the_command_runs(shop: RunningPlayground) -> None:
    with (
        line_in(shop.workspace) as line,
        shop.call("bash", command=f"{OPEN_LINE} echo one; read -t 60 x <go; echo two") as events,
    ):
        started = next(events)
        assert (started["event"], started["tool"]) == ("started", "bash")
        pieces = next(event["pieces"] for event in events if event.get("pieces"))
        assert pieces == [{"stream": "stdout", "text": "one\n"}]
        assert shop.post(f"/api/calls/{started['call']}/cancel", {}).json() == {"cancelled": True}
        *_, last = events
        assert last["error"].startswith("TOOL_CANCELLED: cancelled on the page")
        line.wait_until_nobody_holds_it()
    (shop.workspace / "line").unlink()


@pytest.fixture(autouse=True)
def _a_pipe_that_nobody_writes_to(shop: RunningPlayground) -> None:
    import os

    if not (shop.workspace / "go").exists():
        os.mkfifo(shop.workspace / "go")


def test_an_edit_waits_for_approval_and_shows_its_diff(shop: RunningPlayground) -> None:
    file = shop.workspace / "edited.py"
    file.write_text("a = 1\n")
    with shop.call("edit", path="edited.py", old_string="1", new_string="2") as events:
        asked = approval_of(events)
        assert (asked["tool"], asked["writes"], asked["because"]) == (
            "edit",
            ["edited.py"],
            "the policy says ask for this tool",
        )
        assert "-a = 1\n+a = 2\n" in asked["diff"]
        assert file.read_text() == "a = 1\n"
        assert answer(shop, asked, answer="approve") == 200
        assert list(events)[-1]["error"] is None
    assert file.read_text() == "a = 2\n"
    assert shop.get("/api/audit")["calls"][-1]["answer"] == "approve"


def test_a_command_waits_for_approval_and_shows_its_words(shop: RunningPlayground) -> None:
    with shop.call("exec_command", command=["echo", "a b", "\u202e"]) as events:
        asked = approval_of(events)
        assert (asked["argv"], asked["shell"], asked["diff"]) == (["echo", "a b", "\u202e"], None, None)
        assert answer(shop, asked, answer="deny", words="not today") == 200
        assert list(events)[-1]["error"] == "TOOL_NOT_ALLOWED: 'exec_command' was not approved: not today"


def test_edited_arguments_are_judged_again(shop: RunningPlayground) -> None:
    for path, code in (("new.txt", None), ("secrets/new.txt", "TOOL_NOT_ALLOWED"), (7, "INVALID_TOOL_ARGUMENTS")):
        with shop.call("write_file", path="other.txt", content="x") as events:
            asked = approval_of(events)
            edited = json.dumps({"path": path, "content": "y"})
            assert answer(shop, asked, answer="edit", arguments=edited) == 200
            error = list(events)[-1]["error"]
            assert (error and error.partition(":")[0]) == code
    assert (shop.workspace / "new.txt").read_text() == "y"
    assert not (shop.workspace / "other.txt").exists() and not (shop.workspace / "secrets" / "new.txt").exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [({"answer": "perhaps"}, 400), ({}, 400), ({"answer": "edit", "arguments": "{"}, 400), ({"answer": "edit", "arguments": "[]"}, 400), ({"answer": "deny", "words": 1}, 400)],
)  # fmt: skip
def test_an_answer_that_is_none_leaves_the_call_waiting(
    shop: RunningPlayground, body: dict[str, Any], status: int
) -> None:
    with shop.call("write_file", path="never.txt", content="x") as events:
        asked = approval_of(events)
        assert answer(shop, asked, **body) == status
        assert answer(shop, asked, answer="deny") == 200
        assert answer(shop, asked, answer="approve") == 404
        assert list(events)[-1]["error"].startswith("TOOL_NOT_ALLOWED")
    assert not (shop.workspace / "never.txt").exists()


def test_cancelling_a_call_that_waits_for_approval_ends_it(shop: RunningPlayground) -> None:
    with shop.call("write_file", path="never.txt", content="x") as events:
        asked = approval_of(events)
        for _ in range(2):  # the second finds the call ending, or ended
            assert shop.post(f"/api/calls/{asked['call']}/cancel", {}).status_code in (200, 404)
        assert list(events)[-1]["error"].startswith("TOOL_CANCELLED")
        assert answer(shop, asked, answer="approve") == 404
    assert not (shop.workspace / "never.txt").exists()


def test_calls_of_a_program_ask_on_the_page_that_runs_it(shop: RunningPlayground) -> None:
    source = "tools.write_file(path='by_program.txt', content='x')\nprint('written')"
    with shop.call("run_program", source=source) as events:
        asked = approval_of(events)
        assert asked["tool"] == "write_file"
        assert answer(shop, asked, answer="approve") == 200
        assert "written" in list(events)[-1]["text"]
    assert (shop.workspace / "by_program.txt").read_text() == "x"
