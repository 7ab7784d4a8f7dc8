"""From specs to a package on disk: complete, deterministic, incremental, atomic, and kind to files that are not ours."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.findings import short_forms
from tests.projects import REPOSITORY, Project, many_tools, run, tool
from toolkit.codegen import check, find_settings, generate
from toolkit.errors import GenerationError, SetupError, SpecError

IMPORT_ALL = """
import importlib, pkgutil, acme.generated as package
for found in pkgutil.walk_packages(package.__path__, "acme.generated."):
    importlib.import_module(found.name)
for name in dir(package):
    getattr(package, name)
print(len(package.CATALOG.tools))
"""


@pytest.mark.parametrize("count", [0, 1, 18])
@pytest.mark.slow
def test_any_number_of_tools_gives_a_package_that_runs(tmp_path: Path, count: int) -> None:
    project = Project(tmp_path, many_tools(count))
    assert len(project.generate()) == 13 + count
    assert project.python(IMPORT_ALL).stdout.strip() == str(count)


@pytest.mark.slow
def test_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    trees = []
    for seed in ("1", "2"):
        project = Project(tmp_path / seed, many_tools(8))
        command = [sys.executable, "-m", "toolkit.codegen", "generate"]
        subprocess.run(
            command, cwd=project.root, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        )
        trees.append(project.files())
    assert trees[0] == trees[1]


@pytest.mark.slow
def test_nothing_changed_means_nothing_is_written_or_imported(tmp_path: Path) -> None:
    project = Project(tmp_path, many_tools(3))
    project.generate()
    before = {file: file.stat().st_mtime_ns for file in project.output.rglob("*")}
    code = """
import sys
from pathlib import Path
from toolkit.codegen import generate
from toolkit.codegen import find_settings
print(generate(find_settings(Path())))
print([name for name in ("datamodel_code_generator", "yaml", "jinja2", "black", "toolkit.generated") if name in sys.modules])
"""
    assert project.python(code).stdout.splitlines() == ["[]", "[]"]
    assert {
        file: file.stat().st_mtime_ns for file in project.output.rglob("*") if "__pycache__" not in file.parts
    } == before


def edit(project: Project, specs: list[dict[str, Any]]) -> None:
    project.write("acme/tools/tools.json", json.dumps({"tools": specs}))


def separate(project: Project, specs: list[dict[str, Any]]) -> None:
    """One file a spec: what changes then is one file's business."""
    (project.root / "acme/tools/tools.json").unlink(missing_ok=True)
    for spec in specs:
        project.write(f"acme/tools/{spec['name']}.json", json.dumps(spec))


@pytest.mark.slow
def test_editing_one_spec_changes_only_what_it_must(tmp_path: Path) -> None:
    specs = [tool(name) for name in ("alpha", "beta", "gamma")]
    project = Project(tmp_path / "a")
    separate(project, specs)
    project.generate()

    specs[1]["inputSchema"]["properties"]["limit"]["maximum"] = 50
    separate(project, specs)
    assert project.generate() == ["manifest.json", "models/beta.py"]

    specs[1]["inputSchema"]["properties"]["more"] = {"type": "boolean"}
    separate(project, specs)
    assert project.generate() == ["async_facade.py", "facade.py", "manifest.json", "models/beta.py"]

    specs[1]["description"] = "Another text."
    separate(project, specs)
    assert project.generate() == ["async_facade.py", "facade.py", "manifest.json", "models/beta.py"]

    fresh = Project(tmp_path / "b")
    separate(fresh, specs)
    fresh.generate()
    assert project.files() == fresh.files()


@pytest.mark.slow
def test_incremental_equals_from_scratch_through_many_changes(tmp_path: Path) -> None:
    project = Project(tmp_path / "a")
    steps: list[list[str]] = [
        ["b"],
        ["a", "b"],
        ["a", "b", "read_file", "readFile"],
        ["readFile", "a"],
        [],
        ["Foo", "foo", "fOO"],
        ["foo"],
    ]
    for number, names in enumerate(steps):
        for file in (project.root / "acme/tools").iterdir():
            file.unlink()
        # With two specs in one file, so that a file's rows are kept or dropped together.
        project.write("acme/tools/pair.json", json.dumps({"tools": [tool(name) for name in names[:2]]}))
        for index, name in enumerate(names[2:]):
            project.write(f"acme/tools/{index}.json", json.dumps(tool(name)))
        project.generate()
        assert check(project.settings) == ""
        fresh = Project(tmp_path / f"fresh{number}")
        shutil.rmtree(fresh.root / "acme/tools")
        shutil.copytree(project.root / "acme/tools", fresh.root / "acme/tools")
        fresh.generate()
        assert project.files() == fresh.files(), names


