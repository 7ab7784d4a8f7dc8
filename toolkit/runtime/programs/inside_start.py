"""Starts the interpreter of a program, inside the sandbox. Run as a script: ``python -I -S inside_start.py SETTINGS``.

``SETTINGS`` is JSON: ``path``, where other packages are installed, ``packages``, the directories of ours by name, and
``folder``, the working directory if it is not that of the process. Of ``packages`` only those directories can be seen inside,
not the ones around them, so the usual search would not find them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class KnownPackages:
    """Finds packages in directories that are known by name; those around them are empty."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders
        self._around = {name.rpartition(".")[0] for name in folders} - {"", *folders}
        self._around |= {name.rpartition(".")[0] for name in self._around} - {"", *folders}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in self._folders:
            folder = self._folders[name]
            return importlib.util.spec_from_file_location(
                name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
            )
        if name in self._around:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        return None


def start(settings: str) -> None:
    """Prepares everything that no program is needed for, then waits for one."""
    given = json.loads(settings)
    sys.path += given["path"]
    sys.meta_path.insert(0, KnownPackages(given["packages"]))
    if given["folder"] is not None:
        os.chdir(given["folder"])
    from toolkit.runtime.programs.inside import serve

    serve()


if __name__ == "__main__":
    start(sys.argv[1])
