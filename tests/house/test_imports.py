"""Who may import whom, and who may touch the system: the map in ARCHITECTURE.md, kept true."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit
from tests.projects import REPOSITORY, run

OURS = ("toolkit", "codegen", "generated")

# For each part of the house: what of ours it may import when its modules are loaded.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "toolkit/errors.py": (),
    "toolkit/wire": ("toolkit.errors", "toolkit.wire"),
    "toolkit/guard": ("toolkit.errors", "toolkit.guard"),
    "toolkit/inject": ("toolkit.errors", "toolkit.inject"),
    "toolkit/spec": ("toolkit.errors", "toolkit.guard.permission", "toolkit.spec"),
    "toolkit/runtime": (
        "toolkit.errors",
        "toolkit.wire",
        "toolkit.spec.beside",
        "toolkit.spec.description",
        "toolkit.spec.model",
        "toolkit.spec.names",
        "toolkit.guard",
        "toolkit.inject",
        "toolkit.runtime",
    ),
    "toolkit/builtin": (
        "generated",
        "toolkit.errors",
        "toolkit.wire.content",
        "toolkit.inject.key",
        "toolkit.runtime.output.cache",
        "toolkit.runtime.context.toolkit_context",
        "toolkit.runtime.stores.keys",
        "toolkit.runtime.stores.subagent",
        "toolkit.runtime.stores.todos",
        "toolkit.guard.policy.preview",
        "toolkit.guard.fs.transaction.change",
        "toolkit.builtin",
    ),
    "toolkit/packs": (
        "toolkit.errors",
        "toolkit.wire",
        "toolkit.guard",
        "toolkit.inject",
        "toolkit.runtime",
        "toolkit.packs",
    ),
    "toolkit/adapters": ("toolkit.errors", "toolkit.wire", "toolkit.adapters"),
    "toolkit/cli/app.py": ("toolkit.errors",),
    "toolkit/__init__.py": (),
    "toolkit/__main__.py": ("toolkit.cli.app",),
    "codegen": ("codegen", "toolkit.errors", "toolkit.spec", "toolkit.models.enforce", "toolkit.models.exact"),
    # reads what adapters read already
    "codegen/imports/importers/provider_json.py": (
        "codegen",
        "toolkit.errors",
        "toolkit.spec",
        "toolkit.wire.definition",
        "toolkit.adapters",
    ),
    # judges addresses as the network guard does
    "codegen/imports/freshness.py": (
        "codegen",
        "toolkit.errors",
        "toolkit.spec",
        "toolkit.guard.net.addresses",
        "toolkit.guard.net.hosts",
    ),
    # asks a live server, as the pack does that runs its tools
    "codegen/imports/importers/mcp.py": ("codegen", "toolkit.errors", "toolkit.guard", "toolkit.packs"),
    # runs in a process of its own, beside the code of a project
    "codegen/imports/importers/project_process.py": ("toolkit.errors",),
    "codegen/imports/importers/functions_reader.py": (
        "codegen.imports.importers.project_process",
        "toolkit.errors",
        "toolkit.runtime",
    ),
    "codegen/imports/importers/models_reader.py": ("codegen.imports.importers.project_process",),
    "generated/models": ("toolkit.models.base", "toolkit.wire.content"),
    "generated/__init__.py": (),
    "generated": ("generated", "toolkit.runtime", "toolkit.wire", "toolkit.errors", "toolkit.guard"),
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
TOUCH_THE_SYSTEM = {
    # for a tool, only the guard
    "toolkit/guard",
    # for people at the command line and for specs at build time
    "toolkit/cli/app.py", "toolkit/spec", "codegen",
    # names of paths, and the manifest of our own package
    "toolkit/runtime/context/toolkit_context.py", "toolkit/runtime/catalog/find_generated.py",
    # the private state directory, and the audit log outside every root
    "toolkit/runtime/context/state_directory.py", "toolkit/runtime/stores/todos.py", "toolkit/runtime/cache", "toolkit/runtime/audit/log.py",
}  # fmt: skip


def sources() -> list[Path]:
    return sorted(file for name in OURS for file in (REPOSITORY / name).rglob("*.py"))


def part_of(file: Path, parts: dict[str, tuple[str, ...]] | set[str]) -> str | None:
    path = file.relative_to(REPOSITORY).as_posix()
    fitting = [part for part in parts if path == part or path.startswith(f"{part}/")]
    return max(fitting, key=len, default=None)


def imports(file: Path) -> Iterator[str]:
    """Modules imported when the file is loaded: not those under TYPE_CHECKING, not those inside functions."""
    pending: list[ast.stmt] = list(ast.parse(file.read_text()).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def below(name: str, parents: tuple[str, ...]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


@pytest.mark.parametrize("file", sources(), ids=lambda file: file.relative_to(REPOSITORY).as_posix())
def test_a_module_imports_only_what_its_part_may(file: Path) -> None:
    part = part_of(file, MAY_IMPORT)
    assert part is not None, "a new part of the house needs a row here and in ARCHITECTURE.md"
    wrong = [name for name in imports(file) if below(name, OURS) and not below(name, MAY_IMPORT[part])]
    assert not wrong


def test_the_guard_needs_nothing_but_the_standard_library() -> None:
    for file in (REPOSITORY / GUARD_USES_ONLY_THE_STANDARD_LIBRARY).rglob("*.py"):
        foreign = [
            n
            for n in imports(file)
            if n.partition(".")[0] not in sys.stdlib_module_names and not n.startswith("toolkit.")
        ]
        assert not foreign, file


@pytest.mark.parametrize("file", sources(), ids=lambda file: file.relative_to(REPOSITORY).as_posix())
def test_only_the_guard_touches_the_system_for_a_tool(file: Path) -> None:
    if part_of(file, TOUCH_THE_SYSTEM) is not None:
        return
    assert not {name.partition(".")[0] for name in imports(file)} & SYSTEM
    opened = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Name) and node.id in ("open", "__import__", "eval", "exec")
    ]
    assert not opened


def test_run_time_never_imports_the_generator() -> None:
    for file in sources():
        if file.relative_to(REPOSITORY).parts[0] != "codegen":
            assert not [name for name in imports(file) if below(name, ("codegen",))], file


HEAVY = (
    "mcp",
    "openai",
    "anthropic",
    "typer",
    "rich",
    "yaml",
    "datamodel_code_generator",
    "mypy",
    "asyncio",
    "pydantic",
    "generated",
)


def test_importing_toolkit_loads_nothing_heavy(tmp_path: Path) -> None:
    code = f"import sys, toolkit; print([name for name in {HEAVY} if name in sys.modules])"
    assert run([sys.executable, "-c", code], tmp_path).stdout.strip() == "[]"


def test_a_first_sync_call_loads_no_sdk_no_asyncio_and_no_generator(tmp_path: Path) -> None:
    code = f"""
import sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
toolkit = create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow")))
toolkit.invoke("done", {{"message": "x"}})
print([name for name in {HEAVY[:-2]} if name in sys.modules])
"""
    assert run([sys.executable, "-c", code], tmp_path).stdout.strip() == "[]"


def test_public_names_are_what_checkers_see() -> None:
    public: list[str] = vars(toolkit)["__all__"]
    tree = ast.parse((REPOSITORY / "toolkit" / "__init__.py").read_text())
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(public)
    for name in public:
        assert getattr(toolkit, name) is not None
    assert not hasattr(toolkit, "nothing_of_that_name")


OURS_ABRIDGED = '{"generator": "typed-toolkit", "package": "%s", "tools": [{"name": "%s", "source": "%s"}]}'
SHADOWS: dict[str, dict[str, str]] = {
    "a package": {"generated/__init__.py": ""},
    "a package with a manifest": {"generated/__init__.py": "", "generated/manifest.json": '{"name": "web app"}'},
    "a package with a list": {"generated/__init__.py": "", "generated/manifest.json": "[]"},
    "a package of one's own tools": {
        "generated/__init__.py": "",
        "generated/manifest.json": OURS_ABRIDGED % ("generated", "add", "tools/add.yaml"),
    },
    "a package with a read_file of its own": {
        "generated/__init__.py": "",
        "generated/manifest.json": OURS_ABRIDGED % ("generated", "read_file", "tools/read_file.yaml"),
    },
    "a package that was moved": {
        "generated/__init__.py": "",
        "generated/manifest.json": OURS_ABRIDGED % ("acme", "read_file", "toolkit/builtin/files/read_file.yaml"),
    },
    "a module": {"generated.py": "print('it ran')"},
}


@pytest.mark.parametrize("what", SHADOWS)
def test_what_shadows_our_generated_package_is_named(tmp_path: Path, what: str) -> None:
    for name, text in SHADOWS[what].items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    done = run([sys.executable, "-c", "import toolkit; toolkit.create_agent_toolkit"], tmp_path, check=False)
    place = f"the file {tmp_path}/generated.py" if what == "a module" else f"the folder {tmp_path}/generated"
    assert f"{place} shadows the package 'generated' that typed-toolkit needs; rename it" in done.stderr
    assert "set `package` in [tool.toolkit], for example to 'acme.generated'" in done.stderr
    assert done.stdout == ""
    told = run([sys.executable, "-m", "toolkit", "tools"], tmp_path, check=False)
    assert (told.returncode, told.stderr.count("shadows the package")) == (2, 1)


def test_a_folder_without_init_never_wins_over_our_package(tmp_path: Path) -> None:
    (tmp_path / "generated").mkdir()
    run([sys.executable, "-c", "import toolkit; toolkit.create_agent_toolkit"], tmp_path)


def test_a_module_without_a_spec_in_the_place_of_our_package_is_told(tmp_path: Path) -> None:
    code = (
        "import sys, types; sys.modules['generated'] = types.ModuleType('generated'); import toolkit; toolkit.Toolkit"
    )
    done = run([sys.executable, "-c", code], tmp_path, check=False)
    assert "the module sys.modules['generated'] shadows the package" in done.stderr
