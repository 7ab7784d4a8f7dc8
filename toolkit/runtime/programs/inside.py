"""Runs programs, one after the other, in the namespace of their session. Everything here is inside the sandbox: nothing
that a program does to this module gains it anything, because the toolkit judges each frame that arrives."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import io
import json
import os
import select
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from types import CodeType, FrameType
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from toolkit import errors
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.runtime.programs.frames import Frame, FrameBuffer, pack
from toolkit.schema.models import ToolModel

# ----------------------------------------------------------------------------------------------------------------------
# The inner end of the pipes: sends calls to the toolkit, and receives their results.

_CHUNK: Final = 1 << 18


class Connection:
    """Sends and receives frames. Calls may be made by several threads, and by tasks of one event loop."""

    def __init__(self, source: int, sink: int) -> None:
        self._source: Final = source
        self._sink: Final = sink
        self._buffer: Final = FrameBuffer()
        self._sending: Final = threading.Lock()
        self._receiving: Final = threading.Lock()
        self._arrived: Final[dict[int, Frame]] = {}
        """Results that nobody has taken yet."""
        self._futures: Final[dict[int, asyncio.Future[Frame]]] = {}
        self._requests: list[Frame] = []
        self._last = 0

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        data = pack(head, body)
        with self._sending:
            while data:
                data = data[os.write(self._sink, data) :]

    def next_request(self) -> Frame:
        """Waits for the next program."""
        while not self._requests:
            with self._receiving:
                self._receive()
        return self._requests.pop(0)

    def call(self, head: dict[str, Any], body: bytes) -> Frame:
        """Makes a call and waits for its result."""
        number = self._next_number()
        self.send({**head, "call": number, "waits": True}, body)
        while number not in self._arrived:
            with self._receiving:
                if number not in self._arrived:
                    self._receive()
        return self._arrived.pop(number)

    async def call_async(self, head: dict[str, Any], body: bytes) -> Frame:
        """The same for a task of the running event loop, while other tasks go on."""
        loop = asyncio.get_running_loop()
        number = self._next_number()
        future: asyncio.Future[Frame] = loop.create_future()
        self._futures[number] = future
        loop.add_reader(self._source, self._receive_arrived)
        self.send({**head, "call": number, "waits": False}, body)
        try:
            return await future
        finally:
            self._futures.pop(number, None)
            if not self._futures:
                loop.remove_reader(self._source)

    def _next_number(self) -> int:
        with self._sending:
            self._last += 1
            return self._last

    def _receive_arrived(self) -> None:
        """Reads for the event loop, which must not wait. A thread that waits for a call reads for all."""
        if self._receiving.acquire(blocking=False):
            try:
                if select.select([self._source], [], [], 0)[0]:  # a thread may have read it meanwhile
                    self._receive()
            finally:
                self._receiving.release()

    def _receive(self) -> None:
        """Reads what has arrived; waits if there is nothing. Only for the holder of ``_receiving``."""
        data = os.read(self._source, _CHUNK)
        if not data:
            os._exit(0)  # the toolkit is gone
        for frame in self._buffer.add(data):
            number = frame.head.get("result")
            if number is None:
                self._requests.append(frame)
            elif (future := self._futures.get(number)) is None:
                self._arrived[number] = frame
            elif not future.done():
                future.get_loop().call_soon_threadsafe(_finish, future, frame)


def _finish(future: asyncio.Future[Frame], frame: Frame) -> None:
    if not future.done():
        future.set_result(frame)


# ----------------------------------------------------------------------------------------------------------------------
# The objects ``tools`` and ``atools`` of a program: each attribute sends a call to the toolkit.

FILE: Final = "<program>"
_ERRORS: Final[dict[str, type[ToolkitError]]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ToolkitError) and kind is not ToolkitError
}


class JsonRecord(dict[str, Any]):
    """An object of a tool whose output has no generated class: its keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there is {', '.join(self) or 'nothing'}") from None


class CalledTool:
    """One tool that the program names."""

    def __init__(self, connection: Connection, known: Mapping[str, Any]) -> None:
        self._connection = connection
        self._name: str = known["name"]
        self._attribute: str = known["attribute"]
        self._module: str | None = known["module"]
        self._output: str = known["output"]
        self._wire: dict[str, str] = known["wire"]
        self._model: type[BaseModel] | None = None

    def load(self) -> dict[str, Any]:
        """The classes of its module by name, which a program may use in annotations."""
        if self._module is None:
            return {}
        module = importlib.import_module(self._module)
        self._model = getattr(module, self._output)
        return {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == self._module
        }

    def call(self, /, *args: object, **arguments: object) -> Any:
        head, body = self._request(args, arguments)
        return self._read(self._connection.call(head, body))

    def call_async(self, /, *args: object, **arguments: object) -> Coroutine[Any, Any, Any]:
        # The request is made here: in a task, the line of the program is no longer known.
        return self._await(*self._request(args, arguments))

    async def _await(self, head: dict[str, Any], body: bytes) -> Any:
        return self._read(await self._connection.call_async(head, body))

    def _request(self, args: tuple[object, ...], arguments: dict[str, object]) -> tuple[dict[str, Any], bytes]:
        if args:
            raise TypeError(f"{self._attribute} takes keyword arguments only")
        for name, wire in self._wire.items():
            if name in arguments:
                arguments[wire] = arguments.pop(name)
        body = to_json(arguments, by_alias=True)
        return {"tool": self._name, "line": line_of_program()}, body

    def _read(self, frame: Frame) -> Any:
        head = frame.head
        if "code" in head:
            raise make_error(head["code"], head["message"], self._name, json.loads(frame.body))
        if self._model is None:
            return json.loads(frame.body, object_pairs_hook=JsonRecord)
        return self._model.__pydantic_validator__.validate_json(frame.body)


