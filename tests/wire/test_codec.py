"""The neutral format as JSON and back, and aliases of tool names."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    NativeChoice,
    NativeTool,
    QueryOptions,
    QueryResult,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
    Usage,
)
from toolkit.wire import (
    AssistantToolCallMessage,
    Conversation,
    OutputSchema,
    Reasoning,
    alias,
    from_json,
    to_json,
)

CALL = ToolCall("1", "add", {"a": 1, "$kind": "tool_call", "$plain": 1}, {"gemini": {"signature": "x"}}, '{"a":1}')
VALUES: list[Any] = [
    CALL,
    ToolResult("1", "add", "data", {"sum": 3, "$kind": "x"}, "ref"),
    ToolResult("1", "add", "data", None),
    ToolResultMessage(ToolResult("1", "add", "error", "no")),
    TextMessage("user", [ContentBlock("text", text="hi"), ContentBlock("image", "image/png", data="AA==")]),
    AssistantToolCallMessage("so", [CALL, CALL], {"x": [1, None, True]}),
    ToolDefinition("add", "Adds.", JsonObject({"type": "object"}), strict=True),
    NativeTool("openai_responses", JsonObject({"type": "web_search"})),
    NamedTool("add"),
    NativeChoice("anthropic", {"type": "auto", "disable_parallel_tool_use": True}),
    QueryOptions([NativeTool("x", JsonObject({}))], NamedTool("add"), [TextMessage("user", "hi")], extra={"n": 2}),
    QueryOptions(
        parallel_calls=False, reasoning="low", cache_after=("tools",), output=OutputSchema("o", JsonObject({}))
    ),
    QueryOptions(reasoning=4096),
    ToolDefinition("rare", "R.", JsonObject({}), defer_loading=True),
    QueryResult(
        "hi", [CALL], "tool_calls", Usage(1, 2), {"openai_chat": {}}, (Reasoning("hm"), Reasoning(is_hidden=True))
    ),
    ContentBlock("document", "application/pdf", file_id="f1", filename="a.pdf", provider="openai_responses"),
    Conversation([TextMessage("user", "hi"), TextMessage("assistant", "hello")], "stop", Usage(1, 2), 1),
    [TextMessage("system", "be short"), [1, {"a": None}]],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_comes_back_from_json(value: Any) -> None:
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["$kind", "$plain", "a", ""]), inner)))  # fmt: skip
@pytest.mark.slow
def test_user_data_is_never_taken_for_our_own_keys(value: Any) -> None:
    assert from_json(json.loads(json.dumps(to_json(ToolResult("1", "n", "data", value))))).value == value


@pytest.mark.parametrize("data", [{"$kind": "os.system"}, {"$kind": 1}, {"$kind": ["x"]}])
def test_refuses_unknown_kinds(data: Any) -> None:
    with pytest.raises(ValueError, match="unknown kind of value in the neutral format"):
        from_json(data)


def test_refuses_what_is_not_json() -> None:
    with pytest.raises(TypeError, match="a value of type set cannot be written as JSON"):
        to_json({"a": {1}})


@given(st.text(min_size=1, max_size=128))
def test_every_alias_is_a_name_that_providers_take(name: str) -> None:
    given = alias(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", given)
    assert (given == name) == (re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) is not None)
    assert alias(given) == given


def test_lists_and_tuples_stay_distinct_and_errors_keep_their_text() -> None:
    for value in (
        QueryResult("x"),
        QueryResult("x", []),
        ToolResult("1", "a", "multimodal", (ContentBlock("text", text="x"),)),
    ):
        assert from_json(json.loads(json.dumps(to_json(value)))) == value
    failed = QueryResult("", finish_reason="error", metadata={"error": ValueError("no luck")})
    assert from_json(json.loads(json.dumps(to_json(failed)))).metadata == {"error": "ValueError: no luck"}


def test_the_response_of_an_sdk_is_not_stored() -> None:
    answer = QueryResult("x", raw=object())
    assert from_json(json.loads(json.dumps(to_json(answer)))) == answer
    assert from_json(to_json(answer)).raw is None


def test_the_package_exports_every_name_of_the_format() -> None:
    import toolkit
    from toolkit import wire

    assert all(getattr(wire, name) is not None for name in dir(wire) if not name.startswith("_"))
    assert wire.ToolCall is toolkit.ToolCall
