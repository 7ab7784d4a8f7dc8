"""What an agent's process imports after a tool has written modules into a workspace that is on ``sys.path``.

An agent is a program of its own: it builds a toolkit, lets a command plant modules, and goes on. Planted modules write
their names to a file. The control is the same agent without our finder.
"""

from __future__ import annotations

import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guard.trusted.environments import ASKS, LIBRARY, MISSING, make_environment
from tests.guard.ways import needs
from tests.projects import REPOSITORY, Project, tool

BUILD = """
import os, sys
from toolkit import Network, SecurityPolicy, ToolkitContext, create_agent_toolkit

WORKSPACE, MARKER, URL = (os.environ[name] for name in ("WORKSPACE", "MARKER", "URL"))
network = Network(allow_addresses=["127.0.0.0/8"])
context = ToolkitContext(WORKSPACE, SecurityPolicy(default="allow"), network=network)
toolkit = create_agent_toolkit(context)


def remove_finder():
    if "CONTROL" in os.environ:
        from toolkit.runtime import late_imports as finder
        sys.meta_path.remove(finder._finder)
        finder._finder.remembered._folders.clear()


remove_finder()
"""
# Every name that Python, our packages or theirs could ask for, as a module and as a package; not those of the user.
PLANT = """
code = '''
import os, sys
sources = "PLANTED = %r; open(os.environ.get('MARKER', '/dev/null'), 'a').write(PLANTED + ' ')"
names = [*sys.stdlib_module_names, "yaml", "pydantic", "typing_extensions", "jsonschema_rs", "mcp", "annotated_types", "org"]
for name in names:
    os.makedirs(name, exist_ok=True)
    for file in (name + ".py", name + "/__init__.py"):
        with open(file, "w") as out:
            out.write("import os; " + sources % name)
'''
done = toolkit.invoke("exec_command", {"command": [sys.executable, "-c", code]})
assert done.content.exit_code == 0, done.content
"""
USE = """
toolkit.invoke("write_file", {"path": "notes/a.txt", "content": "one two"})
toolkit.invoke("edit", {"path": "notes/a.txt", "old_string": "one", "new_string": "three"})
toolkit.invoke("read_file", {"path": "notes/a.txt"})
toolkit.invoke("grep", {"pattern": "three", "path": "notes"})
toolkit.invoke("glob", {"pattern": "notes/*.txt"})
toolkit.invoke("list", {"path": "notes"})
toolkit.invoke("bash", {"command": "echo x"})
assert "hello" in str(toolkit.invoke("webfetch", {"url": URL}).content)
toolkit.invoke("todowrite", {"todos": []})
patch = chr(10).join(["*** Begin Patch", "*** Add File: notes/b.txt", "+x", "*** End Patch", ""])
toolkit.invoke("apply_patch", {"patch": patch})
toolkit.get_allowed_tools()
import pickle, xml.dom.minidom, sqlite3, unittest.mock, wave  # what other code of the process may need later
import asyncio
from toolkit import create_async_agent_toolkit
asyncio.run(create_async_agent_toolkit(context).invoke("bash", {"command": "echo x"}))
print("worked")
"""
AGENT = BUILD + PLANT + USE


@dataclass(frozen=True)
class Start:
    """How the agent is started: its interpreter, arguments and directory, and whether the path is by a variable."""

    arguments: Callable[[Path], list[str]]
    inside: bool = True
    by_variable: bool = False
    environment_inside: bool = False


STARTS = {
    "a script in the workspace": Start(lambda ws: [str(ws / "agent.py")], inside=False),
    "a module in the workspace": Start(lambda ws: ["-m", "agent"]),
    "code in the workspace": Start(lambda ws: ["-c", AGENT]),
    "the workspace in a variable": Start(lambda ws: [str(ws.parent / "agent.py")], inside=False, by_variable=True),
    "a relative variable": Start(lambda ws: [str(ws.parent / "agent.py")], by_variable=True),
    "the environment in the workspace": Start(lambda ws: [str(ws / "agent.py")], environment_inside=True),
}

