"""``toolkit init``: a project in which everything passes at once, or nothing at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import command_line
from tests.cli.run_main import run_main
from tests.projects import run


@pytest.mark.slow
def test_a_new_project_passes_at_once(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    made = command_line.toolkit(tmp_path, "init", "my-shop", check=True)
    assert made.stdout.startswith("created my-shop: ")
    assert made.stdout.splitlines()[-3:] == [
        "  cd my-shop",
        "  mypy --strict . && pytest",
        "  toolkit invoke count_words --path README.md",
    ]
    folder = tmp_path / "my-shop"
    assert [entry.name for entry in tmp_path.iterdir()] == ["my-shop"]
    assert command_line.toolkit(folder, "generate", check=True).stdout == "my_shop/generated: nothing to do\n"
    assert command_line.toolkit(folder, "check", check=True).stdout == "my_shop/generated: up to date\n"
    assert command_line.toolkit(folder, "lint", check=True).returncode == 0
    assert "no issues found" in run([str(programs / "mypy"), "--strict", "."], folder).stdout
    assert "2 passed" in run([str(programs / "pytest"), "-q"], folder).stdout
    counted = command_line.toolkit(folder, "invoke", "count_words", "--path", "README.md", "--json", check=True)
    assert json.loads(counted.stdout)["content"]["words"] > 10
    wrong = folder / "wrong.py"
    wrong.write_text(
        "from my_shop.generated import Toolkit\ndef f(t: Toolkit) -> None:\n    t.tools.count_words(pth='a')\n"
    )
    checked = run([str(programs / "mypy"), "--strict", "wrong.py"], folder, check=False)
    assert checked.returncode == 1 and "wrong.py:3: error:" in checked.stdout


@pytest.mark.slow
def test_forgotten_generation_is_noticed_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command_line.toolkit(tmp_path, "init", "shop", check=True)
    kept = sorted(file.parent.name for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert kept == ["classes", "generated"]
    assert command_line.toolkit(tmp_path / "shop", "tools", check=True).stderr == ""
    spec = tmp_path / "shop/shop/tools/count_words.yaml"
    spec.write_text(spec.read_text().replace("Count the words", "Count all words"))
    warned = command_line.toolkit(tmp_path / "shop", "tools", check=True).stderr
    assert warned == "shop/generated is older than its specs: run `toolkit generate`\n"
    command_line.toolkit(tmp_path / "shop", "generate", check=True)
    kept = sorted(file.parent.name for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert kept == ["classes", "generated"]  # the same files: the first run was of this project


@pytest.mark.slow
def test_an_empty_folder_is_filled_and_a_script_reads_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Tools.One").mkdir()
    made = run_main(tmp_path, ["init", "Tools.One", "--json"], capsys)
    told = json.loads(made.out)
    assert (made.code, told["folder"], told["package"], told["generated"]) == (0, "Tools.One", "tools_one", True)
    files = {file.relative_to(tmp_path / "Tools.One").as_posix() for file in (tmp_path / "Tools.One").rglob("*")}
    assert {*told["files"]} < files
    assert {"tools_one/tools/count_words.yaml", ".github/workflows/check.yml", ".gitignore"} < {*told["files"]}
    again = run_main(tmp_path, ["init", "Tools.One"], capsys)
    assert (again.code, "is not empty" in again.err) == (2, True)


INTERRUPTED = """
import os, signal, sys

def interrupt(event, arguments):
    if event == "os.rename" and arguments[1].endswith("shop"):
        assert os.path.isfile(os.path.join(arguments[0], "pyproject.toml"))
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
"""


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    done = command_line.toolkit(tmp_path, "init", "shop", first=INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


WITHOUT_GENERATOR = """
import sys
from toolkit.cli.app import main

sys.modules["datamodel_code_generator"] = None  # as if it was not installed
sys.argv = ["toolkit", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
def test_without_the_generator_the_next_step_is_printed(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", WITHOUT_GENERATOR, "init", "shop"], tmp_path)
    assert done.stdout.splitlines()[-3:] == [
        "  cd shop",
        "  pip install 'typed-toolkit[codegen]'",
        "  toolkit generate",
    ]
    assert not (tmp_path / "shop" / "shop" / "generated").exists()
    for command in ("generate", "check"):
        refused = run([sys.executable, "-c", WITHOUT_GENERATOR, command], tmp_path / "shop", check=False)
        words = "generation needs datamodel-code-generator: pip install 'typed-toolkit[codegen]'\n"
        assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", words)


WAITING = """
import os, signal, sys

class Input:
    class buffer:
        def read():
            os.kill(os.getpid(), signal.SIGINT)

sys.stdin = Input
"""


@pytest.mark.slow
def test_ctrl_c_while_a_command_waits_ends_with_one_line(tmp_path: Path) -> None:
    done = command_line.toolkit(tmp_path, "invoke", "done", "-", first=WAITING)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
