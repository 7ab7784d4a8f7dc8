"""Loads the public names of a module at their first use, so that importing it costs almost nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType


def lazy_exports(*, submodules: str = "") -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for the module that calls this; they provide ``__all__`` too.

    The module lists its names once, as imports that only type checkers run::

        if TYPE_CHECKING:
            from toolkit.runtime.approvals import Approve as Approve
        else:
            from toolkit.lazy_exports import lazy_exports

            __getattr__, __dir__ = lazy_exports()

    ``dir()`` also lists ``submodules``, separated by blanks, which are loaded like names.
    """
    caller = sys._getframe(1)
    package, code, folders = caller.f_globals["__name__"], caller.f_code, submodules.split()

    @cache
    def list_imports() -> dict[str, tuple[str, str]]:
        return _read_imports(code)

    def load(name: str) -> object:
        from importlib import import_module

        if name == "__all__":
            value: object = list(list_imports())
        elif name in folders:
            value = import_module(f"{package}.{name}")
        else:
            # Python asks every module for dunders that few have, such as __path__.
            found = None if name.startswith("__") else list_imports().get(name)
            if found is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            value = getattr(import_module(found[0], package), found[1])
        vars(sys.modules[package])[name] = value
        return value

    def list_names() -> list[str]:
        dunders = [name for name in vars(sys.modules[package]) if name.startswith("__") and name != "__all__"]
        return [*list_imports(), *folders, "__all__", *dunders]

    return load, list_names


class _Noted:
    """Stands for a module, or for a name of it, while ``_read_imports`` runs."""

    def __init__(self, module: str, name: str = "") -> None:
        self.place = module, name

    def __getattr__(self, name: str) -> _Noted:
        return _Noted(self.place[0], name)


def _read_imports(code: CodeType) -> dict[str, tuple[str, str]]:
    """The module and the name behind each name in a module's TYPE_CHECKING block, in order.

    Runs the module's code with an ``import`` that loads nothing and only notes what is asked for. What it gives for
    TYPE_CHECKING is true, like everything else that is imported, so the block runs.
    """

    def note(name: str, _globals: object = None, _locals: object = None, _names: object = (), level: int = 0) -> object:
        return _Noted("." * level + name)

    names: dict[str, object] = {"__builtins__": {"__import__": note}}
    exec(code, names)
    return {
        name: found.place
        for name, found in names.items()
        # pytest adds imports to the modules of its plugins, under names that are no identifiers
        if isinstance(found, _Noted) and found.place[0] not in ("__future__", "typing") and name.isidentifier()
    }


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