MARKS = {name: pytest.mark.whole for name in STARTS if name not in ("a script in the workspace", "a relative variable")}
"""In one of the two others Python itself puts the workspace on the path, and as a full path."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>hello</p>")

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def own_packages() -> list[str]:
    """Where our dependencies are installed, and our own repository."""
    return [str(REPOSITORY), *(path for path in sys.path if path.endswith("site-packages"))]


def run_agent(
    base: Path, url: str, agent: str, start: Start, *, control: bool = False, folder: str = "ws"
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run an agent; returns how it went, and which planted modules ran in its process."""
    workspace = base / folder
    workspace.mkdir(exist_ok=True)
    for place in (base, workspace):
        (place / "agent.py").write_text(agent)
    python = sys.executable
    path = [] if start.environment_inside else own_packages()
    if start.environment_inside:
        python = make_environment(workspace / ".venv")
        lines = "\n".join(own_packages())
        (workspace / f".venv/{LIBRARY}/site-packages/ours.pth").write_text(lines)
    if start.by_variable:
        path.insert(0, "." if start.inside else str(workspace))
    environment = {**os.environ, "WORKSPACE": str(workspace), "MARKER": str(base / "marker"), "URL": url}
    environment |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"CONTROL": "1"} if control else {}
    arguments = [agent if argument == AGENT else argument for argument in start.arguments(workspace)]
    done = subprocess.run(
        [python, *arguments],
        env=environment,
        cwd=workspace if start.inside else "/",
        capture_output=True,
        text=True,
        timeout=600,
    )
    marker = base / "marker"
    return done, set(marker.read_text().split()) if marker.exists() else set()


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in STARTS])
def test_no_module_that_a_tool_wrote_is_imported_as_ours(tmp_path: Path, url: str, name: str) -> None:
    needs("full")
    done, ran = run_agent(tmp_path, url, AGENT, STARTS[name])
    assert (done.stdout, ran) == ("worked\n", set()), done.stderr
    assert "is on sys.path" in done.stderr


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "a script in the workspace" else pytest.mark.whole) for name in STARTS],
)
def test_without_the_finder_it_is(tmp_path: Path, url: str, name: str) -> None:
    needs("full")
    assert run_agent(tmp_path, url, AGENT, STARTS[name], control=True)[1] != set()


WARNINGS = """
import sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
rules = {"nothing": {"default": "deny", "tools": {"read_file": "allow"}}, "all": {"default": "allow"}}
for name in sys.argv[2:]:
    create_agent_toolkit(ToolkitContext(sys.argv[1], SecurityPolicy(**rules[name])))
"""


@pytest.mark.parametrize(
    ("allowed", "inside", "warnings"),
    [(["all", "all"], True, 1), (["nothing"], True, 0), (["nothing", "all"], True, 1), (["all"], False, 0)],
)
def test_one_warning_if_tools_may_write_on_the_path(
    tmp_path: Path, allowed: list[str], inside: bool, warnings: int
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(own_packages())}
    folder = tmp_path if inside else Path("/")
    command = [sys.executable, "-c", WARNINGS, str(tmp_path), *allowed]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"tools may write in {os.path.realpath(tmp_path)}, which is on sys.path") == warnings


OPTIONAL = f"""
done = toolkit.invoke("bash", {{"command": "mkdir {MISSING}; echo 'open(__import__(\\"os\\").environ[\\"MARKER\\"], \\"a\\").write(\\"{MISSING} \\")' > {MISSING}/__init__.py"}})
sys.modules.pop("{ASKS}", None)
import {ASKS}
print("worked")
"""


@pytest.mark.parametrize("control", [False, True])
def test_what_is_missing_stays_missing_for_ours(tmp_path: Path, url: str, control: bool) -> None:
    needs("full")
    agent = BUILD + OPTIONAL
    done, ran = run_agent(tmp_path, url, agent, STARTS["a script in the workspace"], control=control)
    assert (done.stdout, ran) == ("worked\n", {MISSING} if control else set()), done.stderr


