"""The same spec written as JSON and as YAML is the same ToolSpec."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.guard.permission import PERMISSIONS
from toolkit.schema.spec import Json
from toolkit.schema.spec_files import load_spec_text

# Numbers to YAML 1.2, but strings to the YAML 1.1 that safe_dump writes: it leaves them unquoted.
NUMBERS_TO_US_ALONE = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

LOOKALIKES = [
    "yes", "no", "on", "off", "true", "False", "null", "~", "", "2024-01-31", "2001-12-14t21:59:43.10-05:00", "1:30",
    "012", "0x1f", "0o17", "1_000", "12", "-1.5", ".inf", ".NaN", "<<", "=", "- a", "a: b", "# a", "&a", "*a", "!a",
    "%a", "@a", "`a", "{a", "[a", "'", '"', "|", ">", "---", "...", " a ", "a\nb\n", "\ta", "a\r\nb", "\u2028", "\x85",
    "\ufeffa", "\x00", "\x7f", "\U0001f600", "\ue000",
]  # fmt: skip


def survives_safe_dump(text: str) -> bool:
    return not NUMBERS_TO_US_ALONE.fullmatch(text) or yaml.safe_dump(text).startswith("'")


texts = st.one_of(st.sampled_from(LOOKALIKES), st.text(max_size=20)).filter(survives_safe_dump)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=15
)
objects = st.dictionaries(texts, values, max_size=4)
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_./ :-]{0,20}", fullmatch=True).filter(
    lambda name: ".." not in name and not re.search(r"(^|[./: -])__", name) and survives_safe_dump(name)
)
permissions = st.lists(st.sampled_from(PERMISSIONS), unique=True)
examples = st.lists(
    st.one_of(
        st.fixed_dictionaries({"title": texts, "output": objects}, optional={"arguments": objects}),
        st.fixed_dictionaries({"title": texts, "error": st.just("NOT_FOUND")}, optional={"files": st.just({"a": "b"})}),
    ),
    max_size=2,
)
specs = st.fixed_dictionaries(
    {"name": names, "inputSchema": objects.map(lambda value: {"type": "object", "default": value})},
    optional={
        "title": texts,
        "description": texts,
        "outputSchema": objects.map(lambda value: {"default": value}),
        "annotations": objects,
        "permissions": permissions,
        "parallel": st.booleans(),
        "blocking": st.booleans(),
        "mustBeNamed": st.booleans(),
        "examples": examples,
        "rename": names,
        "_meta": values,
        "x-own": values,
    },
)


@tries(200)
@given(spec=specs)
@pytest.mark.slow
def test_reads_json_and_yaml_alike(spec: dict[str, Json]) -> None:
    as_json = json.dumps(spec, ensure_ascii=False)
    # Unescaped, safe_dump would write these as the line ends they were in YAML 1.1, with an indentation behind.
    allow_unicode = not any(end in as_json for end in "\x85\u2028\u2029")
    # A fresh copy: safe_dump writes an alias for an object it meets twice.
    as_yaml = yaml.safe_dump(json.loads(as_json), allow_unicode=allow_unicode, sort_keys=False)
    (from_json,) = load_spec_text(as_json, "t.json", None)
    (from_yaml,) = load_spec_text(as_yaml, "t.yaml", None)
    assert dataclasses.replace(from_yaml, source="t.json") == from_json
    assert from_json.input_schema == spec["inputSchema"]
    assert (from_json.name, from_json.title) == (spec["name"], spec.get("title"))
