"""Strict mode by the rules of each provider: what Anthropic, Bedrock and LangChain's models are sent, and what comes back."""

from __future__ import annotations

import asyncio
import dataclasses
from types import ModuleType
from typing import Any

import anthropic as sdk
import pytest

from tests.adapters.loopback import Answer, serve
from tests.adapters.strict.judged import outside_anthropics_subset
from tests.projects import REPOSITORY
from toolkit import JsonObject, QueryOptions, QueryResult, ToolDefinition
from toolkit.adapters import anthropic, bedrock, langchain
from toolkit.adapters.strict import ANTHROPIC, BEDROCK, StrictRules, check_strict, to_strict
from toolkit.schema.spec_files import load_specs
from toolkit.wire.codec import from_json, to_json
from toolkit.wire.definition import alias


def tool(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or [], **more}


TEXT = {"type": "string"}
PARAMETERS = tool(
    {
        "path": {"type": "string", "minLength": 1},
        "lines": {"type": ["integer", "null"], "minimum": 1, "default": 10},
        "headers": {"type": "object", "additionalProperties": TEXT},
    },
    ["path"],
)
TOOL = ToolDefinition("files.read", "Reads.", JsonObject(PARAMETERS))
OPEN = ToolDefinition("open", "Takes anything.", JsonObject(tool({"x": {}})))
SAID = {"path": "a", "lines": None, "headers": [{"key": "k", "value": "v"}]}
MEANT = {"path": "a", "lines": None, "headers": {"k": "v"}}

# The schema of one property, and what Anthropic is sent for it.
FORMS: dict[str, tuple[Any, Any]] = {
    "a limit is told": ({"type": "integer", "minimum": 1}, {"type": "integer", "description": "(minimum: 1)"}),
    "a length is told": ({"type": "string", "minLength": 1}, {"type": "string", "description": "(minLength: 1)"}),
    "a list that is not empty": ({"type": "array", "items": TEXT, "minItems": 1}, {"type": "array", "items": TEXT, "minItems": 1}),
    "more items are told": ({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 3}, {"type": "array", "items": TEXT, "description": "(minItems: 2; maxItems: 3)"}),
    "an address": ({"type": "string", "format": "uri"}, {"type": "string", "format": "uri"}),
    "a plain pattern": ({"type": "string", "pattern": "^[a-z]{2,8}$"}, {"type": "string", "pattern": "^[a-z]{2,8}$"}),
    "a word boundary is told": ({"type": "string", "pattern": r"\bx\b"}, {"type": "string", "description": r'(pattern: "\\bx\\b")'}),
    "a large count is told": ({"type": "string", "pattern": "^.{1,500}$"}, {"type": "string", "description": '(pattern: "^.{1,500}$")'}),
    "null stays null": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "two equal places": ({"type": "array", "prefixItems": [TEXT, TEXT], "minItems": 2, "maxItems": 2}, {"type": "object", "properties": {"item_1": TEXT, "item_2": TEXT}, "required": ["item_1", "item_2"], "additionalProperties": False, "description": "(a list, sent as an object with one property for each position)"}),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_forms(case: str) -> None:
    given, sent = FORMS[case]
    receipt = to_strict(tool({"a": given}), ANTHROPIC)
    assert receipt.schema == tool({"a": sent}, additionalProperties=False), "and it may still be left out"
    assert check_strict(receipt.schema, ANTHROPIC) == []
    assert outside_anthropics_subset(receipt.schema) == []
    assert receipt.decode({}) == {}


def test_bedrock_is_told_of_patterns() -> None:
    receipt = to_strict(tool({"a": {"type": "string", "pattern": "^a$"}}), BEDROCK)
    assert receipt.schema["properties"]["a"] == {"type": "string", "description": '(pattern: "^a$")'}


TREE = {**tool({"t": {"$ref": "#/$defs/T"}}), "$defs": {"T": tool({"next": {"$ref": "#/$defs/T"}})}}


@pytest.mark.parametrize(
    ("schema", "pointer", "why"),
    [
        (TREE, "/$defs/T", "contains itself"),
        (tool({"children": {"type": "array", "items": {"$ref": "#"}}}), "", "contains itself"),
        (tool({f"p{n}": TEXT for n in range(25)}), "", "25 properties that are not required"),
        (
            tool({f"p{n}": {"type": ["string", "null"]} for n in range(17)}, [f"p{n}" for n in range(17)]),
            "",
            "17 schemas",
        ),
        (tool({"a": {}}), "/properties/a", "any value"),
    ],
)
def test_what_is_outside_the_subset_is_sent_as_it_is(schema: dict[str, Any], pointer: str, why: str) -> None:
    receipt = to_strict(schema, ANTHROPIC)
    [problem] = receipt.problems
    assert (problem.pointer, receipt.schema) == (pointer, schema)
    assert why in problem.why
    for adapter in (anthropic, bedrock):
        asked = adapter.encode_tools([ToolDefinition("f", "F.", JsonObject(schema))], strict=True)
        assert asked == adapter.encode_tools([ToolDefinition("f", "F.", JsonObject(schema))]), "not even the flag"


@pytest.mark.parametrize("rules", [ANTHROPIC, BEDROCK])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        tool({"a": {"type": "integer", "minimum": 1}}, additionalProperties=False),
        tool({"a": {"type": "array", "items": TEXT, "minItems": 2}}, additionalProperties=False),
        tool({"a": {"type": "array", "items": TEXT, "maxItems": 2}}, additionalProperties=False),
        tool({"a": {"type": "string", "pattern": r"(?=x)"}}, additionalProperties=False),
        tool({"a": TEXT}, ["a", "a"], additionalProperties=False),
        tool({"a": TEXT}, ["b"], additionalProperties=False),
        tool({"a": {"$ref": "#"}}, additionalProperties=False),
    ],
)
def test_the_checker_finds_what_is_outside(schema: dict[str, Any], rules: StrictRules) -> None:
    assert check_strict(schema, rules)


