"""The example's whole loop over the SDK's client; a loopback server plays the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from examples.one_loop import ask
from tests.adapters.loopback import Answer, serve
from toolkit import AnswerCutOff, AnswerFailed, RunError
from toolkit.adapters.openai_responses import OpenAIResponsesDriver

QUESTION = "Which version does this project have?"


def says(*output: dict[str, Any], status: str = "completed", **more: Any) -> Answer:
    return Answer({"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status, "output": list(output), "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **more})  # fmt: skip


def reads(id: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "read_file", "arguments": arguments, "status": "completed"}  # fmt: skip


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vj"}
ANSWER = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "It is 1.4.2.", "annotations": []}]}  # fmt: skip


def test_the_loop_runs_to_its_answer(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    turn = [REASONING, reads("call_1", '{"path": "version.txt"}'), reads("call_2", '{"path":"none.txt"}')]
    with (
        serve(says(*turn), says(ANSWER)) as server,
        openai.OpenAI(api_key="k", base_url=server.url) as client,
    ):
        assert ask(OpenAIResponsesDriver(client, model="gpt-5-mini"), tmp_path, QUESTION) == "It is 1.4.2."

    first, second = [request.body for request in server.requests]
    assert {tool["name"] for tool in first["tools"]} == {"read_file", "list", "tree"}
    assert first["instructions"] == second["instructions"]
    question, *asked, found, missing = second["input"]
    assert [question] == first["input"]
    assert asked == turn
    assert (found["call_id"], missing["call_id"]) == ("call_1", "call_2")
    assert "1.4.2" in found["output"]
    assert missing["output"].startswith('{"error":"TOOL_FAILED: ')


CUT: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (says(reads("call_1", '{"path": "ver'), **CUT), AnswerCutOff),
        (says(status="failed", error={"code": "server_error", "message": "no"}), AnswerFailed),
        (Answer({}, 400), AnswerFailed),
    ],
)
def test_an_answer_that_was_cut_is_not_acted_on(tmp_path: Path, answer: Answer, error: type[RunError]) -> None:
    with (
        serve(answer) as server,
        openai.OpenAI(api_key="k", base_url=server.url) as client,
        pytest.raises(error),
    ):
        ask(OpenAIResponsesDriver(client, model="gpt-5-mini"), tmp_path, QUESTION)
    assert len(server.requests) == 1