def mark(name: str) -> str:
    """Code that records that it ran."""
    return f"open(__import__('os').environ['MARKER'], 'a').write('{name} ')"


ENTRY_POINT = """
for path, text in {{
    "evil-1.dist-info/METADATA": "Name: evil\\nVersion: 1\\n",
    "evil-1.dist-info/entry_points.txt": "[opentelemetry_propagator]\\ntracecontext = evil:Evil\\n",
    "evil.py": {code!r},
}}.items():
    toolkit.invoke("write_file", {{"path": path, "content": text}})
os.environ["OTEL_PROPAGATORS"] = "tracecontext"
import opentelemetry.propagate
print("worked")
"""


@pytest.mark.parametrize("control", [False, True])
def test_a_dependency_does_not_load_a_plug_in_from_the_workspace(tmp_path: Path, url: str, control: bool) -> None:
    """The MCP SDK uses OpenTelemetry, which loads the first entry point of that name on the path."""
    pytest.importorskip("opentelemetry")
    agent = BUILD + ENTRY_POINT.format(code=mark("evil"))
    done, ran = run_agent(tmp_path, url, agent, STARTS["a script in the workspace"], control=control)
    assert ran == ({"evil"} if control else set())
    assert control or done.stdout == "worked\n", done.stderr


COMPILED = """
toolkit.invoke("write_file", {{"path": "numpy/__init__.py", "content": {code!r}}})
from langsmith._internal._serde import dumps_json
dumps_json(object())
print("worked")
"""


@pytest.mark.parametrize("control", [False, True])
def test_compiled_code_of_a_dependency_does_not_import_from_the_workspace(
    tmp_path: Path, url: str, control: bool
) -> None:
    """Langsmith calls orjson, which is compiled and imports numpy to see whether a value is one of its types."""
    pytest.importorskip("langsmith")
    if importlib.util.find_spec("numpy") is not None:
        pytest.skip("numpy is installed here, so it is found in a trusted place")
    agent = BUILD + COMPILED.format(code=mark("numpy"))
    done, ran = run_agent(tmp_path, url, agent, STARTS["a script in the workspace"], control=control)
    assert ran == ({"numpy"} if control else set()), done.stderr
    assert control or done.stdout == "worked\n", done.stderr


NAMED_LIKE_A_MODULE = """
sys.path.insert(0, os.path.dirname(WORKSPACE))
toolkit.invoke("write_file", {{"path": "__init__.py", "content": {code!r}}})
import wave, importlib
print("worked", importlib.import_module("wave").__name__)
"""


@pytest.mark.parametrize("control", [False, True])
def test_a_workspace_named_like_a_module_is_not_that_module(tmp_path: Path, url: str, control: bool) -> None:
    """Its parent is on the path and no tool may write there, but the directory itself is the tools'."""
    agent = BUILD + NAMED_LIKE_A_MODULE.format(code=mark("wave"))
    start = STARTS["the workspace in a variable"]
    done, ran = run_agent(tmp_path, url, agent, start, control=control, folder="wave")
    assert "worked wave" in done.stdout, done.stderr
    assert ran == ({"wave"} if control else set())


FINDER_REMOVED = """
toolkit.invoke("write_file", {{"path": "wave.py", "content": {code!r}}})
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "TrustedFinder"]
elsewhere = os.path.join(os.path.dirname(MARKER), "other")
os.mkdir(elsewhere)
create_agent_toolkit(ToolkitContext(elsewhere, SecurityPolicy(default="allow")))
import wave
print("worked")
"""


def test_the_next_toolkit_puts_a_removed_finder_back_with_all_it_knew(tmp_path: Path, url: str) -> None:
    agent = BUILD + FINDER_REMOVED.format(code=mark("wave"))
    done, ran = run_agent(tmp_path, url, agent, STARTS["a script in the workspace"])
    assert (done.stdout, ran) == ("worked\n", set()), done.stderr


