"""The return type of a function as source text that a generated module can hold: every class with the name of its module.

Part of a program that runs in its own process together with a project's code.
"""

from __future__ import annotations

import ast
import builtins
import enum
import keyword
import sys
import typing
from collections.abc import Iterator, Sequence
from functools import cache
from operator import attrgetter
from types import EllipsisType, NoneType, UnionType
from typing import Any, Final

import typing_extensions

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
        source = _render(annotation, modules)
    except _NotImportableError:
        return None
    if modules.issubset(_PLAIN_MODULES):
        return None
    return {"type": source, "modules": sorted(modules - {"builtins"})}


def _render(annotation: Any, modules: set[str]) -> str:
    if annotation in (None, NoneType):
        return "None"
    if isinstance(annotation, EllipsisType):
        return "..."
    if annotation is Any:
        modules.add("typing")
        return "typing.Any"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _render(arguments[0], modules)
    if origin in (typing.Union, UnionType):
        return " | ".join(_render(part, modules) for part in arguments)
    if origin is typing.Literal:
        modules.add("typing")
        return f"typing.Literal[{', '.join(_render_value(value, modules) for value in arguments)}]"
    if origin is None and (generic := getattr(annotation, "__pydantic_generic_metadata__", None)):
        origin, arguments = generic["origin"], generic["args"]
    if origin is None:
        return _render_name(annotation, modules)
    parts = ", ".join(_render(part, modules) for part in arguments)
    return f"{_render_name(origin, modules)}[{parts or '()'}]"


def _render_value(value: object, modules: set[str]) -> str:
    if isinstance(value, enum.Enum):
        if not _is_name(value.name):
            raise _NotImportableError
        return f"{_render_name(type(value), modules)}.{value.name}"
    return ascii(value)


def _render_name(named: Any, modules: set[str]) -> str:
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
