"""The example's whole loop over the SDK's client; a loopback server plays the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest

from examples.anthropic_loop import main
from tests.adapters.loopback import Answer, serve


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
        says("pause_turn", SEARCH),
        says("tool_use", THINKING, text("let me see"), reads("toolu_1", "version.txt"), reads("toolu_2", "none.txt")),
        says("end_turn", text("It is 1.4.2.")),
    )
    with serve(*answers) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        assert main(client, tmp_path) == "It is 1.4.2."

    asked = [request.body for request in server.requests]
    assert len(asked) == 3
    assert {tool["name"] for tool in asked[0]["tools"]} == {"read_file", "list", "tree"}
    question, paused, calls, results = asked[2]["messages"]
    assert question["role"] == "user"
    assert paused == {"role": "assistant", "content": [SEARCH]}
    assert calls == {"role": "assistant", "content": answers[1].body["content"]}
    found, missing = results["content"]
    assert (found["tool_use_id"], missing["tool_use_id"]) == ("toolu_1", "toolu_2")
    assert "1.4.2" in found["content"] and "is_error" not in found
    assert missing["content"].startswith("TOOL_FAILED: ") and missing["is_error"] is True


@pytest.mark.parametrize(
    "answer", [says("max_tokens", reads("toolu_1", "x")), Answer({"type": "error", "error": {"message": "no"}}, 400)]
)
def test_an_answer_that_was_cut_is_not_acted_on(tmp_path: Path, answer: Answer) -> None:
    with (
        serve(answer) as server,
        anthropic.Anthropic(api_key="k", base_url=server.url) as client,
        pytest.raises(RuntimeError, match="no complete answer"),
    ):
        main(client, tmp_path)
    assert len(server.requests) == 1
