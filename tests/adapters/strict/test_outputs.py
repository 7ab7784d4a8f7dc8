"""The schema of a structured output uses the same room of a request to Anthropic as its strict tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, create_model

from tests.adapters.clients import PROVIDERS
from tests.adapters.loopback import Answer, serve
from toolkit import JsonObject, QueryOptions, ToolDefinition
from toolkit.errors import OutputError

ANTHROPIC = PROVIDERS["anthropic"]


def model_with(optional: int, default: Any, kind: Any = int) -> type[BaseModel]:
    fields: dict[str, Any] = {f"p{number}": (kind, default) for number in range(optional)}
    return create_model("Report", **fields)


def tool_with(name: str, optional: int) -> ToolDefinition:
    properties = {f"p{number}": {"type": "integer"} for number in range(optional)}
    return ToolDefinition(name, "Do it.", JsonObject({"type": "object", "properties": properties}))


def ask(model: type[BaseModel], *tools: ToolDefinition, answer: Any) -> tuple[Any, Any]:
    """The typed answer, and the body of the request."""
    with serve(Answer(answer)) as server:
        output = ANTHROPIC.query_output(server.url, model, is_async=False, options=QueryOptions(tools, strict=True))
    [asked] = server.requests
    return output, asked.body


def test_tools_get_what_the_output_leaves() -> None:
    output, body = ask(model_with(20, 0), tool_with("a", 4), tool_with("b", 1), answer=ANTHROPIC.text("{}"))
    schema = body["output_config"]["format"]["schema"]
    optional = len(schema["properties"]) - len(schema["required"])
    strict = [tool["name"] for tool in body["tools"] if tool.get("strict")]
    assert (optional, strict) == (20, ["a"])
    assert output.value.model_dump() == {f"p{number}": 0 for number in range(20)}


def test_calls_are_read_as_the_tools_were_sent() -> None:
    """The second tool has a map, which strict mode writes as pairs: there is no room for it, so nothing is turned back."""
    tags = {"type": "object", "additionalProperties": {"type": "string"}}
    tagged = ToolDefinition("b", "Do it.", JsonObject({"type": "object", "properties": {"tags": tags}}))
    pairs = [{"key": "a", "value": "b"}]
    use = {"type": "tool_use", "id": "c1", "name": "b", "input": {"tags": pairs}}
    answer = {**ANTHROPIC.text(""), "content": [use], "stop_reason": "tool_use"}
    with pytest.raises(OutputError) as raised:
        ask(model_with(24, 0), tagged, answer=answer)
    [call] = raised.value.result.tool_calls
    assert call.arguments == {"tags": pairs}


def test_an_output_that_is_too_large_asks_for_properties_with_a_default() -> None:
    output, body = ask(model_with(25, 7), answer=ANTHROPIC.text(json.dumps({f"p{number}": 1 for number in range(25)})))
    schema = body["output_config"]["format"]["schema"]
    assert len(schema["required"]) == 25
    assert output.value.model_dump() == {f"p{number}": 1 for number in range(25)}


def test_an_output_that_can_not_be_made_small_enough_is_refused_with_the_limit() -> None:
    model = model_with(17, None, int | None)
    with serve() as server, pytest.raises(OutputError) as raised:
        ANTHROPIC.query_output(server.url, model, is_async=False)
    assert server.requests == []
    assert "17 schemas with 'anyOf' or several types: at most 16 are allowed" in str(raised.value)
