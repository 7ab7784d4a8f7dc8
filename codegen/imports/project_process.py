"""Shared by the readers that run in their own process together with a project's code.

That code does not see the generated package: everything it imports from there is a placeholder. So a module whose package
uses the generated ``bind`` can be read before anything was generated, and the result does not depend on an earlier run.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from toolkit.errors import SetupError


def enter_project(root: str, package: str) -> None:
    """Makes the packages below ``root`` importable, and puts placeholders in place of the generated ``package``."""
    sys.meta_path.insert(0, _PlaceholderFinder(package))
    sys.path.insert(0, root)


def write_answer(value: dict[str, Any], file: str) -> None:
    """Writes the answer to a file, because modules may print to standard output."""
    Path(file).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")


def explain_failure(entry: str, error: BaseException, root: str) -> str:
    """What went wrong, and the last line of the project's code that was involved."""
    cause = error.__cause__ if isinstance(error, SetupError) and error.__cause__ is not None else error
    if isinstance(cause, SetupError):
        return str(cause)
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if _is_below(frame.filename, root)]
    place = f" ({Path(frames[-1].filename).relative_to(root).as_posix()}, line {frames[-1].lineno})" if frames else ""
    return f"{entry!r} cannot be imported: {type(cause).__name__}: {cause}{place}"


def _is_below(file: str, root: str) -> bool:
    return Path(file).is_relative_to(root)


# -- placeholders for the generated package -----------------------------------------------------------------


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
