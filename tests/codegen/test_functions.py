"""Code-first tools in a generated package: read in a process of their own, typed, and run by their functions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.findings import short_forms
from tests.projects import Project, run, tool
from toolkit.codegen import check, find_settings, generate
from toolkit.codegen.imports import python_modules as reading
from toolkit.errors import GenerationError, SetupError, SpecError

MATH = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from typing_extensions import TypedDict
from toolkit import ContentBlock, ToolContext, tool

class Point(BaseModel):
    """A place."""
    x: int
    label: str | None = None

@dataclass
class Pair:
    left: Point
    right: Point

class Row(TypedDict):
    a: int

@tool(permissions=["read"], parallel=False, blocking=False)
def move(point: Point, by: Annotated[int, Field(ge=1, description="How far.")] = 1, *, ctx: ToolContext) -> Point:
    """Move a point."""
    return Point(x=point.x + by, label=type(point).__name__)

@tool
async def pair(points: list[Point]) -> Pair:
    return Pair(points[0], points[-1])

@tool
def row() -> Row:
    return {"a": 1}

@tool
def number(kind: Literal["one", "two"] = "one") -> int:
    return 1 if kind == "one" else 2

@tool
def words(text: str) -> str:
    return text.upper()

@tool
def nothing() -> None:
    pass

@tool
def blocks() -> list[ContentBlock | str]:
    return ["see", ContentBlock("image", "image/png", data="aGk=")]

@tool
def anything(what: int) -> object:
    return {"what": what}

@tool(text=lambda point: f"x is {point.x}")
def worded(schema: int) -> Point:
    return Point(x=schema)
'''

USE = """
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import ToolCall
with create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow"))) as toolkit:
    print(toolkit.invoke("move", {"point": {"x": 1.0}}).content)
    print(toolkit.tools.pair(points=[{"x": 1}, {"x": 2, "label": "b"}]))
    print(toolkit.tools.row(), toolkit.tools.number(kind="two"), toolkit.tools.words(text="a").text, toolkit.tools.nothing().text)
    print(toolkit.tools.blocks().text, toolkit.tools.blocks().blocks[0].media_type, toolkit.tools.anything(what=3).structured)
    print(toolkit.invoke("worded", {"schema": 4}).text())
    for name in ("move", "number", "words", "nothing", "blocks", "worded"):
        arguments = {"move": {"point": {"x": 1}}, "words": {"text": "a"}, "worded": {"schema": 4}}.get(name, {})
        result = toolkit.call(ToolCall("1", name, arguments))
        print(name, result.kind, result.value if result.kind != "multimodal" else len(result.value))