NEIGHBOURS = """
toolkit.invoke("bash", {"command": "mkdir -p later space/part && echo X = 1 > later/__init__.py && echo X = 2 > space/part/mine.py"})
toolkit.invoke("write_file", {"path": "scripts/__init__.py", "content": "X = 3"})
import later, space.part.mine, scripts
print(later.X, space.part.mine.X, scripts.X)
import importlib
print(importlib.import_module("own.late").X, own.X)
importlib.reload(own)
"""


def test_a_users_own_modules_are_imported_as_usual(tmp_path: Path, url: str) -> None:
    """Also late, also as namespace packages, and if a stray directory of that name is installed."""
    needs("full")
    (tmp_path / "ws/own").mkdir(parents=True)
    (tmp_path / "ws/own/__init__.py").write_text("X = 4\n")
    (tmp_path / "ws/own/late.py").write_text("X = 5\n")
    (tmp_path / "lib/scripts").mkdir(parents=True)
    agent = f"import sys, own; sys.path.append({str(tmp_path / 'lib')!r})\n" + BUILD + NEIGHBOURS
    done, _ = run_agent(tmp_path, url, agent, STARTS["a script in the workspace"])
    assert done.stdout.split() == ["1", "2", "3", "5", "4"], done.stderr


# --- generated packages in the workspace

