"""Which type checkers are installed next to the toolkit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError
from toolkit.runtime.programs.settings import Checker

CheckerName: TypeAlias = Literal["mypy", "ty", "pyrefly"]

_IN_ORDER: Final[tuple[CheckerName, ...]] = ("mypy", "ty", "pyrefly")


@dataclass(frozen=True, slots=True)
class InstalledChecker:
    """A checker of the environment that the toolkit runs in."""

    name: CheckerName
    version: str
    packages: str
    """The directory where it is installed."""
    program: str
    """The file of its command; empty if it has none."""


@lru_cache
def find_checker(choice: Checker) -> InstalledChecker:
    """The checker for a choice other than ``off``; ``SetupError`` if it is not installed."""
    if choice not in get_args(Checker):
        raise SetupError(f"checker must be one of {', '.join(get_args(Checker))}, not {choice!r}")
    for name in _IN_ORDER:
        if choice in ("auto", name):
            found = _find_installed(name)
            if found is not None:
                return found
    if choice == "auto":
        raise SetupError(
            "checking programs needs a type checker: pip install 'typed-toolkit[programs]' (mypy), or ty, or pyrefly; "
            "checker='off' runs programs that nothing has checked"
        )
    install = "pip install 'typed-toolkit[programs]'" if choice == "mypy" else f"pip install {choice}"
    raise SetupError(f"the type checker {choice!r} is not installed: {install}")


def _find_installed(name: CheckerName) -> InstalledChecker | None:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    command = next((file for file in found.files or () if file.name == name and file.parent.name == "bin"), None)
    if command is None:
        return None
    program = os.path.normpath(str(command.locate()))
    return InstalledChecker(name, found.version, os.path.realpath(str(found.locate_file(""))), program)
