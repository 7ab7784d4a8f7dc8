"""The pytest plugin, in runs of pytest of their own: fixtures, marker, transcripts, and what a failing test shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import toolkit
from tests.forks import relayed
from tests.projects import run

pytestmark = pytest.mark.slow


class Suite:
    """A folder of tests, run by a pytest without our own settings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:langsmith_plugin -p no:anyio\n")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def run(self, *options: str, code: int = 0, in_fork: bool = True) -> str:
        words = ("pytest", "-q", "-p", "no:cacheprovider", *options)
        command = relayed(*words) if in_fork else [sys.executable, "-m", *words]
        done: subprocess.CompletedProcess[str] = run(command, self.root, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_the_fixture_without_any_settings(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
import pytest
import toolkit as module
from toolkit import ToolNotAllowed, Toolkit

def test_a_workspace(toolkit: Toolkit, toolkit_workspace):
    toolkit.tools.write_file(path="a.txt", content="hello")
    assert (toolkit_workspace / "a.txt").read_text() == "hello"

def test_it_is_empty_again_and_has_no_network(toolkit: Toolkit):
    assert toolkit.tools.list().entries == []
    with pytest.raises(ToolNotAllowed):
        toolkit.tools.webfetch(url="http://127.0.0.1/")

def test_the_module_of_the_same_name_is_there():
    assert module.__version__
""",
    )
    assert "3 passed" in suite.run()


def test_the_marker_and_overridden_fixtures(suite: Suite) -> None:
    suite.write(
        "conftest.py",
        """
import pytest

@pytest.fixture
def toolkit_package():
    return "acme.generated"
""",
    )
    suite.write(
        "test_it.py",
        """
import pytest
from acme.generated import AcmeToolkit, SecurityPolicy
from toolkit import ToolNotAllowed

pytestmark = pytest.mark.toolkit(files={"a.txt": "module", "b/c.bin": bytes([0, 1])})

@pytest.mark.toolkit(policy={"read_file": "allow"}, mode="read-only")
def test_marked(toolkit: AcmeToolkit, toolkit_workspace):
    assert "module" in toolkit.invoke("read_file", {"path": "a.txt"}).text()
    assert (toolkit_workspace / "b" / "c.bin").read_bytes() == bytes([0, 1])
    with pytest.raises(ToolNotAllowed):
        toolkit.tools.add(a=1, b=2)

@pytest.mark.toolkit(files={"a.txt": "test"}, policy="deny")
def test_the_nearest_marker_wins(toolkit: AcmeToolkit, toolkit_workspace):
    assert (toolkit_workspace / "a.txt").read_text() == "test"
    assert toolkit.get_allowed_tools() == []

@pytest.mark.toolkit(package="toolkit.generated", packs=["toolkit.builtin:BUILTIN"])
def test_package_and_packs(toolkit):
    assert toolkit.tools.done(message="x").message == "x"
    assert not hasattr(toolkit.tools, "add")

class TestOverridden:
    @pytest.fixture
    def toolkit_policy(self):
        return SecurityPolicy(tools={"add": "allow"})

    def test_own_tool(self, toolkit: AcmeToolkit):
        assert toolkit.tools.add(a=1, b=2).sum == 3
        assert [tool.name for tool in toolkit.get_allowed_tools()] == ["add"]
""",
    )
    assert "4 passed" in suite.run()


def test_a_misspelt_keyword_of_the_marker(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        "import pytest\n@pytest.mark.toolkit(polcy='deny')\ndef test_it(toolkit): pass\n"
        "@pytest.mark.toolkit('deny')\ndef test_that(toolkit): pass\n",
    )
    shown = suite.run(code=1)
    assert "the marker toolkit has no keyword 'polcy'; did you mean 'policy'?" in shown
    assert "the marker toolkit takes keywords only, not 'deny'" in shown


def test_turns_that_are_left_over_fail_the_test(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        """
from toolkit import run

def test_it(toolkit, scripted_model):
    model = scripted_model("hello", "never said")
    assert run(model, toolkit, "hi").answer == "hello"

def test_swallowed(toolkit, scripted_model):
    model = scripted_model()
    try:
        run(model, toolkit, "hi")
    except AssertionError:
        pass
""",
    )
    shown = suite.run(code=1)
    assert "2 failed" in shown and "error" not in shown.splitlines()[-1]
    assert "1 of 2 turns of the script were not played; the next is turn 2: stop: 'never said'" in shown
    assert "the script ends after turn 0, but the model was asked for turn 1" in shown


TRANSCRIPT = """
import pytest
from toolkit import run
from toolkit.testing import call

@pytest.mark.toolkit(files={"notes.txt": "hello\\n"})
@pytest.mark.parametrize("path", ["notes.txt"])
def test_it(toolkit, toolkit_workspace, scripted_model, transcript, path):
    model = scripted_model(call("read_file", path=path), f"It is in {toolkit_workspace}.")
    transcript.check(run(model, toolkit, "What do my notes say?"))
"""


def test_a_transcript_is_written_read_and_compared(suite: Suite) -> None:
    suite.write("test_it.py", TRANSCRIPT)
    file = suite.root / "transcripts" / "test_it" / "test_it-notes.txt.txt"
    missing = suite.run(code=1)
    assert f"there is no transcript {file}; run pytest --update-transcripts" in missing
    suite.run("--update-transcripts")
    assert file.read_text() == (Path(__file__).parent / "expected_transcript.txt").read_text()
    suite.run()
    suite.write("test_it.py", TRANSCRIPT.replace("my notes", "these notes"))
    differs = suite.run(code=1)
    assert "the conversation differs from its transcript; if it should, run pytest --update-transcripts" in differs
    assert "-    What do my notes say?" in differs and "+    What do these notes say?" in differs


PACKS = """
import pytest
from pathlib import Path
from toolkit.testing import PackLaws

@pytest.fixture
def toolkit_package():
    return "acme.generated"

class TestAcme(PackLaws):
    tools = ["add", "count-words"]
    calls = {"add": [{"a": 1, "b": 2}], "count-words": [{"text": "a b"}]}
    failing_calls = {"fail": [{"how": "expected"}]}

class TestFiles(PackLaws):
    tools = ["done"]
    specs = SPECS
"""


def test_laws_of_packs(suite: Suite) -> None:
    suite.write("test_it.py", PACKS.replace("SPECS", repr(str(Path(toolkit.__file__).with_name("builtin") / "files"))))
    shown = suite.run()
    assert "failed" not in shown and "passed" in shown


def test_a_pack_that_breaks_a_law(suite: Suite) -> None:
    suite.write("test_it.py", PACKS.replace("SPECS", "None").replace('"how": "expected"', '"how": "unexpected"'))
    shown = suite.run(code=1)
    assert "raise ToolFailed for what is expected to fail" in shown


def test_pytest_starts_without_loading_anything_of_ours(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        "import sys\n"
        "def test_it():\n"
        "    ours = sorted(name for name in sys.modules if name.partition('.')[0] in ('toolkit', 'pydantic'))\n"
        "    assert ours == ['toolkit', 'toolkit.lazy_exports', 'toolkit.testing', 'toolkit.testing.plugin']\n",
    )
    assert "1 passed" in suite.run(in_fork=False)
