"""What is read, from texts and from files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.findings import short_forms
from toolkit.errors import SpecError
from toolkit.schema.places import show_path
from toolkit.schema.spec import Json, SpecExample, ToolSpec
from toolkit.schema.spec_files import load_spec_text, load_specs

SMALL = "name: {}\ninputSchema: {{}}\n"

FULL = """\
name: read_file
title: Read a file
description: |
  Reads a text file
  of the workspace.
inputSchema:
  type: object
  properties:
    path: {type: string, description: Relative path.}
    when: {default: 2024-01-31, enum: [yes, no, on, off, 012, 0x1f, 1_000, 1:30, "true", 2024-01-31]}
    odd: {enum: [null, ~, true, False, 12, -3, +4, 1.5, .5, 1e3, 1., -0.0]}
    on: {type: boolean}
outputSchema: {type: array}
annotations: {readOnlyHint: true}
permissions: {optional: [network, execute], required: [write, read]}
blocking: false
mustBeNamed: true
rename: read
examples:
  - title: reads it
    arguments: {path: a.txt}
    files: {a.txt: "x\\n"}
    output: {content: "x\\n"}
  - {title: misses it, error: NOT_FOUND}
x-note: anything
_meta: {a: 1}
"""


def one(text: str, source: str = "t.yaml") -> ToolSpec:
    (spec,) = load_spec_text(text, source, None)
    return spec


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def problems_of(*paths: Path, base: Path) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        load_specs(paths, base=base)
    return short_forms(caught.value)


def test_reads_every_key() -> None:
    assert one(FULL, "tools/read.yaml") == ToolSpec(
        name="read_file",
        title="Read a file",
        description="Reads a text file\nof the workspace.\n",
        input_schema={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Relative path."},
                "when": {
                    "default": "2024-01-31",
                    "enum": ["yes", "no", "on", "off", "012", "0x1f", "1_000", "1:30", "true", "2024-01-31"],
                },
                "odd": {"enum": [None, None, True, False, 12, -3, 4, 1.5, 0.5, 1000.0, 1.0, -0.0]},
                "on": {"type": "boolean"},
            },
        },
        output_schema={"type": "array"},
        annotations={"readOnlyHint": True},
        required=("read", "write"),
        optional=("execute", "network"),
        parallel=False,
        blocking=False,
        examples=(
            SpecExample("reads it", {"path": "a.txt"}, {"a.txt": "x\n"}, {"content": "x\n"}, None),
            SpecExample("misses it", {}, {}, None, "NOT_FOUND"),
        ),
        source="tools/read.yaml",
        pointer="",
        description_file=None,
        long_description=None,
        rename="read",
        must_be_named=True,
    )


def test_reads_crlf_as_lf() -> None:
    assert one(FULL.replace("\n", "\r\n")) == one(FULL)


@pytest.mark.parametrize(
    ("permissions", "parallel"),
    [("[]", True), ("[read]", True), ("[read, write]", False), ("{optional: [write]}", True)],
)
def test_runs_in_parallel_by_default_only_what_reads(permissions: str, parallel: bool) -> None:
    assert one(f"{SMALL.format('t')}permissions: {permissions}").parallel is parallel
    assert (
        one(f"{SMALL.format('t')}permissions: {permissions}\nparallel: {str(not parallel).lower()}").parallel
        is not parallel
    )


@pytest.mark.parametrize("name", ["a", "_a", "9", "math.factorial", "mcp__x__y", "a/b c:d-e", "a" * 128, "class"])
def test_keeps_wire_names(name: str) -> None:
    assert one(json.dumps({"name": name, "inputSchema": {}}), "t.json").wire_name == name


@pytest.mark.parametrize(
    ("schema", "read"),
    [
        ({}, {"type": "object"}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({"$schema": "x"}, {"type": "object", "$schema": "x"}),
        ({"type": "object", "oneOf": []}, {"type": "object", "oneOf": []}),
    ],
    ids=["adds_to_nothing", "adds_to_properties", "adds_to_a_dialect", "leaves_the_rest"],
)
def test_takes_an_input_without_type_for_an_object(schema: Json, read: Json) -> None:
    assert one(json.dumps({"name": "t", "inputSchema": schema}), "t.json").input_schema == read


ODD_TEXTS = {
    "line_separator": "a \u2028 b",
    "next_line": "a \x85 b",
    "triple_quotes": "'''\"\"\"\\",
    "private_use": "\ue000\u2029\\ue001",
    "emoji": "\U0001f600",
}


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_keeps_odd_characters(text: str) -> None:
    for ascii_only in (True, False):
        quoted = json.dumps(text, ensure_ascii=ascii_only)
        assert one(f'{{"name": "t", "inputSchema": {{}}, "title": {quoted}}}', "t.json").title == text
        if "\U0001f600" not in text or not ascii_only:  # YAML has no escape made of two halves
            assert one(f"{SMALL.format('t')}title: {quoted}").title == text
    assert one(f"{SMALL.format('t')}title: |-\n  {text}\n").title == text


def test_keeps_an_escaped_nul() -> None:
    assert one(f'{SMALL.format("t")}description: "a\\0b"').description == "a\0b"
    assert one('{"name": "t", "inputSchema": {}, "description": "a\\u0000b"}', "t.json").description == "a\0b"


def test_gives_up_when_no_character_is_left_to_stand_in() -> None:
    taken = "".join(map(chr, range(0xE000, 0xE100)))
    with pytest.raises(SpecError, match=r"write U\+0085, U\+2028 and U\+2029 as escapes"):
        load_spec_text(f'{SMALL.format("t")}title: "{taken}\u2028"', "t.yaml", None)


def test_reads_the_answer_of_a_server() -> None:
    tools = [{"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}, "icons": [], "execution": {}}]
    text = json.dumps({"tools": tools, "nextCursor": "x", "_meta": {}})
    for source in ("list.json", "list.yaml"):
        specs = load_spec_text(text, source, None)
        assert [(spec.name, spec.pointer, spec.source) for spec in specs] == [
            ("a", "/tools/0", source),
            ("b", "/tools/1", source),
        ]


def test_finds_spec_files_in_order(tmp_path: Path) -> None:
    for name in ("tools/b.yaml", "tools/a/z.json", "tools/a.yml", "tools/notes.md", "tools/a/read.py", "other.yaml"):
        stem = Path(name).stem
        write(tmp_path / name, json.dumps({"name": stem, "inputSchema": {}}) if name[-2:] != "md" else "")
    specs = load_specs([tmp_path / "other.yaml", tmp_path / "tools", tmp_path / "tools" / "b.yaml"], base=tmp_path)
    assert [spec.source for spec in specs] == ["other.yaml", "tools/a.yml", "tools/a/z.json", "tools/b.yaml"]
    assert [spec.name for spec in specs] == ["other", "a", "z", "b"]


def test_reports_the_mistakes_of_all_files(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", SMALL.format("one"))
    write(tmp_path / "b.yaml", SMALL.format("two") + "rename: one\nzzz: 1\n")
    write(tmp_path / "c.json", "{")
    (tmp_path / "d.yaml").write_bytes(b"name: \xff")
    write(tmp_path / "e.yaml", " " * (32 * 1024 * 1024 + 1))
    write(tmp_path / "f.yaml", "\ufeff" + SMALL.format("f"))
    assert problems_of(tmp_path, tmp_path / "nowhere", tmp_path / "no.yaml", base=tmp_path.parent) == tuple(
        problem.replace("@ ", f"@ {tmp_path.name}/").replace("by a.yaml", f"by {show_path(tmp_path / 'a.yaml')}")
        for problem in (
            "unknown key 'zzz'; keys of your own start with 'x-' @ b.yaml:/zzz",
            "not JSON: Expecting property name enclosed in double quotes @ c.json:1:2",
            "this is not UTF-8 text; save the file as UTF-8 @ d.yaml:1:7",
            "the file has more than 33554432 bytes @ e.yaml:",
            "the file starts with a byte order mark (BOM): save it as UTF-8 without one @ f.yaml:",
            "no such file or directory @ nowhere:",
            "no such file @ no.yaml:",
            "the name 'one' is taken by a.yaml:1:1; add a 'rename' to one of the two @ b.yaml:/rename",
        )
    )


def test_reads_no_links_and_no_pipes(tmp_path: Path) -> None:
    write(tmp_path / "real" / "a.yaml", SMALL.format("a"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "link.yaml").symlink_to(tmp_path / "real" / "a.yaml")
    (tools / "folder").symlink_to(tmp_path / "real")
    os.mkfifo(tools / "pipe.yaml")
    assert problems_of(tools, tools / "link.yaml", base=tmp_path) == (
        "a symbolic link: only real directories are searched @ tools/folder:",
        "a symbolic link: only regular files are read @ tools/link.yaml:",
        "not a regular file @ tools/pipe.yaml:",
    )


def test_wants_a_known_file_ending(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "")
    assert problems_of(path, base=tmp_path) == ("not a spec file: its name must end in .yaml, .yml or .json @ a.toml:",)


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A spec directory with description files inside and outside."""
    write(tmp_path / "secret.md", "secret")
    write(tmp_path / "tools/long.md", "In ${workspace}, ${directory} or ${cwd}; $HOME and ${ stay.\r\n")
    write(tmp_path / "tools/docs/long.md", "deeper")
    write(tmp_path / "tools/env.md", "${HOME} ${workspace} ${a\nb}")
    write(tmp_path / "tools/big.md", "x" * (256 * 1024 + 1))
    (tmp_path / "tools/latin.md").write_bytes(b"caf\xe9")
    (tmp_path / "tools/link.md").symlink_to("long.md")
    (tmp_path / "tools/out").symlink_to(tmp_path)
    return tmp_path / "tools"


