"""One meaning over all entry points: what was not given is not sent, and every handler sees the same model.

The same arguments go through every entry point of both toolkits to a handler, a function, an MCP server and a web service, which
record what they got.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests import command_line
from tests.examples import TWINS
from tests.packs.conftest import SERVERS, Doors
from tests.packs.service import Service
from tests.projects import Project
from tests.runtime.conftest import Door
from toolkit import OMIT, Pack, ToolCall, ToolContext, define_tool, tool
from toolkit.adapters.langchain import as_langchain_tools

pytestmark = pytest.mark.xdist_group("given arguments")

ROADS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["q"],
    "properties": {
        "q": {"type": "string"},
        "n": {"type": "integer", "default": 10},
        "r": {"type": ["string", "null"], "default": None},
        "m": {"type": ["string", "null"]},
        "o": {"type": "integer"},
        "from": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        "inner": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b-c": {"type": "string"}}},
    },
}
OUTPUT = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Roads", "version": "1"},
    "paths": {
        "/roads": {
            "post": {
                "operationId": "roads",
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 20}},
                    {"name": "tag", "in": "query", "schema": {"type": "string"}},
                ],
                "requestBody": {"required": True, "content": {"application/json": {"schema": ROADS}}},
                "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": OUTPUT}}}},
            }
        }
    },
}
SETTINGS = """
[tool.toolkit.imports.server]
command = ["python", "echo.py", "roads.json"]
prefix = "server_"
[tool.toolkit.imports.service]
openapi = "service.json"
url = "{url}"
prefix = "service_"
"""

GIVEN: dict[str, dict[str, Any]] = {
    "only what is required": {"q": "x"},
    "a default": {"q": "x", "n": 10, "list": ["a"]},
    "null where it is allowed": {"q": "x", "r": None, "m": None},
    "an argument whose Python name differs": {"q": "x", "from": "a", "o": 3},
    "an empty object": {"q": "x", "inner": {}},
    "part of an object": {"q": "x", "inner": {"b-c": "y"}},
    "everything": {"q": "x", "n": 2, "r": "r", "m": "m", "o": 0, "from": "", "list": [], "inner": {"a": 1, "b-c": ""}},
}


@pytest.fixture(scope="module")
def roads(one_service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated package of a project with a tool of its own, one of an MCP server, and one of a web service."""
    root = tmp_path_factory.mktemp("roads")
    project = Project(root, package="roads.generated", specs="roads/tools")
    local = {"name": "roads", "description": "Finds roads.", "inputSchema": ROADS, "outputSchema": OUTPUT}
    project.write("roads/__init__.py", "")
    project.write("roads/tools/roads.json", json.dumps({"tools": [local]}))
    project.write("service.json", json.dumps(DOCUMENT))
    project.write("pyproject.toml", (root / "pyproject.toml").read_text() + SETTINGS.format(url=one_service.url))
    _add_server(root)
    command_line.toolkit(root, "import", "--trust", check=True)
    command_line.toolkit(root, "generate", check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        yield import_module("roads.generated")


def _add_server(folder: Path) -> None:
    shutil.copy(SERVERS / "echo.py", folder)
    (folder / "roads.json").write_text(json.dumps(ROADS))


class Recorder:
    """Handlers that record what they were given, and the toolkit they belong to."""

    def __init__(self, doors: Doors, roads: ModuleType, service: Service) -> None:
        self.roads = roads
        self._service = service
        self._workspace = doors.workspace
        self._seen: list[Any] = []
        packs = [*map(_load, import_module("roads.generated.facade").PACKS), Pack({"roads": self._handler})]
        self.door = doors(*packs, Pack(tools=[self._function(), self._function_of_a_model()]))

    def _handler(self, args: BaseModel, ctx: ToolContext) -> dict[str, Any]:
        inner = getattr(args, "inner", None)
        nested = None if inner is None else inner.model_fields_set
        self._seen.append((args.model_fields_set, nested, args.model_dump(by_alias=False)))
        return {"ok": True}

    def _function(self) -> Any:
        @tool(name="function")
        def find(
            q: str,
            n: int = 10,
            r: str | None = None,
            m: str | None = "not given",
            o: int = -1,
            from_: Annotated[str, Field(alias="from")] = "nowhere",
            list: list[str] | None = None,
            inner: dict[str, Any] | None = None,
        ) -> bool:
            "Finds roads."
            self._seen.append({"q": q, "n": n, "r": r, "m": m, "o": o, "from": from_, "list": list, "inner": inner})
            return True

        return find

    def _function_of_a_model(self) -> Any:
        def find(args: BaseModel, ctx: ToolContext) -> bool:
            self._handler(args, ctx)
            return True

        return define_tool(find, name="function_of_a_model", description="Finds roads.", input=self.roads.RoadsInput)

    def seen(self) -> Any:
        """What the handler or function of the last call saw."""
        assert len(self._seen) == 1, "it ran once"
        return self._seen.pop()

    def received(self) -> Any:
        """What the MCP server received."""
        file = self._workspace / "received.jsonl"
        lines = file.read_text().splitlines()
        file.unlink()
        assert len(lines) == 1, "it was called once"
        return json.loads(lines[0])

    def requested(self) -> tuple[str, Any]:
        """What the web service received."""
        assert len(self._service.seen) == 1, "it was called once"
        seen = self._service.seen.pop()
        return seen.line.split()[1], json.loads(seen.body)


def _load(pack: str) -> Pack:
    module, _, name = pack.partition(":")
    found: Pack = getattr(import_module(module), name)
    return found


@pytest.fixture(scope="module", params=TWINS)
def recorder(
    request: pytest.FixtureRequest, roads: ModuleType, one_service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    workspace = tmp_path_factory.mktemp("given") / "workspace"
    workspace.mkdir()
    _add_server(workspace)
    doors = Doors(roads, request.param, workspace)
    one_service.forget()
    yield Recorder(doors, roads, one_service)
    doors.close()


# -- the entry points ------------------------------------------------------------------------------------------------


def _call(name: str, given: dict[str, Any]) -> ToolCall:
    return ToolCall("1", name, given)


def _raw_call(name: str, given: dict[str, Any]) -> ToolCall:
    return ToolCall("1", name, {}, raw_arguments=json.dumps(given))


def _model(recorder: Recorder, name: str) -> Any:
    prefix = "".join(word.capitalize() for word in name.split("_"))
    return getattr(recorder.roads, f"{prefix}Input")


def _keywords(recorder: Recorder, name: str, given: dict[str, Any]) -> dict[str, Any]:
    names = {field.alias or key: key for key, field in _model(recorder, name).model_fields.items()}
    return {names[key]: value for key, value in given.items()}


def _construct(recorder: Recorder, name: str, given: dict[str, Any], **more: Any) -> Any:
    return _model(recorder, name)(**_keywords(recorder, name, given), **more)


def _all_keywords(recorder: Recorder, name: str, given: dict[str, Any], absent: object) -> dict[str, Any]:
    keywords = _keywords(recorder, name, given)
    return {**dict.fromkeys(_model(recorder, name).model_fields, absent), **keywords}


def _copy_by_attributes(recorder: Recorder, name: str, given: dict[str, Any]) -> Any:
    """As a user copies a model: field by field, absent ones included, where null is not a value."""
    made, fields = _construct(recorder, name, given), _model(recorder, name).model_fields
    omissible = {key for key in fields if key in _model(recorder, name).__omissible__}
    return _model(recorder, name)(**{key: getattr(made, key) for key in omissible | made.model_fields_set})


def _drain(door: Door, stream: Any) -> None:
    if isinstance(stream, AsyncIterator):

        async def drain() -> None:
            async for _ in stream:
                pass

        door._wait(drain())
    else:
        list(stream)


def _langchain(door: Door, name: str, given: dict[str, Any]) -> None:
    made = next(each for each in as_langchain_tools(door.toolkit) if each.name == name)
    door._wait(made.invoke(given) if door.loop is None else made.ainvoke(given))


Enter = Callable[[Recorder, str, dict[str, Any]], Any]

EVERY: dict[str, Enter] = {
    "invoke(dict)": lambda r, name, given: r.door.invoke(name, given),
    "call": lambda r, name, given: r.door.call(_call(name, given)),
    "call with text": lambda r, name, given: r.door.call(_raw_call(name, given)),
    "call_all": lambda r, name, given: r.door.call_all([_call(name, given)]),
    "execute_raw": lambda r, name, given: r.door.execute_raw(name, json.dumps(given)),
    "stream": lambda r, name, given: _drain(r.door, r.door.toolkit.stream(_call(name, given))),
    "langchain": lambda r, name, given: _langchain(r.door, name, given),
    "with a deadline": lambda r, name, given: r.door.with_options(deadline=60).invoke(name, given),
}
"""Entry points of every tool."""

GENERATED: dict[str, Enter] = {
    **EVERY,
    "invoke(model)": lambda r, name, given: r.door.invoke(name, _model(r, name).model_validate(given)),
    "invoke(constructed)": lambda r, name, given: r.door.invoke(name, _construct(r, name, given)),
    "invoke(copied)": lambda r, name, given: r.door.invoke(name, _copy_by_attributes(r, name, given)),
    "tools.name()": lambda r, name, given: r.door.tool(name, **_keywords(r, name, given)),
    "tools.name(OMIT)": lambda r, name, given: r.door.tool(name, **_all_keywords(r, name, given, OMIT)),
}
"""Entry points of tools with generated code."""


@pytest.mark.sample
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("entry", GENERATED)
def test_a_handler_sees_the_same_model(recorder: Recorder, entry: str, given: str) -> None:
    value = GIVEN[given]
    GENERATED[entry](recorder, "roads", value)
    fields, nested, dumped = recorder.seen()
    assert fields == set(_keywords(recorder, "roads", value))
    assert nested == ({"b_c" if key == "b-c" else key for key in value["inner"]} if "inner" in value else None)
    assert dumped["n"] == value.get("n", 10) and dumped["list_"] == value.get("list", ["a"])


@pytest.mark.sample
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("entry", GENERATED)
def test_a_server_receives_what_was_given(recorder: Recorder, entry: str, given: str) -> None:
    GENERATED[entry](recorder, "server_roads", GIVEN[given])
    assert recorder.received() == GIVEN[given]


@pytest.mark.sample
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("entry", GENERATED)
def test_a_service_receives_what_was_given(recorder: Recorder, entry: str, given: str) -> None:
    GENERATED[entry](recorder, "service_roads", {"body": GIVEN[given]})
    assert recorder.requested() == ("/roads", GIVEN[given])
    GENERATED[entry](recorder, "service_roads", {"body": GIVEN[given], "limit": 20})
    assert recorder.requested() == ("/roads?limit=20", GIVEN[given])


@pytest.mark.sample
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("entry", EVERY)
def test_a_function_gets_its_own_defaults(recorder: Recorder, entry: str, given: str) -> None:
    EVERY[entry](recorder, "function", GIVEN[given])
    absent = {"n": 10, "r": None, "m": "not given", "o": -1, "from": "nowhere", "list": None, "inner": None}
    assert recorder.seen() == {**absent, **GIVEN[given]}


@pytest.mark.sample
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("entry", EVERY)
def test_a_function_of_a_model_sees_the_same_model(recorder: Recorder, entry: str, given: str) -> None:
    EVERY[entry](recorder, "function_of_a_model", GIVEN[given])
    fields, _, dumped = recorder.seen()
    assert fields == set(_keywords(recorder, "roads", GIVEN[given]))
    assert dumped["n"] == GIVEN[given].get("n", 10)
