"""Our helper processes start from a fixed interpreter: nothing that a tool wrote decides what they run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.trusted.environments import (
    ASKS,
    LIBRARY,
    MISSING,
    make_environment,
    plant_home,
    run_python,
    touch_code,
)
from tests.guard.ways import SANDBOXED, Way, needs
from tests.projects import REPOSITORY

# The agent plants something, as a tool could where it may write, and then runs a command.
AGENT = """
import sys
from pathlib import Path
from toolkit.guard import ProcessGuard

workspace, sandbox, carrier, file, text = sys.argv[1:]
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier) as guard:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(text)
    print(guard.run(["echo", "ran"]).stdout.decode())
"""
OPTIONS: dict[Way, tuple[str, str]] = {
    "full": ("full", "own"),
    "bubblewrap": ("full", "bubblewrap"),
    "reduced": ("reduced", "auto"),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("way", SANDBOXED)
def test_an_edited_pyvenv_cfg_does_not_choose_the_interpreter(workspace: Path, tmp_path: Path, way: Way) -> None:
    needs(way)
    marker = tmp_path / "marker"
    python = make_environment(workspace / ".venv")
    home = plant_home(workspace / "made-up", marker)
    settings = workspace / ".venv/pyvenv.cfg"

    done = run_python(python, AGENT, str(workspace), *OPTIONS[way], str(settings), f"home = {home}\n")

    assert (done.stdout.strip(), marker.exists()) == ("ran", False), done.stderr
    subprocess.run([python, "-I", "-S", "-c", ""], capture_output=True)
    assert marker.exists(), "the environment's own interpreter does run the planted code"


@pytest.mark.parametrize("way", SANDBOXED)
def test_what_is_next_to_our_package_is_not_imported(workspace: Path, tmp_path: Path, way: Way) -> None:
    """The standard library asks for modules that other platforms have; nobody else may provide them."""
    needs(way)
    marker = tmp_path / "marker"
    folder = workspace / "vendored"
    shutil.copytree(REPOSITORY / "toolkit/guard", folder / "toolkit/guard")
    for name in ("__init__", "errors", "forks", "lazy_exports", "system_faults", "user_state", "visible"):
        shutil.copy(REPOSITORY / f"toolkit/{name}.py", folder / "toolkit")
    planted = folder / MISSING / "__init__.py"

    done = run_python(
        sys.executable, AGENT, str(workspace), *OPTIONS[way], str(planted), touch_code(marker), path=folder
    )

    assert (done.stdout.strip(), marker.exists()) == ("ran", False), done.stderr
    code = f"import sys; sys.path.append({str(folder)!r}); import {ASKS}"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True)
    assert marker.exists(), "with the directory on the path the planted code runs"


SURROUNDED = """
import json, os, sys
from toolkit.guard import ProcessGuard

workspace, sandbox, carrier, variables = sys.argv[1:]
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier) as guard:
    os.chdir(workspace)
    os.environ |= json.loads(variables)
    print(guard.run(["echo", "ran"]).stdout.decode())
"""


def plant_modules(folder: Path, marker: Path) -> dict[str, str]:
    for name in ("sitecustomize", "usercustomize", "socket", "toolkit", "_frozen_importlib_external"):
        (folder / f"{name}.py").write_text(touch_code(marker))
    return {}


def plant_on_path(folder: Path, marker: Path) -> dict[str, str]:
    plant_modules(folder, marker)
    return {"PYTHONPATH": str(folder)}


def plant_library(folder: Path, marker: Path) -> dict[str, str]:
    return {"PYTHONHOME": str(plant_home(folder / "made-up", marker).parent)}


def plant_user_base(folder: Path, marker: Path) -> dict[str, str]:
    packages = folder / LIBRARY / "site-packages"
    packages.mkdir(parents=True)
    (packages / "planted.pth").write_text(touch_code(marker))
    return {"PYTHONUSERBASE": str(folder)}


def plant_preloaded(folder: Path, marker: Path) -> dict[str, str]:
    compiler = shutil.which("cc") or pytest.skip("no C compiler here")
    code = f'#include <fcntl.h>\n__attribute__((constructor)) void run(void) {{ creat("{marker}", 0600); }}\n'
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "planted.so")]
    subprocess.run(command, input=code, text=True, check=True)
    return {"LD_PRELOAD": str(folder / "planted.so")}


# Each plants something in a directory, and returns the variables that lead there.
SURROUNDINGS: dict[str, Callable[[Path, Path], dict[str, str]]] = {
    "modules in the current directory": plant_modules,
    "PYTHONPATH": plant_on_path,
    "PYTHONHOME": plant_library,
    "PYTHONUSERBASE": plant_user_base,
    "LD_PRELOAD": plant_preloaded,
}


@pytest.mark.sample
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_variables_and_the_current_directory_decide_nothing(
    workspace: Path, tmp_path: Path, name: str, way: Way
) -> None:
    needs(way)
    marker = tmp_path / "marker"
    variables = SURROUNDINGS[name](workspace, marker)

    done = run_python(sys.executable, SURROUNDED, str(workspace), *OPTIONS[way], json.dumps(variables))

    assert (done.stdout.strip(), marker.exists()) == ("ran", False), done.stderr
    base = getattr(sys, "_base_executable", sys.executable)  # what helper processes run, with none of their options
    subprocess.run([base, "-c", "import socket"], env=os.environ | variables, cwd=workspace, capture_output=True)
    assert marker.exists(), "an interpreter that is not isolated runs the planted code"
