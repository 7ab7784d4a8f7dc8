"""What each provider refuses, loses or moves, and that it is what their adapters and clients really do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import ollama
import pytest
from pydantic import ValidationError

from tests.corpus.specs import FILES, rows
from tests.projects import REPOSITORY
from toolkit import JsonObject, ToolDefinition
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.lint import TARGETS, Remark, Target, lint_for
from toolkit.adapters.strict import to_strict
from toolkit.cli.generate import Target as OnTheCommandLine
from toolkit.schema.spec_files import load_specs
from toolkit.wire.definition import alias

TEXT = {"type": "string"}


def remarks(target: Target, schema: Any, name: str = "tool", description: str = "Does it.") -> list[Remark]:
    return lint_for(target, ToolDefinition(name, description, JsonObject(schema)))


def brief(found: list[Remark]) -> list[tuple[str, str]]:
    return [(remark.effect, remark.pointer) for remark in found]


def in_a(inner: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": False, **more}


PLACE = "/inputSchema/properties/a"
# The schema, and for each provider what it does where.
CASES: dict[str, tuple[dict[str, Any], dict[Target, list[tuple[str, str]]]]] = {
    "a plain text": (in_a(TEXT), {}),
    "a limit": (in_a({"type": "integer", "minimum": 1}), {"anthropic": [("moved", f"{PLACE}/minimum")], "ollama": [("lost", f"{PLACE}/minimum")]}),
    "a length": (in_a({"type": "string", "minLength": 1}), {"openai": [("reshaped", f"{PLACE}/minLength")], "anthropic": [("moved", f"{PLACE}/minLength")], "ollama": [("lost", f"{PLACE}/minLength")]}),
    "a default": (in_a({"type": "string", "default": "x"}), {"openai": [("moved", f"{PLACE}/default")], "anthropic": [("moved", f"{PLACE}/default")], "ollama": [("lost", f"{PLACE}/default")]}),
    "a map": (in_a({"type": "object", "additionalProperties": TEXT}), {"openai": [("reshaped", f"{PLACE}/additionalProperties")], "anthropic": [("reshaped", f"{PLACE}/additionalProperties")], "gemini": [("moved", f"{PLACE}/additionalProperties")], "ollama": [("lost", f"{PLACE}/additionalProperties")]}),
    "any value": (in_a({"description": "d"}), {"openai": [("not strict", PLACE)], "anthropic": [("not strict", PLACE)]}),
    "a list of anything": (in_a({"type": "array"}), {"openai": [("not strict", PLACE), ("refused", PLACE)], "anthropic": [("not strict", PLACE)]}),
    "oneOf": (in_a({"oneOf": [TEXT, {"type": "string", "format": "date"}]}), {"openai": [("loosened", f"{PLACE}/oneOf")], "anthropic": [("loosened", f"{PLACE}/oneOf")], "gemini": [("loosened", f"{PLACE}/oneOf")], "ollama": [("lost", f"{PLACE}/oneOf")]}),
    "an enum of numbers": (in_a({"type": "integer", "enum": [1, 2]}), {"gemini": [("moved", f"{PLACE}/enum")]}),
    "not": (in_a({"type": "string", "not": {"const": ""}}), {"openai": [("not strict", f"{PLACE}/not")], "anthropic": [("not strict", f"{PLACE}/not")], "gemini": [("moved", f"{PLACE}/not")], "ollama": [("lost", f"{PLACE}/not")]}),
    "lookaround where strict mode moves it": (in_a({"type": "string", "pattern": "(?=x)"}), {"openai": [("moved", f"{PLACE}/pattern")], "anthropic": [("moved", f"{PLACE}/pattern")], "ollama": [("lost", f"{PLACE}/pattern")]}),
    "lookaround where there is no strict mode": (in_a({"type": "string", "pattern": "(?=x)", "not": {}}), {"openai": [("not strict", f"{PLACE}/not"), ("refused", f"{PLACE}/pattern")], "anthropic": [("not strict", f"{PLACE}/not")], "gemini": [("moved", f"{PLACE}/not")], "ollama": [("lost", f"{PLACE}/pattern"), ("lost", f"{PLACE}/not")]}),
    "a union at the root": (in_a(TEXT, anyOf=[{"required": ["a"]}, {"minProperties": 1}]), {"openai": [("reshaped", "/inputSchema/type")], "anthropic": [("refused", "/inputSchema/anyOf"), ("reshaped", "/inputSchema/type")], "ollama": [("lost", "/inputSchema/anyOf")]}),
    "a union at the root where there is no strict mode": (in_a({}, anyOf=[{"required": ["a"]}]), {"openai": [("not strict", PLACE), ("refused", "/inputSchema/anyOf")], "anthropic": [("refused", "/inputSchema/anyOf"), ("not strict", PLACE)], "ollama": [("lost", "/inputSchema/anyOf")]}),
    "a name with brackets": ({"type": "object", "properties": {"filter[x]": TEXT}}, {"anthropic": [("refused", "/inputSchema/properties/filter[x]")]}),
    "a root that is no object": ({"type": "array", "items": TEXT}, {"openai": [("not strict", "/inputSchema")], "anthropic": [("refused", "/inputSchema/type"), ("not strict", "/inputSchema")], "ollama": [("refused", "/inputSchema/type")]}),
    "an older draft": (in_a({"type": "integer", "minimum": 1, "exclusiveMinimum": True}), {"openai": [("moved", f"{PLACE}/exclusiveMinimum")], "anthropic": [("refused", f"{PLACE}/exclusiveMinimum"), ("moved", f"{PLACE}/minimum"), ("moved", f"{PLACE}/exclusiveMinimum")], "gemini": [("moved", f"{PLACE}/exclusiveMinimum")], "ollama": [("lost", f"{PLACE}/minimum"), ("lost", f"{PLACE}/exclusiveMinimum")]}),
    "a tree": (in_a({"$ref": "#/$defs/T"}, **{"$defs": {"T": {"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}}}}), {"anthropic": [("not strict", "/inputSchema/$defs/T")], "gemini": [("lost", "/inputSchema/$defs/T/properties/t")], "ollama": [("lost", f"{PLACE}/$ref")]}),
    "what is kept below a list": (in_a({"type": "array", "items": {"type": "integer", "minimum": 1}}), {"anthropic": [("moved", f"{PLACE}/items/minimum")]}),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, target: Target) -> None:
    schema, expected = CASES[case]
    assert brief(remarks(target, schema)) == expected.get(target, [])


NAMES: list[tuple[str, list[Target]]] = [
    ("read_file", []),
    ("math.factorial", ["openai", "anthropic"]),
    ("a b", ["openai", "anthropic", "gemini", "ollama"]),
    ("a:b", ["openai", "anthropic", "ollama"]),
    ("9lives", ["gemini"]),
    ("n" * 100, ["openai", "gemini"]),
]


@pytest.mark.parametrize(("name", "renamed"), NAMES)
def test_names(name: str, renamed: list[Target]) -> None:
    for target in TARGETS:
        found = remarks(target, in_a(TEXT), name)
        assert found == ([Remark("renamed", "/name", f"sent as {alias(name)!r}")] if target in renamed else [])


def test_long_descriptions() -> None:
    assert brief(remarks("openai", in_a(TEXT), description="x" * 1025)) == [("refused", "/description")]
    assert remarks("openai", in_a(TEXT), description="x" * 1024) == []


def test_what_ollamas_client_does_is_what_is_told(corpus: Path, everything: bool) -> None:
    """The client's own types are the judge: what they drop is told as lost, what they refuse as refused."""
    for file in FILES:
        for row in [row for index, row in enumerate(rows(corpus, file)) if everything or index % 40 == 0]:
            schema = row["inputSchema"]
            told = {remark.pointer for remark in remarks("ollama", schema) if remark.effect == "lost"}
            sent = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
            kept = ollama.Tool.model_validate(sent).model_dump(exclude_unset=True, by_alias=True)
            kept = kept["function"]["parameters"]
            dropped = {f"/inputSchema/{word}" for word in schema if word not in kept}
            for name, inner in schema.get("properties", {}).items():
                place = f"/inputSchema/properties/{name.replace('~', '~0').replace('/', '~1')}"
                dropped |= {f"{place}/{word}" for word in inner if word not in kept["properties"][name]}
            assert told <= dropped
            unsaid = [pointer for pointer in dropped - told if not _says_nothing(schema, pointer)]
            assert not unsaid, row["key"]


