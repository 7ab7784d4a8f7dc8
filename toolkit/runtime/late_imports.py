"""Keeps what a tool writes from being imported as ours: a finder that looks in trusted places first.

With the workspace on ``sys.path`` (``python agent.py``, ``python -m agent``), a tool that writes ``http/__init__.py`` would
decide what the next ``import http`` in this process runs.

Promise, for every import after ``guard_imports`` was called, in any order of ``sys.path``:

- a module that exists in a place where tools may not write is imported from there;
- the toolkit, the standard library and our dependencies import nothing else: if they ask for a module that exists only
  where tools may write, such as an optional package, it counts as missing;
- a generated package in a place where tools may write is imported as it was at that moment (``RememberedPackages``).

Limits: a user's own code still imports what exists only where tools may write. Code loaded without an import (``exec``)
is not seen, nor are other Python processes. Places that ``trusted_code`` lists count as places where tools may not write,
even in tiers that cannot enforce that for commands.

Importing everything in advance would not do: user code imports standard modules later, and dependencies ask for optional
packages and plug-ins at any time. Only the caller tells a dependency's ``import chardet`` from the user's.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from opcode import opmap
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.guard.files.place import current_directory, trace_links
from toolkit.guard.files.protect import Root
from toolkit.guard.process.program import is_below
from toolkit.guard.trusted_code import DEPENDENCIES, RootSet, above, find_trusted

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

_SOURCE: Final = ".py"
_DATA: Final = (".json",)
_IMPORT_STATEMENT: Final = opmap["IMPORT_NAME"]
_OURS: Final = frozenset({"toolkit", *sys.stdlib_module_names, *DEPENDENCIES})
_METADATA: Final = ("importlib.metadata", "importlib_metadata")
_IMPORT_BY_NAME: Final = ("importlib", "importlib.resources", "functools")
_OPTIONAL_BY_NAME: Final = ("zoneinfo", "requests.compat", "pydantic.v1.version")
"""Modules of ours that import optional packages by a function. Others pass on a name that somebody gave them."""
_lock = threading.Lock()


def guard_imports(roots: Sequence[str], packages: Iterable[str] = ()) -> list[str]:
    """Tools may write in ``roots`` from now on, until this process ends. Remembers the generated ``packages``.

    Returns those of ``roots`` that are on ``sys.path``, by their real paths.
    """
    with _lock:
        if _finder not in sys.meta_path:
            # After finders that others have put first, and after those of built-in modules.
            place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else 0
            sys.meta_path.insert(place, _finder)
        _finder.add_roots(roots)
    _finder.remember(packages)  # imports, so no lock is held: another thread may import what builds a toolkit
    return _finder.exposed(roots)


_first_seen: Final[weakref.WeakKeyDictionary[ModuleType, list[int]]] = weakref.WeakKeyDictionary()


def open_package(name: str) -> Root | None:
    """The directory of a package that was imported.

    None if it is in none, or if that is another one than when a toolkit of this process first asked.
    """
    module = importlib.import_module(name)
    folder = next(iter(module.__path__))
    if not os.path.isdir(folder):
        return None
    root = Root.open(folder, "package", writable=False)
    return root if _first_seen.setdefault(module, root.identity) == root.identity else None


def remembered_file(package: str, name: str) -> bytes | None:
    """A file of a remembered package, by its name there; None if the package is not remembered."""
    return _finder.remembered.data(package, name)


class _SplitPath(NamedTuple):
    """A search path, such as ``sys.path``."""

    trusted: list[str]
    untrusted: list[str]
    roots: dict[str, set[str]]
    """The names of roots in trusted entries, and those entries."""


class TrustedFinder:
    """The finder on ``sys.meta_path``; one for each process."""

    def __init__(self) -> None:
        self.remembered: Final = RememberedPackages()
        self._roots: Final = RootSet()
        self._packages: dict[str, None] = {}
        self._trusted: frozenset[str] | None = None  # found out when something is in a root
        self._split_paths: dict[tuple[object, ...], _SplitPath] = {}

    def add_roots(self, roots: Sequence[str]) -> None:
        new = [self._roots.add(os.path.realpath(root)) for root in roots]
        if any(new):
            self._trusted = None
            self._split_paths = {}

    def remember(self, packages: Iterable[str]) -> None:
        """Remember these packages, and earlier ones that were not in a root by then."""
        self._packages.update(dict.fromkeys(packages))
        for package in list(self._packages):
            self.remembered.add(package, self.may_be_written)

    def exposed(self, roots: Sequence[str]) -> list[str]:
        """Those that are on ``sys.path``."""
        untrusted = [trace_links(entry).forms[-1] for entry in self._split(sys.path)[1]]
        return [root for root in map(os.path.realpath, roots) if any(is_below(entry, root) for entry in untrusted)]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module in a trusted place; None leaves it to the other finders. Raises if one of ours must not have it."""
        if target is None and self.remembered.covers(name, path):
            return self.remembered.spec(name)
        trusted, untrusted = self._split(sys.path if path is None else path, name.rpartition(".")[2])
        if not untrusted:
            return None
        found = PathFinder.find_spec(name, trusted, target) if trusted else None
        if found is not None and found.loader is not None:
            return found
        importer = self._importing_module_of_ours()
        if found is not None:
            ours = importer is not None or name.partition(".")[0] in DEPENDENCIES
            return self._with_portions(found, untrusted) if ours else None
        return None if importer is None else self._refuse(name, importer, untrusted)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """What is installed in trusted places, ahead of the rest, if one of ours asks: it may load the first plug-in."""
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        trusted, untrusted = self._split(context.path)
        if not untrusted or self._name_if_ours(_skip_metadata(sys._getframe())) is None:
            return ()
        return MetadataPathFinder.find_distributions(DistributionFinder.Context(name=context.name, path=trusted))

    def invalidate_caches(self) -> None:
        self._split_paths = {}

    def may_be_written(self, path: str) -> bool:
        """Whether a tool may write at ``path``, or replace a link on the way to it."""
        way = trace_links(path)
        return any(self._is_exposed(step) for step in (*way.links, way.forms[-1]))

    def _is_exposed(self, path: str) -> bool:
        if not self._roots.covers(path):
            return False
        if self._trusted is None:
            code, links = find_trusted(self._roots)
            self._trusted = frozenset((*code, *links))
        return path not in self._trusted and self._trusted.isdisjoint(above(path))

    def _split(self, path: Iterable[object], name: str = "") -> tuple[list[str], list[str]]:
        """The entries where tools may not write, and those where they may; for a module of that name, if one is given."""
        key = tuple(path)
        entries = [entry for entry in key if isinstance(entry, str)]
        if not all(entry.startswith("/") for entry in entries):
            key = (*key, current_directory())
        known = self._split_paths.get(key)
        if known is None:
            known = _SplitPath([], [], {})
            for entry in entries:
                (known.untrusted if self.may_be_written(entry) else known.trusted).append(entry)
            for entry in known.trusted:
                for child in self._roots.names_in(trace_links(entry).forms[-1]):
                    known.roots.setdefault(child, set()).add(entry)
            self._split_paths[key] = known
        inside = known.roots.get(name)
        if inside is None:
            return known.trusted, known.untrusted
        return [entry for entry in known.trusted if entry not in inside], [*known.untrusted, *inside]

    def _with_portions(self, found: ModuleSpec, untrusted: list[str]) -> ModuleSpec:
        """A namespace package of ours: its trusted portions first; a package with code of its own is not a portion."""
        other = PathFinder.find_spec(found.name, untrusted)
        if other is not None and other.loader is None and found.submodule_search_locations is not None:
            found.submodule_search_locations = [
                *found.submodule_search_locations,
                *(other.submodule_search_locations or ()),
            ]
        return found

    def _refuse(self, name: str, importer: str, untrusted: list[str]) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, untrusted)
        if found is None:
            return None
        places = [found.origin] if found.has_location and found.origin else found.submodule_search_locations
        if places and not any(map(self.may_be_written, places)):
            return found
        import logging

        logging.getLogger("toolkit.imports").warning(
            "%r was not imported for %r: it is only in a place where tools may write; install it elsewhere",
            name,
            importer,
        )
        raise ModuleNotFoundError(f"No module named {name!r} in a place where tools may not write", name=name)

    def _importing_module_of_ours(self) -> str | None:
        """The module of ours whose import statement is being run, or that loads a plug-in; None if there is none.

        Functions that import by name, such as ``importlib.import_module``, do so for whoever calls them.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_machinery(frame.f_code):
            frame = frame.f_back
        if frame is None:
            return None
        if _module_of(frame) == "importlib" and _module_of(frame.f_back) in _METADATA:
            return self._name_if_ours(_skip_metadata(frame))
        caller = _skip(frame, _IMPORT_BY_NAME)
        if _is_in(_module_of(caller), _OPTIONAL_BY_NAME):
            return self._name_if_ours(caller)
        is_statement = frame.f_code.co_code[frame.f_lasti] == _IMPORT_STATEMENT
        return self._name_if_ours(frame) if is_statement or _calls_compiled_code(frame) else None

    def _name_if_ours(self, frame: FrameType | None) -> str | None:
        name = _module_of(frame)
        if frame is None or name.partition(".")[0] not in _OURS:
            return None
        file = frame.f_code.co_filename
        is_file = file.startswith("/") and not self.may_be_written(file)  # other text names code that somebody typed
        return name if is_file or file.startswith("<frozen ") else None


def _calls_compiled_code(frame: FrameType) -> bool:
    """Whether a dependency calls a compiled module that imports something, as ``orjson`` does with ``numpy``.

    Not for the standard library: its compiled ``pickle`` imports the modules of whoever calls it.
    """
    return _module_of(frame).partition(".")[0] in DEPENDENCIES and "__import__" not in frame.f_code.co_names


def _skip_metadata(frame: FrameType | None) -> FrameType | None:
    """The frame that uses ``importlib.metadata``."""
    return _skip(frame, ("importlib", *_METADATA, __name__))


def _skip(frame: FrameType | None, modules: Sequence[str]) -> FrameType | None:
    """The first frame that is not of these modules or below them."""
    while frame is not None and _is_in(_module_of(frame), modules):
        frame = frame.f_back
    return frame


def _is_in(name: str, modules: Sequence[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _module_of(frame: FrameType | None) -> str:
    name = None if frame is None else frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def _is_machinery(code: CodeType) -> bool:
    return code.co_filename == __file__ or code.co_filename.startswith("<frozen importlib")


class RememberedPackages:
    """Generated packages in places where tools may write: their files are read once, before a tool can change them.

    Promise: a module of a remembered package is compiled from the text that its file had when the package was added. If
    it did not exist then, it is missing. Modules that are already loaded, and ``importlib.reload``, are left alone.
    Limit: a package that is not a directory (a zip archive) is imported as a whole when it is added.
    """

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


_finder: Final = TrustedFinder()


def _start_again_in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_start_again_in_child)
