"""The mypy plugin in all of mypy's modes: caches follow a changed package, the daemon too; and a mypy it does not know."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mypy_cache import copy_first_cache
from tests.projects import DOWNSTREAM, REPOSITORY, Project, tool
from tests.typing.checkers import BIN

CALLER = """\
from acme.generated import AcmeToolkit, AsyncAcmeToolkit


def calls(toolkit: AcmeToolkit) -> int:
    return toolkit.invoke("alpha", {"query": "x"}).content.total


async def awaits(toolkit: AsyncAcmeToolkit) -> int:
    return (await toolkit.invoke("beta", {"query": "x"})).content.total
"""
RENAMED = [
    'caller.py:5: error: No tool is called "alpha"; did you mean "alpha2"?  [arg-type]',
]
RETYPED = [
    'caller.py:9: error: Argument "query" of "beta" must be int, not str  [arg-type]',
]


def retyped(name: str) -> dict[str, Any]:
    spec = json.loads(json.dumps(tool(name)))
    spec["inputSchema"]["properties"]["query"]["type"] = "integer"
    return dict(spec)


class Checked(Project):
    """A project with the plugin in its settings, and a cache of its own."""

    def __init__(self, root: Path, *names: str) -> None:
        super().__init__(root, [tool(name) for name in names])
        self._second = 1_700_000_000
        self.write("mypy.ini", "[mypy]\nstrict = True\nplugins = toolkit.mypy\n")
        self.write("caller.py", CALLER)
        copy_first_cache(root / "cache", plugin=True)
        self.generate()

    def replace(self, *tools: dict[str, Any]) -> None:
        self.write("acme/tools/tools.json", json.dumps({"tools": tools}))
        self.generate()

    def _date_files(self) -> None:
        """Mypy misses a change that keeps a file's size within one second, so each run finds files of another second."""
        self._second += 1
        for file in self.root.rglob("*.py"):
            os.utime(file, (self._second, self._second))

    def run(self, program: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self._date_files()
        places = os.pathsep.join(map(str, (self.root, REPOSITORY, DOWNSTREAM)))
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MYPY")}
        paths = {
            "PYTHONPATH": os.pathsep.join(filter(None, [environment.pop("FIRST", ""), places])),
            "MYPYPATH": places,
        }
        command = [str(BIN / program), *options]
        return subprocess.run(
            command, cwd=self.root, env={**plain, **paths, **environment}, capture_output=True, text=True, timeout=1800
        )

    def check(self, *options: str) -> list[str]:
        done = self.run("mypy", "--cache-dir=cache", *options, "caller.py")
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if re.match(r"\S+:\d+: ", line)]


