"""Schemas made to take for ever: generation ends soon, with code or with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.modules import input_model
from tests.projects import Project
from toolkit.codegen.schema import document
from toolkit.errors import SpecError

LEAF = {"type": "object", "properties": {"x": {"type": "string"}}}


def growing(steps: int, part: Any) -> dict[str, Any]:
    """Definitions each of which uses the next one as ``part`` says."""
    definitions = {f"n{i}": part({"$ref": f"#/$defs/n{i + 1}"}) for i in range(steps)}
    return {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n0"}},
        "$defs": {**definitions, f"n{steps}": LEAF},
    }


def nested(depth: int) -> Any:
    return {"x": nested(depth - 1)} if depth else 5


def twice_in_default(steps: int) -> dict[str, Any]:
    """No branch fits the default, which is known only at its innermost value."""
    schema = growing(
        steps,
        lambda ref: {"anyOf": [{"type": "object", "properties": {"x": ref}, "required": [key]} for key in ("x", "x")]},
    )
    schema["properties"]["a"]["default"] = nested(steps)
    return schema


TOO_LARGE = {
    "each twice in allOf": growing(30, lambda ref: {"allOf": [ref, ref]}),
    "each twice in a union of objects": growing(30, lambda ref: {"type": "object", "anyOf": [ref, ref]}),
    "a default judged by unions of unions": twice_in_default(30),
}
ONE_OF_FULL_SIZE = "each twice in a union of objects"
"""The others meet a tenth of the limit in ``make test``."""


@pytest.mark.parametrize("case", TOO_LARGE)
@pytest.mark.slow
def test_what_grows_without_end_is_refused(
    tmp_path: Path, case: str, everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 200_000
    assert most == document.MAX_STEPS
    if not everything and case != ONE_OF_FULL_SIZE:
        most = 20_000
        monkeypatch.setattr(document, "MAX_STEPS", most)
    with pytest.raises(SpecError, match=rf"expanded, this schema has more than {most} parts"):
        Project(tmp_path, [{"name": "t", "description": "d", "inputSchema": TOO_LARGE[case]}]).generate()


MADE_ONCE: dict[str, tuple[Any, Any, Any]] = {
    # Each is used twice by the one before it, but has one type.
    "each twice in properties": (
        growing(30, lambda ref: {"type": "object", "properties": {key: {**ref, "minProperties": 1} for key in "pq"}}),
        {"p": {"q": {"other": 1}}},
        {"p": {"q": {}}},
    ),
}


@pytest.mark.parametrize("case", MADE_ONCE)
def test_what_is_used_again_and_again_is_made_once(case: str) -> None:
    schema, good, bad = MADE_ONCE[case]
    model = input_model(schema)
    assert model.model_validate({"a": good}).model_dump(exclude_unset=True) == {"a": good}
    with pytest.raises(ValidationError):
        model.model_validate({"a": bad})


def test_a_long_chain_of_references_is_refused(tmp_path: Path) -> None:
    schema = growing(3000, lambda ref: ref)
    with pytest.raises(SpecError, match="nested too deeply to be followed"):
        Project(tmp_path, [{"name": "t", "description": "d", "inputSchema": schema}]).generate()


def test_patterns_without_end_are_refused(tmp_path: Path) -> None:
    schema = {"type": "object", "patternProperties": {f"^\\w{{83}}{i}$": {"type": "string"} for i in range(501)}}
    with pytest.raises(SpecError, match="501 different patterns; at most 500 are allowed"):
        Project(tmp_path, [{"name": "t", "description": "d", "inputSchema": schema}]).generate()


def one_of(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


LARGE: dict[str, tuple[Any, Any, Any]] = {
    "a long enum": ({"enum": [f"v{i}" for i in range(15_000)]}, "v14999", "v15000"),
    "two long enums": (
        {"allOf": [{"enum": list(range(9000))}, {"enum": list(range(8999, 17_000))}]},
        8999,
        8998,
    ),
    "long enums side by side": (
        {"oneOf": [{"enum": list(range(i, i + 180))} for i in range(0, 9000, 180)]},
        8999,
        9000,
    ),
    "a union of very many": ({"anyOf": [{"type": "string", "minLength": i} for i in range(5, 5000)]}, "12345", "1234"),
    "unions in a union": (
        {
            "anyOf": [
                {"anyOf": [{"type": "array", "items": {"const": i * 30 + j}} for j in range(30)]} for i in range(40)
            ]
        },
        [1199],
        [1200],
    ),
}


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.slow
def test_what_is_only_large_is_read_and_exact(case: str) -> None:
    schema, good, bad = LARGE[case]
    model = input_model(one_of(schema))
    assert model.model_validate({"a": good}).model_dump() == {"a": good}
    with pytest.raises(ValidationError):
        model.model_validate({"a": bad})
