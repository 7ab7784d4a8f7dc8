"""Names: stable, valid, and two of them never one."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.findings import short_forms
from toolkit.codegen.package.python_names import ToolNames, field_names, name_tools
from toolkit.errors import SpecError
from toolkit.schema.problems import SpecPlace
from toolkit.schema.spec import attribute_name


def named(*wires: str) -> list[ToolNames]:
    return name_tools(wires, [SpecPlace(f"{wire}.yaml") for wire in wires])


@pytest.mark.parametrize(
    ("wire", "attribute", "prefix"),
    [
        ("read_file", "read_file", "ReadFile"),
        ("hubspot-list-objects", "hubspot_list_objects", "HubspotListObjects"),
        ("math.factorial", "math_factorial", "MathFactorial"),
        ("class", "class_", "Class"),
        ("None", "None_", "None"),
        ("invoke", "invoke", "Invoke"),
        ("getHTTPPage", "getHTTPPage", "GetHTTPPage"),
        ("a b:c/d", "a_b_c_d", "ABCD"),
        ("3d", "tool_3d", "Tool3d"),
        ("_x", "tool_x", "X"),
        ("_", "tool_", "Tool"),
    ],
)
def test_the_python_form_of_a_name(wire: str, attribute: str, prefix: str) -> None:
    (names,) = named(wire)
    assert (names.wire, names.attribute, names.prefix) == (wire, attribute, prefix)


def test_one_python_form_for_two_names_is_refused_naming_both() -> None:
    with pytest.raises(SpecError) as failure:
        named("read-file", "done", "read_file")
    assert short_forms(failure.value) == (
        "tools 'read-file' (read-file.yaml) and 'read_file' both become 'tools.read_file' in Python; rename one of them"
        " with 'rename' @ read_file.yaml:",
    )


def test_one_class_name_for_two_tools_is_told_apart_by_a_digest() -> None:
    snake, camel = named("read_file", "readFile")
    assert snake.prefix == "ReadFile"
    assert camel.prefix.startswith("ReadFileX")
    assert [names.prefix for names in named("readFile", "done", "read_file")] == [camel.prefix, "Done", "ReadFile"]


def test_modules_differ_on_file_systems_that_do_not_tell_case() -> None:
    modules = [names.module for names in named("Foo", "foo", "fOO", "con")]
    assert len({module.casefold() for module in modules}) == 4
    assert modules[1] == "foo"
    assert modules[3] == "con_tool"


@given(
    st.lists(
        st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_./ :-]{0,12}", fullmatch=True), unique_by=attribute_name, max_size=12
    )
)
@pytest.mark.slow
def test_names_are_identifiers_and_differ(wires: list[str]) -> None:
    for part in ("attribute", "module", "prefix"):
        found = [getattr(names, part) for names in named(*wires)]
        assert all(name.isidentifier() and not keyword.iskeyword(name) or part == "prefix" for name in found)
        assert len({name.casefold() if part == "module" else name for name in found}) == len(wires)


@given(st.lists(st.text(max_size=6), unique=True, max_size=8))
def test_fields_are_identifiers_and_differ(wires: list[str]) -> None:
    found = field_names(wires)
    assert list(found) == wires
    assert all(name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_" for name in found.values())
    assert len(set(found.values())) == len(wires)
