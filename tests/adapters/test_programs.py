"""Programs as Anthropic and OpenAI have them: tools that their programs call, and a program that comes as plain text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.clients import PROVIDERS
from tests.adapters.loopback import Answer, serve
from tests.adapters.sdk_types import refusals
from tests.adapters.settings import TOOL
from tests.adapters.traffic import Exchange, exchanges
from toolkit import (
    ChatMessage,
    JsonObject,
    NamedTool,
    NativeTool,
    QueryOptions,
    SecurityPolicy,
    ToolCall,
    ToolkitContext,
    ToolResult,
    ToolResultMessage,
    create_agent_toolkit,
    run,
)
from toolkit.adapters import anthropic, openai_chat, openai_responses

ADAPTERS: dict[str, Any] = {"anthropic": anthropic, "openai_responses": openai_responses}
EXECUTION = "code_execution_20260120"
CALLERS = {
    ("anthropic", "programs"): [EXECUTION],
    ("anthropic", "both"): ["direct", EXECUTION],
    ("openai_responses", "programs"): ["programmatic"],
    ("openai_responses", "both"): ["direct", "programmatic"],
}
RUNNERS: dict[str, dict[str, object]] = {
    "anthropic": {"type": EXECUTION, "name": "code_execution"},
    "openai_responses": {"type": "programmatic_tool_calling"},
}
ANSWERED_BY_PROGRAM = {"type": "program", "caller_id": "call_p"}


def sent(provider: str, options: QueryOptions, prompt: Any = "hi") -> Any:
    """What the SDK's client sends."""
    one = PROVIDERS[provider]
    with serve(Answer(one.text("ok"))) as server, one.open(server.url) as driver:
        assert driver.query(prompt, options).finish_reason == "stop"
        return server.requests[0].body


# -- who may call a tool ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("provider", "callers"), CALLERS)
def test_a_tool_for_programs_says_so_and_the_driver_adds_what_runs_them(provider: str, callers: Any) -> None:
    tools = sent(provider, QueryOptions(tools=[TOOL, replace(TOOL, name="g", callers=callers)]))["tools"]
    assert tools[0] == RUNNERS[provider]
    assert [tool.get("allowed_callers") for tool in tools[1:]] == [None, CALLERS[provider, callers]]
    assert refusals(provider, "tools", tools) == []


@pytest.mark.parametrize(("provider", "callers"), CALLERS)
def test_a_definition_says_it_there_and_back(provider: str, callers: Any) -> None:
    adapter = ADAPTERS[provider]
    [raw] = adapter.encode_tools([replace(TOOL, callers=callers)])
    [back] = adapter.decode_tools([raw])
    assert back.callers == callers
    [edited] = adapter.encode_tools([replace(back, callers="model")])
    assert "allowed_callers" not in edited
    for words in (["direct"], [], None):
        [again] = adapter.decode_tools([{**raw, "allowed_callers": words}])
        assert (again.callers, adapter.encode_tools([again])) == ("model", [{**raw, "allowed_callers": words}])


@pytest.mark.parametrize("provider", RUNNERS)
def test_what_runs_programs_is_not_added_twice(provider: str) -> None:
    own = NativeTool(provider, JsonObject(RUNNERS[provider]))
    tools = sent(provider, QueryOptions(tools=[replace(TOOL, callers="both"), own]))["tools"]
    assert [tool for tool in tools if tool.get("type") == RUNNERS[provider]["type"]] == [RUNNERS[provider]]


def test_tools_name_the_version_of_the_callers_own_tool() -> None:
    own = NativeTool("anthropic", JsonObject({"type": "code_execution_20260521", "name": "code_execution"}))
    _, tool = anthropic.encode_tools([own, replace(TOOL, callers="programs")])
    assert tool["allowed_callers"] == ["code_execution_20260521"]
    assert refusals("anthropic", "tools", [tool]) == []


def test_an_older_version_stays_as_it_came() -> None:
    raw = {"name": "f", "input_schema": {"type": "object"}, "allowed_callers": ["code_execution_20250825"]}
    [tool] = anthropic.decode_tools([raw])
    assert anthropic.encode_tools([tool]) == [raw]
    tools = sent("anthropic", QueryOptions(tools=[tool]))["tools"]
    assert tools == [{"type": "code_execution_20250825", "name": "code_execution"}, raw]


