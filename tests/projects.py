"""Small user projects on disk: specs, settings, and the generated code."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import toolkit
from tests.mypy_cache import cache_of_this_process
from toolkit.codegen import Settings, find_settings, generate

REPOSITORY = Path(__file__).parent.parent
DOWNSTREAM = REPOSITORY / "tests" / "downstream"
PACKAGES = Path(toolkit.__file__).parents[1]
"""Where the toolkit is imported from: the source tree, or the packages of an environment with the wheel."""

AWKWARD_NAMES = (
    "list", "str", "type", "set", "dict", "int", "object", "builtins", "Any", "Literal", "OMIT", "Omit", "class", "None",
    "invoke", "tools", "self", "name", "args", "read-file", "math.factorial", "Pack", "overload", "property", "3d", "_x", "Callable",
    "TypeAlias", "Iterable", "Runner", "Tools", "CATALOG", "PackSource", "DynamicContext", "CallTool", "JsonObject", "support",
)  # fmt: skip


def tool(name: str, **keys: Any) -> dict[str, Any]:
    """A small but not trivial spec."""
    return {
        "name": name,
        "description": f"Tool {name}.",
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["query"],
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                "tags": {"type": "array", "items": {"type": "string", "minLength": 1}},
                "mode": {"enum": ["fast", "exact"], "default": "fast"},
                "filter": {"type": "object", "properties": {"type": {"type": "string"}, "list": {"type": "array"}}},
            },
        },
        "outputSchema": {
            "type": "object",
            "required": ["rows", "total"],
            "properties": {
                "rows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {"id": {"type": "integer"}, "score": {"type": ["number", "null"]}},
                    },
                },
                "total": {"type": "integer"},
            },
        },
        **keys,
    }


def many_tools(count: int) -> list[dict[str, Any]]:
    """Tools with awkward names first, then plain ones."""
    names = [*AWKWARD_NAMES, *(f"tool_{index}" for index in range(count))][:count]
    return [tool(name) for name in names]


_SECONDS = 3600
"""Nothing may hang forever; type checkers over the whole corpus take minutes on an idle machine."""


class Project:
    """A project in its own folder; its package is ``acme``."""

    def __init__(self, root: Path, tools: Sequence[Mapping[str, Any]] = (), **settings: Any) -> None:
        self.root = root
        self.write("acme/__init__.py", "")
        self.write("acme/tools/tools.json", json.dumps({"tools": list(tools)}))
        table = {"specs": "acme/tools", "package": "acme.generated", "class": "AcmeToolkit", **settings}
        lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        self.write("pyproject.toml", "\n".join(["[tool.toolkit]", *lines, ""]))

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    @property
    def settings(self) -> Settings:
        return find_settings(self.root)

    @property
    def output(self) -> Path:
        return self.root / "acme" / "generated"

    def generate(self) -> list[str]:
        return generate(self.settings)

    def files(self) -> dict[str, bytes]:
        """Every generated file except bytecode."""
        return {
            file.relative_to(self.output).as_posix(): file.read_bytes()
            for file in sorted(self.output.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }

    def python(self, code: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs code in the project's folder, in a separate interpreter."""
        return run([sys.executable, "-c", code], self.root, check=check)


def run(command: Sequence[str], folder: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder; it can import the packages there as well as ours."""
    done = subprocess.run(
        command, cwd=folder, env=_environment(command, folder), capture_output=True, text=True, timeout=_SECONDS
    )
    if check and done.returncode:
        raise AssertionError(f"{command[0]} ended with {done.returncode}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}")
    return done


def run_on_terminal(command: Sequence[str], folder: Path, typed: bytes = b"") -> tuple[int, str]:
    """As ``run``, on a terminal of its own: the exit code, and all that the terminal got. What is typed waits to be read."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, cwd=folder, env=_environment(command, folder), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        os.write(ours, typed)
        shown = b""
        with suppress(OSError):  # how Linux reports that nobody has the terminal open any more
            while piece := os.read(ours, 65536):
                shown += piece
        os.close(ours)
    return process.returncode, shown.decode()


def _environment(command: Sequence[str], folder: Path) -> dict[str, str]:
    places = os.pathsep.join(map(str, (folder, REPOSITORY, DOWNSTREAM)))
    is_mypy = Path(command[0]).name == "mypy" or list(command[1:3]) == ["-m", "mypy"]
    return {
        **os.environ,
        "PYTHONPATH": places,
        "MYPYPATH": places,
        "NO_COLOR": "1",
        **({"MYPY_CACHE_DIR": str(cache_of_this_process(plugin=_has_plugin(command, folder)))} if is_mypy else {}),
    }


def _has_plugin(command: Sequence[str], folder: Path) -> bool:
    """Whether the project's own settings ask for our plugin, and the command asks for no others."""
    settings = folder / "pyproject.toml"
    asks_for_others = any(option.startswith("--config-file") for option in command)
    return not asks_for_others and settings.is_file() and "toolkit.mypy" in settings.read_text()
