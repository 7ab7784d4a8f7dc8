"""The form of generated code: it changes only together with ``FORM``, and a package of another form is not reused."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.codegen.test_generation import copy_of_the_source_tree
from tests.projects import Project, tool
from toolkit.codegen import FORM, check
from toolkit.errors import GenerationError

EXPECTED = Path(__file__).parent / "form" / "expected.json"

POINT = {
    "type": "object",
    "description": "A point.",
    "additionalProperties": False,
    "required": ["x"],
    "properties": {"x": {"type": "integer", "minimum": 0}, "label": {"type": ["string", "null"]}},
}
SPECS: list[dict[str, Any]] = [
    # nested objects, enums, optional without default, a keyword and an awkward name as properties, a default that is a model
    {
        "name": "draw-line",
        "title": "Draw",
        "description": 'Draws a line.\n\nWith "quotes" and \\ backslashes.',
        "annotations": {"readOnlyHint": False},
        "permissions": {"required": ["write"], "optional": ["network"]},
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["class", "points"],
            "properties": {
                "class": {"enum": ["thin", "thick"], "description": "How thick."},
                "points": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 2},
                "start": {"$ref": "#/$defs/point", "default": {"x": 1}},
                "note": {"type": "string", "maxLength": 80},
                "scale": {"type": "number", "exclusiveMinimum": 0, "default": 1.5},
                "color": {"enum": ["red", "blue", None], "default": None},
                "a-b": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "$defs": {"point": POINT},
        },
        "outputSchema": {"type": "object", "required": ["last"], "properties": {"last": POINT}},
    },
    # a tool that hides a builtin, an output whose root is not an object
    {
        "name": "list",
        "description": "Lists names.",
        "permissions": ["read"],
        "parallel": True,
        "inputSchema": {
            "type": "object",
            "properties": {"folder": {"type": "string", "x-resource": "read-path"}, "sizes": {"type": "array"}},
        },
        "outputSchema": {"type": "array", "items": {"type": "string"}, "description": "Names."},
    },
    # no output schema, no properties
    {"name": "done", "inputSchema": {"type": "object"}, "blocking": False},
    # enforced keywords in input and output
    {
        "name": "search",
        "description": "Searches.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "minProperties": 1,
            "not": {"required": ["id", "name"]},
        },
        "outputSchema": {"type": ["integer", "null"], "not": {"const": 13}},
    },
    # names of nested types: tags, a title, a property that only one has; two equal types
    {
        "name": "edit-text",
        "description": "Edits a text.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "items": {
                        "oneOf": [
                            {"type": "object", "properties": {"op": {"const": op}, "at": POINT}, "required": ["op"]}
                            for op in ("insert_text", "delete_text")
                        ]
                    },
                },
                "selection": {"type": "object", "title": "Text range", "properties": {"start": POINT, "end": POINT}},
                "note": {"anyOf": [{"type": "object", "properties": {key: {}}} for key in ("author", "date")]},
            },
        },
    },
]


def generate_form(folder: Path) -> dict[str, bytes]:
    project = Project(folder, SPECS)
    project.write(
        "pyproject.toml",
        (folder / "pyproject.toml").read_text()
        + '[tool.toolkit.imports.time]\ncommand = ["server"]\n[tool.toolkit.imports.pets]\nopenapi = "pets.json"\n',
    )
    mcp = {**tool("now"), "permissions": ["execute"], "wrapsResult": True}
    api = {
        **tool("get pet"),
        "permissions": ["network"],
        "request": {"method": "get", "path": "/pets", "accept": "*/*"},
    }
    for name, origin, spec in (
        ("time", {"kind": "mcp", "name": "time"}, mcp),
        ("pets", {"kind": "openapi", "name": "pets", "url": "https://pets.example.org"}, api),
    ):
        project.write(f"acme/tools/{name}.json", json.dumps({"origin": origin, "tools": [spec]}))
    project.generate()
    assert check(project.settings) == ""
    return project.files()


def digest_of(files: dict[str, bytes]) -> str:
    """Of all files, the form itself left out."""
    manifest = json.loads(files["manifest.json"])
    del manifest["form"]
    parts = {**files, "manifest.json": json.dumps(manifest, indent=1).encode()}
    return hashlib.sha256(b"\0".join(name.encode() + b"\0" + data for name, data in sorted(parts.items()))).hexdigest()


def test_generated_code_changes_only_with_its_form(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = {"form": FORM, "digest": digest_of(generate_form(tmp_path))}
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.is_file() else None
    if pytestconfig.getoption("--update-snapshots") and (expected is None or expected["form"] < FORM):
        EXPECTED.write_text(json.dumps(found, indent=2) + "\n")
        return
    assert expected is not None, f"{EXPECTED} is missing: run `pytest tests/codegen/test_form.py --update-snapshots`"
    assert found == expected, (
        "the generated code for unchanged specs is not what it was: raise FORM in codegen/package/manifest.py, then run"
        " `pytest tests/codegen/test_form.py --update-snapshots`"
    )


GENERATE = """
import sys
sys.path.insert(0, sys.argv[1])
import toolkit.codegen
assert toolkit.codegen.__file__.startswith(sys.argv[1])
from toolkit.cli.commands import app
app(["generate"])
"""


@pytest.mark.whole  # the digest above would show it with the next comment
@pytest.mark.slow
def test_a_comment_in_the_generator_changes_no_byte_of_the_package(tmp_path: Path) -> None:
    trees = []
    for name, comment in (("before", ""), ("after", "\n# A comment.\n")):
        source = copy_of_the_source_tree(tmp_path / name)
        for file in (source / "codegen").rglob("*.py"):
            file.write_text(file.read_text() + comment)
        project = Project(tmp_path / f"{name}-project", SPECS)
        subprocess.run([sys.executable, "-c", GENERATE, str(source)], cwd=project.root, check=True, capture_output=True)
        trees.append(project.files())
    assert trees[0] == trees[1]


def give_another_form(package: Path) -> None:
    """Makes a package look as if another version had generated it."""
    manifest = package / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"form": {FORM}', '"form": 0'))


@pytest.mark.slow
def test_a_package_of_another_form_is_regenerated(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    before = project.files()
    give_another_form(project.output)
    checked = command_line.toolkit(tmp_path, "check")
    assert checked.returncode == 1
    words = f"(it has form 0, and this version of typed-toolkit writes {FORM}): run `toolkit generate`"
    assert checked.stdout.endswith(f"acme/generated differs from its specs {words}\n")
    done = command_line.toolkit(tmp_path, "generate", check=True)
    assert done.stdout.splitlines() == [
        "acme/generated: 1 file changed",
        f"everything was regenerated: it had form 0, and this version of typed-toolkit writes form {FORM}",
    ]
    assert project.files() == before


def test_an_included_package_of_another_form_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Project(tmp_path / "other", [tool("alpha")])
    other.generate()
    shutil.move(other.root / "acme", tmp_path / "included_package")
    monkeypatch.syspath_prepend(tmp_path)
    project = Project(tmp_path / "project", [tool("beta")], include=["included_package.generated"])
    project.generate()
    give_another_form(tmp_path / "included_package" / "generated")
    with pytest.raises(GenerationError) as refused:
        project.generate()
    [found] = refused.value.findings
    assert (found.source, found.pointer) == ("pyproject.toml", "/tool/toolkit/include")
    assert found.message == (
        "'include' names 'included_package.generated', which was generated by another version of typed-toolkit (form 0; this"
        f" version reads form {FORM}); run `toolkit generate` in that package's project, or install another release of it"
    )