class Tools:
    """``tools`` or ``atools``. Only what the text of the program names is there."""

    __slots__ = ("__dict__",)

    def __init__(self, calls: Mapping[str, Callable[..., Any]]) -> None:
        self.__dict__.update(calls)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the text of the program does not name tools.{name}, so it cannot be called")


def make_error(code: str, message: str, tool: str, details: dict[str, Any]) -> ToolkitError:
    """The error that the call raised in the toolkit."""
    kind = _ERRORS.get(code, ToolkitError)
    if kind is ToolFailed:
        error: ToolkitError = ToolFailed(details.pop("reason", "IO"), message, **details)
        error.tool_name = tool
        return error
    return kind(message, tool_name=tool, details=details)


def line_of_program() -> int:
    """The line that the program is at."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == FILE:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def as_records(value: Any) -> Any:
    """JSON data whose objects have their keys as attributes."""
    if isinstance(value, dict):
        return JsonRecord((key, as_records(item)) for key, item in value.items())
    return [as_records(item) for item in value] if isinstance(value, list) else value


_VALUE: Final = "__value__"
_PRINTED: Final = 1 << 13


def serve() -> None:
    """Answers requests until the toolkit closes the pipe."""
    connection = Connection(*_take_pipes())
    session = _Session(connection)
    _prepare()
    connection.send({"ready": True})
    while True:
        session.run(connection.next_request())


def _take_pipes() -> tuple[int, int]:
    """Moves the pipes away from stdin and stdout: what a program or its libraries write there must not become a frame."""
    source, sink = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return source, sink


def _prepare() -> None:
    """Does what every program needs, before the first one comes."""

    class _Prepared(ToolModel):
        number: int

    _Prepared(number=1)
    asyncio.new_event_loop().close()


class _Session:
    """The variables that programs leave for the next one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._runner = asyncio.Runner()

    def run(self, request: Frame) -> None:
        """Runs one program, and reports how it ended."""
        printed = _Printed(self._connection)
        sys.stdout = sys.stderr = printed
        try:
            value = self._execute(request)
            printed.flush()
            self._connection.send({"end": "ok"}, _as_json(value))
        except BaseException as error:
            printed.flush()
            self._connection.send({"end": "error", **_describe(error)})

    def _execute(self, request: Frame) -> object:
        given = json.loads(request.body)
        tools = {known["attribute"]: CalledTool(self._connection, known) for known in given["tools"]}
        names = self._names
        for tool in tools.values():
            names.update(tool.load())
        names["tools"] = Tools({name: tool.call for name, tool in tools.items()})
        names["atools"] = Tools({name: tool.call_async for name, tool in tools.items()})
        names["inputs"] = as_records(given["inputs"])
        code, assigns_result = compile_program(given["source"])
        names.pop(_VALUE, None)
        if code.co_flags & inspect.CO_COROUTINE:
            self._runner.run(_await(eval(code, names)))
        else:
            exec(code, names)
        return names.get("result") if assigns_result else names.get(_VALUE)


async def _await(work: Any) -> None:
    """Awaits a program, then ends the tasks that it left."""
    try:
        await work
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def compile_program(source: str) -> tuple[CodeType, bool]:
    """The code of a program, which keeps its last expression, and whether it assigns ``result``."""
    tree = compile(source, FILE, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assigns_result = any(
        isinstance(node, ast.Name) and node.id == "result" and isinstance(node.ctx, ast.Store)
        for statement in tree.body
        for node in _walk_own_scope(statement)
    )
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        keep = ast.Assign([ast.Name(_VALUE, ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(keep, last))
    code = compile(tree, FILE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code, assigns_result


def _walk_own_scope(node: ast.AST) -> list[ast.AST]:
    """A statement and what is in it, without functions and classes, which have variables of their own."""
    found, pending = [], [node]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        found.append(node)
        pending.extend(ast.iter_child_nodes(node))
    return found


class _Printed(io.TextIOBase):
    """What a program prints, sent in pieces."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pieces: list[str] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._pieces.append(text)
        self._length += len(text)
        if self._length >= _PRINTED:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self._pieces:
            data = "".join(self._pieces).encode("utf-8", "backslashreplace")
            self._pieces, self._length = [], 0
            for start in range(0, len(data), 1 << 20):
                self._connection.send({"print": True}, data[start : start + (1 << 20)])


def _as_json(value: object) -> bytes:
    """The value of a program as JSON; what was absent in a model stays absent."""
    return to_json(_plain(value), by_alias=True, inf_nan_mode="null")


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, JsonRecord):
        return dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def _describe(error: BaseException) -> dict[str, Any]:
    """An error of a program: its line, and what a traceback would say last."""
    if isinstance(error, PydanticSerializationError):
        return {"line": 0, "message": f"the value of the program cannot be written as JSON: {error}"}
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    words = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, ToolkitError):
        words = str(error)
    return {"line": lines[-1] if lines else 0, "message": words[:2000]}
