"""The wheel in its own environment: a user's project is generated, checked, type-checked and run without the source tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.mypy_cache import copy_first_cache
from tests.projects import DOWNSTREAM, REPOSITORY
from tests.wheel.installed import Installed, build, install, own_environment

pytestmark = pytest.mark.xdist_group("wheel")

IMPORTED = ("library", "maths", "shapes")
"""Spec files of the small project that `toolkit import` writes: provider JSON, functions, models."""
ADDED = Path(__file__).with_name("project")
"""Added to the small project: a spec as a server lists it, with a keyword that only the run-time validator checks."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = install(sys.executable, wheel, tmp_path_factory.mktemp("wheel"))
    _lend_dependencies(made)
    write_project(made.project)
    return made


def _lend_dependencies(made: Installed) -> None:
    """Uses the locked versions of the environment that runs the tests, since there is no network to fetch them.

    Python searches a folder named in a .pth file, but does not read the .pth files in it. So the source tree, which is
    installed there through a .pth file, stays out.
    """
    (made.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")


def write_project(project: Path) -> None:
    """The small project of a user, with nothing generated or imported yet."""
    made = ("generated", "__pycache__", *(f"{name}.json" for name in IMPORTED))
    shutil.copytree(DOWNSTREAM, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*made))
    shutil.copytree(ADDED, project, dirs_exist_ok=True)


def test_a_project_needs_only_the_wheel(installed: Installed, tmp_path: Path) -> None:
    check_project(installed, tmp_path)


@pytest.mark.whole  # tests/docs has mypy read all pages in such an environment
def test_a_project_is_type_checked_with_only_the_wheel(installed: Installed, tmp_path: Path) -> None:
    # mypy uses what it knows of dependencies. The toolkit is in another place here, so mypy reads all of it.
    copy_first_cache(installed.project / ".mypy_cache")
    copy_first_cache(installed.project / "cache-of-the-plugin", plugin=True)
    check_types(installed, tmp_path)


def check_project(installed: Installed, tmp_path: Path) -> None:
    """The project is imported, generated, checked and run, and nothing of it comes from the checkout."""
    assert installed.run("toolkit", "import", "--trust").stdout.count(": new") == len(IMPORTED)
    for name in IMPORTED:
        spec = Path("acme", "tools", f"{name}.json")
        assert (installed.project / spec).read_bytes() == (DOWNSTREAM / spec).read_bytes()
    assert "files changed" in installed.run("toolkit", "generate").stdout
    assert installed.run("toolkit", "check").stdout == "acme/generated: up to date\n"
    (tmp_path / "note.txt").write_text("a note\n")
    printed = installed.run("python", "agent.py", str(tmp_path)).stdout.splitlines()
    assert printed[:2] == ["5 a note 6 ['a', 'cat']", "INVALID_TOOL_ARGUMENTS"]
    assert all(Path(file).is_relative_to(installed.environment) for file in printed[2:5])
    assert str(REPOSITORY) not in printed[5:]


def check_types(installed: Installed, tmp_path: Path) -> None:
    """mypy finds nothing in the project that ``check_project`` has made, without our plugin and with it."""
    installed.run("python", "-m", "mypy", "--strict", "agent.py", "acme")
    plugin = tmp_path / "mypy.ini"
    plugin.write_text("[mypy]\nplugins = toolkit.mypy\n")
    with_plugin = [f"--config-file={plugin}", "--cache-dir=cache-of-the-plugin"]
    installed.run("python", "-m", "mypy", "--strict", *with_plugin, "agent.py", "acme")


def test_the_wheel_holds_what_runs_and_nothing_else(installed: Installed) -> None:
    packages = installed.packages
    ours = {entry.name for entry in packages.iterdir() if entry.is_dir()}
    assert {name for name in ours if name.isidentifier() and not name.startswith("_")} == {"toolkit"}
    for package in ("toolkit", "codegen", "generated"):
        committed = subprocess.run(
            ["git", "ls-files", package], cwd=REPOSITORY, check=True, capture_output=True, text=True
        ).stdout.split()
        place = packages if package == "toolkit" else packages / "toolkit"
        links = ("toolkit/codegen", "toolkit/generated")
        missing = [file for file in committed if file not in links and not (place / file).is_file()]
        assert missing == []


PROGRAM = """
from codegen.steps import STEPS
from generated import WORDS
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.codegen import __doc__ as generator
from toolkit.generated import DoneOutput

policy = SecurityPolicy(default="deny", tools={"done": "allow"})
with create_agent_toolkit(ToolkitContext(workspace=".", policy=policy)) as toolkit:
    done: DoneOutput = toolkit.invoke("done", {"message": WORDS[0] * STEPS}).content
    print(done.message, bool(generator))
"""
MISTAKES = PROGRAM.replace('"message": WORDS', '"massage": WORDS').replace("WORDS[0] * STEPS", "WORDS[0] + STEPS")


@pytest.fixture(scope="module")
def own_folders(installed: Installed) -> Installed:
    """A project with a package ``generated`` and a folder ``codegen`` of its own."""
    project = installed.project.with_name("own_folders")
    files = {
        "generated/__init__.py": 'WORDS: list[str] = ["mine"]\n',
        "codegen/steps.py": "STEPS: int = 2\n",
        "program.py": PROGRAM,
        "mistakes.py": MISTAKES,
        # Only with a settings file, however small, does pyrefly run its full set of checks.
        "pyrefly.toml": 'python-version = "3.11"\n',
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return Installed(installed.environment, project)


def test_a_project_with_its_own_generated_and_codegen_folders_runs(own_folders: Installed) -> None:
    assert own_folders.run("python", "program.py").stdout == "minemine True\n"
    assert "read_file" in own_folders.run("toolkit", "tools").stdout


CHECKERS: dict[str, tuple[str, ...]] = {
    "mypy": ("{python}", "-m", "mypy", "--strict", "--config-file="),
    "pyright": ("{ours}/pyright", "--pythonpath", "{python}"),
    "pyrefly": ("{ours}/pyrefly", "check", "--python-interpreter-path={python}"),
    "ty": ("{ours}/ty", "check", "--python={python}"),
}


@pytest.mark.whole
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_project_with_its_own_generated_and_codegen_folders_is_type_checked(
    own_folders: Installed, checker: str
) -> None:
    if checker == "mypy":
        copy_first_cache(own_folders.project / ".mypy_cache")
    python, ours = own_folders.environment / "bin" / "python", Path(sys.executable).parent
    command = [part.format(python=python, ours=ours) for part in CHECKERS[checker]]

    def check(file: str) -> subprocess.CompletedProcess[str]:
        folder = own_folders.project
        return subprocess.run(
            [*command, file], cwd=folder, env=own_environment(), capture_output=True, text=True, timeout=600
        )

    clean = check("program.py")
    assert clean.returncode == 0, clean.stdout + clean.stderr
    # The check finds mistakes: a misspelt key, and a wrong use of one of the project's own names.
    wrong = check("mistakes.py")
    assert wrong.returncode == 1 and "mistakes.py" in wrong.stdout, wrong.stdout + wrong.stderr
