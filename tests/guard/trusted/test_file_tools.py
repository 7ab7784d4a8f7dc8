"""What tools of a whole toolkit try against the interpreter that runs it, in the README's layout: ``.venv`` in the workspace.

The agent is a real process of that interpreter. Afterwards its next start must not run what a tool wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.guard.trusted.environments import LIBRARY, make_environment, plant_home, touch_code
from tests.projects import REPOSITORY

AGENT = """
import json, sys
from toolkit import SecurityPolicy, ToolCall, ToolkitContext, create_agent_toolkit

context = ToolkitContext(sys.argv[1], SecurityPolicy(default="allow"))
with create_agent_toolkit(context) as toolkit:
    results = [toolkit.call(ToolCall("1", name, arguments)) for name, arguments in json.loads(sys.argv[2])]
    print(json.dumps([[result.kind, str(result.value)] for result in results]))
"""

WRITTEN = ".venv/{library}/site-packages/x.pth"
ATTACKS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "edit pyvenv.cfg, then a command": [
        ("edit", {"path": ".venv/pyvenv.cfg", "old_string": "home = ", "new_string": "home = {planted}\nold = "}),
        ("bash", {"command": "true"}),
    ],
    "write a .pth file": [("write_file", {"path": WRITTEN, "content": "import os; open({marker!r}, 'w')\n"})],
    "write sitecustomize.py": [("write_file", {"path": "sitecustomize.py", "content": "{code}"})],
    "a command writes sitecustomize.py": [("bash", {"command": "cat > sitecustomize.py <<'X'\n{code}X"})],
    "a command writes a package sitecustomize": [
        ("bash", {"command": "mkdir sitecustomize && cat > sitecustomize/__init__.py <<'X'\n{code}X"})
    ],
    "patch in a .pth file": [
        ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: " + WRITTEN + "\n+import os; open({marker!r}, 'w')\n*** End Patch\n"})
    ],
}  # fmt: skip
LIKE_ANOTHER = {"a command writes a package sitecustomize", "patch in a .pth file"}
"""The guard stops these by the same check as another row, with a module or by another tool."""


def fill(value: Any, facts: dict[str, str]) -> Any:
    if isinstance(value, str):
        return value.format(**facts)
    if isinstance(value, dict):
        return {key: fill(one, facts) for key, one in value.items()}
    return [fill(one, facts) for one in value] if isinstance(value, list | tuple) else value


def prepare(tmp_path: Path) -> tuple[Path, str, dict[str, str], Path]:
    workspace, marker = tmp_path / "ws", tmp_path / "marker"
    workspace.mkdir()
    python = make_environment(workspace / ".venv")
    planted = plant_home(workspace / "planted", marker)
    code = touch_code(marker)
    return (
        workspace,
        python,
        {"planted": str(planted), "marker": str(marker), "code": code, "library": LIBRARY},
        marker,
    )


def start(python: str, workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``python`` in the workspace, which is on its path as for ``python agent.py``."""
    own = sysconfig.get_path("purelib")
    path = os.pathsep.join([str(workspace), str(REPOSITORY), own])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [python, *arguments], env=environment, cwd=workspace, capture_output=True, text=True, timeout=600
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole] if name in LIKE_ANOTHER else []) for name in ATTACKS]
)
def test_no_tool_chooses_what_the_next_start_runs(tmp_path: Path, name: str) -> None:
    workspace, python, facts, marker = prepare(tmp_path)

    done = start(python, workspace, "-c", AGENT, str(workspace), json.dumps(fill(ATTACKS[name], facts)))
    assert done.returncode == 0, done.stderr
    again = start(python, workspace, "-c", "print('started')")

    assert again.stdout == "started\n"
    assert not marker.exists(), done.stdout
    answer = json.loads(done.stdout)[0][1]
    assert ("put back" if "command writes" in name else "SANDBOX_VIOLATION") in answer


@pytest.mark.slow
@pytest.mark.parametrize("name", ["write a .pth file", "write sitecustomize.py", "edit pyvenv.cfg, then a command"])
def test_written_by_hand_it_runs(tmp_path: Path, name: str) -> None:
    workspace, python, facts, marker = prepare(tmp_path)
    tool, arguments = fill(ATTACKS[name], facts)[0]
    place = workspace / arguments["path"]
    if tool == "edit":
        place.write_text(place.read_text().replace(arguments["old_string"], arguments["new_string"], 1))
    else:
        place.write_text(arguments["content"])

    start(python, workspace, "-c", "")

    assert marker.exists()


@pytest.mark.slow
def test_another_environment_and_ordinary_files_stay_writable(tmp_path: Path) -> None:
    workspace, python, _, _ = prepare(tmp_path)
    make_environment(workspace / "other")
    calls = [
        ("write_file", {"path": f"other/{LIBRARY}/site-packages/x.pth", "content": "import os\n"}),
        ("write_file", {"path": "src/app.py", "content": "x = 1\n"}),
        ("read_file", {"path": ".venv/pyvenv.cfg"}),
        ("bash", {"command": "echo y >> src/app.py"}),
    ]

    done = start(python, workspace, "-c", AGENT, str(workspace), json.dumps(calls))

    assert [kind for kind, _ in json.loads(done.stdout)] == ["text"] * 4, done.stdout + done.stderr