@pytest.mark.slow
def test_one_changed_spec_among_many_gives_what_a_run_over_all_gives(tmp_path: Path) -> None:
    """Alone it has a run of datamodel-code-generator of its own; in a run over all it shares one."""
    # Its text must not look like the start of another tool in the manifest.
    specs = [*many_tools(30), tool("odd", description='Ends ",\n  },\n  {\n   "name": "x"')]
    project = Project(tmp_path / "a")
    separate(project, specs)
    project.generate()
    for position in (2, 21, 30):
        specs[position]["inputSchema"]["properties"]["more"] = {
            "type": "object",
            "properties": {"x": {"type": "string"}},
        }
        separate(project, specs)
        project.generate()
        fresh = Project(tmp_path / f"fresh{position}")
        separate(fresh, specs)
        fresh.generate()
        assert project.files() == fresh.files(), position


def test_a_changed_description_file_is_seen(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("acme/tools/long.md", "Works in ${workspace}.")
    separate(project, [tool("long", descriptionFile="long.md")])
    project.generate()
    assert project.generate() == []
    project.write("acme/tools/long.md", "Works elsewhere.")
    assert project.generate() == ["manifest.json"]
    assert "Works elsewhere." in project.files()["manifest.json"].decode()


def test_a_failed_run_leaves_the_old_output_whole(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha"), tool("beta")])
    project.generate()
    before = project.files()
    broken = tool("beta")
    broken["inputSchema"]["properties"]["query"] = {"type": "text"}
    edit(project, [tool("alpha"), broken, tool("gamma")])
    with pytest.raises(SpecError, match="'type' must be one of"):
        project.generate()
    assert project.files() == before


KILL_AT_RENAME = """
import os, signal, sys
from pathlib import Path
from toolkit.codegen import generate
from toolkit.codegen import find_settings

left = int(sys.argv[1])

def watch(event, args):
    global left
    if event in ("os.rename", "os.remove") and "staging" in str(args[0]) or event == "os.remove" and str(args[0]).endswith(".py"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

settings = find_settings(Path())
sys.addaudithook(watch)
generate(settings)
"""


@pytest.mark.whole
@pytest.mark.slow
def test_killed_in_the_middle_of_a_write_the_package_can_be_imported_and_the_next_run_finishes(
    tmp_path: Path, everything: bool
) -> None:
    every = 1 if everything else 3
    old = [tool("alpha"), tool("beta"), tool("gone")]
    new = [tool("alpha", description="Changed."), tool("beta"), tool("gamma"), tool("delta")]
    wanted = Project(tmp_path / "wanted", new)
    wanted.generate()
    kills = 0
    for moment in range(0, 100, every):
        project = Project(tmp_path / f"killed{moment}", old)
        project.generate()
        edit(project, new)
        done = run([sys.executable, "-c", KILL_AT_RENAME, str(moment)], project.root, check=False)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 1
        project.python(IMPORT_ALL)
        project.generate()
        assert project.files() == wanted.files(), f"killed at rename {moment}"
    assert kills * every >= 8


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_output_whole(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    before = project.files()
    edit(project, many_tools(20))
    code = """
import resource
from pathlib import Path
from toolkit.codegen import generate
from toolkit.codegen import find_settings
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
generate(find_settings(Path()))
"""
    done = project.python(code, check=False)
    assert "File too large" in done.stderr
    assert project.files() == before


def test_surplus_files_of_ours_go_and_foreign_files_stay(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha"), tool("beta")])
    project.generate()
    for name in ("notes.txt", "own.py", "models/own.py", "sub/data.json"):
        project.write(f"acme/generated/{name}", "mine")
    shutil.copy(project.output / "models/beta.py", project.output / "models/stray.py")
    edit(project, [tool("alpha")])
    changed = project.generate()
    assert {"models/beta.py", "models/stray.py"} <= set(changed)
    left = project.files()
    assert "models/beta.py" not in left and "models/stray.py" not in left
    assert [left[name] for name in ("notes.txt", "own.py", "models/own.py", "sub/data.json")] == [b"mine"] * 4
    assert check(project.settings) == ""


def test_a_foreign_file_in_the_way_is_not_overwritten(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.write("acme/generated/models/alpha.py", "important = True\n")
    with pytest.raises(GenerationError, match=r"generated/models/alpha.py: .* was not generated; move it"):
        project.generate()
    assert list(project.files()) == ["models/alpha.py"]


@pytest.mark.slow
def test_check_tells_a_hand_edit_a_missing_and_a_surplus_file(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha"), tool("beta")])
    project.generate()
    assert check(project.settings) == ""

    models = project.output / "models"
    text = (models / "alpha.py").read_text()
    (models / "alpha.py").write_text(text.replace("le=100", "le=1000"))
    (models / "surplus.py").write_text(text)
    (models / "beta.py").unlink()
    difference = check(project.settings)
    assert "missing file: generated/models/beta.py" in difference
    assert "unexpected file: generated/models/surplus.py" in difference
    assert "-    limit: Annotated[int, Field(ge=1, le=1000)] = 10" in difference
    assert "+    limit: Annotated[int, Field(ge=1, le=100)] = 10" in difference

    assert project.generate() == ["models/alpha.py", "models/beta.py", "models/surplus.py"]
    assert check(project.settings) == ""


def test_check_does_not_believe_the_manifest(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    file = project.output / "models/alpha.py"
    edited = file.read_text().replace("le=100", "le=1000")
    manifest = project.output / "manifest.json"
    import hashlib

    old, new = (hashlib.sha256(text.encode()).hexdigest() for text in (file.read_text(), edited))
    file.write_text(edited)
    manifest.write_text(manifest.read_text().replace(old, new))
    assert "le=1000" in check(project.settings)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"generator": "typed-toolkit"',
        '["generator":"typed-toolkit"]',
        '{"generator": "typed-toolkit", "tools": [{}]}',
    ],
)
@pytest.mark.slow
def test_an_unusable_manifest_costs_only_time(tmp_path: Path, text: str) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    before = project.files()
    (project.output / "manifest.json").write_text(text)
    assert project.generate() == ["manifest.json"]
    assert project.files() == before


def copy_of_the_source_tree(folder: Path) -> Path:
    for name in ("toolkit", "codegen", "generated"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored, symlinks=True)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    return folder


def generate_there(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "toolkit.codegen", "generate"],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )


def tree(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


@pytest.mark.slow
def test_our_own_package_comes_back_as_committed_after_it_was_deleted(tmp_path: Path) -> None:
    folder = copy_of_the_source_tree(tmp_path)
    shutil.rmtree(folder / "generated")
    generate_there(folder)
    assert tree(folder / "generated") == tree(REPOSITORY / "generated")


@pytest.mark.slow
def test_the_generator_runs_while_our_own_package_is_broken(tmp_path: Path) -> None:
    folder = copy_of_the_source_tree(tmp_path)
    for file in (folder / "generated").rglob("*.py"):
        header = file.read_text().partition('."""\n')
        file.write_text("".join(header[:2]) + "(( this is no Python")
    generate_there(folder)
    assert tree(folder / "generated") == tree(REPOSITORY / "generated")


def test_the_names_of_the_facades_are_all_taken(tmp_path: Path) -> None:
    import ast

    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    found: set[str] = set()
    for file in ("facade.py", "async_facade.py"):
        for node in ast.walk(ast.parse((project.output / file).read_text())):
            if isinstance(node, ast.ImportFrom):
                found |= {alias.asname or alias.name for alias in node.names}
    for name in found:
        with pytest.raises(
            SetupError,
            match=r"'class' must not be|'class' makes|'class' must be the name of a class, such as AcmeToolkit",
        ):
            Project(tmp_path / name, [tool("alpha")], **{"class": name}).generate()


def test_dropping_or_moving_a_spec_in_the_settings_is_seen(tmp_path: Path) -> None:
    files = {"one.json": "alpha", "two.json": "beta"}

    def project(*specs: str) -> Project:
        made = Project(tmp_path, [], specs=[f"specs/{spec}" for spec in specs])
        for file, name in files.items():
            made.write(f"specs/{file}", json.dumps(tool(name)))
        return made

    def tools() -> list[str]:
        return [row["name"] for row in json.loads(made.files()["manifest.json"])["tools"]]

    made = project("one.json", "two.json")
    made.generate()
    assert tools() == ["alpha", "beta"]
    project("two.json", "one.json").generate()
    assert tools() == ["alpha", "beta"]
    project("two.json").generate()
    assert tools() == ["beta"]
    assert check(made.settings) == "" and made.generate() == []


def test_a_description_file_that_looks_like_a_spec_is_none(tmp_path: Path) -> None:
    project = Project(tmp_path, [], specs="specs/alpha.json")
    project.write("specs/long.yaml", "Not a spec.")
    project.write("specs/alpha.json", json.dumps(tool("alpha", descriptionFile="long.yaml")))
    project.generate()
    assert project.generate() == []
    project.write("specs/long.yaml", "Still none.")
    assert project.generate() == ["manifest.json"]


@pytest.mark.parametrize(("old", "new"), [('"Tool alpha."', '"Edited."'), ("\n", "\r\n"), ('"limit"', '"limits"')])
def test_a_manifest_edited_by_hand_is_repaired(tmp_path: Path, old: str, new: str) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    before = project.files()
    manifest = project.output / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(old.encode(), new.encode()))
    assert project.files() != before
    assert project.generate() == ["manifest.json"]
    assert project.files() == before


FOREIGN = {
    "a module that mentions us": ("models/alpha.py", '"""How files Generated by typed-toolkit are used."""\n'),
    "a manifest of another tool": ("manifest.json", '{"name": "my web app"}'),
    "a manifest that is a list": ("manifest.json", "[]"),
    "a marker with content": ("py.typed", "partial\n"),
    "a folder for a file": ("names.py/x", ""),
    "a file for a folder": ("models", "mine"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_not_ours_is_neither_overwritten_nor_removed(tmp_path: Path, what: str) -> None:
    path, text = FOREIGN[what]
    project = Project(tmp_path, [tool("alpha")])
    project.write(f"acme/generated/{path}", text)
    with pytest.raises(GenerationError, match=r"generated/.*; move it, or choose another 'package'"):
        project.generate()
    assert project.files() == {path: text.encode()}


def test_a_file_in_the_place_of_the_package_is_told(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.write("acme/generated", "mine")
    with pytest.raises(GenerationError, match="a folder is needed here, but this is a file; move it"):
        project.generate()


def test_foreign_modules_and_nested_packages_survive_a_clean_up(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha"), tool("beta")])
    project.generate()
    mentions = '"""Reads files.\n\nGenerated by typed-toolkit. Do not edit: run `toolkit generate`.\n"""\n'
    project.write("acme/generated/reader.py", mentions)
    shutil.copytree(project.output, tmp_path / "copy")
    shutil.copytree(tmp_path / "copy", project.output / "inner")
    edit(project, [tool("alpha")])
    project.generate()
    left = project.files()
    assert left["reader.py"].decode() == mentions
    assert "inner/models/beta.py" in left and "models/beta.py" not in left


def test_what_a_killed_run_left_behind_is_told_and_removed(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    project.write("acme/generated/.toolkit-staging/models/alpha.py", "half")
    assert check(project.settings) == "unexpected file: generated/.toolkit-staging\n"
    assert project.generate() == [".toolkit-staging"]
    assert check(project.settings) == "" and project.generate() == []


def test_mistakes_of_loading_and_of_schemas_are_told_together(tmp_path: Path) -> None:
    broken = tool("alpha", more=1)
    broken["inputSchema"]["properties"]["query"] = {"type": "text"}
    broken["outputSchema"] = {"allOf": []}
    project = Project(tmp_path, [broken])
    with pytest.raises(SpecError) as failure:
        project.generate()
    assert [problem.rpartition(":")[2] for problem in short_forms(failure.value)] == [
        "/tools/0/more",
        "/tools/0/inputSchema/properties/query/type",
        "/tools/0/outputSchema/allOf",
    ]


def test_nested_names_that_meet_across_tools_stay_apart(tmp_path: Path) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}}
    get = {"name": "get", "inputSchema": {"type": "object", "properties": {"args": point}}}
    other = {"name": "get_args", "inputSchema": {"type": "object", "properties": {"y": {"type": "string"}}}}
    project = Project(tmp_path, [get, other])
    project.generate()
    facade = project.files()["facade.py"].decode()
    assert "args: _get_GetArgsArgs | Omit" in facade
    assert 'name: Literal["get_args"], args: GetArgsInput | GetArgsArgs' in facade


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": (
        {"spec": "x"},
        r"/pyproject.toml:5:1: unknown key 'spec'\. Did you mean 'specs'\? \(/tool/toolkit/spec\)$",
    ),
    "no specs": ({"specs": []}, "'specs' must name at least one file or folder"),
    "package is no name": ({"package": "acme/generated"}, "'package' must be a dotted module name"),
    "package is a keyword": ({"package": "acme.class"}, "'package' must be a dotted module name"),
    "package is an import": ({"package": "import"}, "'package' must be a dotted module name"),
    "package is ours": (
        {"package": "toolkit.generated"},
        "it would hide a package of typed-toolkit; use, for example, acme.generated",
    ),
    "class is no name": ({"class": "1x"}, "'class' must be the name of a class, such as AcmeToolkit"),
    "class is a keyword": ({"class": "None"}, "'class' must be the name of a class, such as AcmeToolkit"),
    "class is a lower keyword": ({"class": "class"}, "'class' must be the name of a class, such as AcmeToolkit"),
    "class is exported": ({"class": "Tools"}, "generated code uses that name; use, for example, AcmeToolkit"),
    "class is the context": ({"class": "ToolkitContext"}, "generated code uses that name"),
    "class is a builtin": ({"class": "str"}, "generated code uses that name"),
    "class is imported with Async": ({"class": "Runner"}, "generated code uses that name"),
    "class is a model": (
        {"class": "AlphaInput"},
        r"/pyproject.toml:4:1: 'class' makes 'AlphaInput', which is already a model of the tool 'alpha'; choose another name"
        r" \(/tool/toolkit/class\)$",
    ),
    "include twice": (
        {"include": ["toolkit.generated"] * 2},
        r"/pyproject.toml:5:1: 'include' contains 'toolkit.generated' more than once; remove one \(/tool/toolkit/include\)$",
    ),
    "pack is no reference": (
        {"packs": ["acme.tools"]},
        "'packs' entries have the form 'module:name', not 'acme.tools'",
    ),
    "include is no package": ({"include": ["json"]}, "'include' names 'json', which is not a generated package"),
    "specs are missing": (
        {"specs": "nowhere"},
        r"/pyproject.toml:2:1: 'specs' names 'nowhere', which does not exist; create it, or correct the path"
        r" \(/tool/toolkit/specs\)$",
    ),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_mistakes_in_settings(tmp_path: Path, what: str) -> None:
    keys, words = SETTINGS[what]
    project = Project(tmp_path, [tool("alpha")], **keys)
    with pytest.raises(SetupError, match=words):
        generate(project.settings)


def test_a_project_without_settings_is_told_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(SetupError, match=r"\[tool.toolkit\]"):
        find_settings(tmp_path)


def test_an_included_tool_is_never_shadowed(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("read_file")], include=["toolkit.generated"])
    with pytest.raises(
        SpecError, match=r"the tool name 'read_file' is taken by the included toolkit.generated.models.read_file"
    ):
        project.generate()
    edit(project, [tool("read-file")])
    with pytest.raises(SpecError) as clash:
        project.generate()
    assert short_forms(clash.value) == (
        "tools 'read_file' (toolkit.generated.models.read_file) and 'read-file' both become 'tools.read_file' in Python;"
        " rename one of them with 'rename' @ acme/tools/tools.json:/tools/0/name",
    )
