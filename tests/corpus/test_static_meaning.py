"""The law of static meaning: a field is ``Any`` only where its schema says nothing; any other loss is a finding."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.specs import FILES, rows
from tests.corpus.static_meaning import NOTHING_SAID, StaticMeaning, read_types, static_meaning
from tests.modules import documents, load_module, module_text
from toolkit.codegen.schema.document import Loss

SAMPLE_EVERY = {"bfcl.jsonl": 28, "mcp.jsonl": 10}


def test_a_field_is_any_only_where_its_schema_says_nothing(corpus: Path, everything: bool) -> None:
    found = StaticMeaning()
    for file in FILES:
        for row in islice(rows(corpus, file), 0, None, 1 if everything else SAMPLE_EVERY.get(file, 1)):
            found.add(static_meaning(row))
    assert found.fields > (15_000 if everything else 2_000)
    assert not found.unreported, "\n".join(found.unreported)
    assert found.any_by_reason[NOTHING_SAID] > 10


SAYS_LITTLE: dict[str, tuple[Any, Loss | None]] = {
    # a property, and why its type is Any
    "nothing": ({"description": "Anything."}, None),
    "true": (True, None),
    "an array of anything": ({"type": "array"}, None),
    "a limit without a type": ({"minLength": 2}, Loss.NO_TYPE),
    "properties without a type": ({"properties": {"a": {"type": "string"}}}, Loss.NO_TYPE),
    "only excluded": ({"not": {"type": "null"}}, Loss.ONLY_CHECKED),
    "a condition": ({"if": {"type": "string"}, "then": {"minLength": 2}}, Loss.ONLY_CHECKED),
    "never valid": (False, Loss.NEVER_VALID),
    "a branch for anything": ({"anyOf": [{"type": "string"}, {}]}, Loss.OPEN_BRANCH),
    "a tuple with an open end": ({"type": "array", "prefixItems": [{"type": "string"}]}, Loss.OPEN_TUPLE),
    "patterns in an open map": (
        {"type": "object", "patternProperties": {"^a": {"type": "string"}}},
        Loss.OPEN_PATTERNS,
    ),
    "a circle": ({"$ref": "#/$defs/circle"}, Loss.CIRCULAR),
    "a circle of conjunctions": ({"$ref": "#/$defs/inward"}, Loss.CIRCULAR),
    "items without a type, inside": ({"type": "array", "items": {"maxLength": 3}}, Loss.NO_TYPE),
    "too many branches": ({"anyOf": [{"type": "array", "minItems": n} for n in range(501)]}, Loss.TOO_MANY_BRANCHES),
    "no value": ({"enum": []}, Loss.NEVER_VALID),
    "no type": ({"allOf": [{"type": "string"}, {"type": "integer"}]}, Loss.NEVER_VALID),
    "a property next to 'properties'": ({"path": {"type": "string"}}, Loss.NOT_A_KEYWORD),
    "a dynamic reference": ({"$dynamicRef": "#node"}, Loss.ONLY_CHECKED),
}
DEFINITIONS = {
    "circle": {"anyOf": [{"$ref": "#/$defs/circle"}, {"type": "string"}]},
    "inward": {"allOf": [{"$ref": "#/$defs/inward"}, {"type": "object"}]},
    "node": {"$dynamicAnchor": "node", "type": "string"},
}


@pytest.mark.parametrize("case", SAYS_LITTLE)
def test_each_loss_is_a_finding_at_its_place(case: str) -> None:
    node, loss = SAYS_LITTLE[case]
    schema = {"type": "object", "properties": {"value": node}, "$defs": DEFINITIONS}
    document, _ = documents(schema)
    found = read_types(schema, document, load_module(module_text(schema)).XInput)
    assert found.unreported == []
    assert found.any_by_reason == {NOTHING_SAID if loss is None else loss: 1}
    for _, pointer in document.losses:
        assert any(f"{place}/".startswith(f"{pointer}/") for _, place in document.findings)
    # The instrument: without the report, the same types break the law.
    document.losses = []
    assert bool(read_types(schema, document, load_module(module_text(schema)).XInput).unreported) == (loss is not None)


def test_the_reader_sees_types_that_say_too_little() -> None:
    """The instrument: the types of an empty schema, read next to a schema that says something."""
    said: dict[str, Any] = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/text"}},
            "map": {"type": "object", "additionalProperties": {"allOf": [{"type": "string"}]}},
            "object": {"type": "object", "properties": {"inside": {"oneOf": [{"type": "string"}, {"type": "null"}]}}},
        },
        "$defs": {"text": {"type": "string"}},
    }
    silent: dict[str, Any] = {
        "type": "object",
        "properties": {
            "list": {"type": "array"},
            "map": {"type": "object"},
            "object": {"type": "object", "properties": {"inside": {}}},
        },
    }
    document, _ = documents(silent)
    found = read_types(said, document, load_module(module_text(silent)).XInput)
    assert [text.partition(" ")[0] for text in found.unreported] == ["XInput.list", "XInput.map", "XInputObject.inside"]
    assert read_types(silent, document, load_module(module_text(silent)).XInput).unreported == []
