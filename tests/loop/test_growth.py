"""A turn of a run costs the same however long the conversation is: messages that were checked and encoded stay so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import toolkit
from toolkit import (
    Conversation,
    QueryOptions,
    RunLimits,
    SecurityPolicy,
    TextMessage,
    ToolkitContext,
    ToolResult,
    ToolResultMessage,
    create_agent_toolkit,
    fit_history,
    run,
)
from toolkit.adapters.anthropic import AnthropicDriver
from toolkit.adapters.gemini import GeminiDriver
from toolkit.adapters.ollama import OllamaDriver
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.adapters.openai_responses import OpenAIResponsesDriver

OURS: Final = tuple(
    f"{Path(toolkit.__file__).parent / name}/" for name in ("adapters", "loop", "wire", "runtime/stores")
)
PATH: Final = {"path": "notes.txt"}
TURNS: Final = 40


class Client:
    """A client of an SDK, whose methods all answer with the next turn of a script. ``requests`` holds what was sent."""

    vertexai = False

    def __init__(self, *answers: Any) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers = list(answers)

    def __getattr__(self, name: str) -> Client:
        return self

    def __call__(self, **request: Any) -> Any:
        self.requests.append(request)
        return self.answers.pop(0)


def chat(id: str | None) -> Any:
    call = {"id": id, "type": "function", "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'}}
    message = {"role": "assistant", "content": "a moment", "tool_calls": [call] if id else []}
    return {"choices": [{"message": message, "finish_reason": "tool_calls" if id else "stop"}]}


def responses(id: str | None) -> Any:
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a moment"}]}
    call = {"type": "function_call", "call_id": id, "name": "read_file", "arguments": '{"path": "notes.txt"}'}
    return {"status": "completed", "output": [text, call] if id else [text]}


def anthropic(id: str | None) -> Any:
    text, call = (
        {"type": "text", "text": "a moment"},
        {"type": "tool_use", "id": id, "name": "read_file", "input": PATH},
    )
    return {
        "role": "assistant",
        "content": [text, call] if id else [text],
        "stop_reason": "tool_use" if id else "end_turn",
    }


def gemini(id: str | None) -> Any:
    text, call = {"text": "a moment"}, {"functionCall": {"name": "read_file", "args": PATH}}
    content = {"role": "model", "parts": [text, call] if id else [text]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


def ollama(id: str | None) -> Any:
    calls = [{"function": {"name": "read_file", "arguments": PATH}}] if id else []
    return {"message": {"role": "assistant", "content": "a moment", "tool_calls": calls}, "done_reason": "stop"}


@dataclass(frozen=True)
class Provider:
    """A driver over a client, how the provider writes a turn, and where its requests have the conversation."""

    driver: Callable[[Any], Any]
    turn: Callable[[str | None], Any]
    history: str = "messages"

    def script(self, *ids: str) -> Client:
        return Client(*map(self.turn, ids), self.turn(None))


PROVIDERS: Final = {
    "openai_chat": Provider(lambda client: OpenAIChatDriver(client, model="m"), chat),
    "openai_responses": Provider(lambda client: OpenAIResponsesDriver(client, model="m"), responses, "input"),
    "anthropic": Provider(lambda client: AnthropicDriver(client, model="m"), anthropic),
    "gemini": Provider(lambda client: GeminiDriver(client, model="gemini-3-pro"), gemini, "contents"),
    "ollama": Provider(lambda client: OllamaDriver(client, model="m"), ollama),
}
NAMES: Final = pytest.mark.parametrize("name", PROVIDERS)


def converse(workspace: Path, driver: Any, prompt: Any = "Read.", *, lines: int = 20, **options: Any) -> Conversation:
    (workspace / "notes.txt").write_text("n\u00f6ted\n" * lines)
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow"})
    with create_agent_toolkit(ToolkitContext(workspace, policy)) as tk:
        return run(driver, tk, prompt, limits=RunLimits(turns=None), **options)


class Work:
    """How often our code calls a function, of Python or of C, between two requests."""

    def __init__(self, client: Client) -> None:
        self.by_turn: list[int] = []
        self._calls = 0
        self._client = client

    def __getattr__(self, name: str) -> Work:
        return self

    @property
    def vertexai(self) -> bool:
        return False

    def __call__(self, **request: Any) -> Any:
        sys.setprofile(None)
        self.by_turn.append(self._calls)
        answer = self._client(**request)
        self._calls = 0
        sys.setprofile(self._count)
        return answer

    def _count(self, frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(OURS):
            self._calls += 1


@pytest.mark.parametrize("window", [None, 50_000], ids=["whole", "fitted"])
@NAMES
def test_a_turn_takes_as_many_steps_at_the_end_as_at_the_beginning(
    tmp_path: Path, name: str, window: int | None
) -> None:
    provider = PROVIDERS[name]
    work = Work(provider.script(*(f"call-{at:03}" for at in range(TURNS))))
    before = sys.getprofile()
    try:
        converse(tmp_path, provider.driver(work), options=QueryOptions(system="Be brief."), window=window)
    finally:
        sys.setprofile(before)
    # The first turns load modules and fill caches.
    steady = work.by_turn[5:]
    assert len(steady) == TURNS - 4
    assert max(steady) - min(steady) <= 2, steady


@NAMES
def test_a_request_of_a_run_is_that_of_its_conversation(tmp_path: Path, name: str) -> None:
    provider = PROVIDERS[name]
    long = "c" * 70
    client = provider.script("1", "1", long, "\ud800", long)
    options = QueryOptions(system="Be brief.", cache_after=("system", "messages"))
    saved: list[Conversation] = []
    converse(tmp_path, provider.driver(client), options=options, save=saved.append)
    runs = client.requests[1:]
    # After each answer but the last come results, and after them a request.
    asked = [conversation for _, conversation in list(pairwise(saved))[::2]]
    assert len(runs) == len(asked) == 5
    for request, conversation in zip(runs, asked, strict=True):
        client.answers.append(provider.turn(None))
        provider.driver(client).query(list(conversation.messages), options)
        assert request[provider.history] == client.requests[-1][provider.history]


@NAMES
def test_a_request_of_a_run_with_a_window_is_that_of_its_fitted_conversation(tmp_path: Path, name: str) -> None:
    provider, window = PROVIDERS[name], 1
    client = provider.script(*"12345678")
    saved: list[Conversation] = []
    # Each output takes about half of what all of them may take.
    converse(tmp_path, provider.driver(client), lines=2_000, window=window, save=saved.append)
    sent = [request[provider.history] for request in client.requests[1:]]
    assert len(sent) == 8
    assert "omitted here" in repr(sent[-1])
    for request, (_, conversation) in zip(sent, list(pairwise(saved))[::2], strict=True):
        client.answers.append(provider.turn(None))
        provider.driver(client).query(fit_history(conversation.messages, window))
        assert request == client.requests[-1][provider.history]


@NAMES
def test_messages_that_a_hook_edits_are_checked_and_encoded_again(tmp_path: Path, name: str) -> None:
    provider = PROVIDERS[name]
    client = provider.script("1", "2", "3")

    def edit(conversation: Conversation) -> None:
        messages: Any = conversation.messages
        if len(messages) == 5 and messages[2].result.value != "edited":
            messages[2] = replace(messages[2], result=replace(messages[2].result, value="edited"))
            messages[3:] = [
                TextMessage("user", "\ud800 go on"),
                ToolResultMessage(ToolResult("9", "done", "text", "lost")),
            ]

    made = converse(tmp_path, provider.driver(client), save=edit)
    values = [one.result.value for one in made.messages if isinstance(one, ToolResultMessage)]
    assert values[0] == "edited"
    assert "lost" not in values
    assert not any(isinstance(one, TextMessage) and one.content == "" for one in made.messages)
    sent = repr(client.requests[-1][provider.history])
    assert "edited" in sent
    assert "\ufffd go on" in sent
    assert "lost" not in sent


@NAMES
def test_a_turn_that_a_hook_replaces_with_a_users_text_leaves_no_trace(tmp_path: Path, name: str) -> None:
    provider = PROVIDERS[name]
    client = provider.script("1", "2", "3")
    edited: list[Any] = []

    def edit(conversation: Conversation) -> None:
        messages: Any = conversation.messages
        if len(messages) == 7 and not edited:
            # The third request has encoded the first turn, whose results Anthropic joins with this text.
            messages[3:] = [TextMessage("user", "try again")]
            edited.append(list(messages))

    converse(tmp_path, provider.driver(client), save=edit)
    request = client.requests[3]
    client.answers.append(provider.turn(None))
    provider.driver(client).query(edited[0])
    assert request[provider.history] == client.requests[-1][provider.history]
