"""The command line: ``toolkit generate | check | lint | tools | describe | invoke | policy explain | audit``.

Exit codes: 0 all is well, 1 findings (a stale package, a mistake in a spec, a tool that failed), 2 wrong usage.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from toolkit.errors import SetupError, ToolkitError

if TYPE_CHECKING:
    from toolkit.spec.model import ToolSpec
    from toolkit.spec.problems import Finding

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Statically typed tools for LLM agents.")
policy_app = typer.Typer(no_args_is_help=True, help="What a policy says.")
app.add_typer(policy_app, name="policy")
audit_app = typer.Typer(no_args_is_help=True, help="What an audit log says of itself.")
app.add_typer(audit_app, name="audit")

Project = Annotated[Path, typer.Option(help="The project's folder; its pyproject.toml has the table tool.toolkit.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ImportNames = Annotated[list[str] | None, typer.Argument(help="Imports of the settings; by default all of them.")]
Package = Annotated[
    str | None, typer.Option(help="The generated package; by default this project's, else the built-ins'.")
]
Arguments = Annotated[str, typer.Argument(help="JSON text, or - to read it from standard input.")]
AuditFile = Annotated[Path, typer.Argument(help="The log, as given to ToolkitContext(audit=...).")]
Workspace = Annotated[Path, typer.Option(help="The folder the tool may work in.")]
Target: TypeAlias = Literal["openai", "anthropic", "gemini", "ollama"]

_UNCONFINED: Final = "without a sandbox"


@app.command()
def generate(project: Project = Path(), as_json: AsJson = False) -> None:
    """Write the typed package of this project; only what changed is made anew."""
    from toolkit.codegen import cli

    cli.generate(project, as_json)


@app.command()
def check(
    names: ImportNames = None,
    live: Annotated[bool, typer.Option("--live", help="Ask the origins of imports what they tell now.")] = False,
    allow: Annotated[
        Literal["compatible", "widening"] | None, typer.Option(help="Changes up to this class are no reason to fail.")
    ] = None,
    project: Project = Path(),
    as_json: AsJson = False,
) -> None:
    """Compare the committed package with what its specs give now; exit 1 with a diff if they differ.

    With --live: compare committed imports with what servers, documents and modules tell now; exit 1 if they changed.
    """
    from toolkit.codegen import cli

    cli.check(names, live, allow, project, as_json)


@app.command(name="import")
def import_(names: ImportNames = None, project: Project = Path(), as_json: AsJson = False) -> None:
    """Read servers, documents and modules of the settings anew, and write their spec files."""
    from toolkit.codegen import cli

    cli.import_(names, project, as_json)


@app.command()
def lint(
    paths: Annotated[list[Path] | None, typer.Argument(help="Spec files or folders; by default the project's.")] = None,
    project: Project = Path(),
    tokenizer: Annotated[
        str | None, typer.Option(help="module:callable that counts the tokens of a text; by default bytes / 4.")
    ] = None,
    target: Annotated[
        Target | None, typer.Option(help="List what this provider refuses, loses or moves instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for mistakes and weaknesses in specs: descriptions missing or over budget, parameters not described, schemas
    that cannot be served or contradict themselves.

    With --target: what becomes of each tool's name, description and parameters on the way to that provider.
    """
    from toolkit.codegen.cli import print_json, reported
    from toolkit.codegen.imports.importers.functions import read_functions
    from toolkit.codegen.lint import schema_findings
    from toolkit.codegen.settings import find_settings
    from toolkit.spec.lint import estimate_tokens
    from toolkit.spec.lint import lint as lint_spec
    from toolkit.spec.load import load_specs

    with reported(as_json):
        count = estimate_tokens if tokenizer is None else _callable(tokenizer)
        settings = None if paths else find_settings(project)
        base = settings.root if settings else Path()
        specs = load_specs(settings.spec_paths if settings else paths or [], base=base)
        specs += [spec for some in read_functions(settings).values() for spec in some] if settings else []
        found: list[tuple[dict[str, str], Finding]]
        if target is None:
            found = [({}, finding) for spec in specs for finding in schema_findings(spec)]
            # What an origin says of its tools is not in the hands of who reads this.
            found += [({}, finding) for spec in specs if spec.origin is None for finding in lint_spec(spec, count)]
        else:
            found = [row for spec in specs for row in _target_findings(spec, target)]
    if as_json:
        print_json([{**more, "message": f.message, "source": f.source, "pointer": f.pointer} for more, f in found])
    else:
        for more, finding in found:
            typer.echo(f"{more['tool']}: {more['effect']}: {finding}" if more else str(finding))
        typer.echo(f"{len(specs)} specs, {len(found)} findings")
    if found:
        raise typer.Exit(1)


