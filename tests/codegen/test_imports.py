"""``toolkit import``: functions and models as committed spec files, what is written and when nothing is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.projects import Project

MATHS = '''
from toolkit import define_tool, tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@tool(name="double it", permissions=["read"])
async def double(a: int) -> int:
    """Twice a number."""
    return 2 * a

def _make():
    def halve(a: float) -> float:
        """Half of a number."""
        return a / 2
    return halve

halve = define_tool(name="halve", factory=_make)
'''
SHAPES = '''
from __future__ import annotations
from pydantic import BaseModel, Field, computed_field

class HTTPQuery(BaseModel):
    """Ask for something."""
    text: str = Field(alias="q")
    deeper: HTTPQuery | None = None

class Answer(BaseModel):
    found: list[int] = []

    @computed_field
    def count(self) -> int:
        return len(self.found)

class Holder:
    class Inner(BaseModel):
        x: int
'''


def project(root: Path, settings: str, **modules: str) -> Project:
    made = Project(root)
    made.write("acme/tools/tools.json", '{"tools": []}')
    made.write("pyproject.toml", (root / "pyproject.toml").read_text() + settings)
    for name, text in modules.items():
        made.write(f"acme/{name}.py", text)
    return made


def toolkit(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return command_line.toolkit(project.root, *words)


def imported(project: Project, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(project.root.joinpath(f"acme/tools/{name}.json").read_text())
    return found


MATHS_SETTINGS = '[tool.toolkit.imports.maths]\nfunctions = ["acme.maths"]\nprefix = "m_"\n'
SHAPES_SETTINGS = (
    "[tool.toolkit.imports.shapes]\n"
    'models = ["acme.shapes:HTTPQuery -> acme.shapes:Answer", "acme.shapes:Holder.Inner"]\n'
)


@pytest.mark.slow
def test_functions_are_imported_generated_and_run_under_a_prefix(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS, maths=MATHS)
    ran = toolkit(made, "import", "--trust")
    assert (ran.returncode, ran.stdout) == (0, "acme/tools/maths.json: new\n  added: m_add, m_double it, m_halve\n")
    file = imported(made, "maths")
    assert (file["origin"], file["prefix"]) == ({"kind": "functions", "name": "maths"}, "m_")
    assert [tool["function"] for tool in file["tools"]][:2] == ["acme.maths:add", "acme.maths:double"]
    made.generate()
    code = """
from acme.generated import AcmeToolkit, SecurityPolicy, ToolkitContext, create_agent_toolkit
with create_agent_toolkit(ToolkitContext(workspace=".", policy=SecurityPolicy(default="allow"))) as toolkit:
    print(toolkit.tools.m_add(a=1, b=2).root, toolkit.invoke("m_double it", {"a": 4}).content.root)
    print(toolkit.tools.m_halve(a=3).root, sorted(tool.name for tool in toolkit.get_allowed_tools()))
