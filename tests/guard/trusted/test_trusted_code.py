"""The list of places that tools must not change, for the layouts that projects have."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.guard.trusted.environments import LIBRARY, make_environment
from tests.projects import REPOSITORY
from toolkit.errors import SetupError
from toolkit.guard.trusted_code import DEPENDENCIES, RootSet, find_trusted, startup_names, trusted_code

PACKAGES = f"{LIBRARY}/site-packages"
PRINT = """
import json, os
from toolkit.guard.trusted_code import RootSet, find_trusted, trusted_code
root = os.environ["ROOT"]
print(json.dumps([trusted_code([root]), find_trusted(RootSet([root])).links]))
"""


@dataclass(frozen=True)
class Layout:
    """``build`` makes a project in a directory and returns the interpreter; ``{ws}`` stands for the workspace."""

    build: Callable[[Path], str]
    trusted: list[str]
    free: list[str]
    links: list[str] = field(default_factory=list)
    root: str = "ws"
    environment: dict[str, str] = field(default_factory=dict)
    before: str = ""


def _inside(base: Path) -> str:
    make_environment(base / "ws/other")
    return make_environment(base / "ws/.venv")


def _outside(base: Path) -> str:
    (base / "ws/src").mkdir(parents=True)
    return make_environment(base / "venv")


def _around(base: Path) -> str:
    python = make_environment(base / "env")
    (base / "env/src/app").mkdir(parents=True)
    return python


def _linked(base: Path) -> str:
    make_environment(base / "ws/envs/x")
    (base / "ws/current").symlink_to("envs")
    (base / "ws/.venv").symlink_to("current/x")
    return str(base / "ws/.venv/bin/python")


def _program_link(base: Path) -> str:
    (base / "ws").mkdir()
    (base / "ws/python").symlink_to(make_environment(base / "venv"))
    return str(base / "ws/python")


def _editable(base: Path) -> str:
    python = make_environment(base / "ws/.venv")
    (base / "ws/src/acme").mkdir(parents=True)
    (base / f"ws/.venv/{PACKAGES}/acme.pth").write_text(f"{base}/ws/src\n")
    return python


def _vendored(base: Path) -> str:
    import annotated_types
    import typing_extensions

    python = _outside(base)
    (base / "ws/vendor").mkdir()
    shutil.copy(typing_extensions.__file__, base / "ws/vendor")
    shutil.copytree(os.path.dirname(annotated_types.__file__), base / "ws/vendor/annotated_types")
    return python


LAYOUTS = {
    "in the workspace": Layout(
        _inside,
        trusted=["{ws}/.venv", "{ws}/.venv/pyvenv.cfg", f"{{ws}}/.venv/{PACKAGES}/new.pth", "{ws}/.venv/bin/python"],
        free=["{ws}", "{ws}/other/pyvenv.cfg", "{ws}/agent.py", "{ws}/.venv2", "{ws}/pyproject.toml"],
    ),
    "the workspace itself": Layout(
        _inside,
        root="ws/.venv",
        trusted=["{ws}/pyvenv.cfg", f"{{ws}}/{PACKAGES}/new.pth", "{ws}/bin/python", "{ws}/include/x.h"],
        free=["{ws}", "{ws}/src/a.py", "{ws}/library.py"],
        links=["{ws}/lib64"],
    ),
    "around the workspace": Layout(
        _around,
        root="env/src/app",
        trusted=["{base}/env/bin/python", "{base}/env/pyvenv.cfg", f"{{base}}/env/{PACKAGES}"],
        free=["{ws}", "{ws}/a.py", "{base}/env/src/other"],
    ),
    "through links": Layout(
        _linked,
        trusted=["{ws}/.venv/pyvenv.cfg", "{ws}/current/x/pyvenv.cfg", "{ws}/envs/x/pyvenv.cfg", "{ws}/envs/x"],
        free=["{ws}/envs/y", "{ws}/current/y", "{ws}/envs"],
        links=["{ws}/.venv", "{ws}/current"],
    ),
    "a link to the program": Layout(
        _program_link, trusted=["{ws}/python", "{ws}/pyvenv.cfg"], free=["{ws}", "{ws}/a"], links=["{ws}/python"]
    ),
    "on the path": Layout(
        _outside,
        environment={"PYTHONPATH": "{ws}/src"},
        trusted=[
            "{ws}/src/sitecustomize.py",
            "{ws}/src/usercustomize/__init__.py",
            "{ws}/src/sitecustomize.so",
            f"{{ws}}/src/__pycache__/sitecustomize.{sys.implementation.cache_tag}.pyc",
        ],
        free=["{ws}/src/acme.py", "{ws}/src/json.py", "{ws}/sitecustomize.py", "{ws}/src/__pycache__/acme.pyc"],
    ),
    "installed to be edited": Layout(
        _editable,
        trusted=["{ws}/src/sitecustomize.py", f"{{ws}}/.venv/{PACKAGES}/acme.pth"],
        free=["{ws}/src/acme/__init__.py", "{ws}/src/new.py"],
    ),
    "variables": Layout(
        _outside,
        environment={
            "PYTHONSTARTUP": "{ws}/start.py",
            "PYTHONPYCACHEPREFIX": "{ws}/cache",
            "PYTHONUSERBASE": "{ws}/.local",
        },
        trusted=["{ws}/start.py", "{ws}/cache/x", f"{{ws}}/.local/{PACKAGES}/x.pth"],
        free=["{ws}/src", "{ws}/.local/share"],
    ),
    "packages of ours elsewhere": Layout(
        _vendored,
        environment={"PYTHONPATH": "{ws}/vendor"},
        before="import annotated_types, typing_extensions",
        trusted=["{ws}/vendor/annotated_types/x.py", "{ws}/vendor/typing_extensions.py", "{ws}/vendor/typing_extensions.so"],
        free=["{ws}/vendor/acme.py", "{ws}/vendor"],
    ),
}  # fmt: skip


def lists(layout: Layout, base: Path) -> tuple[list[str], list[str]]:
    python = layout.build(base)
    root = str(base / layout.root)
    variables = {name: value.format(ws=root) for name, value in layout.environment.items()}
    path = ":".join(filter(None, (variables.pop("PYTHONPATH", ""), str(REPOSITORY))))
    environment = {**os.environ, **variables, "PYTHONPATH": path, "ROOT": root}
    code = f"import toolkit; {layout.before}\n{PRINT}"
    done = subprocess.run([python, "-c", code], env=environment, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    places, links = json.loads(done.stdout)
    return places, links


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_trusted_and_what_stays_writable(tmp_path: Path, name: str) -> None:
    layout, base = LAYOUTS[name], Path(os.path.realpath(tmp_path))
    places, links = lists(layout, base)

    def covered(text: str) -> bool:
        path = text.format(ws=base / layout.root, base=base)
        return any(path == place or path.startswith(f"{place}/") for place in places)

    assert [path for path in layout.trusted if not covered(path)] == []
    assert [path for path in layout.free if covered(path)] == []
    assert links == [link.format(ws=base / layout.root) for link in sorted(layout.links)]


def test_the_toolkit_itself_is_trusted_by_its_real_directories() -> None:
    places = trusted_code([str(REPOSITORY)])
    assert {str(REPOSITORY / name) for name in ("toolkit", "codegen", "generated")} <= set(places)
    assert str(REPOSITORY) not in places


@pytest.mark.parametrize("root", [os.path.dirname(os.__file__), str(REPOSITORY / "toolkit")])
def test_a_directory_of_nothing_but_code_is_not_a_root(root: str) -> None:
    with pytest.raises(SetupError, match="loads code from it"):
        trusted_code([root])
    assert trusted_code([os.path.dirname(root)])


def test_no_place_is_below_another_and_links_are_in_roots() -> None:
    places = trusted_code()
    assert places == sorted(places)
    assert not [a for a in places for b in places if a != b and a.startswith(f"{b}/")]
    assert find_trusted(RootSet()).links == []


def test_the_names_of_start_up_files() -> None:
    names = startup_names()
    assert {"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize.so"} <= names
    assert not [name for name in names if name.startswith("/")]


def test_the_list_of_dependencies_is_complete() -> None:
    """Each top-level module of what we require, and of what that requires, as far as it is installed here."""
    modules: dict[str, set[str]] = {}
    for module, distributions in metadata.packages_distributions().items():
        for distribution in distributions:
            modules.setdefault(_normal(distribution), set()).add(module)
    extras = "openai anthropic google-genai ollama langchain-core mcp jsonschema-rs"
    todo, seen = ["pydantic", "PyYAML", "typer", "typing-extensions", *extras.split()], set[str]()
    while todo:
        name = _normal(todo.pop())
        if name in seen or name not in modules:
            continue
        seen.add(name)
        for requirement in map(Requirement, metadata.requires(name) or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    needed = {module for name in seen for module in modules[name] if module.isidentifier()}
    assert needed - {"jsonpatch_cli"} - DEPENDENCIES == set()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