def _target_findings(spec: ToolSpec, target: Target) -> Iterator[tuple[dict[str, str], Finding]]:
    """What a provider does to one tool: the tool's name and the effect, and where."""
    from toolkit.adapters.lint import lint_for
    from toolkit.jsonschema.pointer import split_pointer
    from toolkit.spec.problems import Finding, below
    from toolkit.wire.definition import ToolDefinition
    from toolkit.wire.json_types import JsonObject

    schema = JsonObject(dict[str, object](spec.input_schema))
    for remark in lint_for(target, ToolDefinition(spec.wire_name, spec.long_description or spec.description, schema)):
        # Told as the spec has it: its pointers are fit to be printed.
        pointer = reduce(below, split_pointer(remark.pointer), spec.pointer)
        yield {"tool": spec.wire_name, "effect": remark.effect}, Finding(remark.message, spec.source, pointer)


@app.command()
def tools(package: Package = None, as_json: AsJson = False) -> None:
    """List the tools of a generated package; in brackets what they say of themselves, and whether no sandbox holds them."""
    from toolkit.guard.policy.hints import told_hints

    with _told(as_json):
        rows = _package(package).CATALOG.definitions.values()
    if as_json:
        told = ("name", "title", "description", "annotations", "required", "optional", "parallel")
        _print_json([{key: row[key] for key in (*told, "inputSchema", "outputSchema")} for row in rows])
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        words = ",".join(row["required"]) or "-"
        said = ", ".join([*told_hints(row["annotations"]), *([_UNCONFINED] if row.get("unconfined") else [])])
        typer.echo(f"{row['name']:<{width}}  {words:<8}  {row['description']}{f' [{said}]' if said else ''}")


@app.command()
def describe(name: str, package: Package = None, as_json: AsJson = False) -> None:
    """Show one tool: what it does, what it takes and gives."""
    from toolkit.guard.policy.hints import told_hints
    from toolkit.jsonschema.outline import outline

    with _told(as_json):
        row = _row(_package(package), name)
    if as_json:
        _print_json(row)
        return
    typer.echo(f"{row['name']}: {row['longDescription'] or row['description']}")
    typer.echo(f"permissions: {', '.join(row['required']) or 'none'}")
    if said := told_hints(row["annotations"]):
        typer.echo(f"says of itself: {', '.join(said)}")
    if origin := row.get("origin"):
        confined = f", {_UNCONFINED}" if row.get("unconfined") else ""
        typer.echo(f"imported: as {row['originalName']!r} of {origin['name']!r} ({origin['kind']}{confined})")
    for title, schema in (("takes", row["inputSchema"]), ("gives", row["outputSchema"])):
        typer.echo(f"\n{title}:")
        for line in outline(schema):
            typer.echo(f"  {line}")


@app.command()
def invoke(
    name: str,
    arguments: Arguments = "{}",
    workspace: Workspace = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Run one tool and print what a model would read. Only the tool you name is allowed."""
    with _told(as_json):
        module = _package(package)
        _row(module, name)
        text = _text(arguments)
        policy = module.SecurityPolicy(default="deny", tools={name: "allow"})
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
            message = toolkit.execute_raw(name, text)
            data = {"name": message.name, "title": message.title, "metadata": dict(message.metadata)}
            content = message.content.model_dump(mode="json", by_alias=True, exclude_unset=True)
            words = message.text()
    if as_json:
        _print_json({**data, "content": content})
    else:
        typer.echo(words)


@policy_app.command()
def explain(
    name: str,
    arguments: Arguments,
    policy: Annotated[Path, typer.Option(help="The policy's TOML file, outside the workspace.")],
    workspace: Workspace = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Say what a policy decides for one call, and why; nothing runs. Exit 0 for allow, 1 for ask and deny."""
    with _told(as_json):
        module = _package(package)
        _row(module, name)
        rules = module.SecurityPolicy.load(policy)
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=rules)):
            try:
                verdict = rules.explain(name, _object(_text(arguments)))
            except ToolkitError as error:
                # No decision: 1 would read as one.
                raise SetupError(str(error)) from None
    if as_json:
        _print_json({"decision": verdict.decision, "because": verdict.because})
    else:
        typer.echo(f"{verdict.decision}: {verdict.because}")
    if verdict.decision != "allow":
        raise typer.Exit(1)