@pytest.mark.parametrize("name", ["docs/long.md", "./docs/long.md"])
def test_reads_a_description_file_below_the_spec(described: Path, name: str) -> None:
    path = write(described / "t.yaml", f"{SMALL.format('t')}descriptionFile: {name}\n")
    assert [spec.long_description for spec in load_specs([path], base=described)] == ["deeper"]


def test_leaves_the_placeholders_of_a_description_file(described: Path) -> None:
    (spec,) = load_spec_text(f"{SMALL.format('t')}descriptionFile: long.md", "t.yaml", described)
    assert spec.long_description == "In ${workspace}, ${directory} or ${cwd}; $HOME and ${ stay.\r\n"


REFUSED_FILES = {
    "climbs": ("../secret.md", ["'../secret.md' is not a relative file name without '..'"]),
    "climbs_from_below": ("docs/../../secret.md", ["'docs/../../secret.md' is not a relative file name without '..'"]),
    "starts_at_the_root": ("/secret.md", ["'/secret.md' is not a relative file name without '..'"]),
    "is_empty": ("", ["'' is not a relative file name without '..'"]),
    "holds_a_nul": ("a\0", ["'a\\x00' is not a relative file name without '..'"]),
    "is_a_link": ("link.md", ["a symbolic link: only regular files are read"]),
    "goes_through_a_link": ("out/secret.md", ["a part of the path is a symbolic link or not a directory"]),
    "is_a_directory": ("docs", ["not a regular file"]),
    "is_missing": ("none.md", ["no such file"]),
    "is_too_long_a_name": ("a" * 300, ["cannot be read: File name too long"]),
    "is_too_large": ("big.md", ["the file has more than 262144 bytes"]),
    "is_latin": ("latin.md", ["this is not UTF-8 text; save the file as UTF-8"]),
    "asks_for_the_environment": (
        "env.md",
        [
            f"'{asked}' is not a placeholder; ${{workspace}}, ${{directory}} and ${{cwd}} are"
            for asked in ("${HOME}", "${a\\nb}")
        ],
    ),
}


@pytest.mark.parametrize(("name", "messages"), REFUSED_FILES.values(), ids=REFUSED_FILES.keys())
def test_refuses_a_description_file_that(described: Path, name: str, messages: list[str]) -> None:
    text = json.dumps({"name": "t", "inputSchema": {}, "descriptionFile": name})
    with pytest.raises(SpecError) as caught:
        load_spec_text(text, "t.json", described)
    assert list(short_forms(caught.value)) == [
        f"'descriptionFile': {line} @ t.json:/descriptionFile" for line in messages
    ]


def test_the_model_needs_no_yaml() -> None:
    code = "import sys, toolkit.schema.spec, toolkit.schema.spec_files; assert 'yaml' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
