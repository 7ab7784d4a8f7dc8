"""What tests of packs are given: a service on the loopback, and a project whose tools come from the servers beside this file,
imported and generated once through the command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import command_line
from tests.examples import TWINS
from tests.packs.service import Service, running_service
from tests.projects import Project
from tests.runtime.conftest import Door
from toolkit import Pack, ToolContext
from toolkit.testing import StandaloneContext

SERVERS = Path(__file__).parent / "servers"
ODD = {"type": "object", "properties": {"text": {"type": "string"}}}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

SETTINGS = """
[tool.toolkit.imports.shop]
command = ["python", "shop.py"]
prefix = "shop_"
[tool.toolkit.imports.web]
url = "{url}"
prefix = "web_"
headers = {{ X-Token = "Bearer ${{SHOP_TOKEN}}" }}
"""


@pytest.fixture(scope="session")
def shop_url() -> Iterator[str]:
    """The honest server over HTTP, as long as the tests run."""
    command = [sys.executable, str(SERVERS / "shop.py"), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, shop_url: str) -> Project:
    """The project after ``toolkit import`` and ``toolkit generate``."""
    root = tmp_path_factory.mktemp("served")
    odd = {"description": "Does what it likes.", "inputSchema": ODD, "permissions": ["execute"]}
    online = {"name": "odd_online", **odd, "permissions": ["execute", "network"]}
    tools = [{"name": "odd", "outputSchema": NUMBER, **odd}, {"name": "odd_text", **odd}, online]
    made = Project(root, package="served.generated", specs="served/tools")
    made.write("served/__init__.py", "")
    made.write("served/py.typed", "")
    made.write("served/tools/odd.json", json.dumps({"tools": tools}))
    made.write("pyproject.toml", (root / "pyproject.toml").read_text() + SETTINGS.format(url=shop_url))
    for file in SERVERS.glob("*.py"):
        shutil.copy(file, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_TOKEN", "s3cret")
        command_line.toolkit(root, "import", "--trust", check=True)
    command_line.toolkit(root, "generate", check=True)
    return made


@pytest.fixture(scope="session")
def served(project: Project) -> Iterator[ModuleType]:
    """The generated package of that project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(project.root))
        yield import_module("served.generated")


def filled(folder: Path) -> Path:
    """A workspace with the servers in it."""
    folder.mkdir()
    for file in SERVERS.glob("*.py"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return filled(tmp_path / "workspace")


class Doors:
    """Toolkits of one flavour over one workspace."""

    def __init__(self, served: ModuleType, flavour: str, workspace: Path) -> None:
        self._served = served
        self._loop = asyncio.new_event_loop() if flavour == "async" else None
        self._made: list[Door] = []
        self.workspace = workspace

    def __call__(self, *packs: Pack, policy: Any = None, **context: Any) -> Door:
        create = self._served.create_agent_toolkit if self._loop is None else self._served.create_async_agent_toolkit
        policy = policy or self._served.SecurityPolicy(default="allow")
        settings = self._served.ToolkitContext(self.workspace, policy, **context)
        toolkit: Any = create(settings, packs=packs) if packs else create(settings)
        self._made.append(Door(toolkit, self._loop))
        return self._made[-1]

    def close(self) -> None:
        """Close all of them; nothing may be left."""
        for door in self._made:
            door.close()
        if self._loop is not None:
            self._loop.close()
        assert servers_in(self.workspace) == []


@pytest.fixture(params=TWINS)
def make_door(request: pytest.FixtureRequest, served: ModuleType, workspace: Path) -> Iterator[Doors]:
    doors = Doors(served, request.param, workspace)
    yield doors
    doors.close()


@pytest.fixture
def make_sync(served: ModuleType, workspace: Path) -> Iterator[Doors]:
    """For what does not depend on the flavour."""
    doors = Doors(served, "sync", workspace)
    yield doors
    doors.close()


def servers_in(workspace: Path) -> list[int]:
    """Every process on this machine that works in that folder; a namespace hides nothing from outside."""
    wanted = os.stat(workspace)
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            place = os.stat(f"/proc/{name}/cwd")
        except OSError:
            continue
        if (place.st_dev, place.st_ino) == (wanted.st_dev, wanted.st_ino):
            found.append(int(name))
    return found


@pytest.fixture(scope="session")
def one_service() -> Iterator[Service]:
    with running_service() as service:
        yield service


@pytest.fixture
def service(one_service: Service) -> Service:
    one_service.forget()
    return one_service


@pytest.fixture
def ctx(tmp_path: Path) -> Iterator[StandaloneContext]:
    with ToolContext.standalone(tmp_path) as context:
        yield context
