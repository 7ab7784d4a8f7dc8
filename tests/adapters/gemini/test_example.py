"""The example's whole loop over the SDK's client; a loopback server plays the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google import genai

from examples.one_loop import ask
from tests.adapters.loopback import Answer, serve
from toolkit import AnswerCutOff, AnswerFailed, RunError
from toolkit.adapters.gemini import GeminiDriver

QUESTION = "Which version does this project have?"


def says(*parts: dict[str, Any], word: str = "STOP") -> Answer:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": word, "index": 0}
    return Answer({"candidates": [candidate], "modelVersion": "gemini-3-flash", "responseId": "r1", "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}})  # fmt: skip


def reads(path: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "read_file", "args": {"path": path}}, **more}


def client_of(url: str) -> genai.Client:
    return genai.Client(api_key="k", http_options={"base_url": url})


def test_the_loop_runs_to_its_answer(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    # Signed, and without ids: both calls are to the same tool, so their results are told apart by order.
    turn = [reads("version.txt", thoughtSignature="c2ln"), reads("none.txt")]
    with serve(says(*turn), says({"text": "It is 1.4.2."})) as server, client_of(server.url) as client:
        assert ask(GeminiDriver(client, model="gemini-3-flash"), tmp_path, QUESTION) == "It is 1.4.2."

    first, second = [request.body for request in server.requests]
    declared = first["tools"][0]["functionDeclarations"]
    assert {tool["name"] for tool in declared} == {"read_file", "list", "tree"}
    assert first["systemInstruction"] == second["systemInstruction"]
    question, asked, results = second["contents"]
    assert [question] == first["contents"]
    assert asked == {"role": "model", "parts": turn}
    found, missing = [part["functionResponse"] for part in results["parts"]]
    assert found.keys() == missing.keys() == {"name", "response"}, "an id was made up for the calls, and stays here"
    assert "1.4.2" in found["response"]["output"]
    assert missing["response"]["error"].startswith("TOOL_FAILED: ")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (says(reads("ver"), word="MAX_TOKENS"), AnswerCutOff),
        (Answer({"error": {"message": "no"}}, 400), AnswerFailed),
    ],
)
def test_an_answer_that_was_cut_is_not_acted_on(tmp_path: Path, answer: Answer, error: type[RunError]) -> None:
    with (
        serve(answer) as server,
        client_of(server.url) as client,
        pytest.raises(error),
    ):
        ask(GeminiDriver(client, model="gemini-3-flash"), tmp_path, QUESTION)
    assert len(server.requests) == 1
