"""``toolkit init``: a project in which ``toolkit generate``, ``mypy --strict .`` and ``pytest`` pass at once.

All or nothing: the project is made in a hidden folder next to its place, and moved there when it is complete.
"""

from __future__ import annotations

import keyword
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolkit.cli.report import (
    Styled,
    count,
    print_json,
    print_line,
    print_styled,
    print_table,
    report_errors,
    show_progress,
)
from toolkit.cli.tool_options import AsJson
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.codegen import Settings


# ----------------------------------------------------------------------------------------------------------------------
# The project's name, which becomes its folder and its package.

_WAY_OUT: Final = "choose another name, such as 'my-tools'"
# What both a project on a package index and, with underscores, a module may be called.
_NAME: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_TEMPLATE_PACKAGES: Final = frozenset({"tests", "typing_extensions"})


@dataclass(frozen=True, slots=True)
class ProjectName:
    """``my-tools``: the folder ``my-tools`` with the package ``my_tools``."""

    folder: Path
    name: str
    package: str


def read_project_name(given: str) -> ProjectName:
    """Checks the name before anything is written.

    >>> read_project_name("My-Tools").package
    'my_tools'
    """
    folder = Path(given)
    name = folder.name
    if not name or name == "..":
        raise SetupError(f"{given!r} is not the name of a new folder; {_WAY_OUT}")
    if not _NAME.fullmatch(name):
        raise SetupError(
            f"{name!r} cannot be the name of a Python package: use letters, digits, '-' and '_'; begin with a letter, and"
            " end with a letter or a digit"
        )
    package = re.sub(r"[-.]+", "_", name).lower()
    if keyword.iskeyword(package):
        raise SetupError(f"{name!r} is a keyword of Python; {_WAY_OUT}")
    if package == "toolkit" or package in sys.stdlib_module_names:
        owner = "typed-toolkit" if package == "toolkit" else "Python"
        raise SetupError(f"{name!r} would hide the module {package!r} of {owner}; {_WAY_OUT}")
    if package in _TEMPLATE_PACKAGES or _is_installed(package):
        raise SetupError(f"{name!r} would hide another module {package!r}, which is installed or needed; {_WAY_OUT}")
    return ProjectName(folder, name, package)


def _is_installed(package: str) -> bool:
    """Whether another package has the name. A folder here that happens to have it is not one."""
    here = {"", str(Path.cwd())}
    found = PathFinder.find_spec(package, [entry for entry in sys.path if entry not in here])
    return found is not None and found.origin is not None


def refuse_occupied_folder(folder: Path) -> None:
    if folder.is_symlink() or folder.exists() and not folder.is_dir():
        raise SetupError(f"{str(folder)!r} is a file; choose another name, or remove it")
    if folder.is_dir() and any(folder.iterdir()):
        raise SetupError(f"the folder {str(folder)!r} is not empty; choose another name, or remove it")
    if not folder.parent.is_dir():
        raise SetupError(f"the folder {str(folder.parent)!r} does not exist; make it first")


_TEMPLATE: Final = Path(__file__).with_name("template")
_PURPOSES: Final = (
    ("pyproject.toml", "settings of toolkit, mypy and pytest"),
    ("{package}/tools/count_words.yaml", "a spec: name, input, output, permissions"),
    ("{package}/tools/count_words.py", "its handler"),
    ("{package}/generated/", "the typed package"),
    ("tests/test_count_words.py", "a typed test"),
    (".github/workflows/check.yml", "the same checks in CI"),
)


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the project: the folder to make.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Make a new project in the folder NAME.

    It has one tool with its handler and test, the settings, and an example for CI. In it `toolkit generate`,
    `mypy --strict .` and `pytest` pass at once. An existing folder must be empty.
    """
    with report_errors(as_json, spec_mistakes=2):
        project = read_project_name(name)
        refuse_occupied_folder(project.folder)
        is_generated = find_spec("datamodel_code_generator") is not None
        files = _make_project(project, is_generated)
    if as_json:
        print_json(
            {"folder": str(project.folder), "package": project.package, "files": files, "generated": is_generated}
        )
        return
    print_styled(Styled(f"created {project.folder}", "green"), f": {count(len(files), 'file')}")
    shown = [(path.format(package=project.package), purpose) for path, purpose in _PURPOSES]
    if not is_generated:
        shown = [(path, purpose) for path, purpose in shown if not path.endswith("generated/")]
    print_table(("", ""), ((Styled(path, "cyan"), purpose) for path, purpose in shown), indent=2)
    print_styled(Styled("next:", "bold"))
    for command in _next_commands(project, is_generated):
        print_line(f"  {command}")


def _next_commands(project: ProjectName, is_generated: bool) -> list[str]:
    import shlex

    first = [f"cd {shlex.quote(str(project.folder))}"]
    if not is_generated:
        return [*first, "pip install 'typed-toolkit[codegen]'", "toolkit generate"]
    return [*first, "mypy --strict . && pytest", "toolkit invoke count_words --path README.md"]


def _make_project(project: ProjectName, is_generated: bool) -> list[str]:
    """The files that were made, relative to the folder."""
    staging = project.folder.with_name(f".{project.name}.{secrets.token_hex(4)}")
    try:
        try:
            for path, text in _render(project):
                file = staging / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            settings = _generate(staging) if is_generated else None
            made = sorted(file.relative_to(staging).as_posix() for file in staging.rglob("*") if file.is_file())
            os.rename(staging, project.folder)
            if settings is not None:
                _move_cache_files(settings, project.folder)
        except OSError as error:
            raise SetupError(f"the folder {str(project.folder)!r} cannot be made: {error.strerror}") from None
        return made
    finally:
        # Whatever happened, Ctrl-C included; after the move there is nothing to remove.
        shutil.rmtree(staging, ignore_errors=True)


def _render(project: ProjectName) -> Iterator[tuple[Path, str]]:
    for source in sorted(_TEMPLATE.rglob("*.txt")):
        path = source.relative_to(_TEMPLATE).with_suffix("")
        parts = [project.package if part == "package" else part.replace("dot-", ".", 1) for part in path.parts]
        text = source.read_text(encoding="utf-8")
        yield Path(*parts), text.replace("__PACKAGE__", project.package).replace("__NAME__", project.name)


def _generate(folder: Path) -> Settings:
    from toolkit.codegen import find_settings, generate

    settings = find_settings(folder)
    with show_progress("generating") as progress:
        generate(settings, progress)
    return settings


def _move_cache_files(settings: Settings, folder: Path) -> None:
    from toolkit.codegen.package.inputs import move_cache_files

    move_cache_files(settings, folder)