@pytest.mark.parametrize(
    "options",
    [
        [],
        pytest.param(["--no-fixed-format-cache"], marks=pytest.mark.whole),
        pytest.param(["--no-sqlite-cache"], marks=pytest.mark.whole),
        pytest.param(["--num-workers=2"], marks=pytest.mark.whole),
        pytest.param(["--follow-imports=silent"], marks=pytest.mark.whole),
        pytest.param(["--cache-fine-grained"], marks=pytest.mark.whole),
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_a_cache_follows_the_generated_package(tmp_path: Path, options: list[str]) -> None:
    project = Checked(tmp_path, "alpha", "beta")
    assert project.check(*options) == []
    project.replace(tool("alpha2"), tool("beta"))
    assert project.check(*options) == RENAMED
    assert project.check(*options) == RENAMED
    project.replace(tool("alpha"), tool("beta"))
    assert project.check(*options) == []
    project.replace(tool("alpha"), retyped("beta"))
    assert project.check(*options) == RETYPED
    project.replace(tool("alpha"), tool("beta"))
    assert project.check(*options) == []


class Daemon:
    def __init__(self, project: Checked) -> None:
        self.project = project

    def check(self) -> list[str]:
        done = self.project.run("dmypy", "run", "--", "--cache-dir=cache", "caller.py")
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if re.match(r"\S+:\d+: ", line)]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    project = Checked(tmp_path, "alpha", "beta")
    yield Daemon(project)
    project.run("dmypy", "stop")


@pytest.mark.whole
@pytest.mark.slow
def test_the_daemon_follows_the_generated_package(daemon: Daemon) -> None:
    project = daemon.project
    assert daemon.check() == []
    project.replace(tool("alpha2"), tool("beta"))
    assert daemon.check() == RENAMED
    project.replace(tool("alpha"), tool("beta"))
    assert daemon.check() == []
    project.replace(tool("alpha"), retyped("beta"))
    assert daemon.check() == RETYPED
    project.write("caller.py", CALLER.replace('"alpha"', '"alhpa"'))
    assert daemon.check() == [
        'caller.py:5: error: No tool is called "alhpa"; did you mean "alpha"?  [arg-type]',
        *RETYPED,
    ]
    project.replace(tool("alhpa"), tool("beta"))
    assert daemon.check() == []


@pytest.mark.whole
def test_what_a_caller_ignores_with_the_plugin_it_ignores_without(tmp_path: Path) -> None:
    project = Checked(tmp_path, "alpha", "beta")
    wrong = "    toolkit.invoke('x', {})  # type: ignore[arg-type]\n    return toolkit"
    project.write("caller.py", CALLER.replace("    return toolkit", wrong))
    assert project.check("--warn-unused-ignores") == []
    copy_first_cache(project.root / "plain")
    assert project.check("--strict", "--config-file=", "--cache-dir=plain") == []


def test_an_old_mypy_is_refused_in_one_line(tmp_path: Path) -> None:
    project = Checked(tmp_path, "alpha", "beta")
    project.write("old/mypy-1.19.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mypy\nVersion: 1.19.0\n")
    done = project.run("mypy", "caller.py", FIRST=str(tmp_path / "old"))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        'mypy.ini:3: error: Error importing plugin "toolkit.mypy": toolkit.mypy works with mypy 2.4 and does not know mypy 1.19.0;'
        ' install another mypy, or remove "toolkit.mypy" from the plugins: everything works without it  [misc]'
    ]


def test_a_mypy_without_a_part_that_the_plugin_uses_is_refused_in_one_line(tmp_path: Path) -> None:
    project = Checked(tmp_path, "alpha", "beta")
    project.write("new/sitecustomize.py", "import mypy.traverser\ndel mypy.traverser.NameAndMemberCollector\n")
    project.write("new/mypy-9.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mypy\nVersion: 9.1.0\n")
    done = project.run("mypy", "caller.py", FIRST=str(tmp_path / "new"))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        'mypy.ini:3: error: Error importing plugin "toolkit.mypy": toolkit.mypy works with mypy 2.4 and does not know mypy 9.1.0'
        ' (it has no NameAndMemberCollector); install another mypy, or remove "toolkit.mypy" from the plugins: everything works'
        " without it  [misc]"
    ]


def test_a_call_that_the_plugin_cannot_check_is_one_line_and_no_crash(tmp_path: Path) -> None:
    project = Checked(tmp_path, "alpha", "beta")
    broken = "import toolkit.mypy.invoke\ntoolkit.mypy.invoke.literal_values = lambda kind: kind.moved\n"
    project.write(
        "new/sitecustomize.py",
        f"import sys\nif sys.argv[0].endswith('mypy'):\n    {broken.replace(chr(10), chr(10) + '    ')}\n",
    )
    project.write("new/mypy-9.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mypy\nVersion: 9.1.0\n")
    done = project.run("mypy", "--cache-dir=cache", "caller.py", FIRST=str(tmp_path / "new"))
    lines = [line for line in done.stdout.splitlines() if ": error: toolkit.mypy" in line]
    assert done.returncode == 1, done.stdout + done.stderr
    assert lines == [
        f"caller.py:{line}: error: toolkit.mypy cannot check this call (AttributeError: 'Instance' object has no attribute 'moved');"
        ' it is tested with mypy 2.4, and this is mypy 9.1.0. Everything works without it: remove "toolkit.mypy" from the'
        " plugins  [misc]"
        for line in (5, 9)
    ]


def test_the_plugin_is_not_confused_with_mypy(tmp_path: Path) -> None:
    code = "import toolkit.mypy, mypy; print(mypy.__name__, toolkit.mypy.plugin('2.4.1').__mro__[1].__module__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mypy", "mypy.plugin"]