def test_two_forms_with_optional_properties_can_be_the_same_answer() -> None:
    """``{}`` fits both, and the two are read in different ways: the receipt says which one counts."""
    maps = {"type": "object", "additionalProperties": TEXT}
    either = {"anyOf": [tool({"a": maps}, additionalProperties=False), tool({"b": maps}, additionalProperties=False)]}
    [note] = [note for note in to_strict(tool({"x": either}), ANTHROPIC).notes if note.keyword == "anyOf"]
    assert note.effect == "reshaped"
    apart = {
        "anyOf": [tool({"a": maps}, ["a"], additionalProperties=False), tool({"b": maps}, additionalProperties=False)]
    }
    assert [note for note in to_strict(tool({"x": apart}), ANTHROPIC).notes if note.keyword == "anyOf"] == []


# -- requests ------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["anthropic", "bedrock"])
def adapter(request: pytest.FixtureRequest) -> ModuleType:
    return {"anthropic": anthropic, "bedrock": bedrock}[request.param]


def parts(adapter: Any, sent: dict[str, Any]) -> tuple[Any, Any]:
    """The schema and the flag."""
    if adapter is anthropic:
        return sent["input_schema"], sent.get("strict")
    if adapter is langchain:
        return sent["function"]["parameters"], sent["function"].get("strict")
    return sent["toolSpec"]["inputSchema"]["json"], sent["toolSpec"].get("strict")


def answer(adapter: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if adapter is anthropic:
        content = [{"type": "tool_use", "id": "c1", "name": name, "input": arguments, "caller": {"type": "direct"}}]
        return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    if adapter is langchain:
        return {"type": "ai", "data": {"type": "ai", "content": "", "tool_calls": [{"name": name, "args": arguments, "id": "c1", "type": "tool_call"}]}}  # fmt: skip
    return {"stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": name, "input": arguments}}]}}}  # fmt: skip


@pytest.mark.parametrize("adapter", [anthropic, bedrock, langchain], ids=["anthropic", "bedrock", "langchain"])
def test_calls_come_back_in_the_form_of_the_tool(adapter: Any) -> None:
    schema, flag = parts(adapter, adapter.encode_tools([TOOL], strict=True)[0])
    assert flag is True
    assert schema["properties"]["headers"] != PARAMETERS["properties"]["headers"]
    heard = adapter.decode_response(answer(adapter, alias("files.read"), SAID))
    calls = adapter.decode_strict_calls(heard.tool_calls, [OPEN, TOOL], True)

    assert [call.arguments for call in calls] == [MEANT]
    history = adapter.encode_messages([dataclasses.replace(heard, tool_calls=calls).message()])
    assert history == adapter.encode_messages([heard.message()]), "the model sees its call as it wrote it"
    stored = from_json(to_json([dataclasses.replace(heard, tool_calls=calls).message()]))
    assert adapter.encode_messages(stored) == history
    assert adapter.decode_strict_calls(heard.tool_calls, [TOOL]) == list(heard.tool_calls), "nobody asked for it"


@pytest.mark.parametrize("adapter", [anthropic, bedrock, langchain], ids=["anthropic", "bedrock", "langchain"])
def test_what_was_sent_before_is_sent_again_as_it_was(adapter: Any) -> None:
    schemas: list[dict[str, Any]] = [PARAMETERS, to_strict(PARAMETERS, ANTHROPIC).schema, {"type": "object"}]
    for parameters in schemas:
        definition = ToolDefinition("f", "F.", JsonObject(parameters))
        [raw] = adapter.encode_tools([definition])
        inner = raw.get("toolSpec") or raw.get("function") or raw
        inner["strict"] = True
        decoded = adapter.decode_tools([raw])
        assert adapter.encode_tools(decoded) == [raw]
        assert adapter.encode_tools(from_json(to_json(decoded)), strict=True) == [raw]


