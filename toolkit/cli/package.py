"""The generated package a command works on, its tools, and what a shell completes of both."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from toolkit.cli.report import print_warning
from toolkit.cli.usage import CliCommand
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


# ----------------------------------------------------------------------------------------------------------------------
# Completion of tool names, import names and a tool's options. It reads files and runs none of the project's code.


def complete_tool_names(context: typer.Context, words: list[str], incomplete: str) -> list[str]:
    """Names only: a description is anybody's text, and some shells evaluate what they get."""
    return [name for name in _read_definitions(context.params.get("package")) if _is_tool_name(name)]


def complete_import_names(context: typer.Context, words: list[str], incomplete: str) -> list[str]:
    from toolkit.codegen.settings import find_settings
    from toolkit.errors import SetupError

    try:
        return [item.name for item in find_settings(context.params.get("project") or Path()).imports]
    except SetupError:
        return []


def _is_tool_name(name: object) -> bool:
    from toolkit.schema.spec import is_wire_name

    return isinstance(name, str) and is_wire_name(name)


class InvokeCommand(CliCommand):
    """A command with the options of the tool it names, which a shell also completes."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer.core import CompletionItem  # type: ignore[attr-defined]

        from toolkit.cli.tool_options import tool_options

        found: list[Any] = TyperCommand.shell_complete(self, ctx, incomplete)
        row = _read_definitions(ctx.params.get("package")).get(ctx.params.get("name"))
        if row is not None and incomplete.startswith("-"):
            options = tool_options(row)
            found += [CompletionItem(option.option) for option in options if option.option.startswith(incomplete)]
        return found


def _read_definitions(package: object) -> dict[Any, dict[str, Any]]:
    """The tools of the package that a command would use, from manifests; none of one that cannot be read."""
    found: dict[Any, dict[str, Any]] = {}
    for folder in _package_folders(package):
        try:
            rows = json.loads((folder / "manifest.json").read_bytes())["tools"]
            found |= {row["name"]: row for row in rows}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _package_folders(package: object) -> list[Path]:
    """The folder of a package; for the one of a project also those of the packages that it includes."""
    from toolkit.codegen.settings import find_settings
    from toolkit.errors import SetupError

    built_in = Path(__file__).parents[1] / "generated"
    try:
        settings = find_settings(Path())
    except SetupError:
        return [built_in]
    names = [settings.package, *settings.include] if package is None else [str(package)]
    return [
        built_in if name == "toolkit.generated" else settings.import_root.joinpath(*name.split(".")) for name in names
    ]
