r"""Patterns have the meaning of ECMA-262 wherever arguments are checked: ``\d`` is 0 to 9, ``\w`` has no other letters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.modules import input_model
from toolkit.schema.accepts import Judge
from toolkit.schema.enforce import new_validator
from toolkit.schema.keywords import for_linear_engine

# The pattern, texts it takes, texts it refuses.
CASES: list[tuple[str, list[str], list[str]]] = [
    (r"^\d+$", ["12"], ["١٢", "१", "１", "²"]),
    (r"^\D$", ["a", "١"], ["1"]),
    (r"^\w+$", ["aZ_9"], ["é", "名", "١"]),
    (r"^\W$", ["é", "-"], ["a", "_"]),
    (r"^\s$", [" ", "\t", "\n", "\u00a0", "\ufeff", "\u2029"], ["\x85", "\u200b", "a"]),
    (r"^\S$", ["\x85", "é"], [" ", "\ufeff"]),
    (r"^[\d.]+$", ["1.2"], ["١"]),
    (r"^[^\d]$", ["١"], ["1"]),
    (r"^[\w-]+$", ["a-b"], ["é"]),
    (r"^[\W]$", ["é"], ["a"]),
    (r"^[^\W]$", ["a"], ["é"]),
    (r"^\\d$", [r"\d"], ["1"]),
    (r"^[\\d]$", ["d", "\\"], ["1"]),
    (r"^\[\d\]$", ["[1]"], ["[١]"]),
]


@pytest.mark.parametrize(("pattern", "taken", "refused"), CASES)
def test_every_engine_reads_it_the_same(pattern: str, taken: list[str], refused: list[str]) -> None:
    schema = {"pattern": pattern}
    judge, validator = Judge(schema), new_validator(schema)
    expected = [True] * len(taken) + [False] * len(refused)
    assert [judge.fits(text, schema) for text in taken + refused] == expected
    assert [validator.is_valid(text) for text in taken + refused] == expected


@given(
    st.lists(st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", "[", "]", "^", "a", "-", r"\\", r"\]", r"\["]), max_size=6),
    st.text(alphabet="a1_- é١\u00a0\ufeff\x85[]^\\", max_size=3),
)  # fmt: skip
def test_no_pattern_means_different_things_to_the_two_engines(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    try:
        validator = new_validator({"pattern": pattern})
    except ValueError:
        return
    # A bracket in a set is a set in a set to one engine only, and an empty set means different things.
    inner = re.sub(r"\\.", "", pattern)
    if re.search(r"\[[^\]]*\[|\[\^?\]|--|\[\^?-|-\]", inner):
        return
    assert Judge({}).fits(text, {"pattern": pattern}) == validator.is_valid(text), for_linear_engine(pattern)


N = {"type": "string", "pattern": r"^\d+$"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "in a type": {"type": "object", "properties": {"12": N}},
    "beside what types cannot say": {"type": "object", "properties": {"12": N}, "not": {"required": ["m"]}},
    "in names": {"type": "object", "patternProperties": {r"^\d+$": N}, "additionalProperties": False},
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_generated_models_refuse_other_digits(case: str) -> None:
    model = input_model(SCHEMAS[case])
    assert model.model_validate({"12": "12"})
    with pytest.raises(ValidationError):
        model.model_validate({"12": "١٢"})
    if case == "in names":
        with pytest.raises(ValidationError):
            model.model_validate({"١٢": "12"})
