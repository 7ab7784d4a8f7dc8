"""Who may import whom, and who may touch the system: the map in ARCHITECTURE.md, kept true."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.projects import REPOSITORY, run

OURS = ("toolkit", "codegen", "generated")
"""Folders of ours; the last two are links in the first, and imported from there."""

# For each part of the house: what of ours it may import when its modules are loaded.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "toolkit/errors.py": (),
    "toolkit/visible.py": (),
    "toolkit/toml_places.py": (),
    # schemas, the models that accept what they accept, and tool specs: lines and columns are found in TOML too
    "toolkit/schema": (
        "toolkit.errors",
        "toolkit.guard.permission",
        "toolkit.lazy_exports",
        "toolkit.schema",
        "toolkit.toml_places",
        "toolkit.visible",
        "toolkit.wire.call",
    ),
    "toolkit/wire": ("toolkit.errors", "toolkit.schema", "toolkit.lazy_exports", "toolkit.wire"),
    # what a fork starts again, what has run out, what belongs to the user
    "toolkit/forks.py": (),
    "toolkit/system_faults.py": ("toolkit.errors",),
    "toolkit/user_state.py": ("toolkit.errors",),
    "toolkit/guard": (
        "toolkit.errors",
        "toolkit.forks",
        "toolkit.guard",
        "toolkit.lazy_exports",
        "toolkit.system_faults",
        "toolkit.toml_places",
        "toolkit.user_state",
        "toolkit.visible",
    ),
    # on top of the guard: what is convenient, locks and transactions
    "toolkit/files": (
        "toolkit.errors",
        "toolkit.files",
        "toolkit.guard",
        "toolkit.system_faults",
        "toolkit.user_state",
        "toolkit.visible",
    ),
    # on top of the guard: git in its sandbox, HTTP over its connections
    "toolkit/git.py": ("toolkit.errors", "toolkit.guard", "toolkit.visible"),
    "toolkit/web.py": ("toolkit.errors", "toolkit.guard.network", "toolkit.system_faults"),
    "toolkit/inject.py": ("toolkit.errors", "toolkit.forks", "toolkit.inject"),
    "toolkit/runtime": (
        "toolkit.errors",
        "toolkit.schema",
        "toolkit.lazy_exports",
        "toolkit.wire",
        "toolkit.files",
        "toolkit.forks",
        "toolkit.git",
        "toolkit.guard",
        "toolkit.inject",
        "toolkit.runtime",
        "toolkit.system_faults",
        "toolkit.user_state",
        "toolkit.visible",
        "toolkit.web",
    ),
    "toolkit/builtin": (
        "toolkit.generated",
        "toolkit.errors",
        "toolkit.wire.content",
        "toolkit.inject",
        "toolkit.runtime.workers",
        "toolkit.runtime.packs",
        "toolkit.runtime.stores.outputs",
        "toolkit.runtime.tool_context",
        "toolkit.runtime.context",
        "toolkit.runtime.stores.keys",
        "toolkit.runtime.stores.todos",
        "toolkit.guard.policy.preview",
        "toolkit.files.transaction",
        "toolkit.guard.process.guard",
        "toolkit.builtin",
        "toolkit.visible",
    ),
    "toolkit/packs": (
        "toolkit.errors",
        "toolkit.schema",
        "toolkit.lazy_exports",
        "toolkit.wire",
        "toolkit.forks",
        "toolkit.guard",
        "toolkit.inject",
        "toolkit.runtime",
        "toolkit.packs",
        "toolkit.user_state",
        "toolkit.visible",
        "toolkit.web",
    ),
    "toolkit/adapters": ("toolkit.errors", "toolkit.schema", "toolkit.wire", "toolkit.adapters", "toolkit.visible"),
    "toolkit/loop": (
        "toolkit.errors",
        "toolkit.lazy_exports",
        "toolkit.wire",
        "toolkit.runtime",
        "toolkit.adapters.history",
        "toolkit.loop",
    ),
    # Ray is imported by one of its functions only
    "toolkit/fleet": (
        "toolkit.errors",
        "toolkit.fleet",
        "toolkit.guard.permission",
        "toolkit.guard.policy",
        "toolkit.lazy_exports",
        "toolkit.loop",
        "toolkit.runtime",
        "toolkit.wire",
    ),
    # the SDK of MCP, Starlette, uvicorn and anyio are its third parties
    "toolkit/serve": (
        "toolkit.__version__",
        "toolkit.errors",
        "toolkit.forks",
        "toolkit.guard",
        "toolkit.runtime",
        "toolkit.serve",
        "toolkit.visible",
        "toolkit.wire",
    ),
    "toolkit/cli": ("toolkit.errors", "toolkit.cli", "toolkit.schema", "toolkit.visible"),
    # a page of its own over a toolkit; it shows tools as the command line does
    "toolkit/playground": (
        "toolkit.errors",
        "toolkit.wire",
        "toolkit.guard.policy",
        "toolkit.runtime",
        "toolkit.adapters",
        "toolkit.serve",
        "toolkit.cli.signature",
        "toolkit.playground",
    ),
    # runs inside mypy only
    "toolkit/mypy": ("toolkit.mypy",),
    # used by tests of other people; the plugin is loaded by every run of pytest
    "toolkit/testing": (
        "toolkit.errors",
        "toolkit.lazy_exports",
        "toolkit.runtime.signals",
        "toolkit.runtime.stores.waiting",
        "toolkit.stores",
        "toolkit.testing",
        "toolkit.visible",
        "toolkit.wire",
    ),
    "toolkit/testing/plugin.py": (),
    "toolkit/__init__.py": ("toolkit.lazy_exports",),
    "toolkit/__main__.py": ("toolkit.cli",),
    "codegen": ("toolkit.codegen", "toolkit.errors", "toolkit.schema"),
    "codegen/__init__.py": ("toolkit.lazy_exports",),
    # `python -m toolkit.codegen` is the same command line
    "codegen/__main__.py": ("toolkit.cli",),
    # shows settings to a person, and keeps what was confirmed in the private state directory
    "codegen/imports/trust.py": (
        "toolkit.codegen",
        "toolkit.errors",
        "toolkit.runtime.state_directory",
        "toolkit.visible",
    ),
    # reads what adapters read already
    "codegen/imports/provider_json.py": (
        "toolkit.codegen",
        "toolkit.errors",
        "toolkit.schema",
        "toolkit.wire.definition",
        "toolkit.adapters",
    ),
    # judges addresses as the network guard does
    "codegen/imports/settings.py": (
        "toolkit.codegen",
        "toolkit.errors",
        "toolkit.schema",
        "toolkit.guard.network.hosts",
    ),
    # a policy decides which tools a profile may ever call
    "codegen/package/profiles.py": (
        "toolkit.codegen",
        "toolkit.errors",
        "toolkit.guard.permission",
        "toolkit.guard.policy",
        "toolkit.schema.problems",
    ),
    # asks a live server, as the pack does that runs its tools
    "codegen/imports/mcp.py": (
        "toolkit.codegen",
        "toolkit.errors",
        "toolkit.guard",
        "toolkit.packs",
        "toolkit.runtime.context",
        "toolkit.runtime.state_directory",
    ),
    # runs in a process of its own, beside the code of a project
    "codegen/imports/project_process.py": ("toolkit.errors", "toolkit.runtime"),
    # the one door: its own package, and what the toolkit keeps stable for generated code
    "generated": ("toolkit.generated", "toolkit.generated_support"),
    "toolkit/generated_support.py": ("toolkit.lazy_exports",),
    "toolkit/lazy_exports.py": (),
    # lazy names of the rooms behind it
    "toolkit/stores.py": ("toolkit.lazy_exports",),
}
GUARD_USES_ONLY_THE_STANDARD_LIBRARY = "toolkit/guard"
SYSTEM = {
    "os",
    "pathlib",
    "shutil",
    "subprocess",
    "socket",
    "tempfile",
    "io",
    "ctypes",
    "signal",
    "pty",
    "fcntl",
    "mmap",
}
OPENS = {"open", "__import__", "eval", "exec"}
TOUCH_THE_SYSTEM = {
    # for a tool, only the guard
    "toolkit/guard",
    # descriptors of this process that no fork keeps, names of errors, and the environment of the user
    "toolkit/forks.py", "toolkit/system_faults.py", "toolkit/user_state.py",
    # for people at the command line and for specs at build time
    "toolkit/cli", "toolkit/schema/spec.py", "toolkit/schema/spec_files.py", "toolkit/schema/places.py", "toolkit/schema/checks.py", "codegen",
    # the pipes of processes in the sandbox, and what runs inside it
    "toolkit/runtime/programs/process.py", "toolkit/runtime/programs/inside.py", "toolkit/runtime/programs/inside_start.py",
    "toolkit/runtime/programs/inside_checker.py", "toolkit/runtime/programs/check.py",
    # the server's own socket and signals, its policy file, and names of folders
    "toolkit/serve/http.py", "toolkit/serve/transports.py",
    "toolkit/serve/server.py", "toolkit/serve/setup.py",
    # bytes in memory
    "toolkit/fleet/messages.py",
    # a digest of its own files
    "toolkit/mypy/__init__.py",
    # workspaces and transcripts of tests
    "toolkit/testing",
    # generated packages, read before a tool can change them
    "toolkit/runtime/late_imports.py",
    # names of paths, and the manifest of our own package
    "toolkit/runtime/context.py",
    # runs a module's own list of imports, without importing anything
    "toolkit/lazy_exports.py",
    # the private state directory, and the audit log outside every root
    "toolkit/files/journal.py", "toolkit/files/locks.py",
    "toolkit/runtime/state_directory.py", "toolkit/runtime/stores/private_files.py", "toolkit/runtime/stores/output_files.py", "toolkit/runtime/audit",
}  # fmt: skip


def sources() -> list[Path]:
    return sorted(file for name in OURS for file in (REPOSITORY / name).rglob("*.py"))


def part_of(file: Path, parts: dict[str, tuple[str, ...]] | set[str]) -> str | None:
    path = file.relative_to(REPOSITORY).as_posix()
    fitting = [part for part in parts if path == part or path.startswith(f"{part}/")]
    return max(fitting, key=len, default=None)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def imports(file: Path) -> tuple[str, ...]:
    """Modules imported when the file is loaded: not those under TYPE_CHECKING, not those inside functions."""
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[str]:
    pending: list[ast.stmt] = list(tree_of(file).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            generated = file.is_relative_to(REPOSITORY / "generated")
            assert node.level == 0 or generated, f"{file}: imports are written in full"
            module = f"toolkit.generated.{node.module}" if node.level else node.module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def below(name: str, parents: tuple[str, ...]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def test_a_module_imports_only_what_its_part_may() -> None:
    wrong: dict[str, object] = {}
    for file in sources():
        part = part_of(file, MAY_IMPORT)
        if part is None:
            wrong[str(file)] = "a new part of the house needs a row here and in ARCHITECTURE.md"
            continue
        names = [name for name in imports(file) if below(name, ("toolkit",)) and not below(name, MAY_IMPORT[part])]
        if names:
            wrong[str(file)] = names
    assert wrong == {}


def test_the_guard_needs_nothing_but_the_standard_library() -> None:
    for file in (REPOSITORY / GUARD_USES_ONLY_THE_STANDARD_LIBRARY).rglob("*.py"):
        foreign = [
            n
            for n in imports(file)
            if n.partition(".")[0] not in sys.stdlib_module_names and not n.startswith("toolkit.")
        ]
        assert not foreign, file


def test_the_guard_never_imports_what_is_built_on_it() -> None:
    """Not even inside a function, or for type checkers: it can be read and audited without the rest of the house."""
    guard = REPOSITORY / "toolkit" / "guard"
    for file in guard.rglob("*.py"):
        if file == guard / "__init__.py":  # lists the names of what is built on it
            continue
        names = [node.module or "" for node in ast.walk(tree_of(file)) if isinstance(node, ast.ImportFrom)]
        ours = [name for name in names if below(name, ("toolkit",))]
        assert [name for name in ours if not below(name, MAY_IMPORT["toolkit/guard"])] == [], file


def test_only_the_guard_touches_the_system_for_a_tool() -> None:
    wrong: dict[str, object] = {}
    for file in sources():
        if part_of(file, TOUCH_THE_SYSTEM) is not None:
            continue
        modules = {name.partition(".")[0] for name in imports(file)} & SYSTEM
        names = {node.id for node in ast.walk(tree_of(file)) if isinstance(node, ast.Name)}
        if modules or names & OPENS:
            wrong[str(file)] = modules | (names & OPENS)
    assert wrong == {}


def test_nothing_imports_the_mypy_plugin() -> None:
    for file in sources():
        if file.relative_to(REPOSITORY).parts[:2] != ("toolkit", "mypy"):
            assert not [name for name in imports(file) if below(name, ("mypy", "toolkit.mypy"))], file


def test_nothing_imports_what_is_for_tests() -> None:
    for file in sources():
        if file.relative_to(REPOSITORY).parts[:2] != ("toolkit", "testing"):
            assert not [name for name in imports(file) if below(name, ("pytest", "toolkit.testing"))], file


def test_run_time_never_imports_the_generator() -> None:
    for file in sources():
        if file.relative_to(REPOSITORY).parts[0] != "codegen":
            assert not [name for name in imports(file) if below(name, ("toolkit.codegen",))], file


def test_only_the_commands_import_the_servers() -> None:
    servers = ("toolkit.serve", "toolkit.playground", "starlette", "uvicorn")
    for file in sources():
        if file.relative_to(REPOSITORY).parts[:2] not in (("toolkit", "serve"), ("toolkit", "playground")):
            assert not [name for name in imports(file) if below(name, servers)], file


def test_nothing_imports_ray_when_it_is_loaded() -> None:
    for file in sources():
        assert not [name for name in imports(file) if below(name, ("ray",))], file


HEAVY = (
    "mcp",
    "openai",
    "anthropic",
    "typer",
    "rich",
    "yaml",
    "datamodel_code_generator",
    "mypy",
    "ray",
    "asyncio",
    "pydantic",
    "toolkit.generated",
)


def test_importing_toolkit_loads_two_modules_of_ours(tmp_path: Path) -> None:
    code = "import sys, toolkit; print(*sorted(name for name in sys.modules if name.startswith('toolkit')))"
    assert run([sys.executable, "-c", code], tmp_path).stdout.split() == ["toolkit", "toolkit.lazy_exports"]


def test_importing_toolkit_loads_nothing_heavy(tmp_path: Path) -> None:
    code = f"import sys, toolkit; print([name for name in {HEAVY} if name in sys.modules])"
    assert run([sys.executable, "-c", code], tmp_path).stdout.strip() == "[]"


FIRST_CALL = """
import os, sys
os.environ["XDG_STATE_HOME"] = os.path.abspath("state")  # what another process has left is cleaned up by the next one
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
from pydantic import BaseModel
class OfAnotherProgram(BaseModel):  # loads what pydantic needs for any model
    number: int
