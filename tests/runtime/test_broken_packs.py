"""A pack whose module cannot be imported: the error names the pack, what is wrong, and the line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.projects import Project, run, tool
from toolkit import Pack, SecurityPolicy, SetupError, ToolkitContext, create_agent_toolkit

BIND = """
from acme.generated import bind
def run(args, ctx): ...

PACK = bind({})
"""
MODULES = {
    "one handler is missing": (
        BIND.format("add=run"),
        "bind() needs a handler for 'outline'; write outline=... at acme/pack.py:5",
    ),
    "two handlers are missing": (
        BIND.format(""),
        "bind() needs handlers for 'add' and 'outline'; write add=..., outline=... at acme/pack.py:5",
    ),
    "misspelt": (
        BIND.format("ad=run"),
        "bind() at acme/pack.py:5 names 'ad', which is not a tool of the generated package. Did you mean 'add'?",
    ),
    "not generated yet": (
        BIND.format("add=run, outline=run, publish=run"),
        "bind() at acme/pack.py:5 names 'publish', which is not a tool of the generated package. "
        "If its spec is new, run `toolkit generate`.",
    ),
    "any error": ("\nPACK = {}['x']\n", "KeyError: 'x' at acme/pack.py:2"),
    "in a library": ("import json\nPACK = json.loads('{')\n", "at acme/pack.py:2"),
    "no Python": ("PACK = = 1\n", "SyntaxError: invalid syntax at acme/pack.py:1"),
    "an import": ("import acme.nothing\n", "No module named 'acme.nothing' at acme/pack.py:1"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("broken"), [tool("add"), tool("outline")], packs=["acme.pack:PACK"])
    made.generate()
    return made


@pytest.mark.sample
@pytest.mark.slow
@pytest.mark.parametrize("mistake", MODULES)
def test_the_error_names_the_pack_and_the_line(project: Project, mistake: str) -> None:
    text, expected = MODULES[mistake]
    project.write("acme/pack.py", text)
    done = run([sys.executable, "-B", "-m", "toolkit", "invoke", "add", "--query", "x"], project.root, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("the pack 'acme.pack:PACK' cannot be loaded: ")
    assert expected in done.stderr
    assert "bug" not in done.stderr


def test_programs_get_the_error_itself_as_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pack_that_raises.py").write_text("PACK = 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        SetupError, match=r"'pack_that_raises:PACK' cannot be loaded: .*pack_that_raises\.py:1$"
    ) as caught:
        create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy()), packs=["pack_that_raises:PACK"])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_misspelt_name_of_a_pack_gets_a_suggestion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pack_with_a_name.py").write_text("ACME = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SetupError, match=r"has no attribute 'ACMEE'\. Did you mean 'ACME'\?$"):
        create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy()), packs=["pack_with_a_name:ACMEE"])


def test_a_pack_for_tools_of_another_package_says_which_setting_is_missing(tmp_path: Path) -> None:
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))
    with pytest.raises(SetupError) as failure:
        create_agent_toolkit(context, packs=["toolkit.builtin:BUILTIN", "acme.tools:ACME"])
    assert str(failure.value) == (
        "a pack handles 'add', which is not a tool of toolkit.generated; if it is a tool of another package, add that package"
        " to 'include' in your settings (the built-in tools are in toolkit.generated) and run `toolkit generate`"
    )
    with pytest.raises(
        SetupError, match=r"'reed_file', which is not a tool of toolkit\.generated\. Did you mean 'read_file'"
    ):
        create_agent_toolkit(context, packs=[Pack({"reed_file": print})])
