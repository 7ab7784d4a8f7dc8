"""What is generated from real specs accepts, refuses and gives back what JSON Schema says."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tests.corpus.instances import INVALID, VALID, instances
from tests.corpus.meaning import DECIDED, Tally, measure
from tests.corpus.specs import FILES, outcome, rows
from tests.modules import load_module
from toolkit.runtime.reader import Reader

SAMPLE_EVERY = {"bfcl.jsonl": 10, "mcp.jsonl": 7}


def test_models_and_json_schema_agree(corpus: Path, everything: bool) -> None:
    tally = Tally()
    for file in FILES:
        tally.add(measure(islice(rows(corpus, file), 0, None, 1 if everything else SAMPLE_EVERY.get(file, 1))))
    assert tally.judged > 20_000
    assert tally.unjudged == 0
    assert not tally.undecided(), "\n".join(map(str, tally.undecided()))
    assert tally.agreement >= 99.9


def test_every_real_call_gets_the_verdict_it_was_published_with(corpus: Path, everything: bool) -> None:
    calls = list(rows(corpus, "bfcl_calls.jsonl"))
    named = {call["tool_key"] for call in calls}
    known = [row for row in rows(corpus, "bfcl.jsonl") if row["key"] in named]
    made = {row["key"]: outcome(row) for row in (known if everything else known[:: SAMPLE_EVERY["bfcl.jsonl"]])}
    readers = {key: Reader(load_module(item.text).XInput) for key, item in made.items() if item.text is not None}
    differing = []
    judged = 0
    for call in calls:
        if call["tool_key"] in readers:
            judged += 1
            try:
                readers[call["tool_key"]].from_wire(call["arguments"])
            except ValidationError:
                differing += [call] if call["valid"] else []
            else:
                differing += [] if call["valid"] else [call]
    assert judged > 100
    assert not differing
    if everything:
        assert judged == len(calls)


def test_every_decision_says_why() -> None:
    assert all(len(reason) > 40 for reason in DECIDED.values())


def test_instances_try_both_sides_of_every_word() -> None:
    """The instrument itself: for each word there are values that only it refuses, and the same ones every time."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 2, "maxLength": 5},
            "code": {"type": "string", "pattern": "^[a-f]{2}-\\d+$"},
            "count": {"type": "integer", "minimum": 3, "exclusiveMaximum": 9},
            "step": {"type": "number", "multipleOf": 0.5},
            "colour": {"enum": ["red", "green"]},
            "one": {"const": 1},
            "list": {
                "type": "array",
                "items": {"$ref": "#/$defs/node"},
                "minItems": 1,
                "maxItems": 2,
                "uniqueItems": True,
            },
            "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}}]},
            "open": {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^s"}},
        },
        "required": ["text", "count"],
        "additionalProperties": False,
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["id"]}},
    }
    found = [item for seed in map(str, range(8)) for item in instances(schema, seed)]
    words = {item.verdict.keyword for item in found if not item.verdict.accepted}
    assert words >= {
        "type", "minLength", "maxLength", "pattern", "minimum", "exclusiveMaximum", "multipleOf", "enum", "const",
        "minItems", "maxItems", "uniqueItems", "required", "additionalProperties", "anyOf",
    }  # fmt: skip
    seen = [item.value for item in found if item.verdict.accepted]
    assert all(any(name in value for value in seen) for name in schema["properties"])
    assert instances(schema, "0") == instances(schema, "0")
    assert len(instances(schema, "0")) <= VALID + INVALID