def _says_nothing(schema: dict[str, Any], pointer: str) -> bool:
    word = pointer.rpartition("/")[2]
    return word in ("$schema", "title", "$comment", "$id", "additionalProperties") or word.startswith("x-")


def test_what_ollamas_client_refuses() -> None:
    for parameters in ({"type": "array"}, {"type": "object", "properties": {"a": True}}):
        with pytest.raises(ValidationError):
            ollama.Tool.model_validate({"type": "function", "function": {"name": "f", "parameters": parameters}})
        assert "refused" in [effect for effect, _ in brief(remarks("ollama", parameters))]


def test_what_is_told_of_gemini_is_what_is_sent(corpus: Path, everything: bool) -> None:
    for row in [row for index, row in enumerate(rows(corpus, "mcp.jsonl")) if everything or index % 20 == 0]:
        text = json.dumps(to_openapi(row["inputSchema"]), ensure_ascii=False)
        for remark in remarks("gemini", row["inputSchema"]):
            if remark.effect == "moved":
                assert f"{remark.pointer.rpartition('/')[2]}: " in text, row["key"]


def test_every_note_of_strict_mode_is_told(corpus: Path) -> None:
    for row in list(rows(corpus, "mcp.jsonl"))[::20]:
        receipt = to_strict(row["inputSchema"])
        found = remarks("openai", row["inputSchema"])
        if receipt.is_strict:
            assert len(found) == len({(note.pointer, note.keyword, note.effect, note.what) for note in receipt.notes})
        else:
            assert {f"/inputSchema{pointer}" for pointer, _ in receipt.problems} <= {remark.pointer for remark in found}


def test_nothing_is_refused_of_our_own_tools() -> None:
    specs = load_specs([REPOSITORY / "toolkit" / "builtin"], base=REPOSITORY)
    for target in TARGETS:
        for spec in specs:
            found = remarks(target, spec.input_schema, spec.wire_name, spec.description)
            effects = {remark.effect for remark in found}
            assert not effects & {"refused", "renamed", "not strict"}, (target, spec.wire_name, found)
    moved = [
        (spec.wire_name, remark.pointer)
        for spec in specs
        for remark in remarks("gemini", spec.input_schema)
        if remark.effect == "moved"
    ]
    # Anything else here is a keyword nobody knows, such as what is left of a text after a comma.
    assert {pointer.rpartition("/")[2] for _, pointer in moved} <= {"additionalProperties", "uniqueItems"}


def test_the_command_line_knows_the_same_targets() -> None:
    assert get_args(OnTheCommandLine) == TARGETS