def test_a_definition_says_for_itself(adapter: Any) -> None:
    for said, asked, expected in [(True, None, True), (False, True, False), (None, True, True), (None, None, None)]:
        _, flag = parts(adapter, adapter.encode_tools([dataclasses.replace(TOOL, strict=said)], strict=asked)[0])
        assert flag is expected


def many(count: int, properties: dict[str, Any], required: list[str]) -> list[ToolDefinition]:
    return [ToolDefinition(f"t{n}", "T.", JsonObject(tool(properties, required))) for n in range(count)]


@pytest.mark.parametrize(
    ("definitions", "strict"),
    [
        (many(22, {"a": TEXT}, ["a"]), 20),
        (many(9, {"a": TEXT, "b": TEXT, "c": TEXT}, []), 8),
        (many(5, {"a": {"type": ["string", "null"]}, "b": {"anyOf": [TEXT, {"type": "integer"}]}, "c": {"type": ["integer", "null"]}, "d": {"type": ["boolean", "null"]}}, ["a", "b", "c", "d"]), 4),
    ],
    ids=["tools", "optional properties", "unions"],
)  # fmt: skip
def test_a_request_stays_within_its_limits(adapter: Any, definitions: list[ToolDefinition], strict: int) -> None:
    """The first tools get strict mode; the calls of each are read as it was sent."""
    flags = [parts(adapter, sent)[1] for sent in adapter.encode_tools(definitions, strict=True)]
    assert flags == [True] * strict + [None] * (len(definitions) - strict)


def test_properties_with_a_default_are_asked_for_where_there_is_no_room(adapter: Any) -> None:
    """They are required then, so that more tools have strict mode; a default that is given means what it meant."""
    shown = {"type": "integer", "default": 3}
    definitions = many(9, {"a": shown, "b": shown, "c": TEXT}, [])
    sent = [parts(adapter, one) for one in adapter.encode_tools(definitions, strict=True)]
    assert [flag for _, flag in sent] == [True] * 9
    assert {tuple(schema["required"]) for schema, _ in sent} == {("a", "b")}
    assert {
        tuple(parts(adapter, one)[0]["required"]) for one in adapter.encode_tools(definitions[:8], strict=True)
    } == {()}
    [large] = adapter.encode_tools([ToolDefinition("l", "L.", JsonObject(tool(dict.fromkeys(map(str, range(30)), shown))))], strict=True)  # fmt: skip
    assert parts(adapter, large)[1] is True
    wrong = {"type": "integer", "default": "x"}
    assert to_strict(tool({"a": wrong}), ANTHROPIC.leaner()).schema["required"] == [], "no value for it"


def test_calls_of_a_tool_without_room_are_read_as_they_are(adapter: Any) -> None:
    first = many(20, {"a": TEXT}, ["a"])
    for definitions, expected in ([TOOL, *first], MEANT), ([*first, TOOL], SAID):
        heard = adapter.decode_response(answer(adapter, alias("files.read"), SAID))
        [call] = adapter.decode_strict_calls(heard.tool_calls, definitions, True)
        assert call.arguments == expected


def test_all_our_own_tools_are_within_the_subset() -> None:
    specs = load_specs([REPOSITORY / "toolkit" / "builtin"], base=REPOSITORY)
    # Those that a default can offer: a request has room for twenty strict tools.
    offered = [spec for spec in specs if not spec.must_be_named]
    definitions = [ToolDefinition(spec.wire_name, "", JsonObject({**spec.input_schema})) for spec in offered]
    for adapter in (anthropic, bedrock):
        assert {parts(adapter, sent)[1] for sent in adapter.encode_tools(definitions, strict=True)} == {True}
    for spec in specs:
        for rules in (ANTHROPIC, BEDROCK):
            receipt = to_strict(spec.input_schema, rules)
            assert receipt.problems == (), spec.wire_name
            assert outside_anthropics_subset(receipt.schema) == [], spec.wire_name


@pytest.mark.parametrize("kind", ["query", "async query"])
def test_the_driver_asks_in_strict_mode_and_reads_what_comes(kind: str) -> None:
    with serve(Answer(answer(anthropic, alias("files.read"), SAID))) as server:
        result = queried(server.url, kind)

    assert [call.arguments for call in result.tool_calls] == [MEANT]
    [sent] = server.requests[0].body["tools"]
    assert sent["strict"] is True
    assert outside_anthropics_subset(sent["input_schema"]) == []


def queried(url: str, kind: str) -> QueryResult:
    settings: Any = {"api_key": "k", "base_url": url, "max_retries": 0}
    options = QueryOptions(tools=[TOOL], strict=True)

    async def later() -> QueryResult:
        async with sdk.AsyncAnthropic(**settings) as client:
            return await anthropic.AsyncAnthropicDriver(client, model="m").query("hello", options)

    if kind == "async query":
        return asyncio.run(later())
    with sdk.Anthropic(**settings) as client:
        return anthropic.AnthropicDriver(client, model="m").query("hello", options)
