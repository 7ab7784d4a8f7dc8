"""A project's Python modules as specs: code-first tools, listed under ``functions`` or imported, and pydantic models."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from toolkit import errors
from toolkit.codegen.imports.run import ImportResult
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.settings import Settings, find_settings
from toolkit.errors import GenerationError, SetupError, SpecError
from toolkit.schema.checks import check_document
from toolkit.schema.problems import Finding, Problems, quote
from toolkit.schema.spec import NOT_UNICODE, ToolSpec, is_unicode

# ----------------------------------------------------------------------------------------------------------------------
# Reads modules of a project in a subprocess.
#
# The generator never imports a project's code: code that runs on import cannot touch the generator's state, and a module that
# hangs, exits or prints does no harm.

SECONDS: Final = 120
_MAX_SHOWN: Final = 2000


def read_modules(
    settings: Settings, entries: Sequence[str], setting: Literal["functions", "models"], pointer: str
) -> dict[str, Any]:
    """What ``project_process`` answers about ``entries``, the value of ``setting`` at ``pointer``."""
    script = Path(__file__).with_name("project_process.py")
    with tempfile.TemporaryDirectory(prefix="toolkit-reading-") as folder:
        answer, printed = Path(folder, "tools.json"), Path(folder, "printed")
        # Not isolated: it imports the project's code, and so finds what the project's environment provides. It leaves no
        # bytecode: after a change in the same second that keeps the size of a file, that would be taken for the new code.
        command = [sys.executable, "-P", "-B", str(script), setting, str(answer), str(settings.import_root)]
        code = _run([*command, settings.package, *entries], settings.root, printed)
        if code is None:
            raise _refuse(
                f"reading the modules of {setting!r} took longer than {SECONDS} s;"
                " move slow work out of the module level",
                pointer,
            )
        if code or not answer.is_file():
            text = printed.read_bytes()[-_MAX_SHOWN:].decode("utf-8", "replace").strip()
            last = f"; its last output:\n{text}" if text else ""
            raise _refuse(f"importing a module of {setting!r} ended the process (exit code {code}){last}", pointer)
        result: dict[str, Any] = json.loads(answer.read_bytes())
    if "failed" in result:
        raise _refuse(result["failed"], pointer)
    return result


def _refuse(message: str, pointer: str) -> GenerationError:
    return GenerationError([Finding(message, "pyproject.toml", pointer)])


def _run(command: list[str], folder: Path, printed: Path) -> int | None:
    """The exit code, or None if it took too long. Child processes of the command are ended with it."""
    with printed.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return child.wait(SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _environment() -> dict[str, str]:
    """Our environment, with the toolkit that runs here before any installed one."""
    home = Path(errors.__file__).resolve().parents[1]
    if home.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    paths = [str(home), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def read_functions(settings: Settings) -> dict[str, list[ToolSpec]]:
    """The specs of each entry of ``functions``, in order; all mistakes are raised at once."""
    if not settings.functions:
        return {}
    answer = read_modules(settings, settings.functions, "functions", "/tool/toolkit/functions")
    problems = _list_problems(answer)
    found: dict[str, list[ToolSpec]] = {}
    for entry, tools in answer["tools"].items():
        found[entry] = [spec for tool in tools for spec in _check_tool(entry, tool, problems)]
    if problems:
        raise SpecError(problems)
    return found


def import_functions(settings: ImportSettings, root: Path) -> ImportResult:
    """The tools of modules as in a spec file; each names the function that runs it."""
    pointer = settings.finding("", "functions").pointer
    answer = read_modules(find_settings(root), settings.functions, "functions", pointer)
    problems = _list_problems(answer)
    tools: list[dict[str, Any]] = []
    for entry, some in answer["tools"].items():
        for tool in some:
            if tool["longDescription"] is not None:
                message = (
                    f"{tool['spec']['name']!r} has a description file, which an import cannot keep;"
                    " list its module under 'functions' in [tool.toolkit] instead"
                )
                problems.append(Finding(message, entry, tool["place"]))
            tools.append({**tool["spec"], "function": tool["function"]})
    if problems:
        raise SpecError(problems)
    return ImportResult({}, tools)


def _list_problems(answer: dict[str, Any]) -> list[Finding]:
    return [Finding(message, entry, place) for message, entry, place in answer["problems"]]


def _check_tool(entry: str, tool: dict[str, Any], problems: list[Finding]) -> list[ToolSpec]:
    """One tool, checked like a spec in a file."""
    mistakes = Problems(entry)
    place = tool["place"]
    if not is_unicode(json.dumps(tool, ensure_ascii=False)):
        problems.append(Finding(NOT_UNICODE, entry, place))
        return []
    specs = check_document(tool["spec"], mistakes, None)
    problems += [Finding(finding.message, entry, place + finding.pointer) for finding in mistakes.found]
    long, own = tool["longDescription"], tool["ownOutput"]
    return [
        replace(spec, pointer=place, function=tool["function"], long_description=long, own_output=own) for spec in specs
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Pydantic models as tools: ``"A"`` is a tool's input, ``"A -> B"`` also names its output. The project has the handlers.


def import_models(settings: ImportSettings, root: Path) -> ImportResult:
    """A tool for each entry. Its name is the input model's in snake case, its description the model's docstring."""
    pointer = settings.finding("", "models").pointer
    answer = read_modules(find_settings(root), settings.models, "models", pointer)
    if answer["problems"]:
        raise SpecError(settings.finding(problem, "models") for problem in answer["problems"])
    return ImportResult({}, [_tool(model) for model in answer["tools"]])


def _tool(model: dict[str, Any]) -> dict[str, Any]:
    # The tool has the model's description already: repeating it would only cost tokens.
    schema = {key: value for key, value in model["inputSchema"].items() if key not in ("title", "description")}
    tool = {"name": tool_name(model["class"]), "description": model["description"], "inputSchema": schema}
    return tool if model["outputSchema"] is None else {**tool, "outputSchema": model["outputSchema"]}


def tool_name(class_name: str) -> str:
    """The tool name for a class name.

    >>> [tool_name(name) for name in ("Query", "HTTPQuery", "SendMail2")]
    ['query', 'http_query', 'send_mail2']
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


# ----------------------------------------------------------------------------------------------------------------------
# The file that an import names in the settings.


def find_source_file(settings: ImportSettings, root: Path) -> Path:
    """The file that ``openapi`` or ``tools`` names, relative to the project's folder; ``SetupError`` if there is none."""
    name = settings.openapi or settings.tools
    file = root / name
    if not os.path.lexists(file):
        message = f"the file {quote(name)} does not exist; give a path relative to pyproject.toml"
        raise SetupError([settings.finding(message, settings.kind)])
    return file
