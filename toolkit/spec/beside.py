"""Description files beside modules of code-first tools, read as those beside spec files are."""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.errors import SetupError
from toolkit.spec.description import MAX_DESCRIPTION_FILE, unknown_placeholders
from toolkit.spec.files import read_below
from toolkit.spec.problems import Unreadable, shown


def read_description_beside(source: str | None, name: str, owner: str) -> str:
    """The text of a file in or below the folder of a module's source file; no step on the way may be a link."""
    if source is None or not os.path.isfile(source):
        raise SetupError(f"{owner} was defined in no file, so that no description file can stand beside it")
    try:
        text = read_below(Path(os.path.abspath(source)).parent, name, MAX_DESCRIPTION_FILE)
    except Unreadable as error:
        raise SetupError(f"the description file {shown(name)} beside {owner}: {error}") from None
    unknown = unknown_placeholders(text)
    if unknown:
        raise SetupError(
            f"the description file {shown(name)} beside {owner}: {shown('${' + unknown[0] + '}')} is not filled in; "
            f"${{workspace}}, ${{directory}} and ${{cwd}} are"
        )
    return text
