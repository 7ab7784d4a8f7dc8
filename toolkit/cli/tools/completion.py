"""What a shell proposes: names of tools and imports, options of a tool. Files are read for it; no code of a project runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from toolkit.cli.usage import CliCommand


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
    from toolkit.spec.tool_names import is_wire_name

    return isinstance(name, str) and is_wire_name(name)


class InvokeCommand(CliCommand):
    """A command that takes the options of the tool it names; a shell proposes them, too."""

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

    built_in = Path(__file__).parents[2] / "generated"
    try:
        settings = find_settings(Path())
    except SetupError:
        return [built_in]
    names = [settings.package, *settings.include] if package is None else [str(package)]
    return [
        built_in if name == "toolkit.generated" else settings.import_root.joinpath(*name.split(".")) for name in names
    ]
