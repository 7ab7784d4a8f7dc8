"""The example's whole loop over the SDK's client; a loopback server plays the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from examples.one_loop import ask
from tests.adapters.loopback import Answer, serve
from toolkit import AnswerCutOff, AnswerFailed, RunError
from toolkit.adapters.openai_chat import OpenAIChatDriver

QUESTION = "Which version does this project have?"


def says(word: str, content: str | None, *calls: dict[str, Any]) -> Answer:
    message = {
        "role": "assistant",
        "content": content,
        "refusal": None,
        **({"tool_calls": list(calls)} if calls else {}),
    }
    return Answer({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": word}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})  # fmt: skip


def reads(id: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}}


def test_the_loop_runs_to_its_answer(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    calls = [reads("call_1", '{"path": "version.txt"}'), reads("call_2", '{"path":"none.txt"}')]
    with (
        serve(says("tool_calls", None, *calls), says("stop", "It is 1.4.2.")) as server,
        openai.OpenAI(api_key="k", base_url=server.url) as client,
    ):
        assert ask(OpenAIChatDriver(client, model="gpt-5-mini"), tmp_path, QUESTION) == "It is 1.4.2."

    first, second = [request.body for request in server.requests]
    assert {tool["function"]["name"] for tool in first["tools"]} == {"read_file", "list", "tree"}
    system, question, asked, found, missing = second["messages"]
    assert [system, question] == first["messages"]
    assert asked == {"role": "assistant", "content": None, "tool_calls": calls}
    assert (found["tool_call_id"], missing["tool_call_id"]) == ("call_1", "call_2")
    assert "1.4.2" in found["content"]
    assert missing["content"].startswith('{"error":"TOOL_FAILED: ')


@pytest.mark.parametrize(
    ("answer", "error"),
    [(says("length", None, reads("call_1", '{"path": "ver')), AnswerCutOff), (Answer({}, 400), AnswerFailed)],
)
def test_an_answer_that_was_cut_is_not_acted_on(tmp_path: Path, answer: Answer, error: type[RunError]) -> None:
    with (
        serve(answer) as server,
        openai.OpenAI(api_key="k", base_url=server.url) as client,
        pytest.raises(error),
    ):
        ask(OpenAIChatDriver(client, model="gpt-5-mini"), tmp_path, QUESTION)
    assert len(server.requests) == 1
