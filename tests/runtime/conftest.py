"""Acme's toolkit in both flavours, run_without_loop by one set of tests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from tests.examples import TWINS


class Door:
    """A toolkit of either flavour behind blocking calls, so that one test drives both."""

    def __init__(self, toolkit: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self.toolkit = toolkit
        self.loop = loop

    def _wait(self, value: Any) -> Any:
        return self.loop.run_until_complete(value) if self.loop is not None and inspect.isawaitable(value) else value

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.toolkit, name)
        return (lambda *args, **kwargs: self._wait(found(*args, **kwargs))) if callable(found) else found

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """``tools.<name>(**arguments)``"""
        return self._wait(getattr(self.toolkit.tools, name)(**arguments))

    def with_options(self, **options: Any) -> Door:
        return Door(self.toolkit.with_options(**options), self.loop)


MakeDoor = Callable[..., Door]


@pytest.fixture(params=TWINS)
def make_door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeDoor]:
    """Makes doors over a workspace in ``tmp_path``; everything is closed behind the test."""
    loop = asyncio.new_event_loop() if request.param == "async" else None
    doors: list[Door] = []

    def make(policy: Any = None, *, packs: Any = None, **context: Any) -> Door:
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        create = create_async_agent_toolkit if loop is not None else create_agent_toolkit
        settings = ToolkitContext(workspace, policy or SecurityPolicy(default="allow"), **context)
        toolkit: Any = create(settings) if packs is None else create(settings, packs=packs)
        doors.append(Door(toolkit, loop))
        return doors[-1]

    yield make
    for door in doors:
        door.close()
    if loop is not None:
        loop.close()


@pytest.fixture
def door(make_door: MakeDoor) -> Door:
    return make_door()
