"""``from acme.generated import *`` gives at run time exactly the names that type checkers see."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.projects import DOWNSTREAM, Project, many_tools, run
from tests.typing.checkers import Report, mypy, pyrefly, pyright, ty

pytestmark = pytest.mark.xdist_group("typing")


def as_without_strict(folder: Path) -> Path:
    """Settings by which names that a module of the package imports for itself count as its own."""
    settings = folder / "star.ini"
    settings.write_text("[mypy]\n[mypy-acme.*]\nimplicit_reexport = True\n")
    return settings


CHECKERS: dict[str, Callable[[Sequence[Path], Path], Report]] = {
    "mypy": lambda files, folder: mypy(files, folder, settings=str(as_without_strict(folder))),
    "pyright": lambda files, folder: pyright(files, folder, "standard"),
    "pyrefly": pyrefly,
    "ty": ty,
}
GIVEN = """
import json
space = {}
exec("from acme.generated import *", space)
print(json.dumps(list(space)))
"""


@pytest.fixture(
    scope="module", params=["awkward names", pytest.param("the downstream project", marks=pytest.mark.whole)]
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder to run programs in, and the package that they import there as ``acme.generated``."""
    folder = tmp_path_factory.mktemp("star")
    if request.param == "the downstream project":
        return folder, DOWNSTREAM / "acme" / "generated"
    project = Project(folder, many_tools(50))
    project.generate()
    return folder, project.output


def words_in(package: Path) -> list[str]:
    """Every word of the package's own modules, and of the names of its modules: all that could be visible by mistake."""
    files = sorted(package.glob("*.py"))
    words = {word for file in files for word in re.findall(r"\b[A-Za-z_]\w*\b", file.read_text(encoding="utf-8"))}
    words |= {file.stem for file in files} | {"models", "nothing_of_that_name"}
    return sorted(
        word for word in words if not keyword.iskeyword(word) and word not in vars(builtins) and word[:2] != "__"
    )


@pytest.mark.parametrize(
    "checker", ["mypy", *(pytest.param(name, marks=pytest.mark.whole) for name in CHECKERS if name != "mypy")]
)
def test_run_time_and_checkers_agree_on_every_name(place: tuple[Path, Path], checker: str) -> None:
    folder, package = place
    words = words_in(package)
    used = [f"print({word})" for word in words]
    programs = {"star.py": "from acme.generated import *", "bare.py": "import acme.generated"}
    for name, first in programs.items():
        (folder / name).write_text("\n".join([first, *used, ""]))
    given = set(json.loads(run([sys.executable, "-c", GIVEN], folder).stdout))
    refused = CHECKERS[checker]([folder / name for name in programs], folder).errors
    # Without the import only some internal names of typeshed are known.
    seen = {
        word for line, word in enumerate(words, 2) if ("star.py", line) not in refused and ("bare.py", line) in refused
    }
    assert {"Toolkit", "bind", "is_tool_name"} <= given
    assert seen == given & set(words)
