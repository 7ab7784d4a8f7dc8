"""Whether every entry point of a toolkit hands a handler the same arguments, for the tools of a shared project."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from pydantic import BaseModel

from tests.corpus.arguments import NoInstance, valid_arguments
from tests.corpus.project import SharedProject
from tests.projects import run
from toolkit import Pack, SecurityPolicy, ToolCall, ToolContext, ToolkitContext
from toolkit.errors import ToolFailed
from toolkit.schema import same_json

Json: TypeAlias = dict[str, Any]


def disagreements(project: SharedProject) -> dict[str, list[str]]:
    """By tool: the entry points that hand its handler something else than what was given; empty where all agree.

    Tools for which no valid arguments were found are left out. A separate process imports the generated package.
    """
    done = run([sys.executable, "-m", __name__, project.package, str(project.output / "manifest.json")], project.root)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


class _Recorder:
    """Two toolkits of one package whose handlers record their arguments and then fail."""

    def __init__(self, package: str, names: list[str], folder: str) -> None:
        self.generated = importlib.import_module(package)
        self.seen: list[BaseModel] = []
        context = ToolkitContext(folder, SecurityPolicy(default="allow"))
        packs = [Pack(dict.fromkeys(names, self._handler))]
        self.toolkit = self.generated.create_agent_toolkit(context, packs=packs)
        self.async_toolkit = self.generated.create_async_agent_toolkit(context, packs=packs)

    def _handler(self, args: BaseModel, ctx: ToolContext) -> None:
        self.seen.append(args)
        raise ToolFailed("RECORDED", "the arguments were recorded")

    def entry_points(self, row: Json, given: Json) -> Iterator[tuple[str, Callable[[], object]]]:
        name, attribute, text = row["name"], row["attribute"], json.dumps(given)
        model = getattr(self.generated, f"{row['prefix']}Input")
        wires = {parameter["wire"]: parameter["name"] for parameter in row["parameters"]}
        keywords = {wires[wire]: value for wire, value in given.items()}
        call, raw = ToolCall("1", name, given), ToolCall("1", name, {}, raw_arguments=text)
        sync, tasks = self.toolkit, self.async_toolkit
        yield "invoke(dict)", lambda: sync.invoke(name, given)
        yield "invoke(model)", lambda: sync.invoke(name, model.model_validate(given))
        yield "invoke(constructed)", lambda: sync.invoke(name, model(**keywords))
        yield "invoke(read back)", lambda: sync.invoke(name, _dump_and_read(model.model_validate(given)))
        yield "tools.name()", lambda: getattr(sync.tools, attribute)(**keywords)
        yield "call", lambda: sync.call(call)
        yield "call with text", lambda: sync.call(raw)
        yield "call_all", lambda: sync.call_all([call])
        yield "execute_raw", lambda: sync.execute_raw(name, text)
        yield "stream", lambda: list(sync.stream(call))
        yield "await invoke(dict)", lambda: _await(tasks.invoke(name, given))
        yield "await invoke(model)", lambda: _await(tasks.invoke(name, model(**keywords)))
        yield "await tools.name()", lambda: _await(getattr(tasks.tools, attribute)(**keywords))
        yield "await call", lambda: _await(tasks.call(call))
        yield "await execute_raw", lambda: _await(tasks.execute_raw(name, text))

    def check(self, row: Json, given: Json) -> Iterator[str]:
        """The entry points that differ, each with what the handler saw."""
        for entry, enter in self.entry_points(row, given):
            self.seen.clear()
            with suppress(ToolFailed):
                enter()
            if len(self.seen) != 1:
                yield f"{entry}: the handler ran {len(self.seen)} times"
                continue
            shown = self.seen[0].model_dump(mode="json", by_alias=True, exclude_unset=True)
            if not same_json(shown, given):
                yield f"{entry}: {json.dumps(given)[:200]} arrived as {json.dumps(shown)[:200]}"


def _await(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def _dump_and_read(made: BaseModel) -> BaseModel:
    """A model that was dumped as it was given, and read again."""
    return type(made).model_validate_json(made.model_dump_json(exclude_unset=True))


def _main(package: str, manifest: str) -> None:
    rows: list[Json] = json.loads(Path(manifest).read_text(encoding="utf-8"))["tools"]
    found: dict[str, list[str]] = {}
    with TemporaryDirectory() as folder:
        recorder = _Recorder(package, [row["name"] for row in rows], folder)
        for row in rows:
            with suppress(NoInstance):
                made = valid_arguments(row["inputSchema"])
                found[row["name"]] = [
                    text for given in (made.minimal, made.full) for text in recorder.check(row, given)
                ]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    _main(*sys.argv[1:])
