"""The example's whole loop over the SDK's client; a loopback server plays the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest

from examples.one_loop import ask
from tests.adapters.loopback import Answer, serve
from toolkit import AnswerCutOff, AnswerFailed, RunError
from toolkit.adapters.anthropic import AnthropicDriver

QUESTION = "Which version does this project have?"


def says(word: str, *blocks: dict[str, Any]) -> Answer:
    return Answer({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks), "stop_reason": word, "usage": {"input_tokens": 1, "output_tokens": 1}})  # fmt: skip


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def reads(id: str, path: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": path}}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


def test_the_loop_runs_to_its_answer(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    answers = (
        says("tool_use", THINKING, text("let me see"), reads("toolu_1", "version.txt"), reads("toolu_2", "none.txt")),
        says("end_turn", text("It is 1.4.2.")),
    )
    with serve(*answers) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        assert ask(AnthropicDriver(client, model="claude-sonnet-5"), tmp_path, QUESTION) == "It is 1.4.2."

    asked = [request.body for request in server.requests]
    assert len(asked) == 2
    assert {tool["name"] for tool in asked[0]["tools"]} == {"read_file", "list", "tree"}
    question, calls, results = asked[1]["messages"]
    assert question["role"] == "user"
    assert calls == {"role": "assistant", "content": answers[0].body["content"]}
    found, missing = results["content"]
    assert (found["tool_use_id"], missing["tool_use_id"]) == ("toolu_1", "toolu_2")
    assert "1.4.2" in found["content"] and "is_error" not in found
    assert missing["content"].startswith("TOOL_FAILED: ") and missing["is_error"] is True


def test_a_turn_that_was_paused_goes_on(tmp_path: Path) -> None:
    answers = says("pause_turn", SEARCH), says("end_turn", text("It is 1.4.2."))
    with serve(*answers) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        assert ask(AnthropicDriver(client, model="claude-sonnet-5"), tmp_path, QUESTION) == "It is 1.4.2."
    _, paused = server.requests[1].body["messages"]
    assert paused == {"role": "assistant", "content": [SEARCH]}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (says("max_tokens", reads("toolu_1", "x")), AnswerCutOff),
        (Answer({"type": "error", "error": {"message": "no"}}, 400), AnswerFailed),
    ],
)
def test_an_answer_that_was_cut_is_not_acted_on(tmp_path: Path, answer: Answer, error: type[RunError]) -> None:
    with (
        serve(answer) as server,
        anthropic.Anthropic(api_key="k", base_url=server.url) as client,
        pytest.raises(error),
    ):
        ask(AnthropicDriver(client, model="claude-sonnet-5"), tmp_path, QUESTION)
    assert len(server.requests) == 1
