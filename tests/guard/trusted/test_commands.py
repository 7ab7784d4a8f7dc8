"""What commands try against the interpreter and the toolkit that run outside their sandbox, in each layout of a project.

Each attack is shell text that exits with 0 if it succeeded. Run plainly it must succeed, or the row proves nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.guard.trusted.environments import LIBRARY, make_environment, run_python
from tests.guard.ways import SANDBOXED, Way, needs
from tests.projects import REPOSITORY
from toolkit.guard.review.scan import MAX_BYTES

PACKAGES = f"{LIBRARY}/site-packages"


@dataclass(frozen=True)
class Layout:
    """Builds a workspace and returns its interpreter; ``links`` are attacks on links, which only we can mount on."""

    build: Callable[[Path], str]
    attacks: list[str]
    neighbours: list[str]
    links: list[str] = field(default_factory=list)
    on_path: str = ""


def _inside(workspace: Path) -> str:
    make_environment(workspace / "other")
    return make_environment(workspace / ".venv")


def _deep(workspace: Path) -> str:
    return make_environment(workspace / "tools/env/.venv")


def _link_out(workspace: Path) -> str:
    make_environment(workspace.parent / "venvs/x")
    (workspace / ".venv").symlink_to("../venvs/x")
    return str(workspace / ".venv/bin/python")


def _link_in(workspace: Path) -> str:
    make_environment(workspace / "envs/x")
    (workspace / "current").symlink_to("envs")
    (workspace / ".venv").symlink_to("current/x")
    return str(workspace / ".venv/bin/python")


def _whole(workspace: Path) -> str:
    return make_environment(workspace)


def _customized(workspace: Path) -> str:
    (workspace / "src/usercustomize").mkdir(parents=True)
    (workspace / "src/sitecustomize.py").write_text("")
    (workspace / "src/usercustomize/__init__.py").write_text("")
    return make_environment(workspace.parent / "venv")


def _toolkit_inside(workspace: Path) -> str:
    shutil.copytree(REPOSITORY / "toolkit/guard", workspace / "lib/toolkit/guard")
    for name in ("__init__", "errors", "forks", "lazy_exports", "system_faults", "user_state", "visible"):
        shutil.copy(REPOSITORY / f"toolkit/{name}.py", workspace / "lib/toolkit")
    return make_environment(workspace.parent / "venv")


LAYOUTS = {
    "in the workspace": Layout(
        _inside,
        attacks=[
            "echo home = /evil >> .venv/pyvenv.cfg",
            "rm .venv/pyvenv.cfg",
            f"touch .venv/{PACKAGES}/x.pth",
            "ln -sf /bin/false .venv/bin/python",
            "rm -rf .venv",
            "mv .venv old",
            "mv .venv old && mkdir .venv",
            "chmod 777 .venv/bin",
            f"ln .venv/pyvenv.cfg linked && echo x >> linked && mkdir -p .venv/{LIBRARY}",
        ],
        neighbours=[
            "touch f && mkdir d && mv f d && rm -r d",
            "echo home = /x >> other/pyvenv.cfg",
            f"touch other/{PACKAGES}/x.pth",
            "mv other another && mv another other",
            ".venv/bin/python -c 'import ctypes'",
            "cat .venv/pyvenv.cfg",
        ],
    ),
    "deep": Layout(
        _deep,
        attacks=[
            "mv tools moved",
            "mv tools/env moved",
            "mv tools/env/.venv moved",
            "rm -rf tools",
            "echo x >> tools/env/.venv/pyvenv.cfg",
        ],
        neighbours=["touch tools/f tools/env/f", "mkdir tools/d && mv tools/f tools/d", "mv tools/d/f ."],
    ),
    "a link to outside": Layout(
        _link_out,
        attacks=["test -e .venv/pyvenv.cfg && echo x >> .venv/pyvenv.cfg"],
        links=["rm .venv", "ln -sfn /evil .venv", "mv .venv old", "mkdir evil && mv -T .venv evil/x"],
        neighbours=[".venv/bin/python -c 'import ctypes'", "ln -s x y && rm y"],
    ),
    "links inside": Layout(
        _link_in,
        attacks=["echo x >> .venv/pyvenv.cfg", "echo x >> envs/x/pyvenv.cfg", "mv envs old", "mv envs/x old"],
        links=["ln -sfn /evil .venv", "rm current", "ln -sfn /evil current"],
        neighbours=["touch envs/f current/f && rm envs/f", ".venv/bin/python -c 'import ctypes'"],
    ),
    "the workspace itself": Layout(
        _whole,
        attacks=["echo x >> pyvenv.cfg", "rm pyvenv.cfg", f"touch {PACKAGES}/x.pth", "mv lib l", "mv bin b"],
        neighbours=["touch f && mkdir src", "bin/python -c 'import ctypes'"],
    ),
    "start-up files": Layout(
        _customized,
        on_path="src",
        attacks=["echo x >> src/sitecustomize.py", "mv src moved", "touch src/usercustomize/__init__.py"],
        neighbours=["touch src/acme.py", "mkdir src/acme && mv src/acme.py src/acme/__init__.py"],
    ),
    "the toolkit itself": Layout(
        _toolkit_inside,
        on_path="lib",
        attacks=["echo x >> lib/toolkit/errors.py", "mv lib/toolkit moved", "mv lib moved", "touch lib/toolkit/x.py"],
        neighbours=["touch lib/acme.py"],
    ),
}

AGENT = """
import json, sys
from toolkit.guard import ProcessGuard

