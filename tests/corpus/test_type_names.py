"""Names and sharing of nested types, over all shared specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.test_class_names import holding, tagged, thing
from tests.corpus.project import shared_tools
from tests.corpus.type_names import GOAL_HASHES, LONG, NestedTypes, nested_types, types_of_documents
from tests.modules import documents
from toolkit.codegen.schema.document import Document

pytestmark = pytest.mark.xdist_group("type names")


@pytest.fixture(scope="module")
def found(corpus: Path) -> list[NestedTypes]:
    return [types for tool in shared_tools(corpus) if (types := nested_types(tool)) is not None]


def test_hardly_a_name_has_a_hash(found: list[NestedTypes]) -> None:
    names = sum(len(types.names) for types in found)
    assert names > 1000
    assert sum(types.hashed for types in found) < GOAL_HASHES * names


def test_no_class_is_written_twice(found: list[NestedTypes]) -> None:
    assert [types.names for types in found if types.repeated] == []


def test_names_are_identifiers_and_differ(found: list[NestedTypes]) -> None:
    for types in found:
        assert all(name.isidentifier() for name in types.names)
        assert len(set(types.names)) == len(types.names)


def test_long_names_are_long_because_of_their_tools(found: list[NestedTypes]) -> None:
    long = [
        (name, suffix)
        for types in found
        for name, suffix in zip(types.names, types.suffixes, strict=True)
        if len(name) > LONG and len(suffix) > len(name) - len(suffix)
    ]
    assert long == []


def test_the_figures_count_what_they_say() -> None:
    inputs, _ = documents({"type": "object", "properties": {"a": thing("x"), "b": holding("c", tagged("y"))}})
    made = types_of_documents([inputs])
    assert (made.suffixes, made.repeated, made.hashed, made.longest) == (("A", "B", "C"), 0, 0, len("XInputA"))
    node = {"type": "object", "properties": {}}
    old = Document("XInput", {}, {"XInputShape1": node, "XInputShapeObjectX0995ba": node, "XInput" + "a" * 60: {}})
    types = types_of_documents([old])
    assert (types.hashed, types.repeated, types.longest) == (1, 1, 66)
