"""The example's whole loop over Ollama's client; a loopback server plays the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ollama
import pytest

from examples.one_loop import ask
from tests.adapters.loopback import Answer, serve
from toolkit import AnswerCutOff, AnswerFailed, RunError
from toolkit.adapters.ollama import OllamaDriver

QUESTION = "Which version does this project have?"


def says(word: str, content: str, *paths: str) -> Answer:
    calls: list[Any] = [{"function": {"name": "read_file", "arguments": {"path": path}}} for path in paths]
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    return Answer({"model": "m", "created_at": "2025-01-01T00:00:00Z", "message": message, "done": True, "done_reason": word})  # fmt: skip


def test_the_loop_runs_to_its_answer(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    answers = says("stop", "let me see", "version.txt", "none.txt"), says("stop", "It is 1.4.2.")
    with serve(*answers) as server, ollama.Client(host=server.url) as client:
        assert ask(OllamaDriver(client, model="qwen3"), tmp_path, QUESTION) == "It is 1.4.2."

    first, second = [request.body for request in server.requests]
    assert {tool["function"]["name"] for tool in first["tools"]} == {"read_file", "list", "tree"}
    _, question, calls, found, missing = second["messages"]
    assert question["role"] == "user"
    assert [call["function"]["arguments"] for call in calls["tool_calls"]] == [{"path": "version.txt"}, {"path": "none.txt"}]  # fmt: skip
    assert found["tool_name"] == missing["tool_name"] == "read_file"
    assert "1.4.2" in found["content"]
    assert missing["content"].startswith('{"error":"TOOL_FAILED: ')


@pytest.mark.parametrize(
    ("answer", "error"),
    [(says("length", "", "x"), AnswerCutOff), (Answer({"error": "no"}, 400), AnswerFailed)],
)
def test_an_answer_that_was_cut_is_not_acted_on(tmp_path: Path, answer: Answer, error: type[RunError]) -> None:
    with (
        serve(answer) as server,
        ollama.Client(host=server.url) as client,
        pytest.raises(error),
    ):
        ask(OllamaDriver(client, model="qwen3"), tmp_path, QUESTION)
    assert len(server.requests) == 1