workspace, sandbox, carrier, acts = sys.argv[1:]
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier) as guard:
    print(json.dumps([guard.shell(act).exit_code for act in json.loads(acts)]))
"""
OPTIONS: dict[Way, tuple[str, str]] = {
    "full": ("full", "own"),
    "bubblewrap": ("full", "bubblewrap"),
    "reduced": ("reduced", "auto"),
}


def exit_codes(layout: Layout, workspace: Path, way: Way, acts: list[str]) -> dict[str, int]:
    """The exit code of each act, tried by commands of an agent that runs in the layout."""
    workspace.mkdir(parents=True)
    python = layout.build(workspace)
    before, links = snapshot(workspace), links_of(workspace)
    path = f"{workspace / layout.on_path}:{REPOSITORY}"
    done = run_python(python, AGENT, str(workspace), *OPTIONS[way], json.dumps(acts), path=Path(path))
    assert done.returncode == 0, done.stderr
    assert links_of(workspace) == links  # where no mount holds one, it is put back after the command
    if way == "full" and acts == [*layout.attacks, *layout.links]:
        assert before <= snapshot(workspace)  # a failed `mv` leaves the copy it began
    return dict(zip(acts, json.loads(done.stdout), strict=True))


def links_of(folder: Path) -> dict[str, str]:
    """Where the links in a directory lead."""
    return {path.name: os.readlink(path) for path in folder.iterdir() if path.is_symlink()}


def snapshot(folder: Path) -> set[tuple[str, int, bytes]]:
    """Names, modes and contents."""
    found = set()
    for path in folder.rglob("*"):
        plain = path.is_file() and not path.is_symlink()
        found.add((str(path.relative_to(folder)), path.lstat().st_mode, path.read_bytes() if plain else b""))
    return found


@pytest.mark.sample
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("name", LAYOUTS)
def test_no_command_changes_what_runs_outside_its_sandbox(tmp_path: Path, name: str, way: Way) -> None:
    needs(way)
    layout = LAYOUTS[name]
    if way == "reduced":  # the documented gap: each in a workspace of its own, as it succeeds
        act = next(act for act in (*layout.links, *layout.attacks) if not act.startswith("test "))
        assert exit_codes(layout, tmp_path / "ws", way, [act]) == {act: 0}
        return
    if way == "bubblewrap" and layout.links:  # bubblewrap cannot mount on a link
        assert exit_codes(layout, tmp_path / "gap/ws", way, layout.links[:1]) == {layout.links[0]: 0}
    acts = [*layout.attacks, *(layout.links if way == "full" else ())]
    codes = exit_codes(layout, tmp_path / "guarded/ws", way, acts)
    assert [act for act, code in codes.items() if code == 0] == []


@pytest.mark.sample(every=4, of_each_tier=True)
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("name", LAYOUTS)
def test_what_people_do_all_day_works(tmp_path: Path, name: str, way: Way) -> None:
    needs(way)
    codes = exit_codes(LAYOUTS[name], tmp_path / "ws", way, LAYOUTS[name].neighbours)
    assert {act: code for act, code in codes.items() if code} == {}


@pytest.mark.parametrize("way", SANDBOXED)
def test_programs_of_the_environment_are_found_by_name_where_no_command_can_change_them(
    tmp_path: Path, way: Way
) -> None:
    needs(way)

    def build(workspace: Path) -> str:
        python = _link_in(workspace)
        program = workspace / ".venv/bin/only-here"
        program.write_text("#!/bin/sh\necho found\n")
        program.chmod(0o755)
        return python

    codes = exit_codes(Layout(build, [], []), tmp_path / "ws", way, ["only-here"])
    assert codes == {"only-here": 127 if way == "reduced" else 0}


@pytest.mark.sample
@pytest.mark.parametrize("name", LAYOUTS)
def test_each_attack_succeeds_without_a_sandbox(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    for number, act in enumerate((*layout.attacks, *layout.links)):
        workspace = tmp_path / str(number) / "ws"
        workspace.mkdir(parents=True)
        layout.build(workspace)
        done = subprocess.run(["bash", "-c", act], cwd=workspace, capture_output=True)
        assert done.returncode == 0, (act, done.stderr)


@pytest.mark.sample
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("act", ["touch envs/x/note", "mkdir -p other/x/bin && ln -sfn other current"])
def test_a_link_to_a_large_environment_stays(tmp_path: Path, way: Way, act: str) -> None:
    """It is compared by its text: what it leads to is too large to be put back."""
    needs(way)

    def build(workspace: Path) -> str:
        python = _link_in(workspace)
        with (workspace / "envs/x/large").open("wb") as file:
            file.truncate(MAX_BYTES + 1)
        return python

    exit_codes(Layout(build, [], []), tmp_path / "ws", way, [act])  # which asserts that the links are the same


EXPOSED = """
import logging, os, sys
from toolkit.errors import ToolNotAllowed
from toolkit.guard import ProcessGuard
from toolkit.guard.process import tier
logging.basicConfig(format="%(message)s")
workspace, sandbox, mode = sys.argv[1:]
working = tier.probe
tier.probe = lambda name, program="": "no namespaces" if name == "full" else working(name)
os.geteuid = lambda: 1000
with ProcessGuard(workspace, sandbox=sandbox, mode=mode, carrier="own") as guard:
    try:
        print(guard.run(["true"]).exit_code)
    except ToolNotAllowed as error:
        print(error.message)
