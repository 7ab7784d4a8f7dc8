"""Models generated from real specs accept, refuse and dump values as JSON Schema says."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from tests.corpus.instances import INVALID, VALID, instances
from tests.corpus.meaning import DECIDED, Tally, judge_calls, measure
from tests.corpus.specs import FILES, rows

SAMPLE_EVERY = {"bfcl.jsonl": 20, "mcp.jsonl": 40}


def test_models_and_json_schema_agree(corpus: Path, everything: bool) -> None:
    tally = Tally()
    for file in FILES:
        tally.add(measure(islice(rows(corpus, file), 0, None, 1 if everything else SAMPLE_EVERY.get(file, 1))))
    assert tally.judged > 15_000
    assert tally.unjudged == 0
    assert not tally.undecided(), "\n".join(map(str, tally.undecided()))
    assert tally.agreement >= 99.9


def test_every_real_call_gets_the_verdict_it_was_published_with(corpus: Path, everything: bool) -> None:
    judged, differing = judge_calls(corpus, every=1 if everything else SAMPLE_EVERY["bfcl.jsonl"])
    assert judged == 2598 if everything else judged > 100
    assert not differing


def test_every_decision_says_why() -> None:
    assert all(len(reason) > 40 for reason in DECIDED.values())


def test_instances_test_both_sides_of_every_keyword() -> None:
    """Tests the instrument: each keyword has values that only it refuses, and the values are the same every time."""
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
