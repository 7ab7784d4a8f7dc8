"""The reference MCP servers, as people install them: imported, generated, checked and called, in the sandbox.

Installed once into ``build/reference-servers`` by npm and pip as they are configured here; where they cannot be, the
reason is told. Only under ``--everything``: the rest of the folder shows the same with servers of our own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.projects import REPOSITORY, run

SECONDS = 300
NODE = [
    f"@modelcontextprotocol/server-{name}@2026.8.31"
    for name in ("everything", "filesystem", "memory", "sequential-thinking")
]
PYTHON = ["mcp-server-time", "mcp-server-git", "mcp-server-fetch"]
SETTINGS = """
[tool.toolkit]
specs = "reference/tools"
package = "reference.generated"
class = "ReferenceToolkit"
[tool.toolkit.imports.everything]
command = ["node_modules/.bin/mcp-server-everything"]
prefix = "every_"
[tool.toolkit.imports.files]
command = ["node_modules/.bin/mcp-server-filesystem", "desk"]
prefix = "fs_"
[tool.toolkit.imports.memory]
command = ["node_modules/.bin/mcp-server-memory"]
env = ["MEMORY_FILE_PATH"]
prefix = "memory_"
[tool.toolkit.imports.thinking]
command = ["node_modules/.bin/mcp-server-sequential-thinking"]
[tool.toolkit.imports.time]
command = ["environment/bin/mcp-server-time", "--local-timezone=UTC"]
prefix = "time_"
[tool.toolkit.imports.git]
command = ["environment/bin/mcp-server-git"]
[tool.toolkit.imports.fetch]
command = ["environment/bin/mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"]
network = true
prefix = "web_"
"""


@pytest.fixture(scope="module")
def project(everything: bool) -> Path:
    if not everything:
        pytest.skip("the reference servers are installed and called under --everything only")
    root = REPOSITORY / "build" / "reference-servers"
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "node_modules" / ".bin" / "mcp-server-memory").exists():
        _install(["npm", "install", "--no-audit", "--no-fund", *NODE], root)
    if not (root / "environment" / "bin" / "mcp-server-fetch").exists():
        _install([sys.executable, "-m", "venv", "--clear", "environment"], root)
        _install(["environment/bin/pip", "install", "--quiet", *PYTHON], root)
    for folder in ("reference", "desk"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for file, text in {
        "pyproject.toml": SETTINGS,
        "package.json": "{}",
        "reference/__init__.py": "",
        "reference/py.typed": "",
        "reference/tools/none.json": '{"tools": []}',
        "calls.py": (Path(__file__).parent / "reference_calls.py.txt").read_text(),
        "desk/repository/desk.txt": "not added yet",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    run(["git", "init", "--quiet", "desk/repository"], root)
    return root


def _install(command: Sequence[str], folder: Path) -> None:
    """Skips where the tool is missing, or what it is to install cannot be had."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except FileNotFoundError:
        pytest.skip(f"{command[0]} is not on this machine")
    except subprocess.TimeoutExpired:
        pytest.skip(f"{command[0]} did not end within {SECONDS} s")
    if done.returncode:
        pytest.skip(f"{command[0]} cannot install the reference servers: {done.stderr.strip()[-500:]}")


def _run(command: Sequence[str], root: Path, variables: Mapping[str, str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return run(command, root).stdout


def test_the_reference_servers_are_imported_checked_and_called(project: Path) -> None:
    memory = {"MEMORY_FILE_PATH": str(project / "desk" / "memory.jsonl")}
    told = _run([sys.executable, "-m", "toolkit", "import", "--trust"], project, memory)
    assert told.count(": new") == 7
    again = _run([sys.executable, "-m", "toolkit", "import", "--trust"], project, memory)
    assert again.count(": unchanged") == 7
    run([sys.executable, "-m", "toolkit", "generate"], project)
    run([sys.executable, "-m", "mypy", "--strict", "calls.py", "reference"], project)
    assert "fetch: " in _run([sys.executable, "calls.py"], project, {**memory, "PYTHONWARNINGS": "error"})
    assert os.path.exists(project / "desk" / "note.txt")
