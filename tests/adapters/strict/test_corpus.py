"""Every shared spec: sent in strict mode and read back without loss, or with the reason why not."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.adapters.strict.answers import Answers
from tests.adapters.strict.judged import followed, outside_anthropics_subset, untold
from tests.corpus.specs import FILES, rows
from toolkit.adapters.strict import ANTHROPIC, BEDROCK, OPENAI, StrictReceipt, check_strict, to_strict

TARGETS = {"openai": OPENAI, "anthropic": ANTHROPIC, "bedrock": BEDROCK}
SAMPLE_EVERY = 10
ANSWERS = 8


def sampled(corpus: Path, file: str, everything: bool) -> list[dict[str, Any]]:
    return [row for index, row in enumerate(rows(corpus, file)) if everything or index % SAMPLE_EVERY == 0]


@pytest.mark.sample
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.slow
def test_shared_specs(corpus: Path, file: str, target: str, everything: bool) -> None:
    rules = TARGETS[target]
    strict = 0
    for row in sampled(corpus, file, everything):
        schema = row["inputSchema"]
        untouched = copy.deepcopy(schema)
        receipt = to_strict(schema, rules)
        assert schema == untouched
        assert receipt == to_strict(schema, rules)
        for pointer, why in receipt.problems:
            followed(schema, pointer)
            assert why
        if not receipt.is_strict:
            assert receipt.schema == schema
            continue
        strict += 1
        assert check_strict(receipt.schema, rules) == [], row["key"]
        assert to_strict(receipt.schema, rules).schema == receipt.schema, "what is strict already stays as it is"
        if target != "openai":
            assert outside_anthropics_subset(receipt.schema) == [], row["key"]
        judge = Draft202012Validator(receipt.schema)
        for seed in range(ANSWERS):
            answer = Answers(receipt.schema, seed).any()
            judge.validate(answer)
            assert untold(receipt, schema, receipt.decode(answer)) == [], row["key"]
    assert strict


@pytest.mark.slow
def test_answers_are_valid_but_for_what_the_receipts_tell(corpus: Path) -> None:
    """How often the excuse of the test above is used: hardly ever, and for lengths beside a pattern only."""
    excused = set()
    for row in sampled(corpus, "mcp.jsonl", everything=True)[::3]:
        receipt = to_strict(row["inputSchema"])
        if not receipt.is_strict:
            continue
        errors = Draft202012Validator(row["inputSchema"]).iter_errors(receipt.decode(Answers(receipt.schema, 1).any()))
        excused |= {error.validator for error in errors}
    assert excused <= {"minLength", "maxLength"}


@pytest.mark.parametrize("target", TARGETS)
def test_real_calls_can_be_said_in_strict_mode(corpus: Path, target: str, everything: bool) -> None:
    known = {row["key"]: row["inputSchema"] for row in sampled(corpus, "bfcl.jsonl", everything)}
    receipts = {key: to_strict(schema, TARGETS[target]) for key, schema in known.items()}
    said = 0
    for call in rows(corpus, "bfcl_calls.jsonl"):
        receipt = receipts.get(call["tool_key"])
        if receipt is None or not receipt.is_strict or not call["valid"]:
            continue
        schema, arguments = known[call["tool_key"]], call["arguments"]
        if not arguments.keys() <= schema["properties"].keys():
            continue  # an argument the spec does not name: strict mode has no place for it
        answer = as_answer(arguments, receipt.schema, receipt)
        Draft202012Validator(receipt.schema).validate(answer)
        assert without_defaults(receipt.decode(answer), arguments, schema) == arguments, call["id"]
        said += 1
    assert said > 100


def as_answer(value: Any, schema: dict[str, Any], receipt: StrictReceipt) -> Any:
    """What a model has to answer to say this: null for what is left out, pairs for maps."""
    if "$ref" in schema:
        return as_answer(value, followed(receipt.schema, schema["$ref"][1:]), receipt)
    if "anyOf" in schema:
        answers = [as_answer(value, branch, receipt) for branch in schema["anyOf"]]
        whole = {**receipt.schema, "properties": {}, "required": []}
        fitting = (
            answer
            for answer, branch in zip(answers, schema["anyOf"], strict=True)
            if Draft202012Validator({**branch, "$defs": whole.get("$defs", {})}).is_valid(answer)
        )
        return next(fitting, value)
    if isinstance(value, dict) and schema.get("type") == "object":
        given = [name for name in schema["properties"] if name in value or name in schema["required"]]
        return {name: as_answer(value.get(name), schema["properties"][name], receipt) for name in given}
    if isinstance(value, dict) and schema.get("type") == "array":
        inner = schema["items"]["properties"]["value"]
        return [{"key": key, "value": as_answer(item, inner, receipt)} for key, item in value.items()]
    if isinstance(value, list) and schema.get("type") == "array":
        return [as_answer(item, schema["items"], receipt) for item in value]
    return value


def without_defaults(decoded: Any, given: Any, schema: Any) -> Any:
    """The decoded arguments without what was not given and is a default."""
    if isinstance(decoded, list) and isinstance(given, list) and len(decoded) == len(given):
        inner = schema.get("items", {})
        return [without_defaults(one, other, inner) for one, other in zip(decoded, given, strict=True)]
    if not isinstance(decoded, dict) or not isinstance(given, dict):
        return decoded
    names = schema.get("properties", {})
    return {
        name: without_defaults(value, given.get(name), names.get(name, {}))
        for name, value in decoded.items()
        if name in given or "default" not in names.get(name, {}) or names[name]["default"] != value
    }