"""


@pytest.mark.parametrize("name", ["in the workspace", pytest.param("a link to outside", marks=pytest.mark.whole)])
def test_where_only_the_reduced_tier_works_it_must_be_asked_for_by_name(tmp_path: Path, name: str) -> None:
    """An interpreter that commands could change there; on a machine whose full tier does not work."""
    needs("reduced")
    workspace = tmp_path / "ws"
    workspace.mkdir()
    python = LAYOUTS[name].build(workspace)

    def run(*arguments: str) -> tuple[str, str]:
        done = run_python(python, EXPOSED, str(workspace), *arguments)
        return done.stdout.strip(), done.stderr.strip()

    refused, _ = run("auto", "workspace-write")
    assert refused == (
        "commands cannot run: this machine has no sandbox (full: no namespaces; reduced: the reduced sandbox cannot keep"
        " commands from changing the Python that runs this program ('.venv'); use an environment outside the workspace,"
        ' or request sandbox="reduced" by name)'
    )
    allowed, warning = run("reduced", "workspace-write")
    assert allowed == "0" and "'.venv'" in warning and "runs outside the sandbox" in warning
    assert run("auto", "read-only") == ("0", "")
    python = make_environment(tmp_path / "elsewhere")
    assert run("auto", "workspace-write") == ("0", "")
