"""Generated packages in a place where tools may write: their files are read once, and their modules come from that.

A toolkit imports the models of a tool at its first call, when another tool may have changed the file, put a package in its
place, or planted bytecode for it in ``__pycache__``.

Promise: a module of a remembered package is compiled from the text that its file had when the package was added. What was
not there then is missing. Modules that are loaded already, and ``importlib.reload``, are left alone.
Limit: a package that is not a directory (a zip archive) is imported as a whole when it is added.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from typing import Final

_SOURCE: Final = ".py"
_DATA: Final = (".json",)


class RememberedPackages:
    """The files of generated packages, as they were."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}  # package -> its directory; empty if it was missing or is imported whole
        self._files: dict[str, bytes] = {}  # by path

    def add(self, package: str, may_be_written: Callable[[str], bool]) -> None:
        """Read the package, unless it was read before or no tool may write there."""
        if package in self._folders:
            return
        try:
            # As it is spelled there: the modules in it are looked for by that spelling.
            folder = importlib.import_module(package).__path__[0]
        except ImportError:
            self._folders[package] = ""  # so it stays missing
            return
        if not may_be_written(folder):
            return
        if os.path.isdir(folder):
            _read_below(folder, self._files)
            self._folders[package] = folder
            return
        import pkgutil

        for module in pkgutil.walk_packages([folder], f"{package}."):
            importlib.import_module(module.name)
        self._folders[package] = ""

    def covers(self, name: str, path: Iterable[str] | None) -> bool:
        """Whether a module that is looked for in ``path`` belongs to a remembered package."""
        package = self._package_of(name)
        if package is None:
            return False
        folder = self._folders[package]
        return not folder or os.path.dirname(self._stem(package, name)) in (path or ())

    def spec(self, name: str) -> ModuleSpec:
        """The module of that name; raises ``ModuleNotFoundError`` if it was not there."""
        stem = self._stem(self._package_of(name) or name, name)
        for path in (os.path.join(stem, "__init__.py"), stem + _SOURCE):
            if path in self._files:
                places = [stem] if path.endswith("/__init__.py") else None
                loader = _RememberedLoader(name, path, self._files)
                found = spec_from_file_location(name, path, loader=loader, submodule_search_locations=places)
                assert found is not None
                return found
        raise ModuleNotFoundError(
            f"No module named {name!r}: it was not in the generated package when the toolkit was built; "
            "start the program again",
            name=name,
        )

    def _package_of(self, name: str) -> str | None:
        while name and name not in self._folders:
            name = name.rpartition(".")[0]
        return name or None

    def _stem(self, package: str, name: str) -> str:
        """The path of a module without its suffix."""
        folder, below = self._folders[package], name.removeprefix(package).split(".")[1:]
        return os.path.join(folder, *below)

    def data(self, package: str, name: str) -> bytes | None:
        """A data file in the directory of a package."""
        folder = self._folders.get(package)
        return None if folder is None else self._files.get(os.path.join(folder, name))


class _RememberedLoader(SourceFileLoader):
    """Loads a module from the text that its file had; bytecode is neither read nor written."""

    def __init__(self, name: str, path: str, files: dict[str, bytes]) -> None:
        super().__init__(name, path)
        self._files = files

    def get_data(self, path: str) -> bytes:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError("the file may have changed")  # the import system then looks for no bytecode


def _read_below(folder: str, files: dict[str, bytes]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((_SOURCE, *_DATA)):
                # Not a link that leads nowhere, as editors make; and a file may be replaced at this moment.
                with suppress(FileNotFoundError):
                    if entry.is_file():
                        with open(entry.path, "rb", buffering=0) as file:
                            files[entry.path] = file.read()
            elif entry.name != "__pycache__" and entry.is_dir():
                _read_below(entry.path, files)