"""
    assert command_line.python(made.root, code).stdout == "3 8\n1.5 ['m_add', 'm_double it', 'm_halve']\n"


@pytest.mark.slow
def test_a_function_that_is_gone_is_told_when_a_toolkit_is_built(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS, maths=MATHS)
    assert toolkit(made, "import", "--trust").returncode == 0
    made.generate()
    made.write("acme/maths.py", MATHS.replace("def add", "def plus"))
    code = "from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit; create_agent_toolkit(ToolkitContext('.', SecurityPolicy(default='deny')))"
    ran = command_line.python(made.root, code, check=False)
    assert "the tool 'add' no longer exists in acme.maths:*. Run `toolkit import`" in ran.stderr


@pytest.mark.slow
def test_models_are_told_as_pydantic_tells_them(tmp_path: Path) -> None:
    made = project(tmp_path, SHAPES_SETTINGS, shapes=SHAPES)
    ran = toolkit(made, "import", "--trust", "shapes", "--json")
    assert json.loads(ran.stdout) == [
        {"name": "shapes", "file": "acme/tools/shapes.json", "state": "new", "added": ["http_query", "inner"], "removed": [], "changed": [], "notes": []}
    ]  # fmt: skip
    query, inner = imported(made, "shapes")["tools"]
    assert (query["name"], query["description"]) == ("http_query", "Ask for something.")
    assert query["inputSchema"]["properties"]["q"] == {"title": "Q", "type": "string"}
    assert query["inputSchema"]["type"] == "object" and "additionalProperties" not in query["inputSchema"]
    # What is computed is part of what is sent, and of nothing that is taken.
    assert query["outputSchema"]["required"] == ["count"]
    assert "outputSchema" not in inner
    made.generate()
    bind = made.files()["bind.py"].decode()
    assert "http_query: _Handler[HttpQueryInput, HttpQueryOutput]" in bind


@pytest.mark.slow
def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS + SHAPES_SETTINGS, maths=MATHS, shapes=SHAPES)
    assert toolkit(made, "import", "--trust").returncode == 0
    file = tmp_path / "acme/tools/maths.json"
    before = file.stat()
    made.write("acme/shapes.py", SHAPES.replace("x: int", "y: int").replace("class Answer", "class Other"))
    made.write(
        "pyproject.toml", (tmp_path / "pyproject.toml").read_text().replace("acme.shapes:Answer", "acme.shapes:Other")
    )
    ran = toolkit(made, "import", "--trust")
    assert (
        ran.stdout
        == "acme/tools/maths.json: unchanged\nacme/tools/shapes.json: changed\n  changed: http_query, inner\n"
    )
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert file.read_text().endswith("}\n")


@pytest.mark.slow
def test_only_the_named_ones_are_read(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS + SHAPES_SETTINGS, maths=MATHS, shapes="raise RuntimeError")
    assert toolkit(made, "import", "--trust", "maths").returncode == 0
    assert not (tmp_path / "acme/tools/shapes.json").exists()


@pytest.mark.slow
def test_where_one_fails_the_others_are_written(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS + SHAPES_SETTINGS, maths=MATHS, shapes="raise RuntimeError('no')")
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 1
    assert ran.stdout.startswith("acme/tools/maths.json: new\n")
    *progress, title, failure = ran.stderr.splitlines()
    assert progress == [
        "maths: reading acme.maths",
        "maths: 3 tools",
        "shapes: reading acme.shapes:HTTPQuery -> acme.shapes:Answer, acme.shapes:Holder.Inner",
        "shapes: failed",
    ]
    assert title == "1 of 2 imports failed:"
    assert failure == (
        "pyproject.toml:9:1: 'acme.shapes:HTTPQuery -> acme.shapes:Answer' cannot be imported: RuntimeError: no"
        " (acme/shapes.py, line 1) (/tool/toolkit/imports/shapes/models)"
    )
    assert sorted(path.name for path in (tmp_path / "acme/tools").iterdir()) == ["maths.json", "tools.json"]
    code, rows = ran.returncode, json.loads(toolkit(made, "import", "--json").stdout)
    assert [(row["name"], row["state"]) for row in rows] == [("maths", "unchanged"), ("shapes", "failed")]
    assert code == 1 and rows[1]["problems"][0]["pointer"] == "/tool/toolkit/imports/shapes/models"


@pytest.mark.slow
def test_where_one_cannot_be_written_the_others_are(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS + SHAPES_SETTINGS, maths=MATHS, shapes=SHAPES)
    (tmp_path / "acme/tools/.maths.json.toolkit-staging").mkdir()
    ran = toolkit(made, "import", "--trust")
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (1, "acme/tools/shapes.json: new")
    assert ran.stderr.splitlines()[-2:] == [
        "1 of 2 imports failed:",
        "acme/tools/maths.json: the imported specs could not be written: Is a directory",
    ]


@pytest.mark.slow
def test_a_rename_in_the_file_outlives_the_next_import(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS, maths=MATHS)
    assert toolkit(made, "import", "--trust").returncode == 0
    file = imported(made, "maths")
    file["tools"][0]["rename"] = "plus"
    made.write("acme/tools/maths.json", json.dumps(file))
    assert toolkit(made, "import", "--trust").stdout == "acme/tools/maths.json: changed\n"
    assert imported(made, "maths")["tools"][0]["rename"] == "plus"
    made.generate()
    assert '"plus"' in made.files()["names.py"].decode()


@pytest.mark.slow
def test_names_that_no_tool_may_have_are_replaced(tmp_path: Path) -> None:
    source = "from pydantic import BaseModel\nclass Größe(BaseModel): pass\nclass Gräße(BaseModel): pass\n"
    settings = '[tool.toolkit.imports.shapes]\nmodels = ["acme.shapes:Größe", "acme.shapes:Gräße"]\nprefix = "s_"\n'
    made = project(tmp_path, settings, shapes=source)
    assert toolkit(made, "import", "--trust").returncode == 0
    one, two = imported(made, "shapes")["tools"]
    assert (one["name"], one["rename"], two["name"]) == ("größe", "s_gr_e", "gräße")
    assert two["rename"].startswith("s_gr_e_") and len(two["rename"]) == len("s_gr_e_") + 6
    made.generate()


@pytest.mark.slow
def test_an_import_makes_the_folder_it_needs(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS, maths=MATHS)
    (tmp_path / "acme/tools/tools.json").unlink()
    (tmp_path / "acme/tools").rmdir()
    assert toolkit(made, "import", "--trust").returncode == 0
    made.generate()


@pytest.mark.slow
def test_two_tools_of_one_name_are_offered_a_prefix(tmp_path: Path) -> None:
    made = project(tmp_path, MATHS_SETTINGS.replace('prefix = "m_"\n', ""), maths=MATHS)
    made.write("acme/tools/add.yaml", "name: add\ninputSchema: {}\n")
    assert toolkit(made, "import", "--trust").returncode == 0
    ran = toolkit(made, "generate")
    assert ran.returncode == 1
    told = "the name 'add' is taken by acme/tools/add.yaml:1:1; add a 'rename' to one of the two, or a 'prefix' to its import"
    assert ran.stderr == f"acme/tools/maths.json:8:7: {told} (/tools/0/name)\n"


@pytest.mark.parametrize("text", ['{"tools": []}', '{"origin": {"name": "other"}, "tools": []}', "[1]"])
@pytest.mark.slow
def test_a_file_of_somebody_elses_is_never_overwritten(tmp_path: Path, text: str) -> None:
    made = project(tmp_path, MATHS_SETTINGS, maths=MATHS)
    made.write("acme/tools/maths.json", text)
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 2
    assert ran.stderr.startswith(
        "acme/tools/maths.json:1:1: [tool.toolkit.imports.maths] stores its specs in this file, "
    )
    assert ran.stderr.endswith("but did not import it; move the file, or rename the import\n")
    assert (tmp_path / "acme/tools/maths.json").read_text() == text


@pytest.mark.parametrize("command", [["import", "--trust"], ["check", "--live", "--trust"]])
@pytest.mark.slow
def test_a_file_that_is_no_json_any_more_is_told_as_what_it_is(tmp_path: Path, command: list[str]) -> None:
    made = project(tmp_path, MATHS_SETTINGS, maths=MATHS)
    assert toolkit(made, "import", "--trust").returncode == 0
    file = tmp_path / "acme/tools/maths.json"
    whole = file.read_text()
    for text, line in ((whole[:20], 3), (f"{whole[:2]}<<<<<<< ours\n{whole[2:]}", 2), ("", 1)):
        file.write_text(text)
        ran = toolkit(made, *command)
        assert ran.returncode == 2 and file.read_text() == text
        assert ran.stderr.startswith(f"acme/tools/maths.json:{line}:")
        assert ": the file of [tool.toolkit.imports.maths] is no longer valid JSON: " in ran.stderr
        assert "; resolve a merge conflict in it, or delete it and run" in ran.stderr


@pytest.mark.parametrize(
    ("settings", "words", "told"),
    [
        ("", [], "the settings have no imports; add a table to pyproject.toml, such as"),
        (
            MATHS_SETTINGS,
            ["math"],
            "there is no import named 'math'. Did you mean 'maths'?",
        ),
    ],
)
@pytest.mark.slow
def test_what_cannot_be_imported_is_told(tmp_path: Path, settings: str, words: list[str], told: str) -> None:
    ran = toolkit(project(tmp_path, settings), "import", "--trust", *words)
    assert ran.returncode == 2 and ran.stderr.startswith(told)


@pytest.mark.parametrize(
    ("source", "entry", "told"),
    [
        ("Query = 3", "acme.shapes:Query", "'acme.shapes:Query' is not a pydantic model ("),
        ("", "acme.shapes:Query", "'acme.shapes:Query' cannot be imported: AttributeError"),
        ("import pydantic, typing\nclass Query(pydantic.BaseModel):\n    f: typing.Callable[[], int]", "acme.shapes:Query", "'acme.shapes:Query' has no JSON Schema: Cannot generate"),
        ("import pydantic\nclass Query(pydantic.RootModel[int]): pass", "acme.shapes:Query", "'inputSchema' must describe an object"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_models_that_are_none(tmp_path: Path, source: str, entry: str, told: str) -> None:
    made = project(tmp_path, f'[tool.toolkit.imports.shapes]\nmodels = ["{entry}"]\n', shapes=source)
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 1 and f": {told}" in ran.stderr, ran.stderr


@pytest.mark.slow
def test_a_long_description_is_not_lost_silently(tmp_path: Path) -> None:
    source = (
        MATHS
        + '\nfrom toolkit import ToolRegistry\nREGISTRY = ToolRegistry()\nREGISTRY.register(add, description_file="add.md")\n'
    )
    made = project(tmp_path, MATHS_SETTINGS.replace("acme.maths", "acme.maths:REGISTRY"), maths=source)
    made.write("acme/add.md", "A long text about ${workspace}.\n")
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 1
    assert (
        "acme.maths:REGISTRY: 'add' has a description file, which an import cannot keep; list its module under"
        in ran.stderr
    )


DOCUMENT = """
openapi: 3.1.0
info: {title: Shop, version: "1"}
servers: [{url: "https://shop.example.org"}]
paths: {/pets: {get: {operationId: pets, responses: {"200": {description: Fine.}}}}}
"""


@pytest.mark.slow
def test_a_document_may_lie_beside_the_project(tmp_path: Path) -> None:
    tmp_path.joinpath("shop").mkdir()
    tmp_path.joinpath("shop/shop.yaml").write_text(DOCUMENT)
    made = project(tmp_path / "mine", '[tool.toolkit.imports.shop]\nopenapi = "../shop/shop.yaml"\n')
    ran = toolkit(made, "import", "--trust")
    assert (ran.returncode, ran.stdout) == (0, "acme/tools/shop.json: new\n  added: pets\n"), ran.stderr


@pytest.mark.parametrize("key", ["openapi", "tools"])
@pytest.mark.slow
def test_a_file_that_is_not_there_is_a_mistake_of_the_settings(tmp_path: Path, key: str) -> None:
    ran = toolkit(project(tmp_path, f'[tool.toolkit.imports.shop]\n{key} = "nope.json"\n'), "import", "--trust")
    told = f": the file 'nope.json' does not exist; give a path relative to pyproject.toml (/tool/toolkit/imports/shop/{key})\n"
    assert ran.returncode == 1 and ran.stderr.endswith(told)
