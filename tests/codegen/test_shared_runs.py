"""Several tools share a run of datamodel-code-generator: each module is what a run for its tool alone gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.projects import tool
from toolkit.codegen.package.literals import indented_json
from toolkit.codegen.package.models import RenderJob, render_many, render_models
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.errors import GenerationError

TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
CROSSED = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a"}, "self": {"$ref": "#"}},
    "$defs": {
        "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
        "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "c": {"type": "string", "minLength": 1}}},
    },
}
VISIT = {
    "type": "object",
    "properties": {
        "page": {"type": "object", "properties": {"link": {"type": "string", "format": "uri"}}},
        "plain": {"type": "object", "properties": {"text": {"type": "string"}}},
        "at": {"type": "string", "format": "date-time"},
    },
}
HIDING = {
    "type": "object",
    "properties": {name: {"type": "string", "default": "x"} for name in ("type", "list", "Any")},
}
LONG = {
    "type": "object",
    "properties": {"word" * 20: {"enum": ["it's", 'a "quote"', "x" * 60]}, "limit": {"type": "number", "minimum": 1}},
}
SCHEMAS: list[dict[str, Any]] = [tool("x")["inputSchema"], TREE, CROSSED, VISIT, HIDING, LONG]


def job(prefix: str, inputs: dict[str, Any], outputs: dict[str, Any] | None = None, *, rich: bool = False) -> RenderJob:
    flat, problems = flatten(inputs, f"{prefix}Input", is_input=True, rich_formats=rich)
    answer = None
    if outputs is not None:
        answer, more = flatten(outputs, f"{prefix}Output", rich_formats=rich)
        problems += more
    assert problems == []
    return RenderJob("x.json", prefix, f"Tool {prefix}.", flat, answer)


def alone(one: RenderJob) -> str:
    return render_models(one.source, one.prefix, one.description, one.inputs, one.outputs)


PLAIN, RICH = (
    [job(f"T{n}", schema, SCHEMAS[-n - 1], rich=rich) for n, schema in enumerate(SCHEMAS)] for rich in (False, True)
)
ALONE = {id(one): alone(one) for one in (*PLAIN, *RICH)}


@given(st.permutations(PLAIN), st.integers(0, len(PLAIN)))
def test_a_module_does_not_depend_on_the_other_tools_of_its_run(jobs: list[RenderJob], left_out: int) -> None:
    some = jobs[left_out:]
    assert render_many(some) == [ALONE[id(one)] for one in some]


@pytest.mark.whole
@given(st.permutations(RICH))
def test_nor_does_one_with_our_own_types(jobs: list[RenderJob]) -> None:
    assert render_many(jobs) == [ALONE[id(one)] for one in jobs]


def test_tools_with_a_name_in_common_keep_it() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}}
    nested = job("Get", {"type": "object", "properties": {"input": point}})
    other = job("GetInput", {"type": "object", "properties": {"input": {"type": "string"}}})
    assert "GetInputInput" in nested.inputs.nodes() and "GetInputInput" in other.inputs.nodes()
    assert render_many([nested, other, nested]) == [alone(nested), alone(other), alone(nested)]


def test_a_mistake_is_that_of_its_tool() -> None:
    bad = RenderJob("bad.json", "X", "", Document("not a name", {"type": "object"}), None)
    with pytest.raises(
        GenerationError,
        match=r"did not return the expected classes: \['Not",
    ) as failure:
        render_many([*PLAIN, bad, *PLAIN])
    assert "T0" not in str(failure.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_the_manifest_is_written_as_the_standard_library_writes_it(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=1, ensure_ascii=False)