@pytest.mark.parametrize("provider", ["openai_chat", "gemini", "ollama"])
def test_other_providers_offer_the_tool_to_the_model(provider: str) -> None:
    plain, both = (QueryOptions(tools=[replace(TOOL, callers=callers)]) for callers in ("model", "both"))
    assert sent(provider, plain) == sent(provider, both)


# -- calls of programs -----------------------------------------------------------------------------------------------------


def recorded(corpus: Path, file: str) -> list[Exchange]:
    found = [one for one in exchanges(corpus, file) if "programmatic-tool-calling" in one.cassette]
    assert len(found) == 2
    return found


def test_calls_of_anthropics_programs_go_back_as_they_came(corpus: Path) -> None:
    for exchange in recorded(corpus, "anthropic"):
        answer = (
            anthropic.decode_response(exchange.response) if not exchange.streaming else streamed(anthropic, exchange)
        )
        turn, results = anthropic.encode_messages([answer.message(), *answers(answer.tool_calls)])
        callers = [block["caller"]["type"] for block in turn["content"] if block["type"] == "tool_use"]
        assert set(callers) == {"code_execution_20250825"}
        assert {block["type"] for block in results["content"]} == {"tool_result"}
        assert refusals("anthropic", "messages", [turn, results]) == []


def test_calls_of_openais_programs_go_back_as_they_came_and_their_results_name_the_program(corpus: Path) -> None:
    for exchange in recorded(corpus, "openai_responses"):
        answer = (
            openai_responses.decode_response(exchange.response)
            if not exchange.streaming
            else streamed(openai_responses, exchange)
        )
        [call] = answer.tool_calls
        *items, result = openai_responses.encode_messages([answer.message(), *answers([call])])
        calls = [item for item in items if item["type"] == "function_call"]
        assert result["caller"] == calls[0]["caller"]
        assert result["caller"]["type"] == "program"
        assert refusals("openai_responses", "messages", [*items, result]) == []


def streamed(adapter: Any, exchange: Exchange) -> Any:
    made = adapter.Accumulator()
    for event in exchange.events:
        made.feed(event)
    return made.result()


def answers(calls: Sequence[ToolCall]) -> list[ChatMessage]:
    return [ToolResultMessage(ToolResult(call.id, call.name, "text", "3")) for call in calls]


PROGRAM_TURN = [
    {"type": "program", "id": "p_1", "call_id": "call_p", "code": "text(await f({}))", "fingerprint": "x"},
    {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "caller": ANSWERED_BY_PROGRAM},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": "x", "caller": ANSWERED_BY_PROGRAM},
    {"type": "function_call_output", "call_id": "call_1", "output": "3", "caller": ANSWERED_BY_PROGRAM},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "4"},
    {"type": "program_output", "id": "o_1", "call_id": "call_p", "result": "3", "status": "completed"},
    {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": "3", "annotations": []}]},
]  # fmt: skip


def test_a_conversation_with_a_program_comes_back_item_by_item() -> None:
    messages = openai_responses.decode_messages(PROGRAM_TURN)
    assert openai_responses.encode_messages(messages) == PROGRAM_TURN
    assert refusals("openai_responses", "messages", PROGRAM_TURN) == []


def test_a_program_that_waits_gets_its_results_in_its_container() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    of_program = {**call, "caller": {"type": EXECUTION, "tool_id": "srvtoolu_1"}}
    for block, container in ((of_program, "c_1"), ({**call, "caller": {"type": "direct"}}, None), (call, None)):
        message = {
            **PROVIDERS["anthropic"].text(""),
            "content": [block],
            "stop_reason": "tool_use",
            "container": {"id": "c_1"},
        }
        answer = anthropic.decode_response(message)
        prompt = [answer.message(), *answers(answer.tool_calls)]
        body = sent("anthropic", QueryOptions(tools=[TOOL]), prompt)
        assert body.get("container") == container
        assert sent("anthropic", QueryOptions(extra={"container": "own"}), prompt)["container"] == "own"


