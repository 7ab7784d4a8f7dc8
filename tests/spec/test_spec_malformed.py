"""What is refused, and the exact words: one row a mistake, under both of PyYAML's scanners."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.findings import short_forms
from toolkit.errors import SpecError
from toolkit.schema.spec_files import load_spec_text

NAME_RULE = (
    "a name has 1 to 128 characters: an ASCII letter, a digit or '_' first, then also '.', '/', ':', '-' and spaces; "
    "no '..', and no part like '__init__'"
)
FOUR = "the four are read, write, execute, network."
OUT = "write the value out, or use '$defs' and '$ref'"
GOOD = {"name": "t", "inputSchema": {"type": "object"}}


def problems_of(text: str, source: str) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        load_spec_text(text, source, None)
    return short_forms(caught.value)


@pytest.fixture(params=["libyaml", "python"])
def scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")
    return str(request.param)


# Each row: id, keys laid over a good spec (None as a key's value takes it away), problem.
KEYS: list[tuple[str, dict[str, object], str]] = [
    ("misspells_a_key", {"inputschema": {}}, "unknown key 'inputschema'. Did you mean 'inputSchema'? @ t.json:/inputschema"),
    ("invents_a_key", {"zzz": 1}, "unknown key 'zzz'; keys of your own start with 'x-' @ t.json:/zzz"),
    ("hides_a_line_in_a_key", {"z\nz/~": 1}, "unknown key 'z\\nz/~'; keys of your own start with 'x-' @ t.json:/z\\nz~1~0"),
    ("leaves_the_name_out", {"name": ...}, "'name' is missing: add the name by which models call the tool @ t.json:"),
    ("numbers_the_name", {"name": 5}, "'name' must be a string, not a number @ t.json:/name"),
    ("empties_the_name", {"name": ""}, f"'' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("ends_the_name_with_a_line", {"name": "a\n"}, f"'a\\n' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("puts_code_into_the_name", {"name": "a'); x("}, f"\"a'); x(\" is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("names_a_path", {"name": "/etc/x"}, f"'/etc/x' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("names_a_parent", {"name": "a/../b"}, f"'a/../b' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("names_a_dunder", {"name": "__init__"}, f"'__init__' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("names_a_dunder_part", {"name": "a.__class__"}, f"'a.__class__' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("names_in_full_width", {"name": "\uff41"}, f"'\uff41' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("names_at_length", {"name": "a" * 129}, f"'{'a' * 80}...' is not a tool name: {NAME_RULE} @ t.json:/name"),
    ("renames_to_a_path", {"rename": "../x"}, f"'../x' is not a tool name: {NAME_RULE} @ t.json:/rename"),
    ("lists_the_title", {"title": []}, "'title' must be a string, not a list @ t.json:/title"),
    ("nulls_the_description", {"description": None}, "'description' must be a string, not null @ t.json:/description"),
    ("leaves_the_schema_out", {"inputSchema": ...}, "'inputSchema' is missing: write {\"type\": \"object\"} for a tool without parameters @ t.json:"),
    ("spells_the_schema_as_text", {"inputSchema": "{}"}, "'inputSchema' must be an object, not a string @ t.json:/inputSchema"),
    ("takes_a_string_as_input", {"inputSchema": {"type": "string"}}, "'inputSchema' must describe an object: its \"type\" must be \"object\" @ t.json:/inputSchema"),
    ("allows_null_as_input", {"inputSchema": {"type": ["object", "null"]}}, "'inputSchema' must describe an object: its \"type\" must be \"object\" @ t.json:/inputSchema"),
    ("outputs_true", {"outputSchema": True}, "'outputSchema' must be an object, not a boolean @ t.json:/outputSchema"),
    ("fills_the_output_schema", {"outputSchema": {"enum": [0] * 20_000}}, "'outputSchema' has 20002 values, more than the 20000 allowed @ t.json:/outputSchema"),
    ("annotates_with_a_list", {"annotations": [1]}, "'annotations' must be an object, not a list @ t.json:/annotations"),
    ("answers_parallel_with_yes", {"parallel": "yes"}, "'parallel' must be true or false, not a string @ t.json:/parallel"),
    ("answers_must_be_named_with_text", {"mustBeNamed": "yes"}, "'mustBeNamed' must be true or false, not a string @ t.json:/mustBeNamed"),
    ("answers_blocking_with_one", {"blocking": 1}, "'blocking' must be true or false, not a number @ t.json:/blocking"),
    ("permits_in_one_word", {"permissions": "read"}, "'permissions' must be a list, not a string @ t.json:/permissions"),
    ("misspells_a_permission", {"permissions": ["raed"]}, f"unknown permission 'raed': {FOUR} Did you mean 'read'? @ t.json:/permissions/0"),
    ("invents_a_permission", {"permissions": ["root"]}, f"unknown permission 'root': {FOUR} @ t.json:/permissions/0"),
    ("numbers_a_permission", {"permissions": [7]}, f"unknown permission a number: {FOUR} @ t.json:/permissions/0"),
    ("permits_twice", {"permissions": ["read", "read"]}, "the permission 'read' is duplicated @ t.json:/permissions/1"),
    ("requires_what_is_optional", {"permissions": {"required": ["read"], "optional": ["read"]}}, "the permission 'read' is both required and optional @ t.json:/permissions/optional/0"),
    ("misspells_required", {"permissions": {"require": []}}, "unknown key 'require'. Did you mean 'required'? @ t.json:/permissions/require"),
    ("maps_the_examples", {"examples": {}}, "'examples' must be a list, not an object @ t.json:/examples"),
    ("numbers_an_example", {"examples": [1]}, "an example must be an object, not a number @ t.json:/examples/0"),
    ("forgets_the_example_title", {"examples": [{"error": "NOT_FOUND"}]}, "'title' is missing: it identifies the example when it fails @ t.json:/examples/0"),
    ("forgets_the_result", {"examples": [{"title": "a"}]}, "an example needs either 'output' or 'error' @ t.json:/examples/0"),
    ("gives_two_results", {"examples": [{"title": "a", "output": {}, "error": "IO"}]}, "an example needs either 'output' or 'error' @ t.json:/examples/0"),
    ("explains_the_error", {"examples": [{"title": "a", "error": "not found"}]}, "'not found' is not an error code or reason: write it like 'NOT_FOUND' @ t.json:/examples/0/error"),
    ("lists_the_arguments", {"examples": [{"title": "a", "arguments": [], "output": {}}]}, "'arguments' must be an object, not a list @ t.json:/examples/0/arguments"),
    ("outputs_text", {"examples": [{"title": "a", "output": "x"}]}, "'output' must be an object, not a string @ t.json:/examples/0/output"),
    ("places_a_file_outside", {"examples": [{"title": "a", "files": {"../x": ""}, "output": {}}]}, "'../x' is not a relative file name without '..' @ t.json:/examples/0/files/..~1x"),
    ("fills_a_file_with_null", {"examples": [{"title": "a", "files": {"x": None}, "output": {}}]}, "the text of a file must be a string, not null @ t.json:/examples/0/files/x"),
    ("misspells_an_example_key", {"examples": [{"title": "a", "output": {}, "argument": {}}]}, "unknown key 'argument'. Did you mean 'arguments'? @ t.json:/examples/0/argument"),
    ("describes_in_a_file_of_nowhere", {"descriptionFile": "a.md"}, "'descriptionFile' needs a spec that is read from a file @ t.json:/descriptionFile"),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("keys", "problem"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])
def test_refuses_a_key(keys: dict[str, object], problem: str) -> None:
    spec = {key: value for key, value in {**GOOD, **keys}.items() if value is not ...}
    assert problems_of(json.dumps(spec), "t.json") == (problem,)


S = '"name": "t", "inputSchema": {"type": "object"}'

JSON: list[tuple[str, str, str]] = [
    ("stops_early", '{"name": ', "not JSON: Expecting value @ t.json:1:10"),
    ("breaks_on_the_second_line", '{\n"name" "t"}', "not JSON: Expecting ':' delimiter @ t.json:2:8"),
    ("says_nothing", "", "not JSON: Expecting value @ t.json:"),
    ("adds_a_second_value", "{} {}", "not JSON: Extra data @ t.json:1:4"),
    ("starts_with_a_bom", "\ufeff{}", "the file starts with a byte order mark (BOM): save it as UTF-8 without one @ t.json:"),
    ("is_a_list", "[]", 'a spec file must be one tool (an object) or {"tools": [...]}, not a list @ t.json:'),
    ("names_twice", f'{{{S}, "name": "u"}}', "the key 'name' is duplicated; keep one of them @ t.json:/name"),
    ("repeats_a_key_at_depth", f'{{{S}, "_meta": [{{"a": {{"b": 1, "b": 1}}}}]}}', "the key 'b' is duplicated; keep one of them @ t.json:/_meta/0/a/b"),
    ("uses_nan", f'{{{S}, "_meta": NaN}}', "NaN is not a JSON number @ t.json:/_meta"),
    ("titles_with_infinity", f'{{{S}, "title": -Infinity}}', "-Infinity is not a JSON number @ t.json:/title"),
    ("counts_to_400_digits", f'{{{S}, "_meta": [-{"9" * 400}]}}', "the number has 400 digits; fewer than 400 are allowed @ t.json:/_meta/0"),
    ("measures_to_400_digits", f'{{{S}, "_meta": 0.{"1" * 500}}}', "the number has 501 digits; fewer than 400 are allowed @ t.json:/_meta"),
    ("overflows_a_float", f'{{{S}, "_meta": 1e400}}', "the number 1e400 is too large for a float @ t.json:/_meta"),
    ("halves_a_pair", f'{{{S}, "title": "\\ud83d"}}', "the text contains a lone surrogate, which is not valid Unicode @ t.json:/title"),
    ("halves_a_pair_in_a_key", f'{{{S}, "x-\\ud83d": 1}}', "the text contains a lone surrogate, which is not valid Unicode @ t.json:/x-\\ud83d"),
    ("nests_10000_lists", f'{{"a": {"[" * 10_000}', "nested deeper than 100 levels @ t.json:1:106"),
    ("nests_10000_objects_on_lines", '{"a":\n' * 10_000, "nested deeper than 100 levels @ t.json:101:1"),
    ("nests_a_schema_of_65_levels", f'{{"name": "t", "inputSchema": {{"type": "object", "x": {"[" * 64}{"]" * 64}}}}}', "'inputSchema' is nested deeper than 64 levels @ t.json:/inputSchema"),
    ("lists_no_list", '{"tools": {}}', "'tools' must be a list, not an object @ t.json:/tools"),
    ("lists_a_word", '{"tools": ["a"]}', "a tool must be an object, not a string @ t.json:/tools/0"),
    ("lists_and_names", '{"tools": [], "cursor": 1}', "unknown key 'cursor'. Did you mean 'nextCursor'? @ t.json:/cursor"),
    ("errs_inside_a_list", f'{{"tools": [{{{S}}}, {{{S}, "rename": "u", "title": 1}}]}}', "'title' must be a string, not a number @ t.json:/tools/1/title"),
    ("lists_one_name_twice", f'{{"tools": [{{{S}}}, {{{S}}}]}}', "the name 't' is taken by t.json:1:13; add a 'rename' to one of the two @ t.json:/tools/1/name"),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("text", "problem"), [row[1:] for row in JSON], ids=[row[0] for row in JSON])
def test_refuses_json(text: str, problem: str) -> None:
    assert problems_of(text, "t.json") == (problem,)


Y = "name: t\ninputSchema: {}\n"

YAML: list[tuple[str, str, str]] = [
    ("says_nothing", "# later\n", "the file is empty; it must be one tool, with 'name' and 'inputSchema' @ t.yaml:"),
    ("holds_two_documents", f"{Y}---\n{Y}", "a second YAML document starts here @ t.yaml:3:1"),
    ("starts_with_a_bom", f"\ufeff{Y}", "the file starts with a byte order mark (BOM): save it as UTF-8 without one @ t.yaml:"),
    ("holds_a_raw_nul", f"{Y}title: a\0", "not YAML: the character U+0000 must be escaped @ t.yaml:3:9"),
    ("holds_a_raw_surrogate", f"{Y}title: \ud800", "not YAML: the character U+D800 must be escaped @ t.yaml:3:8"),
    ("tags_a_python_object", f"{Y}title: !!python/name:os.system x", "tags are not supported: remove 'tag:yaml.org,2002:python/name:os.system' @ t.yaml:/title"),
    ("tags_a_string", f"{Y}title: !!str 5", "tags are not supported: remove 'tag:yaml.org,2002:str' @ t.yaml:/title"),
    ("tags_with_nothing", f"{Y}title: ! a", "tags are not supported: remove '!' @ t.yaml:/title"),
    ("tags_a_mapping", f"{Y}_meta: {{a: !x {{}}}}", "tags are not supported: remove '!x' @ t.yaml:/_meta/a"),
    ("tags_a_key", f"{Y}_meta: {{!!str a: 1}}", "tags are not supported: remove 'tag:yaml.org,2002:str' @ t.yaml:/_meta/a"),
    ("anchors_a_value", f"{Y}title: &a b", f"anchors are not supported: {OUT} @ t.yaml:/title"),
    ("uses_an_alias", f"{Y}title: *a", f"aliases are not supported: {OUT} @ t.yaml:/title"),
    ("uses_an_alias_as_key", f"{Y}_meta: {{*a : 1}}", f"aliases are not supported: {OUT} @ t.yaml:/_meta/?"),
    ("names_twice", f"{Y}name: u", "the key 'name' is duplicated; keep one of them @ t.yaml:/name"),
    ("repeats_a_quoted_key", f'{Y}_meta: [{{a: {{b: 1, "b": 2}}}}]', "the key 'b' is duplicated; keep one of them @ t.yaml:/_meta/0/a/b"),
    ("uses_a_number_as_key", f"{Y}_meta: {{1: a}}", "a key must be a string, not a number: quote it @ t.yaml:/_meta/1"),
    ("uses_true_as_key", f"{Y}_meta: {{true: a}}", "a key must be a string, not a boolean: quote it @ t.yaml:/_meta/true"),
    ("uses_null_as_key", f"{Y}_meta: {{~: a}}", "a key must be a string, not null: quote it @ t.yaml:/_meta/~0"),
    ("uses_a_list_as_key", f"{Y}_meta: {{[a]: b}}", "a key must be a string, not a list @ t.yaml:/_meta/?"),
    ("uses_infinity", f"{Y}_meta: -.inf", "-.inf is not a JSON number: quote it if it is text @ t.yaml:/_meta"),
    ("uses_nan", f"{Y}_meta: .NaN", ".NaN is not a JSON number: quote it if it is text @ t.yaml:/_meta"),
    ("counts_to_400_digits", f"{Y}_meta: {'9' * 400}", "the number has 400 digits; fewer than 400 are allowed @ t.yaml:/_meta"),
    ("overflows_a_float", f"{Y}_meta: 1e999", "the number 1e999 is too large for a float @ t.yaml:/_meta"),
    ("answers_parallel_with_yes", f"{Y}parallel: yes", "'parallel' must be true or false, not a string @ t.yaml:/parallel"),
    ("leaves_the_title_empty", f"{Y}title:", "'title' must be a string, not null @ t.yaml:/title"),
    ("nests_10000_lists", f"_meta: {'[' * 10_000}", "nested deeper than 100 levels @ t.yaml:1:107"),
    ("nests_10000_dashes", "- " * 10_000, "nested deeper than 100 levels @ t.yaml:1:201"),
    ("nests_10000_questions", "? " * 10_000, "nested deeper than 100 levels @ t.yaml:1:201"),
]  # fmt: skip


@pytest.mark.each("text")
@pytest.mark.parametrize(("text", "problem"), [row[1:] for row in YAML], ids=[row[0] for row in YAML])
@pytest.mark.slow
def test_refuses_yaml(text: str, problem: str, scanner: str) -> None:
    assert problems_of(text, "t.yaml") == (problem,)


# The two scanners word these differently, and do not mark the same character.
# The two scanners word some mistakes differently, and the pure-Python one does not say where a number is out of range.
QUOTE = "quote a text that contains ': ', and indent a key as its neighbours"
OUT_OF_RANGE = "not YAML: an escaped character or a version number is out of range @ t.yaml:"
BROKEN: list[tuple[str, str, str, str]] = [
    ("indents_with_a_tab", "name: t\n\ttitle: x\n", "not YAML: found a tab character that violates indentation; indent with spaces @ t.yaml:2:1", "not YAML: found character '\\t' that cannot start any token; indent with spaces @ t.yaml:2:1"),
    ("maps_inside_a_word", "name: a: b", f"not YAML: mapping values are not allowed in this context; {QUOTE} @ t.yaml:1:8", f"not YAML: mapping values are not allowed here; {QUOTE} @ t.yaml:1:8"),
    ("starts_with_a_sign", "name: @a", "not YAML: found character that cannot start any token @ t.yaml:1:7", "not YAML: found character '@' that cannot start any token @ t.yaml:1:7"),
    ("escapes_beyond_unicode", 'name: "\\UFFFFFFFF"', "not YAML: found invalid Unicode character escape code @ t.yaml:1:10", OUT_OF_RANGE),
    ("asks_for_an_absurd_version", f"%YAML {'9' * 5000}.1\n---\nname: t", "not YAML: found extremely long version number @ t.yaml:1:16", OUT_OF_RANGE),
    ("halves_a_pair", f'{Y}title: "\\ud83d"', "not YAML: found invalid Unicode character escape code @ t.yaml:3:11", "the text contains a lone surrogate, which is not valid Unicode @ t.yaml:/title"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "libyaml", "python"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_refuses_broken_yaml_with_one_problem(text: str, libyaml: str, python: str, scanner: str) -> None:
    assert problems_of(text, "t.yaml") == (libyaml if scanner == "libyaml" else python,)


def test_reports_five_mistakes_of_one_file() -> None:
    text = "name: __t__\ninputschema: {}\ninputSchema: {type: string}\npermissions: [read, root]\ntitle: *a\n"
    assert problems_of(text, "tools/five.yaml") == (
        f"aliases are not supported: {OUT} @ tools/five.yaml:/title",
        "unknown key 'inputschema'. Did you mean 'inputSchema'? @ tools/five.yaml:/inputschema",
        f"'__t__' is not a tool name: {NAME_RULE} @ tools/five.yaml:/name",
        '\'inputSchema\' must describe an object: its "type" must be "object" @ tools/five.yaml:/inputSchema',
        f"unknown permission 'root': {FOUR} @ tools/five.yaml:/permissions/1",
    )


def test_refuses_an_alias_bomb_without_unfolding_it(scanner: str) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    problems = problems_of("\n".join(lines), "bomb.yaml")
    assert problems[0] == f"anchors are not supported: {OUT} @ bomb.yaml:/a0"
    assert problems[2] == f"aliases are not supported: {OUT} @ bomb.yaml:/a1/0"
    assert problems[100:] == ("more than 100 mistakes; the rest is not listed @ bomb.yaml:",)


def test_refuses_a_text_without_end() -> None:
    assert problems_of(" " * (32 * 1024 * 1024 + 1), "t.json") == (
        "the text has more than 33554432 characters @ t.json:",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part", "times", "what"),
    [
        ("t.json", "[],", 1_000_000, "1000000 lists and objects"),
        pytest.param("t.yaml", "-\n", 3_000_001, "3000000 values", marks=pytest.mark.whole),
    ],
)
def test_refuses_a_text_of_countless_values(name: str, part: str, times: int, what: str) -> None:
    text = part * times if name == "t.yaml" else f"[{part * times}[]]"
    assert problems_of(text, name) == (f"the text has more than {what}; split it into several files @ {name}:",)
