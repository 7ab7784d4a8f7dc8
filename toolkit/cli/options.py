"""Options and arguments that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.tools.completion import complete_import_names, complete_tool_names

Project = Annotated[
    Path,
    typer.Option(metavar="DIR", help="Project folder. Its pyproject.toml, or one above it, has [tool.toolkit]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ImportNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IMPORT",
        help="Names of imports in the settings. Default: all.",
        show_default=False,
        autocompletion=complete_import_names,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Confirm the commands, addresses and modules of the imports as they are now, without asking."
    ),
]
Package = Annotated[
    str | None,
    typer.Option(
        metavar="PACKAGE",
        help="Generated package to use. Default: this project's, else the built-in tools.",
        show_default=False,
    ),
]
ToolNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOOL",
        help="Name of the tool; `toolkit tools` lists them.",
        show_default=False,
        autocompletion=complete_tool_names,
    ),
]
PolicyPath = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Policy file (TOML), outside the workspace.  [required]", show_default=False),
]
Workspace = Annotated[Path, typer.Option(metavar="DIR", help="Folder that the tool may work in.")]
