"""Run by ``functions`` in a process of its own: imports modules and writes down the tools they hold.

The package that is to be generated is not there for them: whatever they import from it is a placeholder. A module whose
package binds handlers with the generated ``bind`` can be read so before anything was generated, and what is read does not
depend on what an earlier run left.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from toolkit.errors import SetupError
from toolkit.runtime.define import FunctionTool
from toolkit.runtime.join import ALL, load_pack
from toolkit.runtime.lazy import LazyTool
from toolkit.runtime.table import CodeTool


def main(answer: str, root: str, package: str, entries: Sequence[str]) -> None:
    """Writes ``{"tools": {entry: [...]}, "problems": [...]}``, or ``{"failed": why}`` where a module cannot be imported."""
    sys.meta_path.insert(0, _Generated(package))
    sys.path.insert(0, root)
    tools: dict[str, list[dict[str, Any]]] = {}
    problems: list[str] = []
    told: dict[str, Any] = {"tools": tools, "problems": problems}
    for entry in entries:
        try:
            pack = load_pack(entry if ":" in entry else f"{entry}:{ALL}")
        except BaseException as error:
            told = {"failed": _why(entry, error, root)}
            break
        tools[entry] = list(_described(entry, pack.tools, problems))
        if not pack.tools:
            problems.append(f"it holds no tool made of a function @ {entry}")
    Path(answer).write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")


def _described(entry: str, tools: Sequence[CodeTool], problems: list[str]) -> Iterator[dict[str, Any]]:
    for tool in tools:
        try:
            yield _description(_made(tool))
        except SetupError as error:
            problems.append(f"{error} @ {entry}:{tool.name}")


def _made(tool: CodeTool) -> FunctionTool[..., Any]:
    if isinstance(tool, LazyTool) and tool.needs_context:
        raise SetupError(
            f"{tool.owner} makes it for a context, which only a toolkit has: keep it out of 'functions', and give it to the "
            f"toolkit among its packs"
        )
    if isinstance(tool, LazyTool):
        return tool.made(wait=lambda work: asyncio.run(_awaited(work)))
    assert isinstance(tool, FunctionTool)
    return tool


async def _awaited(work: Any) -> Any:
    return await work


def _description(tool: FunctionTool[..., Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.arguments.schema,
        "permissions": {"required": tool.permissions.required, "optional": tool.permissions.optional},
        "parallel": tool.parallel,
        "blocking": tool.blocking,
    }
    if tool.title is not None:
        spec["title"] = tool.title
    if tool.output.schema is not None:
        spec["outputSchema"] = tool.output.schema
    place = tool.origin.partition(":")[2]
    return {"spec": spec, "place": place, "function": tool.origin, "longDescription": tool.long_description}


def _why(entry: str, error: BaseException, root: str) -> str:
    """What went wrong, and the last line of the project's own that was to blame."""
    cause = error.__cause__ if isinstance(error, SetupError) and error.__cause__ is not None else error
    if isinstance(cause, SetupError):
        return str(cause)
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if _is_below(frame.filename, root)]
    place = f" ({Path(frames[-1].filename).relative_to(root).as_posix()}, line {frames[-1].lineno})" if frames else ""
    return f"{entry!r} cannot be imported: {type(cause).__name__}: {cause}{place}"


def _is_below(file: str, root: str) -> bool:
    return Path(file).is_relative_to(root)


# -- in place of the package that is to be generated -----------------------------------------------------------------


class _Generated(MetaPathFinder, Loader):
    """Finds the package and every module in it: empty ones, in which every name is a placeholder."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        ours = fullname == self.package or fullname.startswith(f"{self.package}.")
        return ModuleSpec(fullname, self, is_package=True) if ours else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = _placeholder


class _PlaceholderType(type):
    """The type of placeholders, which are classes: they can be called, subclassed, subscripted and looked into."""

    def __getattr__(cls, name: str) -> Any:
        return _placeholder(name)

    def __getitem__(cls, parameters: object) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


def _placeholder(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _PlaceholderType(name, (_Placeholder,), {})


class _Placeholder(metaclass=_PlaceholderType):
    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return _placeholder(name)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> NoReturn:
        raise SetupError(
            f"{cls.__name__!r} comes from the package that is generated from these tools, and is not there before them"
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
