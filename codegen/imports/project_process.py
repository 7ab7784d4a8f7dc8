"""A program that reads a project's modules in a process of its own: code-first tools, or pydantic models.

    python project_process.py functions|models ANSWER ROOT PACKAGE ENTRY...

It writes its answer to the file ANSWER, because modules may print to standard output: ``{"tools": ..., "problems": [...]}``,
or ``{"failed": reason}`` if a module cannot be imported. ``python_modules`` starts it and reads the answer.

The project's code does not see the generated package: everything it imports from there is a placeholder. So a module whose
package uses the generated ``bind`` can be read before anything was generated, and the result does not depend on an earlier
run.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import enum
import importlib
import inspect
import json
import keyword
import sys
import traceback
import typing
from collections.abc import Awaitable, Iterator, Sequence
from functools import cache, reduce
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from operator import attrgetter
from pathlib import Path
from types import EllipsisType, ModuleType, NoneType, UnionType
from typing import Any, Final, Literal, NoReturn

import typing_extensions
from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from toolkit.errors import SetupError
from toolkit.runtime.functions import FunctionTool, LazyTool
from toolkit.runtime.packs import ALL, CodeTool, load_pack


class _EntryFailed(Exception):
    """A module cannot be imported, for whatever reason: nothing else is read."""

    def __init__(self, entry: str, error: BaseException) -> None:
        self.entry = entry
        self.error = error


def main(kind: str, answer: str, root: str, package: str, entries: Sequence[str]) -> None:
    sys.meta_path.insert(0, _PlaceholderFinder(package))
    sys.path.insert(0, root)
    try:
        result = _read_functions(entries) if kind == "functions" else _read_models(entries)
    except _EntryFailed as failed:
        result = {"failed": _explain_failure(failed.entry, failed.error, root)}
    Path(answer).write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")


def _explain_failure(entry: str, error: BaseException, root: str) -> str:
    """What went wrong, and the last line of the project's code that was involved."""
    cause = error.__cause__ if isinstance(error, SetupError) and error.__cause__ is not None else error
    if isinstance(cause, SetupError):
        return str(cause)
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if Path(frame.filename).is_relative_to(root)]
    place = f" ({Path(frames[-1].filename).relative_to(root).as_posix()}, line {frames[-1].lineno})" if frames else ""
    return f"{entry!r} cannot be imported: {type(cause).__name__}: {cause}{place}"


# ----------------------------------------------------------------------------------------------------------------------
# Code-first tools


def _read_functions(entries: Sequence[str]) -> dict[str, Any]:
    """The tools of each entry. A problem is a message, an entry and a tool."""
    tools: dict[str, list[dict[str, Any]]] = {}
    problems: list[tuple[str, str, str]] = []
    for entry in entries:
        try:
            pack = load_pack(entry if ":" in entry else f"{entry}:{ALL}")
        except BaseException as error:
            raise _EntryFailed(entry, error) from error
        tools[entry] = list(_describe_tools(entry, pack.tools, problems))
        if not pack.tools:
            problems.append(("it holds no code-first tool", entry, ""))
    return {"tools": tools, "problems": problems}


