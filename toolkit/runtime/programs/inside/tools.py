"""The objects ``tools`` and ``atools`` of a program: each attribute sends a call to the toolkit."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json

from toolkit import errors
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.runtime.programs.frames import Frame
from toolkit.runtime.programs.inside.connection import Connection

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
