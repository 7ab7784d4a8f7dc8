"""Loads a pack that is named as ``"module:name"``, and says what is wrong with a module that cannot be imported."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import SetupError, nearest
from toolkit.runtime.catalog.pack import Pack, PackSource

if TYPE_CHECKING:
    from types import FrameType

ALL: Final = "*"
"""``"module:*"`` means every tool of the module."""

_MISSING: Final = re.compile(r"^bind\(\) missing \d+ required keyword-only arguments?: (.*)$")
_UNEXPECTED: Final = re.compile(r"^bind\(\) got an unexpected keyword argument '(\w+)'")


def load_pack(source: PackSource | str) -> Pack:
    """Loads a pack from ``"module:name"``; ``"module:*"`` means all code-first tools of the module."""
    if not isinstance(source, str):
        try:
            return source.as_pack()
        except AttributeError:
            raise SetupError(f"{type(source).__name__} is not a pack: give packs, registries or tools") from None
    module_name, _, name = source.partition(":")
    try:
        module = importlib.import_module(module_name)
    except SetupError:
        raise
    except Exception as error:  # whatever the module raises while it is imported
        raise SetupError(f"the pack {source!r} cannot be loaded: {_explain(error)}") from error
    try:
        found: object = find_tools(module) if name == ALL else getattr(module, name)
    except AttributeError as error:
        hint = nearest(name, vars(module))
        raise SetupError(f"the pack {source!r} cannot be loaded: {error}{'.' if hint else ''}{hint}") from error
    pack = found.as_pack() if isinstance(found, PackSource) else None
    if not isinstance(pack, Pack):
        raise SetupError(f"{source!r} is not a pack of handlers: make one with the generated `bind`")
    return pack


def find_tools(module: object) -> Pack:
    """The code-first tools among the public names of a module, in the order of the module."""
    from toolkit.runtime.functions.define import FunctionTool
    from toolkit.runtime.functions.lazy import LazyTool

    space = vars(module)
    names: Iterable[str] = space.get("__all__") or [name for name in space if not name.startswith("_")]
    found = [value for name in names if isinstance(value := space.get(name), FunctionTool | LazyTool)]
    if not found:
        raise SetupError(f"the module {space.get('__name__')!r} has no tools: none of its public names is one")
    # A module may hold one tool under two names.
    return Pack(tools={id(tool): tool for tool in found}.values())


def _explain(error: Exception) -> str:
    """What a module of the user raised, and where."""
    calls = list(_own_calls(error))
    place = ""
    if isinstance(error, SyntaxError) and error.filename is not None:
        place = f" at {_shown_file(error.filename)}:{error.lineno}"
    elif calls:
        frame, line = calls[-1]
        place = f" at {_shown_file(frame.f_code.co_filename)}:{line}"
    if isinstance(error, TypeError) and (missing := _MISSING.match(str(error))):
        names = re.findall(r"'(\w+)'", missing[1])
        added = ", ".join(f"{name}=..." for name in names)
        return f"bind() needs {'a handler' if len(names) == 1 else 'handlers'} for {missing[1]}; write {added}{place}"
    if isinstance(error, TypeError) and (unexpected := _UNEXPECTED.match(str(error))):
        bind = calls[-1][0].f_globals.get("bind") if calls else None
        meant = nearest(unexpected[1], _parameters_of(bind)) or " If its spec is new, run `toolkit generate`."
        return f"bind(){place} names {unexpected[1]!r}, which is not a tool of the generated package.{meant}"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}{place}"
    return f"{error}{place}" if isinstance(error, ImportError) else f"{type(error).__name__}: {error}{place}"


def _own_calls(error: Exception) -> Iterator[tuple[FrameType, int]]:
    """The calls on the way to an error, with their lines, that are neither Python's, nor of a library, nor ours."""
    import sysconfig
    import traceback

    paths = sysconfig.get_paths()
    ours = __file__.removesuffix("runtime/catalog/load_pack.py")
    foreign = (ours, "<", *(f"{paths[key]}/" for key in ("stdlib", "purelib", "platlib")))
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(foreign):
            yield frame, line


def _shown_file(path: str) -> str:
    """The path of a file, relative to the current folder if the file is below it."""
    import os

    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _parameters_of(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