PROJECT = BUILD.replace("from toolkit import Network, SecurityPolicy, ToolkitContext, create_agent_toolkit", """
from toolkit import Network
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, bind
answer = lambda args, ctx: {"rows": [], "total": len(args.query)}
PACK = bind(first=answer, later=answer, third=answer)
import toolkit.builtin
""").replace("create_agent_toolkit(context)", "create_agent_toolkit(context, packs=[PACK, 'toolkit.builtin:BUILTIN'])")  # fmt: skip
MARK = "open(__import__('os').environ['MARKER'], 'a').write('%s ')"
ATTACKS = {
    "a changed module": "cat planted.py >> acme/generated/models/later.py",
    "a package in its place": "mkdir acme/generated/models/later && cp planted.py acme/generated/models/later/__init__.py",
    "another file under its name": "mv planted.py acme/generated/models/later.py",
    "another package": "mv acme/generated acme/old && cp -r acme/old acme/generated && cat planted.py >> acme/generated/models/later.py",
    "a link": "mv acme/generated/models acme/m && ln -s ../m acme/generated/models && cat planted.py >> acme/m/later.py",
    "planted bytecode": (
        "mkdir -p acme/generated/models/__pycache__ && mv planted.pyc "
        f"acme/generated/models/__pycache__/later.{sys.implementation.cache_tag}.pyc"
    ),
}
CALL_LATER = """
done = toolkit.invoke("bash", {"command": os.environ["ATTACK"]})
assert done.content.exit_code == 0, done.content
print(toolkit.invoke("later", {"query": "abc"}).content.total)
print(toolkit.get_allowed_tools()[-1].name)
"""
COMPILE = """
import marshal, importlib.util, sys
code = compile(open("acme/generated/models/later.py").read() + "\\n" + sys.argv[1], "later.py", "exec")
flags = (1).to_bytes(4, "little")  # by hash, and not to be compared with the source
open("planted.pyc", "wb").write(importlib.util.MAGIC_NUMBER + flags + bytes(8) + marshal.dumps(code))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    made = Project(folder, [tool(name) for name in ("first", "later", "third")], include=["toolkit.generated"])
    made.generate()
    (folder / "planted.py").write_text(f"\n{MARK % 'later'}\n")
    subprocess.run([sys.executable, "-c", COMPILE, MARK % "later"], cwd=folder, check=True)
    return folder


@pytest.mark.sample
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_generated_package_stays_what_it_was(
    tmp_path: Path, project: Path, url: str, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("full")
    monkeypatch.setenv("ATTACK", ATTACKS[attack])
    start = STARTS["a script in the workspace"]
    for name, expected in (("guarded", set[str]()), ("control", {"later"})):
        shutil.copytree(project, tmp_path / name / "ws")
        agent = PROJECT + CALL_LATER
        done, ran = run_agent(tmp_path / name, url, agent, start, control=name == "control")
        assert ran == expected, (name, done.stderr)
        if name == "guarded":
            assert done.stdout.split()[0] == "3", done.stderr


TWO_TOOLKITS = """
first = toolkit
from toolkit import create_agent_toolkit as create_builtin
second = create_builtin(ToolkitContext(WORKSPACE, SecurityPolicy(default="allow")))
remove_finder()
second.invoke("bash", {"command": os.environ["ATTACK"]})
print(first.invoke("later", {"query": "abc"}).content.total)
"""


@pytest.mark.parametrize("control", [False, True])
def test_a_package_is_remembered_when_a_later_toolkit_may_write_it(
    tmp_path: Path, project: Path, url: str, monkeypatch: pytest.MonkeyPatch, control: bool
) -> None:
    """The first toolkit works elsewhere; the second has other tools, and works where the package is."""
    needs("full")
    monkeypatch.setenv("ATTACK", ATTACKS["a changed module"])
    shutil.copytree(project, tmp_path / "ws")
    (tmp_path / "elsewhere").mkdir()
    elsewhere = "ToolkitContext(os.path.join(os.path.dirname(MARKER), 'elsewhere')"
    agent = PROJECT.replace("ToolkitContext(WORKSPACE", elsewhere).replace("\nremove_finder()", "") + TWO_TOOLKITS
    done, ran = run_agent(tmp_path, url, agent, STARTS["a script in the workspace"], control=control)
    assert (done.stdout, ran) == ("3\n", {"later"} if control else set()), done.stderr


@pytest.mark.parametrize("inside", [True, False])
def test_a_package_in_an_archive_that_tools_may_write_is_imported_whole(
    tmp_path: Path, project: Path, url: str, inside: bool
) -> None:
    (tmp_path / "ws").mkdir()
    archive = shutil.make_archive(str(tmp_path / ("ws/app" if inside else "app")), "zip", project)
    agent = (
        f"import sys; sys.path.insert(0, {archive!r})\n{PROJECT}\nprint('acme.generated.models.later' in sys.modules)"
    )
    done, _ = run_agent(tmp_path, url, agent, STARTS["the workspace in a variable"])
    assert done.stdout == f"{inside}\n", done.stderr


SAME_NAME = """
toolkit.invoke("later", {"query": "abc"})
for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
    del sys.modules[name]
sys.path.insert(0, os.environ["OTHER"])
import acme.generated.models.third as third
print(third.__file__.startswith(os.environ["OTHER"]))
"""


def test_another_package_of_the_same_name_is_not_mistaken_for_it(
    tmp_path: Path, project: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("full")
    shutil.copytree(project, tmp_path / "ws")
    shutil.copytree(project, tmp_path / "other")
    monkeypatch.setenv("OTHER", str(tmp_path / "other"))
    done, _ = run_agent(tmp_path, url, PROJECT + SAME_NAME, STARTS["a script in the workspace"])
    assert done.stdout == "True\n", done.stderr


def test_a_manifest_that_a_tool_edits_changes_no_definition(
    tmp_path: Path, project: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("full")
    monkeypatch.setenv("ATTACK", "sed -i 's/Tool later/EVIL/' acme/generated/manifest.json")
    agent = PROJECT + CALL_LATER + "print([d.description for d in toolkit.get_allowed_tools() if d.name == 'later'])"
    for name, text in (("guarded", "Tool later."), ("control", "EVIL.")):
        shutil.copytree(project, tmp_path / name / "ws")
        start = STARTS["a script in the workspace"]
        done, _ = run_agent(tmp_path / name, url, agent, start, control=name == "control")
        assert text in done.stdout, done.stderr