before = set(sys.modules)
toolkit = create_agent_toolkit(ToolkitContext("workspace", SecurityPolicy(default="allow")))
{call}
print(*sorted(set(sys.modules) - before))
"""
CALLS = {
    "none": ("", ""),
    "done": ('toolkit.invoke("done", {"message": "x"}).text()', "toolkit.builtin.session"),
    "read_file": ('toolkit.invoke("read_file", {"path": "a.txt"}).text()', "toolkit.builtin.files"),
}
# For what no tool of these needs: other packages, other parts of ours, and what is only for unusual calls.
NOT_FOR_A_FIRST_CALL = (
    *HEAVY[:-2],
    *("bz2", "concurrent", "difflib", "json", "logging", "queue", "subprocess", "tomllib"),
    "pydantic.root_model",
    *("toolkit.adapters", "toolkit.cli", "toolkit.codegen", "toolkit.loop", "toolkit.packs", "toolkit.schema"),
    *("toolkit.git", "toolkit.guard.network", "toolkit.guard.review", "toolkit.web"),
    *("toolkit.guard.files.changes", "toolkit.guard.files.write"),
    *("toolkit.files.journal", "toolkit.files.locks", "toolkit.files.steps"),
    "toolkit.files.transaction",
    *("toolkit.guard.policy.commands", "toolkit.guard.policy.touched", "toolkit.guard.policy.preview"),
    *("toolkit.guard.process.guard", "toolkit.guard.process.guard"),
    *("toolkit.runtime.audit", "toolkit.runtime.functions", "toolkit.runtime.stores", "toolkit.runtime.output.cache"),
    *("toolkit.runtime.approvals", "toolkit.runtime.async_", "toolkit.runtime.arguments"),
    *("toolkit.wire.content", "toolkit.wire.definition", "toolkit.wire.query"),
)


@pytest.mark.parametrize("name", CALLS)
def test_a_first_call_loads_only_what_its_tool_needs(tmp_path: Path, name: str) -> None:
    # Not the directory of the program, which is on sys.path: that would be warned about.
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    call, package = CALLS[name]
    loaded = run([sys.executable, "-c", FIRST_CALL.format(call=call)], tmp_path).stdout.split()

    assert [module for module in loaded if below(module, NOT_FOR_A_FIRST_CALL)] == []
    folders = {".".join(module.split(".")[:3]) for module in loaded if below(module, ("toolkit.builtin",))}
    assert folders - {"toolkit.builtin", "toolkit.builtin.text", package} == set()
    models = [module for module in loaded if below(module, ("toolkit.generated.models",))]
    assert models == ([] if not call else ["toolkit.generated.models", f"toolkit.generated.models.{name}"])


@pytest.mark.parametrize("name", ["codegen", "generated"])
@pytest.mark.parametrize("kind", ["package", "module"])
@pytest.mark.slow
def test_a_users_own_packages_of_these_names_are_not_disturbed(tmp_path: Path, name: str, kind: str) -> None:
    file = tmp_path / {"package": f"{name}/__init__.py", "module": f"{name}.py"}[kind]
    file.parent.mkdir(exist_ok=True)
    file.write_text("MINE = True\n")
    code = f"import {name} as mine, toolkit.{name}, toolkit; print(mine.MINE, toolkit.create_agent_toolkit.__module__)"
    assert run([sys.executable, "-c", code], tmp_path).stdout.split() == ["True", "toolkit.generated.facade"]


@pytest.mark.slow
def test_nothing_imports_the_generator_or_the_built_ins_by_their_bare_names() -> None:
    """Two names for one module would be two modules, with two classes each."""
    files = [file for name in (*OURS, "tests", "examples", "benchmarks") for file in (REPOSITORY / name).rglob("*.py")]
    for file in files:
        text = file.read_text()
        if not re.search(r"(\bimport|\bfrom|,)[\s\\(]*(codegen|generated)\b", text):  # parsing and looking take longer
            continue
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert not [name for name in names if below(name, ("codegen", "generated"))], (file, node)
