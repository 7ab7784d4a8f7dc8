"""The loop over Acme's toolkit in both flavours, driven by one set of tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from tests.examples import TWINS
from toolkit import Conversation, DynamicContext, run, run_async, stream_run, stream_run_async
from toolkit.testing import AsyncScriptedModel, ScriptedModel


class Loop:
    """A scripted model and a toolkit of either flavour behind blocking calls."""

    def __init__(self, toolkit: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self.toolkit = toolkit
        self._loop = loop
        self.driver: Any = None

    @property
    def is_async(self) -> bool:
        return self._loop is not None

    def script(self, *answers: Any) -> None:
        self.driver = ScriptedModel(*answers) if self._loop is None else AsyncScriptedModel(*answers)

    def run(self, prompt: Any, **options: Any) -> Conversation:
        if self._loop is None:
            return run(self.driver, self.toolkit, prompt, **options)
        return self._loop.run_until_complete(run_async(self.driver, self.toolkit, prompt, **options))

    def stream(self, prompt: Any, **options: Any) -> Iterator[Any]:
        """The events of a run; closing this closes the run."""
        if self._loop is None:
            yield from stream_run(self.driver, self.toolkit, prompt, **options)
            return
        events: Any = stream_run_async(self.driver, self.toolkit, prompt, **options)
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(anext(events))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(events.aclose())

    def stream_at_once(self, prompt: Any, **options: Any) -> list[Any]:
        """All events of a run, read by one task."""
        if self._loop is None:
            return list(self.stream(prompt, **options))

        async def read() -> list[Any]:
            return [event async for event in stream_run_async(self.driver, self.toolkit, prompt, **options)]

        return self._loop.run_until_complete(read())

    def view(self, **options: Any) -> Loop:
        made = Loop(self.toolkit.with_options(**options), self._loop)
        made.driver = self.driver
        return made

    def close(self) -> None:
        closed = self.toolkit.close()
        if self._loop is not None:
            self._loop.run_until_complete(closed)


MakeLoop = Callable[..., Loop]


@pytest.fixture(params=TWINS)
def make_loop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeLoop]:
    event_loop = asyncio.new_event_loop() if request.param == "async" else None
    loops: list[Loop] = []

    def make(policy: Any = None, *, packs: Any = None, **context: Any) -> Loop:
        create: Any = create_async_agent_toolkit if event_loop is not None else create_agent_toolkit
        kind: Any = ToolkitContext if packs is None else DynamicContext
        settings = kind(
            tmp_path, policy or SecurityPolicy(default="allow"), state_dir=tmp_path.parent / "state", **context
        )
        loops.append(Loop(create(settings) if packs is None else create(settings, packs=packs), event_loop))
        return loops[-1]

    yield make
    for loop in loops:
        loop.close()
    if event_loop is not None:
        event_loop.close()


@pytest.fixture
def loop(make_loop: MakeLoop) -> Loop:
    return make_loop()