"""
USED = """
x=2 label='Point'
Pair(left=Point(x=1, label=None), right=Point(x=2, label='b'))
{'a': 1} root=2 A (no output)
see image/png {'what': 3}
x is 4
move data {'x': 2, 'label': 'Point'}
number data 1
words text A
nothing text (no output)
blocks multimodal 2
worded text x is 4
"""


def project_of(root: Path, text: str, tools: Any = (), **settings: Any) -> Project:
    project = Project(root, tools, **{"functions": ["acme.math"], **settings})
    project.write("acme/math.py", text)
    return project


@pytest.mark.slow
def test_functions_get_models_overloads_and_methods_and_run(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH)
    project.generate()
    assert check(project.settings) == ""
    assert command_line.python(project.root, USE).stdout.strip() == USED.strip()
    catalog = project.files()["catalog.py"].decode()
    assert 'function="acme.math:move"' in catalog and "blocking=False" in catalog
    assert 'PACKS: tuple[str, ...] = ("acme.math:*",)' in project.files()["facade.py"].decode()
    assert "move" not in project.files()["bind.py"].decode()


@pytest.mark.slow
def test_functions_are_typed(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH)
    project.generate()
    project.write(
        "use.py",
        "from acme.generated import AcmeToolkit\n"
        "def use(toolkit: AcmeToolkit) -> int:\n"
        "    toolkit.invoke('move', {'point': {'x': 'a'}})\n"
        "    toolkit.tools.number(kind='three')\n"
        "    return toolkit.invoke('move', {'point': {'x': 1}}).content.x + toolkit.tools.number().root\n",
    )
    done = run([str(Path(sys.executable).parent / "mypy"), "--strict", "acme", "use.py"], tmp_path, check=False)
    assert {line.split(":")[1] for line in done.stdout.splitlines() if ": error: " in line} == {"3", "4"}


@pytest.mark.slow
def test_no_specs_are_needed(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH)
    project.write("pyproject.toml", '[tool.toolkit]\nfunctions = ["acme.math"]\npackage = "acme.generated"\n')
    project.generate()
    assert (
        command_line.python(
            project.root, "from acme.generated import ToolName, TOOL_NAMES; print(len(TOOL_NAMES))"
        ).stdout
        == "9\n"
    )


@pytest.mark.slow
def test_check_sees_a_changed_signature_and_nothing_else(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH)
    project.generate()
    assert project.generate() == []
    project.write("acme/math.py", MATH.replace("point.x + by", "point.x + by * 1"))
    assert (check(project.settings), project.generate()) == ("", [])
    project.write(
        "acme/math.py", MATH.replace("by: Annotated[int", "far: Annotated[int").replace("point.x + by", "point.x + far")
    )
    difference = check(project.settings)
    assert "-    by: Annotated[int, Field(ge=1)] = 1" in difference
    assert "+    far: Annotated[int, Field(ge=1)] = 1" in difference
    assert "models/move.py" in project.generate()
    assert check(project.settings) == ""


@pytest.mark.slow
def test_types_from_another_module_are_seen(tmp_path: Path) -> None:
    text = (
        "from acme.types import Point\nfrom toolkit import tool\n@tool\ndef show(point: Point) -> str:\n    return ''\n"
    )
    project = project_of(tmp_path, text)
    types = "from pydantic import BaseModel\nclass Point(BaseModel):\n    x: {}\n"
    project.write("acme/types.py", types.format("int"))
    project.generate()
    project.write("acme/types.py", types.format("str"))
    assert "models/show.py" in project.generate()


@pytest.mark.slow
def test_the_generator_never_runs_the_projects_code_itself(tmp_path: Path) -> None:
    loud = "import os, pathlib\nprint('noise')\nos.write(1, b'more noise')\npathlib.Path('seen').write_text(str(os.getpid()))\n"
    project_of(tmp_path, MATH + loud).generate()
    assert "acme.math" not in sys.modules
    assert int((tmp_path / "seen").read_text()) != os.getpid()


BROKEN: dict[str, tuple[str, str]] = {
    "a missing import": ("\nimport nowhere_at_all\n", r"'acme\.math' cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all' \(acme/math\.py, line 2\)"),
    "a mistake in syntax": ("def f(:\n", r"'acme\.math' cannot be imported: SyntaxError: "),
    "an error": ("\n\nraise ValueError('not today')\n", r"ValueError: not today \(acme/math\.py, line 3\)"),
    "an exit": ("raise SystemExit(3)\n", r"'acme\.math' cannot be imported: SystemExit: 3"),
    "a hard exit": ("import os\nprint('last words', flush=True)\nos._exit(4)\n", r"ended the process \(exit code 4\).*\n.*last words"),
    "no tool": ("x = 1\n", r"the module 'acme\.math' has no tools"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.slow
def test_a_module_that_cannot_be_read_is_told(tmp_path: Path, what: str) -> None:
    project = project_of(tmp_path, BROKEN[what][0])
    with pytest.raises(GenerationError, match=BROKEN[what][1]) as refused:
        project.generate()
    assert refused.value.findings[0].pointer == "/tool/toolkit/functions"
    assert not project.output.exists()


STARTS_ANOTHER = """
import pathlib, subprocess, sys, threading
child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
pathlib.Path("child").write_text(str(child.pid))
"""


def wait_until_gone(pid: str) -> None:
    """A killed process may take a moment; one that was not killed would be waited for until the test run gives up."""
    state = Path("/proc", pid, "stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        while state.read_text().rpartition(")")[2].split()[0] not in "ZX":
            os.sched_yield()


@pytest.mark.slow
def test_a_module_that_never_ends_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SECONDS", 10)
    project = project_of(tmp_path, STARTS_ANOTHER + "threading.Event().wait()\n")
    with pytest.raises(GenerationError, match="took longer than 10 s; move slow work out of the module level"):
        project.generate()
    if (tmp_path / "child").exists():  # else even importing us took longer
        wait_until_gone((tmp_path / "child").read_text())


@pytest.mark.slow
def test_nothing_a_module_started_is_left_running(tmp_path: Path) -> None:
    project_of(tmp_path, MATH + STARTS_ANOTHER).generate()
    wait_until_gone((tmp_path / "child").read_text())


@pytest.mark.slow
def test_a_module_may_live_beside_what_is_generated(tmp_path: Path) -> None:
    """Its package binds handlers with the generated ``bind``, which is not there yet, or not as it will be."""
    project = Project(tmp_path, [tool("alpha")], functions=["acme.tools.math"], packs=["acme.tools:ACME"])
    binding = (
        "from acme.generated import AlphaInput, AlphaOutput, bind\n"
        "from acme.generated.models.alpha import AlphaOutput as Same\n"
        "from toolkit import ToolContext\n"
        "class Better(AlphaOutput):\n    pass\n"
        "def alpha(args: AlphaInput, ctx: ToolContext) -> AlphaOutput | None:\n"
        "    return AlphaOutput.model_validate({'rows': [], 'total': 0})\n"
        "ACME = bind(alpha=alpha)\n"
    )
    project.write("acme/tools/__init__.py", binding)
    project.write("acme/tools/math.py", MATH)
    project.generate()
    uses = (
        "from acme.generated import create_agent_toolkit, ToolkitContext, SecurityPolicy\n"
        "with create_agent_toolkit(ToolkitContext('.', SecurityPolicy(default='allow'))) as toolkit:\n"
        "    print(toolkit.tools.alpha(query='x').total, toolkit.tools.words(text='a').text)\n"
    )
    assert command_line.python(project.root, uses).stdout == "0 A\n"
    project.write("acme/tools/tools.json", json.dumps({"tools": [tool("alpha"), tool("beta")]}))
    project.write("acme/tools/__init__.py", binding.replace("bind(alpha=alpha)", "bind(alpha=alpha, beta=alpha)"))
    project.generate()
    assert command_line.python(project.root, uses).stdout == "0 A\n"
    assert check(project.settings) == ""


MISTAKES: dict[str, tuple[str, str]] = {
    "no type": ("def f(a) -> str: return ''", r"acme\.math: the parameter 'a' of acme\.math\.f has no type.* \(f\)"),
    "a pattern that is not linear": (
        "from typing import Annotated\nfrom pydantic import Field, WithJsonSchema\n"
        "def f(a: Annotated[str, WithJsonSchema({'type': 'string', 'pattern': '(?=a)'})]) -> str: return ''",
        r"acme\.math: 'pattern' cannot be compiled: .*; lookaround and back-references are not supported \(f/inputSchema/properties/a/pattern\)",
    ),
    "a type of the generated package": (
        "from acme.generated import AlphaInput\ndef f(a: AlphaInput) -> str: return ''",
        "'AlphaInput' is from the package that is generated from these tools, so their types cannot use it",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
@pytest.mark.slow
def test_mistakes_in_functions_are_told_at_their_place(tmp_path: Path, what: str) -> None:
    body, words = MISTAKES[what]
    project = project_of(tmp_path, f"from toolkit import define_tool\n{body}\nF = define_tool(f)\n")
    with pytest.raises(SpecError, match=words):
        project.generate()


@pytest.mark.slow
def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = "from toolkit import tool\n@tool\ndef f(a) -> str: return ''\n@tool\ndef g(b) -> str: return ''\n"
    with pytest.raises(SpecError) as refused:
        project_of(tmp_path, text).generate()
    assert [problem.rpartition(" @ ")[2] for problem in short_forms(refused.value)] == ["acme.math:f", "acme.math:g"]


@pytest.mark.slow
def test_names_are_unique_over_specs_and_functions(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH, [tool("move")])
    with pytest.raises(
        SpecError,
        match=r"the tool name 'move' is taken by \S*acme/tools/tools\.json:1:13; .*name=\.\.\., .* \(move/name\)",
    ):
        project.generate()
    edited = MATH.replace('@tool(permissions=["read"]', '@tool(name="math.move", permissions=["read"]')
    project.write("acme/math.py", edited)
    project.generate()
    assert "math_move" in project.files()["facade.py"].decode()


REGISTRY = """
from toolkit import Permissions, ToolRegistry, define_tool

