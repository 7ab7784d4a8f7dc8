"""Runs programs, one after the other, in the namespace of their session. Everything here is inside the sandbox: nothing
that a program does to this module gains it anything, because the toolkit judges each frame that arrives."""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import os
import sys
import traceback
from collections.abc import Mapping
from types import CodeType
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from toolkit.errors import ToolkitError
from toolkit.models.base import ToolModel
from toolkit.runtime.programs.frames import Frame
from toolkit.runtime.programs.inside.connection import Connection
from toolkit.runtime.programs.inside.tools import FILE, CalledTool, JsonRecord, Tools, as_records

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
