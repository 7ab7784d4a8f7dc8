"""For readers that run in a process of their own, beside the code of a project.

The package that is to be generated is not there for that code: whatever it imports from it is a placeholder. A module whose
package binds handlers with the generated ``bind`` can be read so before anything was generated, and what is read does not
depend on what an earlier run left.
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
    """Makes the packages below ``root`` importable, the generated ``package`` apart."""
    sys.meta_path.insert(0, _Generated(package))
    sys.path.insert(0, root)


def answer_with(told: dict[str, Any], answer: str) -> None:
    """Hands the answer over in a file: what modules print goes elsewhere."""
    Path(answer).write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")


def why(entry: str, error: BaseException, root: str) -> str:
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
