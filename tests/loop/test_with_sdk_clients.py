"""Every provider's driver over its SDK's client: a run that goes on from its JSON sends what it would have sent anyway."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic as anthropic_sdk
import ollama as ollama_sdk
import openai as openai_sdk
import pytest
from google import genai

from tests.adapters.anthropic import test_example as anthropic
from tests.adapters.gemini import test_example as gemini
from tests.adapters.loopback import Answer, serve
from tests.adapters.ollama import test_example as ollama
from tests.adapters.openai_chat import test_example as openai_chat
from tests.adapters.openai_responses import test_example as openai_responses
from toolkit import (
    ChatMessage,
    Conversation,
    Driver,
    QueryResult,
    SecurityPolicy,
    ToolkitContext,
    create_agent_toolkit,
    run,
)
from toolkit.adapters.anthropic import AnthropicDriver
from toolkit.adapters.gemini import GeminiDriver
from toolkit.adapters.ollama import OllamaDriver
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.adapters.openai_responses import OpenAIResponsesDriver, decode_messages


@dataclass(frozen=True, slots=True)
class Provider:
    """A driver for a server, and two turns of a model: each reads a file, and one id or none is used for both calls."""

    open: Callable[[str, ExitStack], Driver]
    turn: Answer
    end: Answer


PROVIDERS = {
    "openai_chat": Provider(
        lambda url, stack: OpenAIChatDriver(
            stack.enter_context(openai_sdk.OpenAI(api_key="k", base_url=url)), model="m"
        ),
        openai_chat.says("tool_calls", None, openai_chat.reads("call_0", '{"path": "version.txt"}')),
        openai_chat.says("stop", "It is 1.4.2."),
    ),
    "openai_responses": Provider(
        lambda url, stack: OpenAIResponsesDriver(
            stack.enter_context(openai_sdk.OpenAI(api_key="k", base_url=url)), model="m"
        ),
        openai_responses.says(openai_responses.REASONING, openai_responses.reads("call_0", '{"path": "version.txt"}')),
        openai_responses.says(openai_responses.ANSWER),
    ),
    "anthropic": Provider(
        lambda url, stack: AnthropicDriver(
            stack.enter_context(anthropic_sdk.Anthropic(api_key="k", base_url=url)), model="m"
        ),
        anthropic.says("tool_use", anthropic.THINKING, anthropic.reads("toolu_0", "version.txt")),
        anthropic.says("end_turn", anthropic.text("It is 1.4.2.")),
    ),
    "gemini": Provider(
        lambda url, stack: GeminiDriver(
            stack.enter_context(genai.Client(api_key="k", http_options={"base_url": url})), model="gemini-3-flash"
        ),
        gemini.says(gemini.reads("version.txt", thoughtSignature="c2ln")),
        gemini.says({"text": "It is 1.4.2."}),
    ),
    "ollama": Provider(
        lambda url, stack: OllamaDriver(stack.enter_context(ollama_sdk.Client(host=url)), model="m"),
        ollama.says("stop", "let me see", "version.txt"),
        ollama.says("stop", "It is 1.4.2."),
    ),
}


def converse(
    provider: Provider, workspace: Path, prompt: str | Conversation, *answers: Answer, **hooks: Any
) -> tuple[Conversation, list[str], list[Any]]:
    """The conversation, its JSON after each step, and the requests."""
    saved: list[str] = []
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow"})
    with (
        ExitStack() as stack,
        serve(*answers) as server,
        create_agent_toolkit(ToolkitContext(workspace, policy)) as toolkit,
    ):
        driver = provider.open(server.url, stack)
        made = run(driver, toolkit, prompt, save=lambda one: saved.append(json.dumps(one.to_json())), **hooks)
    return made, saved, [request.body for request in server.requests]


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_run_that_goes_on_from_its_json_sends_the_same(tmp_path: Path, name: str) -> None:
    provider = PROVIDERS[name]
    (tmp_path / "version.txt").write_text("1.4.2\n")
    script = provider.turn, provider.turn, provider.end
    whole, saved, requests = converse(provider, tmp_path, "Which version is it?", *script)

    assert whole.answer == "It is 1.4.2."
    assert [len(requests), len(saved)] == [3, 5]
    for at, text in enumerate(saved):
        before = Conversation.from_json(json.loads(text))
        answers = script[at // 2 + 1 :]
        again, _, sent = converse(provider, tmp_path, before, *answers)
        assert again.messages == whole.messages
        assert sent == requests[at // 2 + 1 :]


def test_an_approval_that_responses_waits_for_is_sent_after_the_results_of_the_turn(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    request = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "search",
        "arguments": "{}",
        "server_label": "docs",
    }
    turn = openai_responses.says(openai_responses.reads("call_0", '{"path": "version.txt"}'), request)

    def approve(result: QueryResult) -> list[ChatMessage]:
        waiting: Any = result.metadata["openai_responses"]
        return decode_messages(
            [
                {"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": True}
                for item in waiting["needs_action"]
            ]
        )

    provider = PROVIDERS["openai_responses"]
    conversation, _, requests = converse(provider, tmp_path, "Go.", turn, provider.end, on_action=approve)
    assert conversation.answer == "It is 1.4.2."
    assert [item.get("type", "message") for item in requests[1]["input"]] == [
        *("message", "function_call", "mcp_approval_request", "function_call_output", "mcp_approval_response"),
    ]


IDS = {
    "openai_chat": lambda body: [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())],
    "openai_responses": lambda body: [item["call_id"] for item in body["input"] if item.get("type") == "function_call"],
    "anthropic": lambda body: [
        block["id"]
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_use"
    ],
}


@pytest.mark.parametrize("name", IDS)
def test_ids_that_a_server_sends_again_are_sent_back_distinct(tmp_path: Path, name: str) -> None:
    provider = PROVIDERS[name]
    (tmp_path / "version.txt").write_text("1.4.2\n")
    script = provider.turn, provider.turn, provider.end
    *_, requests = converse(provider, tmp_path, "Which version is it?", *script)
    first, second = IDS[name](requests[-1])
    assert second == f"{first}_1"
    text = json.dumps(requests[-1])
    assert text.count(f'"{first}"') == text.count(f'"{second}"') == 2, "each id is that of one call and of its result"
