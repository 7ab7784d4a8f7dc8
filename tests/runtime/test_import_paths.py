"""Odd search paths and odd ways of importing, after a tool has written modules; see ``test_late_imports``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.runtime.test_late_imports import BUILD, MARK, PROJECT, Start, mark, project, run_agent

__all__ = ["project"]

OUTSIDE = Start(lambda ws: [str(ws.parent / "agent.py")], inside=False)
INSIDE = Start(lambda ws: [str(ws.parent / "agent.py")])
SPELLINGS = {
    "as it is": ("{base}/ws", OUTSIDE),
    "with a parent": ("{base}/ws/app/..", OUTSIDE),
    "with two slashes": ("{base}//ws", OUTSIDE),
    "with a slash at the end": ("{base}/ws/", OUTSIDE),
    "through a link and its parent": ("{base}/out/link/..", OUTSIDE),
    "relative": ("../ws", INSIDE),
    "relative, with a slash at the end": ("./", INSIDE),
    "empty, as for python -c": ("", INSIDE),
}
PLANT_AND_USE = f"""
toolkit.invoke("write_file", {{"path": "wave.py", "content": {mark("wave")!r}}})
old = toolkit.invoke("read_file", {{"path": "acme/generated/models/later.py"}}).content.content
toolkit.invoke("write_file", {{"path": "acme/generated/models/later.py", "content": old + chr(10) + {MARK % "later"!r}}})
import wave
print(toolkit.invoke("later", {{"query": "abc"}}).content.total)
"""


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("control", [False, pytest.param(True, marks=pytest.mark.sample(every=8))])
def test_the_workspace_is_recognised_however_it_is_spelled_on_the_path(
    tmp_path: Path, project: Path, spelling: str, control: bool
) -> None:
    shutil.copytree(project, tmp_path / "ws")
    (tmp_path / "ws/app").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/link").symlink_to(tmp_path / "ws/app")
    entry, start = SPELLINGS[spelling]
    agent = f"import sys; sys.path.insert(0, {entry.format(base=tmp_path)!r})\n" + PROJECT + PLANT_AND_USE
    done, ran = run_agent(tmp_path, "", agent, start, control=control)
    assert (done.stdout, ran) == ("3\n", {"wave", "later"} if control else set()), done.stderr


BY_NAME = {
    "tzdata": "import zoneinfo\ntry: zoneinfo.ZoneInfo('No/Where')\nexcept zoneinfo.ZoneInfoNotFoundError: print('worked')",
    "chardet": "import requests\nprint('worked')",
}


@pytest.mark.parametrize("name", ["tzdata", pytest.param("chardet", marks=pytest.mark.whole)])
@pytest.mark.parametrize("control", [False, True])
def test_optional_packages_that_ours_import_by_name_stay_missing(tmp_path: Path, name: str, control: bool) -> None:
    pytest.importorskip("requests")
    planted = f'toolkit.invoke("write_file", {{"path": "{name}/__init__.py", "content": {mark(name)!r}}})\n'
    agent = f"import sys; sys.path.insert(0, {str(tmp_path / 'ws')!r})\n" + BUILD + planted + BY_NAME[name]
    done, ran = run_agent(tmp_path, "", agent, OUTSIDE, control=control)
    assert (done.stdout, ran) == ("worked\n", {name} if control else set()), done.stderr


def test_a_user_imports_the_same_names_as_usual(tmp_path: Path) -> None:
    (tmp_path / "ws/chardet").mkdir(parents=True)
    (tmp_path / "ws/chardet/__init__.py").write_text("X = 1")
    late = "import importlib, chardet\nprint(importlib.import_module('chardet').X)"
    agent = f"import sys; sys.path.insert(0, {str(tmp_path / 'ws')!r})\n" + BUILD + late
    done, _ = run_agent(tmp_path, "", agent, OUTSIDE)
    assert done.stdout == "1\n", done.stderr


@pytest.mark.parametrize("when", ["before", "after"])
def test_imports_work_where_the_current_directory_was_removed(tmp_path: Path, when: str) -> None:
    remove = "\nimport os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
    build = remove + BUILD if when == "before" else BUILD + remove
    agent = "import sys; sys.path.insert(0, '')\n" + build + "import wave; print('worked')"
    done, _ = run_agent(tmp_path, "", agent, INSIDE)
    assert done.stdout == "worked\n", done.stderr


def test_a_generated_package_with_odd_entries_is_remembered(tmp_path: Path, project: Path) -> None:
    """An editor's lock is a link that leads nowhere; a pipe would be read for ever."""
    shutil.copytree(project, tmp_path / "ws")
    folder = tmp_path / "ws/acme/generated/models"
    (folder / ".#later.py").symlink_to("user@host.1234:5678")
    os.mkfifo(folder / "pipe.py")
    agent = f"import sys; sys.path.insert(0, {str(tmp_path / 'ws')!r})\n" + PROJECT
    done, _ = run_agent(tmp_path, "", agent + 'print(toolkit.invoke("later", {"query": "abc"}).content.total)', OUTSIDE)
    assert done.stdout == "3\n", done.stderr


READ_ONLY_FIRST = f"""
from toolkit import create_agent_toolkit as create_builtin
writer = create_builtin(ToolkitContext(WORKSPACE, SecurityPolicy(default="allow")))
remove_finder()
old = writer.invoke("read_file", {{"path": "acme/generated/models/later.py"}}).content.content
writer.invoke("write_file", {{"path": "acme/generated/models/later.py", "content": old + chr(10) + {MARK % "later"!r}}})
print(toolkit.invoke("later", {{"query": "abc"}}).content.total)
"""


@pytest.mark.parametrize("control", [False, True])
def test_a_package_of_a_toolkit_that_only_reads_is_remembered_for_one_that_writes(
    tmp_path: Path, project: Path, control: bool
) -> None:
    shutil.copytree(project, tmp_path / "ws")
    reader = PROJECT.replace("network=network", "network=network, mode='read-only'").replace("\nremove_finder()", "")
    agent = f"import sys; sys.path.insert(0, {str(tmp_path / 'ws')!r})\n" + reader + READ_ONLY_FIRST
    done, ran = run_agent(tmp_path, "", agent, OUTSIDE, control=control)
    assert (done.stdout, ran) == ("3\n", {"later"} if control else set()), done.stderr
