"""Loads the public names of a module at their first use, so that importing it costs almost nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache


def lazy_exports(
    package: str,
    names_by_module: Mapping[str, str],
    *,
    unlisted: Mapping[str, str] | None = None,
    submodules: str = "",
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` for ``package``.

    ``names_by_module`` maps a module, relative to the package if it starts with a dot, to the names it provides,
    separated by blanks. Names of ``unlisted`` can be imported too, but ``__all__`` and ``dir()`` leave them out. ``dir()``
    also lists ``submodules``, which are loaded like names.
    """
    listed = _modules_by_name(names_by_module)
    modules = {**listed, **_modules_by_name(unlisted or {})}
    folders = submodules.split()

    def load(name: str) -> object:
        from importlib import import_module

        if name in modules:
            value: object = getattr(import_module(modules[name], package), name)
        elif name in folders:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        vars(sys.modules[package])[name] = value
        return value

    def list_names() -> list[str]:
        dunders = [name for name in vars(sys.modules[package]) if name.startswith("__")]
        return [*listed, *folders, *dunders]

    return list(listed), load, list_names


def lazy_package(
    package: str, names_by_module: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a generated package; ``names_by_module`` as in ``lazy_exports``.

    The types of its tools, and so ``__all__``, are listed in its module ``_exports``, which is loaded when one is asked for.
    """
    fixed = _modules_by_name(names_by_module)

    @cache
    def list_modules() -> dict[str, str]:
        from importlib import import_module

        return {**fixed, **_modules_by_name(import_module("._exports", package).MODELS)}

    def load(name: str) -> object:
        from importlib import import_module

        if name == "__all__":
            value: object = list(list_modules())
        else:
            # Python asks every package for dunders that few have, such as __path__.
            module = fixed.get(name) or (None if name.startswith("__") else list_modules().get(name))
            if module is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            value = getattr(import_module(module, package), name)
        vars(sys.modules[package])[name] = value
        return value

    def list_names() -> list[str]:
        dunders = [name for name in vars(sys.modules[package]) if name.startswith("__") and name != "__all__"]
        return [*list_modules(), "__all__", *dunders]

    return load, list_names


def own_type(module: str, name: str, modules: Sequence[str], make: Callable[..., object]) -> Callable[[str], object]:
    """``__getattr__`` for a generated ``module`` in which ``name`` is a type of the project's own.

    ``make`` takes the top-level packages of ``modules``, in order. They are imported when the type is first used, because
    they may import the generated package.
    """

    def load(wanted: str) -> object:
        from importlib import import_module

        if wanted != name:
            raise AttributeError(f"module {module!r} has no attribute {wanted!r}")
        for path in modules:
            import_module(path)
        value = make(*(sys.modules[top] for top in dict.fromkeys(path.partition(".")[0] for path in modules)))
        vars(sys.modules[module])[name] = value
        return value

    return load


def _modules_by_name(names_by_module: Mapping[str, str]) -> dict[str, str]:
    return {name: module for module, names in names_by_module.items() for name in names.split()}
