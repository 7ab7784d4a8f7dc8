"""Line and column of findings, in YAML, JSON and TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.schema.places import locate
from toolkit.schema.problems import Finding, SpecPlace

YAML = """\
# a comment
name: x
inputSchema:
  type: object
  properties:
    a: {type: string, requird: [b]}
    ? [odd]
    : 1
    list: [1, {q: 1}]
"""
JSON = """\
{"name": "x", "escaped \\u0061": 1,
 "list": [1,
  {"q": "[{"}], "q": {"a/b": 0}}
"""
TOML = """\
title = "x" # ]
[tool.toolkit]
specs = [
  "a", # ]
  "b",
]
"odd key" = \"\"\"
[not.a.header]
specs = 1
\"\"\"
[tool.toolkit.imports."my time"]
oauth = { client_id = "a", scope = "b" }
[[rules]]
a = 1
[[rules]]
path = "x"
"""
PLACES = [
    ("a.yaml", YAML, "/inputSchema/properties/a/requird", (6, 23)),
    ("a.yaml", YAML, "/inputSchema/properties/list/1/q", (9, 16)),
    ("a.yaml", YAML, "/inputSchema/missing", (3, 1)),
    ("a.yaml", YAML, "", (1, 1)),
    ("a.json", JSON, "/escaped a", (1, 15)),
    ("a.json", JSON, "/list/1/q", (3, 4)),
    ("a.json", JSON, "/q/a~1b", (3, 23)),
    ("a.toml", TOML, "/tool/toolkit/specs/1", (5, 3)),
    ("a.toml", TOML, "/tool/toolkit/specs", (3, 1)),
    ("a.toml", TOML, "/tool/toolkit/odd key", (7, 1)),
    ("a.toml", TOML, "/tool/toolkit/imports/my time/oauth/scope", (12, 28)),
    ("a.toml", TOML, "/rules/1/path", (16, 1)),
    ("a.toml", TOML, "/tool/toolkit/missing", (2, 1)),
]


@pytest.mark.parametrize(("name", "text", "pointer", "place"), PLACES)
def test_finds(name: str, text: str, pointer: str, place: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    [found] = locate([Finding("wrong", name, pointer)], tmp_path)
    assert (found.line, found.column) == place


def test_paths_are_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.yaml").write_text("name: x\n")
    for folder, shown in ((tmp_path, "tools/a.yaml"), (tmp_path / "tools", "a.yaml")):
        monkeypatch.chdir(folder)
        [found] = locate([Finding("wrong", "tools/a.yaml", "/name")], tmp_path)
        assert str(found) == f"{shown}:1:1: wrong (/name)"


def test_another_place_that_a_message_names_has_its_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("title: x\nname: x\n")
    (tmp_path / "b.yaml").write_text("name: x\n")
    other = SpecPlace("a.yaml", "/name")
    [found] = locate([Finding(f"taken by {other}", "b.yaml", "/name", other=other)], tmp_path)
    assert str(found) == "b.yaml:1:1: taken by a.yaml:2:1 (/name)"
    module = SpecPlace("acme.math", "add")
    [found] = locate([Finding(f"taken by {module}", "b.yaml", "/name", other=module)], tmp_path)
    assert str(found) == "b.yaml:1:1: taken by acme.math:add (/name)"


def test_a_source_that_is_not_a_file_keeps_its_name(tmp_path: Path) -> None:
    [found] = locate([Finding("wrong", "acme.math", "add")], tmp_path)
    assert str(found) == "acme.math: wrong (add)"
