"""What the generator makes of schemas that hold at once."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.modules import input_model, module_text
from toolkit import SpecError

MALFORMED: dict[str, dict[str, Any]] = {
    "properties": {"allOf": [{"properties": {"a": {}}}, {"properties": [1]}]},
    "required": {"allOf": [{"required": ["a"]}, {"required": 5}]},
    "enum": {"properties": {"v": {"allOf": [{"enum": ["a"]}, {"enum": 5}]}}},
    "type": {"properties": {"v": {"allOf": [{"type": "string"}, {"type": 5}]}}},
    "properties in a branch": {"anyOf": [{"properties": "ab"}, {}]},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_parts_are_mistakes_with_a_pointer(name: str) -> None:
    with pytest.raises(SpecError, match=r"^x\.json: .* \(/inputSchema"):
        module_text({"type": "object", **MALFORMED[name]})


@pytest.mark.parametrize("first", [True, {}])
def test_an_open_part_does_not_hide_what_another_says_of_further_properties(first: Any) -> None:
    parts = [
        {"properties": {"a": {}}, "additionalProperties": first},
        {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
    ]
    for order in (parts, parts[::-1]):
        model = input_model({"type": "object", "allOf": order})
        model.model_validate({"a": "x", "b": 1})
        with pytest.raises(ValidationError):
            model.model_validate({"b": "x"})
