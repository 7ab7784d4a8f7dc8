"""What datamodel-code-generator wrote is kept in the user's cache folder. No state of that folder changes a package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.projects import Project, tool
from toolkit.codegen import check
from toolkit.codegen.package.classes import keep_texts, read_kept_texts

GENERATE = """
import sys
from pathlib import Path
from toolkit.codegen import find_settings, generate
generate(find_settings(Path()))
print("datamodel_code_generator" in sys.modules)
"""
KEEP_OFTEN = """
from pathlib import Path
from toolkit.codegen import find_settings
from toolkit.codegen.package.classes import keep_texts
settings = find_settings(Path({root!r}))
for _ in range(50):
    keep_texts(settings, {{ {name!r}: "x" * {size} }}, 1)
"""
SIZES = {("0", 100_000), ("1", 100_000), ("2", 200_000)}
OTHER_TYPE = tool("one", inputSchema={"type": "object", "properties": {"other": {"type": "integer"}}})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = Project(tmp_path / "project", [tool("one"), tool("two")])
    project.generate()
    return project


def kept_file(project: Project) -> Path:
    (file,) = (project.root.parent / "cache" / "typed-toolkit" / "classes").iterdir()
    return file


def change(project: Project, *tools: object) -> None:
    project.write("acme/tools/tools.json", json.dumps({"tools": tools}))


def test_a_changed_description_needs_no_run_of_the_generator_beneath(project: Project) -> None:
    change(project, tool("one", description="Says something else."), tool("two"))

    assert project.python(GENERATE).stdout.strip() == "False"
    assert "Says something else." in (project.output / "models" / "one.py").read_text()
    assert check(project.settings) == ""


def test_a_changed_type_is_written_and_the_old_one_is_still_known(project: Project) -> None:
    before = project.files()
    change(project, OTHER_TYPE, tool("two"))
    assert project.python(GENERATE).stdout.strip() == "True"
    assert check(project.settings) == ""

    change(project, tool("one"), tool("two"))
    assert project.python(GENERATE).stdout.strip() == "False"
    assert project.files() == before


def damage_one_class(file: Path) -> None:
    data = file.read_bytes()
    assert b"total: int" in data
    file.write_bytes(data.replace(b"total: int", b"total: str"))


def put_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "one class changed": damage_one_class,
    "cut off": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "not text": lambda file: file.write_bytes(b"\xff\xfe\n\xff"),
    "of other options": lambda file: file.write_text("0" * 64 + file.read_text()[64:]),
    "gone": Path.unlink,
    "a folder": put_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_only_costs_time(project: Project, damage: str) -> None:
    DAMAGES[damage](kept_file(project))
    change(project, tool("one", description="Says something else."), tool("two"))
    project.generate()

    assert "Says something else." in (project.output / "models" / "one.py").read_text()
    assert check(project.settings) == ""


def test_check_does_not_trust_what_is_kept(project: Project) -> None:
    texts = read_kept_texts(project.settings)
    keep_texts(project.settings, {key: text.replace("total: int", "total: str") for key, text in texts.items()}, 2)
    change(project, tool("one", description="Says something else."), tool("two"))
    project.generate()

    assert "-    total: str\n+    total: int" in check(project.settings)


@pytest.mark.slow
def test_two_runs_that_write_at_once_never_leave_a_mixture(project: Project) -> None:
    keep_texts(project.settings, {"0": "x" * 100_000}, 1)
    runs = [
        subprocess.Popen([sys.executable, "-c", KEEP_OFTEN.format(root=str(project.root), name=name, size=size)])
        for name, size in (("1", 100_000), ("2", 200_000))
    ]
    seen = [read_kept_texts(project.settings)]
    while any(run.poll() is None for run in runs):
        seen.append(read_kept_texts(project.settings))

    assert [run.returncode for run in runs] == [0, 0]
    assert {(name, len(text)) for texts in seen for name, text in texts.items()} <= SIZES
    assert {len(texts) for texts in seen} == {1}
    assert len(list(kept_file(project).parent.iterdir())) == 1


def test_only_the_newest_texts_are_kept(project: Project) -> None:
    texts = {str(number): "class A:\n    pass" for number in range(500)}
    keep_texts(project.settings, texts, 60)

    assert list(read_kept_texts(project.settings)) == [str(number) for number in range(380, 500)]