def _describe_tools(
    entry: str, tools: Sequence[CodeTool], problems: list[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    for tool in tools:
        try:
            yield _describe_tool(_make_tool(tool))
        except SetupError as error:
            problems.append((str(error), entry, tool.name))


def _make_tool(tool: CodeTool) -> FunctionTool[..., Any]:
    if isinstance(tool, LazyTool) and tool.needs_context:
        raise SetupError(
            f"{tool.owner} needs a context, which only a toolkit has: remove it from 'functions', and pass it to the toolkit "
            f"in 'packs'"
        )
    if isinstance(tool, LazyTool):
        return tool.load(wait=_run_to_end)
    assert isinstance(tool, FunctionTool)
    return tool


def _run_to_end(work: Awaitable[Any]) -> Any:
    async def wait() -> Any:
        return await work

    return asyncio.run(wait())


def _describe_tool(tool: FunctionTool[..., Any]) -> dict[str, Any]:
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
    return {
        "spec": spec,
        "place": tool.origin.partition(":")[2],
        "function": tool.origin,
        "longDescription": tool.long_description,
        "ownOutput": None if tool.output.schema is None else describe_own_type(tool.signature.returns),
    }


# ----------------------------------------------------------------------------------------------------------------------
# A function's return type as source text that a generated module can hold: every class with the name of its module

_PLAIN_MODULES: Final = ("builtins", "collections.abc", "typing")
"""A type that needs nothing but these has no class that a generated one could be a copy of."""
_NAMED: Final = (
    type,
    typing.NewType,
    typing_extensions.TypeAliasType,
    getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType),  # since Python 3.12
)
_MAKERS_OF_TYPES: Final = ("Enum", "Flag", "NamedTuple", "NewType", "TypeAliasType", "TypedDict", "namedtuple")


class _NotImportableError(Exception):
    """A part of the type cannot be written as a name in a module."""


def describe_own_type(annotation: Any) -> dict[str, Any] | None:
    """``{"type": "list[acme.orders.Order]", "modules": ["acme.orders"]}``.

    None if the type has no class of its own, or one that another module cannot import: one defined in a function, or made
    in a way that type checkers do not understand.
    """
    modules: set[str] = set()
    try:
        source = _type_text(annotation, modules)
    except _NotImportableError:
        return None
    if modules.issubset(_PLAIN_MODULES):
        return None
    return {"type": source, "modules": sorted(modules - {"builtins"})}


def _type_text(annotation: Any, modules: set[str]) -> str:
    if annotation in (None, NoneType):
        return "None"
    if isinstance(annotation, EllipsisType):
        return "..."
    if annotation is Any:
        modules.add("typing")
        return "typing.Any"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(arguments[0], modules)
    if origin in (typing.Union, UnionType):
        return " | ".join(_type_text(part, modules) for part in arguments)
    if origin is typing.Literal:
        modules.add("typing")
        return f"typing.Literal[{', '.join(_value_text(value, modules) for value in arguments)}]"
    if origin is None and (generic := getattr(annotation, "__pydantic_generic_metadata__", None)):
        origin, arguments = generic["origin"], generic["args"]
    if origin is None:
        return _name_text(annotation, modules)
    parts = ", ".join(_type_text(part, modules) for part in arguments)
    return f"{_name_text(origin, modules)}[{parts or '()'}]"


def _value_text(value: object, modules: set[str]) -> str:
    if isinstance(value, enum.Enum):
        if not _is_name(value.name):
            raise _NotImportableError
        return f"{_name_text(type(value), modules)}.{value.name}"
    return ascii(value)


def _name_text(named: Any, modules: set[str]) -> str:
    """The name of a class or alias with its module; a built-in one has no module."""
    if not isinstance(named, _NAMED):
        raise _NotImportableError
    name = getattr(named, "__qualname__", named.__name__)
    module = _find_module(named, name)
    modules.add(module)
    return name if module == "builtins" else f"{module}.{name}"


def _find_module(named: Any, name: str) -> str:
    module: str = named.__module__
    top = module.partition(".")[0]
    if top == "toolkit":
        public = [top]  # our other modules may move
    elif top in sys.stdlib_module_names:
        # Its private modules are not the same in all versions, and checkers do not know them.
        public = [*(module.rsplit(".", count)[0] for count in range(module.count("."), 0, -1)), module]
    else:
        public = [module] if _is_static(module, tuple(name.split("."))) else []
    for candidate in public:
        if _holds(candidate, name, named):
            return candidate
    raise _NotImportableError


def _holds(module: str, name: str, value: object) -> bool:
    if module == "__main__" or not all(map(_is_name, (*module.split("."), *name.split(".")))):
        return False
    try:
        return attrgetter(name)(builtins if module == "builtins" else sys.modules[module]) is value
    except (AttributeError, KeyError):
        return False


def _is_name(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word)


@cache
def _is_static(module: str, path: tuple[str, ...]) -> bool:
    """Whether type checkers see a type under this name; they do not see one that ``create_model`` made."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not file.endswith(".py"):
        return False
    with open(file, "rb") as source:
        body: Sequence[ast.stmt] = ast.parse(source.read()).body
    for name in path[:-1]:
        body = next((one.body for one in _statements(body) if isinstance(one, ast.ClassDef) and one.name == name), ())
    return any(_defines_type(statement, path[-1]) for statement in _statements(body))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, also those below ``if``, ``try`` and ``with``."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for block in ("body", "handlers", "orelse", "finalbody"):
                yield from _statements(getattr(statement, block, ()))
        elif isinstance(statement, ast.ExceptHandler):
            yield from _statements(statement.body)


def _defines_type(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.ClassDef):
        return statement.name == name
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        maker = ast.unparse(statement.value.func).rpartition(".")[2]
        return ast.unparse(statement.targets[0]) == name and maker.endswith(_MAKERS_OF_TYPES)
    # `type Name = ...`, which Python 3.11 does not know.
    return type(statement).__name__ == "TypeAlias" and ast.unparse(getattr(statement, "name", statement)) == name


# ----------------------------------------------------------------------------------------------------------------------
# Pydantic models


def _read_models(entries: Sequence[str]) -> dict[str, Any]:
    """A tool for each entry. A problem is a message."""
    tools: list[dict[str, Any]] = []
    problems: list[str] = []
    for entry in entries:
        names = [name.strip() for name in entry.split("->")]
        try:
            found = [_load_name(name) for name in names]
        except BaseException as error:  # whatever a module raises when it is imported
            raise _EntryFailed(entry, error) from error
        problems += [
            f"{name!r} is not a pydantic model"
            for name, model in zip(names, found, strict=True)
            if not _is_model(model)
        ]
        if all(map(_is_model, found)):
            tools += _describe_models(entry, found, problems)
    return {"tools": tools, "problems": problems}


def _load_name(name: str) -> Any:
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(module))


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _describe_models(entry: str, models: Sequence[type[BaseModel]], problems: list[str]) -> list[dict[str, Any]]:
    try:
        inputs = _schema(models[0], "validation")
        outputs = _schema(models[1], "serialization") if len(models) > 1 else None
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        problems.append(f"{entry!r} has no JSON Schema: {str(error).splitlines()[0].rstrip('.')}")
        return []
    description = inspect.cleandoc(vars(models[0]).get("__doc__") or "")
    return [
        {"class": models[0].__name__, "description": description, "inputSchema": inputs, "outputSchema": outputs},
    ]


def _schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The schema from pydantic. A recursive model is only in ``$defs``, but a tool's schema must start at the top."""
    schema = model.model_json_schema(mode=mode)
    if "$ref" not in schema:
        return schema
    definitions = schema["$defs"]
    return {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions}


# ----------------------------------------------------------------------------------------------------------------------
# Placeholders for the generated package


class _PlaceholderFinder(MetaPathFinder, Loader):
    """Finds the package and every module in it as empty modules, in which every name is a placeholder."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        ours = fullname == self.package or fullname.startswith(f"{self.package}.")
        return ModuleSpec(fullname, self, is_package=True) if ours else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = _placeholder


class _PlaceholderType(type):
    """The type of placeholders. They are classes that can be called, subclassed and subscripted, with any attribute."""

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
            f"{cls.__name__!r} is from the package that is generated from these tools, so their types cannot use it"
        )


if __name__ == "__main__":
    _, kind, answer, root, package, *entries = sys.argv
    main(kind, answer, root, package, entries)
