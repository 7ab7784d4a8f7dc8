"""Loads the public names of a module at their first use, so that importing it costs almost nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def lazy_exports(
    package: str, names_by_module: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` for ``package``.

    ``names_by_module`` maps a module, relative to the package if it starts with a dot, to the names it provides,
    separated by blanks. The order of the table is the order of ``__all__`` and ``dir()``.
    """
    modules = {name: module for module, names in names_by_module.items() for name in names.split()}

    def load(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(module, package), name)
        vars(sys.modules[package])[name] = value
        return value

    def list_names() -> list[str]:
        others = [name for name in vars(sys.modules[package]) if name not in modules]
        return [*modules, *others]

    return list(modules), load, list_names
