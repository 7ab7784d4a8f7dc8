"""Servers that ask the person or a model while a call runs, and what they offer besides tools: resources and prompts."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.packs.conftest import Doors
from tests.packs.test_mcp_endings import told
from toolkit import ContentBlock, SecurityPolicy, TextMessage, ToolContext, ToolkitContext
from toolkit.errors import ToolFailed
from toolkit.packs import (
    ElicitRequest,
    McpCallbacks,
    McpClient,
    McpPack,
    McpPrompt,
    McpPromptArgument,
    McpResource,
    McpResourceTemplate,
    McpServer,
    McpTool,
    SampleAnswer,
    SampleRequest,
    mcp_pack,
)
from toolkit.packs.mcp.questions import TimeLimits

REVISIONS = ["2025-11-25", "2026-07-28"]


def pack(revision: str, timeout: float = 60.0) -> McpPack:
    server = McpServer(name="asking", command=("python", "asking.py", revision), timeout=timeout)
    return mcp_pack(server, {"odd_text": McpTool("ask", "served.generated.models.odd_text:OddTextOutput")})


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("question", "words"), [("elicit", "nobody is there to answer questions"), ("sample", "does not lend its model")]
)
def test_nobody_answers_by_default_and_a_sentence_says_so(
    make_sync: Doors, revision: str, question: str, words: str
) -> None:
    door = make_sync(pack(revision))
    assert told(door, "capabilities") == ""
    if revision == "2025-11-25":
        assert words in told(door, question)  # the server was told, and passes it on
    else:
        with pytest.raises(ToolFailed, match=f"needs input to go on with the call, but .*{words}") as caught:
            told(door, question)
        assert caught.value.reason == "REMOTE"
    assert told(door, "capabilities") == ""


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_function_of_the_context_answers_for_the_person(make_door: Doors, revision: str) -> None:
    asked: list[ElicitRequest] = []

    def elicit(request: ElicitRequest) -> dict[str, object]:
        asked.append(request)
        return {"name": "Ada"}

    door = make_door(pack(revision), mcp=McpCallbacks(elicit=elicit))
    assert told(door, "capabilities") == "elicitation"
    reply = json.loads(told(door, "elicit"))
    assert (reply["action"], reply["content"]) == ("accept", {"name": "Ada", "color": "blue"})
    [request] = asked
    assert (request.server, request.message, request.url) == ("asking", "Who are you?", "")
    assert request.schema["required"] == ["name"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_async_function_runs_in_the_loop_of_the_call(make_door: Doors, revision: str) -> None:
    seen: list[str] = []

    async def elicit(request: ElicitRequest) -> dict[str, object]:
        await asyncio.sleep(0)
        seen.append(threading.current_thread().name)
        return {"name": "Ada", "color": "red"}

    reply = json.loads(told(make_door(pack(revision), mcp=McpCallbacks(elicit=elicit)), "elicit"))
    assert reply["content"] == {"name": "Ada", "color": "red"}
    assert len(seen) == 1


def test_a_person_may_decline_and_may_be_sent_to_a_page(make_sync: Doors) -> None:
    asked: list[str] = []

    def elicit(request: ElicitRequest) -> dict[str, object] | None:
        asked.append(request.url)
        return {} if request.url else None

    door = make_sync(pack("2025-11-25"), mcp=McpCallbacks(elicit=elicit))
    assert json.loads(told(door, "elicit"))["action"] == "decline"
    assert json.loads(told(door, "open"))["action"] == "accept"
    assert asked == ["", "https://example.org/pay"]


@pytest.mark.parametrize(
    "answer", [{}, {"name": "x"}, {"name": "Ada", "color": "green"}, {"name": "Ada", "more": 1}, 5]
)
def test_what_does_not_fit_the_question_is_not_sent(make_sync: Doors, answer: Any) -> None:
    door = make_sync(pack("2025-11-25"), mcp=McpCallbacks(elicit=lambda request: answer))
    assert "does not fit the schema" in told(door, "elicit")


def test_what_a_function_raises_is_not_told_to_the_server(make_sync: Doors) -> None:
    def elicit(request: ElicitRequest) -> dict[str, object]:
        raise ValueError("a secret of ours")

    assert told(make_sync(pack("2025-11-25"), mcp=McpCallbacks(elicit=elicit)), "elicit") == (
        '"the question could not be answered"'
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_function_of_the_context_asks_a_model(make_sync: Doors, revision: str) -> None:
    asked: list[SampleRequest] = []

    def sample(request: SampleRequest) -> SampleAnswer:
        asked.append(request)
        return SampleAnswer("Hello", model="small-1", cut=True)

    door = make_sync(pack(revision), mcp=McpCallbacks(sample=sample))
    reply = json.loads(told(door, "sample"))
    assert (reply["content"]["text"], reply["model"], reply["stopReason"]) == ("Hello", "small-1", "maxTokens")
    [request] = asked
    assert request.messages == [
        TextMessage("user", [ContentBlock("text", text="Say hello")]),
        TextMessage("user", [ContentBlock("image", "image/png", data="aGk=")]),
    ]
    assert (request.max_tokens, request.system, request.temperature) == (7, "Be brief.", 0.5)
    assert (request.stop, request.model_hints) == (("!",), ("small",))


def test_a_refused_sample_is_told(make_sync: Doors) -> None:
    assert "refused to sample" in told(
        make_sync(pack("2025-11-25"), mcp=McpCallbacks(sample=lambda request: None)), "sample"
    )


def test_time_limits_stand_still_while_somebody_is_asked() -> None:
    async def run() -> None:
        limits = TimeLimits()
        with limits.limit(50) as outer:
            with limits.stand_still():
                assert outer.deadline == math.inf
                with limits.limit(20) as inner, limits.stand_still():
                    assert inner.deadline == math.inf
                with limits.limit(30) as later:
                    assert later.deadline == math.inf
                assert outer.deadline == math.inf
            now = asyncio.get_running_loop().time()
            assert now < outer.deadline <= now + 50

    asyncio.run(run())


@pytest.mark.parametrize("revision", REVISIONS)
def test_resources_and_prompts_are_listed_and_read(workspace: Path, revision: str) -> None:
    tools = pack(revision)

    async def read_all(client: McpClient) -> None:
        assert await client.list_resources() == [
            McpResource("docs://a", "a", "A", "The first", "text/plain", 3),
            McpResource("docs://b", "b"),
        ]
        assert await client.list_resource_templates() == [
            McpResourceTemplate("docs://{name}", "any", media_type="text/plain")
        ]
        assert await client.read_resource("docs://a") == (
            ContentBlock("text", "text/plain", text="one\n"),
            ContentBlock("image", "image/png", data="aGk="),
        )
        arguments = (McpPromptArgument("who", "Whom to greet", required=True), McpPromptArgument("how"))
        assert await client.list_prompts() == [McpPrompt("greet", "Greet", "Greets", arguments)]
        assert await client.get_prompt("greet", {"who": "Ann"}) == [
            TextMessage("user", [ContentBlock("text", text="Greet Ann")]),
            TextMessage("assistant", [ContentBlock("image", "image/png", data="aGk=")]),
        ]
        with pytest.raises(ToolFailed, match="there is no such resource"):
            await client.read_resource("docs://none")

    async def run() -> None:
        context = ToolkitContext(workspace, SecurityPolicy(default="allow"))
        async with ToolContext.standalone(context) as ctx:
            await read_all(await tools.client(ctx))

    asyncio.run(run())
