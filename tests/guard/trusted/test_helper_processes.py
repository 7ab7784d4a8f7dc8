"""Our helper processes start from a fixed interpreter: nothing that a tool wrote decides what they run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.trusted.environments import make_environment, plant_home, run_python, touch_code
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
    for name in ("__init__.py", "errors.py", "lazy_exports.py", "visible.py"):
        shutil.copy(REPOSITORY / "toolkit" / name, folder / "toolkit")
    planted = folder / "org/__init__.py"

    done = run_python(
        sys.executable, AGENT, str(workspace), *OPTIONS[way], str(planted), touch_code(marker), path=folder
    )

    assert (done.stdout.strip(), marker.exists()) == ("ran", False), done.stderr
    code = f"import sys; sys.path.append({str(folder)!r}); import copy"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True)
    assert marker.exists(), "with the directory on the path the planted code runs"