# -- a program as plain text -----------------------------------------------------------------------------------------------

SOURCE = 'print("a\\tb")\n1 + 1'
TEXT_TOOL = replace(TOOL, name="run_program", text_argument="source")
CUSTOM_CALLS: dict[str, dict[str, Any]] = {
    "openai_chat": {"id": "call_1", "type": "custom", "custom": {"name": "run_program", "input": SOURCE}},
    "openai_responses": {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "run_program", "input": SOURCE},
}  # fmt: skip
CHOSEN = {
    "openai_chat": {"type": "custom", "custom": {"name": "run_program"}},
    "openai_responses": {"type": "custom", "name": "run_program"},
}


def calling(provider: str) -> dict[str, Any]:
    """The answer of a provider that calls the custom tool."""
    answer = PROVIDERS[provider].text("")
    if provider == "openai_responses":
        return {**answer, "output": [CUSTOM_CALLS[provider]]}
    message = {"role": "assistant", "content": None, "tool_calls": [CUSTOM_CALLS[provider]]}
    return {**answer, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


@pytest.mark.parametrize("provider", CUSTOM_CALLS)
def test_a_tool_that_takes_text_is_a_custom_tool(provider: str) -> None:
    body = sent(provider, QueryOptions(tools=[TEXT_TOOL, TOOL], tool_choice=NamedTool("run_program"), strict=True))
    assert [tool["type"] for tool in body["tools"]] == ["custom", "function"]
    assert body["tool_choice"] == CHOSEN[provider]
    assert refusals(provider, "tools", body["tools"]) == refusals(provider, "choice", body["tool_choice"]) == []
    assert sent(provider, QueryOptions(tools=[TEXT_TOOL, TOOL], tool_choice=NamedTool("f")))["tool_choice"]["type"] == "function"  # fmt: skip


@pytest.mark.parametrize("provider", CUSTOM_CALLS)
def test_its_text_is_the_argument_and_goes_back_as_text(provider: str) -> None:
    adapter: Any = {"openai_chat": openai_chat, "openai_responses": openai_responses}[provider]
    answer = adapter.decode_response(calling(provider))
    [call] = adapter.decode_strict_calls(answer.tool_calls, [TOOL, TEXT_TOOL], strict=True)
    assert (call.name, call.arguments) == ("run_program", {"source": SOURCE})
    first = adapter.encode_messages([replace(answer, tool_calls=[call]).message(), *answers([call])])
    assert first[0].get("tool_calls", [first[0]]) == [CUSTOM_CALLS[provider]]
    assert refusals(provider, "messages", first) == []
    changed = ToolCall(call.id, call.name, {"source": "2"}, call.metadata)
    second = json.dumps(adapter.encode_messages([replace(answer, tool_calls=[changed]).message()]))
    assert '"input": "2"' in second and "source" not in second


@pytest.mark.sandbox
@pytest.mark.parametrize("provider", CUSTOM_CALLS)
def test_a_program_that_comes_as_text_is_run(provider: str, tmp_path: Path) -> None:
    policy = SecurityPolicy(default="deny", tools={"run_program": "allow"})
    one = PROVIDERS[provider]
    (tmp_path / "workspace").mkdir()
    context = ToolkitContext(tmp_path / "workspace", policy, state_dir=tmp_path / "state")
    with (
        create_agent_toolkit(context) as toolkit,
        serve(Answer(calling(provider)), Answer(one.text("It is 2."))) as server,
        one.open(server.url) as driver,
    ):
        tools = [replace(tool, text_argument="source") for tool in toolkit.get_allowed_tools()]
        assert run(driver, toolkit, "What is 1 + 1?", options=QueryOptions(tools=tools)).answer == "It is 2."
        sent_back = json.dumps(server.requests[1].body)
    assert json.dumps("output:\na\tb\nvalue: 2")[1:-1] in sent_back


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "ollama"])
def test_other_providers_get_json_schema(provider: str) -> None:
    assert sent(provider, QueryOptions(tools=[TEXT_TOOL])) == sent(
        provider, QueryOptions(tools=[replace(TEXT_TOOL, text_argument=None)])
    )
