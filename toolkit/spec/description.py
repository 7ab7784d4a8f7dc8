"""Long descriptions: files next to specs and modules, with a few placeholders that are filled when a toolkit is built."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from toolkit.errors import SetupError

MAX_DESCRIPTION_FILE: Final = 256 * 1024
PLACEHOLDERS: Final = ("workspace", "directory", "cwd")


def read_description(folder: Path, name: str) -> str:
    """The text of a description file in or below ``folder``; ``Unreadable`` says what is wrong with it."""
    from toolkit.schema.spec_files import read_below

    return read_below(folder, name, MAX_DESCRIPTION_FILE)


def read_module_description(source: str | None, name: str, owner: str) -> str:
    """The text of a file in or below the folder of a module's source file; no step on the way may be a link."""
    from toolkit.schema.problems import Unreadable, quote

    if source is None or not os.path.isfile(source):
        raise SetupError(f"{owner} was not defined in a file, so it cannot have a description file")
    try:
        text = read_description(Path(os.path.abspath(source)).parent, name)
    except Unreadable as error:
        raise SetupError(f"the description file {quote(name)} of {owner}: {error}") from None
    for problem in placeholder_problems(text):
        raise SetupError(f"the description file {quote(name)} of {owner}: {problem}")
    return text


def placeholder_problems(text: str) -> list[str]:
    """A sentence for each ``${...}`` that is not a known placeholder.

    >>> placeholder_problems("in ${workspace}, as ${user}")
    ["'${user}' is not a placeholder; ${workspace}, ${directory} and ${cwd} are"]
    """
    from toolkit.schema.problems import quote

    # Split, not matched: a pattern would take quadratic time on a text full of unclosed "${".
    pieces = [piece.partition("}") for piece in text.split("${")[1:]]
    unknown = [name for name, closed, _ in pieces if closed and name not in PLACEHOLDERS]
    return [
        f"{quote('${' + name + '}')} is not a placeholder; ${{workspace}}, ${{directory}} and ${{cwd}} are"
        for name in unknown
    ]


def fill_placeholders(text: str, workspace: str) -> str:
    """The text for one toolkit. Every placeholder is its workspace: a tool knows no other directory.

    >>> fill_placeholders("Works in ${workspace}.", "/project")
    'Works in /project.'
    """
    for word in PLACEHOLDERS:
        text = text.replace(f"${{{word}}}", workspace)
    return text