def shout(text: str) -> str:
    "Say it loudly."
    return text.upper()

async def make():
    def whisper(text: str) -> str:
        "Say it quietly."
        return text.lower()
    return whisper

REGISTRY = ToolRegistry()
REGISTRY.register(define_tool(shout), permissions=Permissions(("read",), ("network",)), description_file="shout.md")
REGISTRY.register(define_tool(name="whisper", factory=make))
"""


@pytest.mark.slow
def test_a_registry_is_read_as_it_stands(tmp_path: Path) -> None:
    project = project_of(tmp_path, REGISTRY, functions=["acme.math:REGISTRY"])
    project.write("acme/shout.md", "Shouts in ${workspace}.")
    project.generate()
    rows = {row["name"]: row for row in json.loads(project.files()["manifest.json"])["tools"]}
    assert (rows["shout"]["required"], rows["shout"]["optional"]) == (["read"], ["network"])
    assert rows["shout"]["longDescription"] == "Shouts in ${workspace}."
    assert rows["whisper"]["description"] == "Say it quietly."
    code = (
        "from acme.generated import create_agent_toolkit, ToolkitContext, SecurityPolicy\n"
        "with create_agent_toolkit(ToolkitContext('.', SecurityPolicy(default='allow'))) as toolkit:\n"
        "    print(toolkit.tools.shout(text='a').text, toolkit.tools.whisper(text='B').text)\n"
        "    print(toolkit.get_allowed_tools()[0].description)\n"
    )
    assert command_line.python(project.root, code).stdout.splitlines() == ["A b", "Shouts in .."]
    project.write("acme/shout.md", "Shouts elsewhere.")
    assert '+   "longDescription": "Shouts elsewhere."' in check(project.settings)


@pytest.mark.slow
def test_a_tool_that_needs_a_context_cannot_be_generated(tmp_path: Path) -> None:
    text = "from toolkit import define_tool\nlazy = define_tool(name='lazy', factory=lambda context: print)\n"
    with pytest.raises(SpecError, match=r"needs a context, which only a toolkit has: .* \(lazy\)"):
        project_of(tmp_path, text).generate()


@pytest.mark.slow
def test_a_changed_function_says_what_it_wants_now(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH)
    project.generate()
    project.write("acme/math.py", MATH.replace("def words(text: str)", "def words(text: str, times: int)"))
    code = (
        "from acme.generated import create_agent_toolkit, ToolkitContext, SecurityPolicy\n"
        "from toolkit import ToolCall\n"
        "with create_agent_toolkit(ToolkitContext('.', SecurityPolicy(default='allow'))) as toolkit:\n"
        "    print(toolkit.call(ToolCall('1', 'words', {'text': 'a'})).value)\n"
    )
    assert (
        command_line.python(project.root, code).stdout
        == "INVALID_TOOL_ARGUMENTS: times: required argument is missing\n"
    )


@pytest.mark.slow
def test_functions_of_an_included_package_run_with_their_pack(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "package": "other.generated",
        "include": ["acme.generated"],
        "packs": ["acme.functions:*"],
    }
    project = Project(tmp_path, specs="specs", **settings)
    shutil.rmtree(tmp_path / "acme")
    project.write("specs/alpha.json", json.dumps(tool("alpha")))
    project.write("other/__init__.py", "")
    project.generate()
    code = (
        "from other.generated import create_agent_toolkit, ToolkitContext, SecurityPolicy\n"
        "with create_agent_toolkit(ToolkitContext('.', SecurityPolicy(default='allow'))) as toolkit:\n"
        "    print(toolkit.tools.quote(lines=[{'item': 'pear'}]))\n"
    )
    assert command_line.python(project.root, code).stdout == "total=3 currency='EUR' missing=[]\n"


@pytest.mark.whole  # test_generation.py does this with specs
@pytest.mark.slow
def test_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    trees = []
    for seed in ("1", "2"):
        project = project_of(tmp_path / seed, MATH)
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-m", "toolkit.codegen", "generate"],
            cwd=project.root,
            env=environment,
            check=True,
            capture_output=True,
        )
        trees.append(project.files())
    assert trees[0] == trees[1]


@pytest.mark.slow
def test_a_project_laid_out_below_src(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")], functions=["acme.math"])
    os.renames(tmp_path / "acme", tmp_path / "src" / "acme")
    project.write("src/acme/math.py", MATH)
    project.write(
        "pyproject.toml", project.root.joinpath("pyproject.toml").read_text().replace("acme/tools", "src/acme/tools")
    )
    generate(find_settings(tmp_path))
    assert (tmp_path / "src/acme/generated/models/move.py").is_file()


@pytest.mark.slow
def test_lint_looks_at_functions_too(tmp_path: Path) -> None:
    project = project_of(tmp_path, MATH)
    done = command_line.toolkit(project.root, "lint")
    assert done.returncode == 1
    assert "acme.math: the tool has no description (pair)" in done.stdout
    assert "9 specs" in done.stdout


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a path": ({"functions": ["acme/math.py"]}, "'functions' entries have the form 'acme.math' or 'acme.math:REGISTRY', not 'acme/math.py'"),
    "a star": ({"functions": ["acme.math:*"]}, "not 'acme.math:\\*'"),
    "a number": ({"functions": 7}, "'functions' must be a string or a list of strings"),
    "twice": ({"functions": ["acme.math", "acme.math"]}, "'functions' contains 'acme.math' more than once; remove one"),
    "neither": ({"functions": [], "specs": []}, "'specs' must name at least one file or folder"),
}  # fmt: skip


@pytest.mark.parametrize("what", SETTINGS)
def test_mistakes_in_settings(tmp_path: Path, what: str) -> None:
    settings, words = SETTINGS[what]
    with pytest.raises(SetupError, match=words):
        Project(tmp_path, **settings).settings  # noqa: B018
