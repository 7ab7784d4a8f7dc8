"""A project of a thousand shared tools under all four type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.corpus.calls import calls
from tests.corpus.project import SharedProject, SharedTool, shared_tools
from tests.corpus.specs import FILES
from tests.typing.checkers import CHECKERS

A_FILE = {"bfcl.jsonl": 450, "cookbooks.jsonl": 63, "mcp.jsonl": 410, "openapi_ops.jsonl": 77}
"""How many tools of each file are used; 11 percent of that by default."""
INVOKE_EVERY = 25


def some_of_each(tools: Sequence[SharedTool], everything: bool) -> list[SharedTool]:
    found = []
    for file in FILES:
        wanted = A_FILE[file] if everything else A_FILE[file] * 11 // 100
        found += [tool for tool in tools if tool.file == file][:wanted]
    return found


@pytest.fixture(scope="module")
def project(corpus: Path, tmp_path_factory: pytest.TempPathFactory, everything: bool) -> SharedProject:
    made = SharedProject(tmp_path_factory.mktemp("thousand"), "acme", some_of_each(shared_tools(corpus), everything))
    made.generate()
    assert len(made.rows()) + len(made.refused) == len(made.tools) >= (1000 if everything else 100)
    text, _ = calls(made.rows(), made.package, INVOKE_EVERY if everything else 1)
    (made.root / "using.py").write_text(text, encoding="utf-8")
    return made


# Mypy without our plugin and pyright read such packages in test_proof.py too, and a thousand tools take minutes.
@pytest.mark.parametrize(
    "checker",
    [name if name == "mypy with plugin" else pytest.param(name, marks=pytest.mark.whole) for name in CHECKERS],
)
@pytest.mark.xdist_group("scale")
def test_a_package_of_shared_tools_is_clean(project: SharedProject, checker: str) -> None:
    files = [project.root / "using.py", *sorted(project.output.rglob("*.py"))]
    assert CHECKERS[checker](files, project.root).errors == {}
