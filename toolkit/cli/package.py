"""The generated package a command works on, and its tools."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from pathlib import Path
from typing import Any

from toolkit.cli.report import print_warning
from toolkit.errors import SetupError


def load_package(name: str | None) -> Any:
    """The generated package called ``name``; without a name this project's, else that of the built-in tools. For a command
    that ends: the warning that tools may write on ``sys.path`` is for programs that go on."""
    logging.getLogger("toolkit.imports").setLevel(logging.ERROR)
    return _import_package(_find_package() if name is None else name)


def _import_package(name: str) -> Any:
    try:
        module = importlib.import_module(name)
        module.CATALOG  # noqa: B018  (loaded now, so that any other package is reported here)
    except SetupError:
        raise
    except Exception as error:  # whatever code of the project raises while it is imported
        known = isinstance(error, ImportError | AttributeError | ValueError | TypeError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        raise SetupError(
            f"{name!r} is not a generated package that can be imported ({reason}); run `toolkit generate`"
        ) from None
    return module


def load_named_package(name: str) -> Any:
    """The generated package called ``name``, for a server. The project in this folder is looked at only if it has that
    package: whoever may write here must not decide what a server loads."""
    from toolkit.codegen.settings import NoSettings, find_settings

    if importlib.util.find_spec(name.partition(".")[0]) is None:
        try:
            settings = find_settings(Path())
        except NoSettings:
            settings = None
        if settings is not None and settings.package == name:
            sys.path.append(str(settings.import_root))
    return _import_package(name)


def load_tool(package: str | None, name: str) -> tuple[Any, dict[str, Any]]:
    """A generated package, and the definition of one of its tools."""
    from toolkit.errors import nearest

    if name.startswith("-"):
        raise SetupError(f"the name of the tool comes first, before {name!r}")
    module = load_package(package)
    definitions: dict[str, dict[str, Any]] = module.CATALOG.definitions
    if name not in definitions:
        meant = nearest(name, definitions) or " `toolkit tools` lists them."
        raise SetupError(f"unknown tool {name!r}.{meant}")
    return module, definitions[name]


def _find_package() -> str:
    from toolkit.codegen.settings import NoSettings, find_settings

    try:
        settings = find_settings(Path())
    except NoSettings:
        return "toolkit.generated"
    from toolkit.codegen.package.inputs import is_older_than_specs

    if is_older_than_specs(settings):
        print_warning(f"{settings.output_name} is older than its specs: run `toolkit generate`")
    sys.path[:0] = [str(settings.import_root)]
    return settings.package
