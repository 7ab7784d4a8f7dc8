"""The command line: ``toolkit generate | check | lint | tools | describe | invoke``.

Exit codes: 0 all is well, 1 findings (a stale package, a mistake in a spec, a tool that failed), 2 wrong usage.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.errors import SetupError, ToolkitError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Statically typed tools for LLM agents.")

Project = Annotated[Path, typer.Option(help="The project's folder; its pyproject.toml holds [tool.toolkit].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Package = Annotated[
    str | None, typer.Option(help="The generated package; by default this project's, else the built-ins'.")
]


@app.command()
def generate(project: Project = Path(), as_json: AsJson = False) -> None:
    """Write the typed package of this project; only what changed is made anew."""
    from codegen import cli

    cli.generate(project, as_json)


@app.command()
def check(project: Project = Path(), as_json: AsJson = False) -> None:
    """Compare the committed package with what its specs give now; exit 1 with a diff if they differ."""
    from codegen import cli

    cli.check(project, as_json)


@app.command()
def lint(
    paths: Annotated[list[Path] | None, typer.Argument(help="Spec files or folders; by default the project's.")] = None,
    project: Project = Path(),
    tokenizer: Annotated[
        str | None, typer.Option(help="module:callable that counts the tokens of a text; by default bytes / 4.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for mistakes and weaknesses in specs: descriptions missing or over budget, parameters not described."""
    from codegen.cli import print_json, reported
    from codegen.settings import find_settings
    from toolkit.spec.lint import estimate_tokens
    from toolkit.spec.lint import lint as lint_spec
    from toolkit.spec.load import load_specs

    with reported():
        count = estimate_tokens if tokenizer is None else _callable(tokenizer)
        base = Path() if paths else find_settings(project).root
        specs = load_specs(paths or find_settings(project).spec_paths, base=base)
        findings = [finding for spec in specs for finding in lint_spec(spec, count)]
    if as_json:
        print_json([{"message": f.message, "source": f.source, "pointer": f.pointer} for f in findings])
    else:
        for finding in findings:
            typer.echo(str(finding))
        typer.echo(f"{len(specs)} specs, {len(findings)} findings")
    if findings:
        raise typer.Exit(1)


@app.command()
def tools(package: Package = None, as_json: AsJson = False) -> None:
    """List the tools of a generated package."""
    rows = _catalog(package).definitions.values()
    if as_json:
        keys = ("name", "title", "description", "required", "optional", "parallel", "inputSchema", "outputSchema")
        typer.echo(json.dumps([{key: row[key] for key in keys} for row in rows], ensure_ascii=False, indent=2))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        words = ",".join(row["required"]) or "-"
        typer.echo(f"{row['name']:<{width}}  {words:<8}  {row['description']}")


@app.command()
def describe(name: str, package: Package = None, as_json: AsJson = False) -> None:
    """Show one tool: what it does, what it takes and gives."""
    row = _row(_catalog(package), name)
    if as_json:
        typer.echo(json.dumps(row, ensure_ascii=False, indent=2))
        return
    typer.echo(f"{row['name']}: {row['longDescription'] or row['description']}")
    typer.echo(f"permissions: {', '.join(row['required']) or 'none'}")
    for title, schema in (("takes", row["inputSchema"]), ("gives", row["outputSchema"])):
        typer.echo(f"\n{title}:")
        for line in _fields(schema):
            typer.echo(f"  {line}")


@app.command()
def invoke(
    name: str,
    arguments: Annotated[str, typer.Argument(help="JSON text, or - to read it from standard input.")] = "{}",
    workspace: Annotated[Path, typer.Option(help="The folder the tool may work in.")] = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Run one tool and print what a model would read. Only the tool you name is allowed."""
    module = _package(package)
    _row(module.CATALOG, name)
    text = sys.stdin.read() if arguments == "-" else arguments
    try:
        policy = module.SecurityPolicy(default="deny", tools={name: "allow"})
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
            message = toolkit.execute_raw(name, text)
            data = {"name": message.name, "title": message.title, "metadata": dict(message.metadata)}
            content = message.content.model_dump(mode="json", by_alias=True, exclude_unset=True)
            words = message.text()
    except ToolkitError as error:
        failure = {"code": error.code, "tool_name": error.tool_name, "message": error.message, "details": error.details}
        typer.echo(
            json.dumps(failure, default=str, ensure_ascii=False, indent=2) if as_json else str(error), err=not as_json
        )
        raise typer.Exit(1) from None
    except SetupError as error:
        _usage(str(error))
    typer.echo(
        json.dumps({**data, "content": content}, default=str, ensure_ascii=False, indent=2) if as_json else words
    )


def _package(name: str | None) -> Any:
    """The generated package asked for; this project's, where there is one; else the built-ins'."""
    if name is None:
        try:
            from codegen.settings import find_settings

            settings = find_settings(Path())
            sys.path[:0] = [str(settings.output.parents[settings.package.count(".")])]
            name = settings.package
        except SetupError:
            name = "generated"
    try:
        module = importlib.import_module(name)
        module.CATALOG  # noqa: B018  (loaded now, so that a package of another kind is told here)
    except (ImportError, AttributeError) as error:
        _usage(f"{name!r} is no generated package that can be imported ({error}); run `toolkit generate`")
    return module


def _catalog(package: str | None) -> Any:
    return _package(package).CATALOG


def _row(catalog: Any, name: str) -> dict[str, Any]:
    from toolkit.errors import nearest

    if name not in catalog.definitions:
        _usage(f"no tool is called {name!r}.{nearest(name, catalog.definitions)}")
    row: dict[str, Any] = catalog.definitions[name]
    return row


def _fields(schema: dict[str, Any] | None) -> list[str]:
    """One line a property: name, whether it is needed, type, default, description."""
    if not schema:
        return ["text"]
    required = schema.get("required", ())
    lines = []
    for name, node in schema.get("properties", {}).items():
        kind = node.get("type") or ("one of " + ", ".join(map(str, node["enum"])) if "enum" in node else "value")
        words = " or ".join(kind) if isinstance(kind, list) else str(kind)
        mark = "*" if name in required else " "
        default = f" = {json.dumps(node['default'])}" if "default" in node else ""
        lines.append(f"{name}{mark} ({words}{default})  {node.get('description', '')}".rstrip())
    return lines or ["nothing"]


def _callable(name: str) -> Callable[[str], int]:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[str], int] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SetupError(f"the tokenizer {name!r} cannot be loaded: {error}; write module:callable") from None
    return found


def _usage(message: str) -> Any:
    typer.echo(message, err=True)
    raise typer.Exit(2)


def main() -> None:
    app()
