"""The name of a new project: which folder, and which package in it."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from toolkit.errors import SetupError

_WAY_OUT: Final = "choose another name, such as 'my-tools'"
# What both a project on a package index and, with underscores, a module may be called.
_NAME: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_OF_THE_TEMPLATE: Final = frozenset({"tests", "typing_extensions"})


@dataclass(frozen=True, slots=True)
class ProjectName:
    """``my-tools``: the folder ``my-tools`` with the package ``my_tools``."""

    folder: Path
    name: str
    package: str


def read_project_name(given: str) -> ProjectName:
    """Checks the name before anything is written.

    >>> read_project_name("My-Tools").package
    'my_tools'
    """
    folder = Path(given)
    name = folder.name
    if not name or name == "..":
        raise SetupError(f"{given!r} is not the name of a new folder; {_WAY_OUT}")
    if not _NAME.fullmatch(name):
        raise SetupError(
            f"{name!r} cannot be the name of a Python package: use letters, digits, '-' and '_'; begin with a letter, and"
            " end with a letter or a digit"
        )
    package = re.sub(r"[-.]+", "_", name).lower()
    if keyword.iskeyword(package):
        raise SetupError(f"{name!r} is a keyword of Python; {_WAY_OUT}")
    if package == "toolkit" or package in sys.stdlib_module_names:
        owner = "typed-toolkit" if package == "toolkit" else "Python"
        raise SetupError(f"{name!r} would hide the module {package!r} of {owner}; {_WAY_OUT}")
    if package in _OF_THE_TEMPLATE or _is_installed(package):
        raise SetupError(f"{name!r} would hide another module {package!r}, which is installed or needed; {_WAY_OUT}")
    return ProjectName(folder, name, package)


def _is_installed(package: str) -> bool:
    """Whether another package has the name. A folder here that happens to have it is not one."""
    here = {"", str(Path.cwd())}
    found = PathFinder.find_spec(package, [entry for entry in sys.path if entry not in here])
    return found is not None and found.origin is not None


def refuse_occupied_folder(folder: Path) -> None:
    if folder.is_symlink() or folder.exists() and not folder.is_dir():
        raise SetupError(f"{str(folder)!r} is a file; choose another name, or remove it")
    if folder.is_dir() and any(folder.iterdir()):
        raise SetupError(f"the folder {str(folder)!r} is not empty; choose another name, or remove it")
    if not folder.parent.is_dir():
        raise SetupError(f"the folder {str(folder.parent)!r} does not exist; make it first")