@contextmanager
def _told(as_json: bool) -> Iterator[None]:
    """Our errors on stderr, or as JSON for scripts: 1 for a call that failed, 2 for what was wrong before it."""
    try:
        yield
    except ToolkitError as error:
        failure = {"code": error.code, "tool_name": error.tool_name, "message": error.message, "details": error.details}
        if as_json:
            _print_json(failure)
        else:
            typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except SetupError as error:
        if as_json:
            _print_json({"error": str(error)})
        else:
            typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, default=str, ensure_ascii=False, indent=2))


@audit_app.command()
def verify(
    log: AuditFile,
    head: Annotated[
        str | None, typer.Option(help="What `audit head` printed earlier: finds a cut tail as well.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find lines that were changed, removed or added since they were written."""
    from toolkit.runtime.audit.log import AuditHead, verify

    with _told(as_json):
        report = verify(_readable(log), None if head is None else AuditHead.parse(head))
    if as_json:
        found = {"head": str(report.head), "open_calls": report.open_calls, "problems": report.problems}
        _print_json({"records": report.head.lines, **found})
    else:
        for problem in report.problems:
            typer.echo(problem)
        started = f", {report.open_calls} calls without an end" if report.open_calls else ""
        verdict = f"{len(report.problems)} problems" if report.problems else "the chain is whole"
        typer.echo(f"{log}: {report.head.lines} records, {verdict}{started}")
    raise typer.Exit(1 if report.problems else 0)


@audit_app.command(name="head")
def audit_head(log: AuditFile, as_json: AsJson = False) -> None:
    """Print how many records there are and the hash of the last, to be kept elsewhere."""
    from toolkit.runtime.audit.log import verify

    with _told(as_json):
        report = verify(_readable(log))
    if as_json:
        _print_json({"head": str(report.head)})
    else:
        typer.echo(str(report.head))


def _readable(log: Path) -> Path:
    try:
        with log.open("rb"):
            return log
    except OSError as error:
        raise SetupError(f"{str(log)!r} cannot be read: {error.strerror}") from None


def _package(name: str | None) -> Any:
    """The generated package asked for; this project's, where there is one; else the built-ins'."""
    name = _projects_package() if name is None else name
    try:
        module = importlib.import_module(name)
        module.CATALOG  # noqa: B018  (loaded now, so that a package of another kind is told here)
    except SetupError:
        raise
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise SetupError(
            f"{name!r} is no generated package that can be imported ({error}); run `toolkit generate`"
        ) from None
    return module


def _projects_package() -> str:
    from toolkit.codegen.settings import NoSettings, find_settings

    try:
        settings = find_settings(Path())
    except NoSettings:
        return "toolkit.generated"
    sys.path[:0] = [str(settings.import_root)]
    return settings.package


def _row(module: Any, name: str) -> dict[str, Any]:
    from toolkit.errors import nearest

    definitions: dict[str, dict[str, Any]] = module.CATALOG.definitions
    if name not in definitions:
        raise SetupError(f"no tool is called {name!r}.{nearest(name, definitions)}")
    return definitions[name]


def _text(arguments: str) -> str:
    if arguments != "-":
        return arguments
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise SetupError(f"what came from standard input is no UTF-8 text: {error.reason}") from None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"the arguments are no JSON: {error}") from None
    if not isinstance(value, dict):
        raise SetupError("the arguments must be a JSON object")
    return value


def _callable(name: str) -> Callable[[str], int]:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[str], int] = getattr(importlib.import_module(module), attribute)
        counted: object = found("a text")
    except Exception as error:  # whatever somebody's module or function raises
        raise SetupError(f"the tokenizer {name!r} cannot be used: {error}; write module:callable") from None
    if type(counted) is not int:
        raise SetupError(f"the tokenizer {name!r} must give the number of tokens of a text, an int")
    return found


def main() -> None:
    app()


if __name__ == "__main__":
    main()
