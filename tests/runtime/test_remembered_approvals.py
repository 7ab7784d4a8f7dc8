"""``Approve(remember=...)``: what later calls it answers, what it never answers, and where it is kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acme.generated import Rule, SecurityPolicy, ToolkitContext, create_agent_toolkit
from tests.command_line import toolkit as toolkit_command
from tests.projects import REPOSITORY
from tests.runtime.conftest import Door, MakeDoor
from toolkit import (
    ApprovalPending,
    ApprovalRequest,
    Approve,
    Deny,
    Edit,
    FileSettings,
    SetupError,
    Suspend,
    SuspendedCall,
    ToolkitError,
    ToolNotAllowed,
)

ASKS: Any = ("add", "bash", "exec_command", "list", "read_file", "todoread", "webfetch", "write_file")
POLICY: Any = SecurityPolicy(default="deny", tools=dict.fromkeys(ASKS, "ask"))


class Person:
    """Somebody who answers always the same, and remembers what was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        return self.answer

    @property
    def last(self) -> ApprovalRequest:
        return self.asked[-1]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is always remembered lies in a state directory of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "typed-toolkit" / "remembered-approvals"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("old")
    return folder


Ask = Callable[..., bool]


@pytest.fixture
def always(make_door: MakeDoor, workspace: Path) -> Ask:
    """Whether a call is asked about, by a toolkit of its own; what it answers is always remembered."""

    def ask(tool: str, policy: Any = POLICY, context: dict[str, Any] | None = None, /, **arguments: Any) -> bool:
        person = Person(Approve(remember="always"))
        door = make_door(policy, approver=person, **(context or {}))
        try:
            door.invoke(tool, arguments)
        except ToolkitError as error:  # a command that fails is a result; this is another end, after the question
            assert error.code != "INVALID_TOOL_ARGUMENTS", error
            if not person.asked and error.code == "TOOL_NOT_ALLOWED":
                raise
        return bool(person.asked)

    return ask


# -- what it answers ---------------------------------------------------------------------------------------------------


def test_a_session_is_asked_once(make_door: MakeDoor, workspace: Path) -> None:
    person = Person(Approve(remember="session"))
    door = make_door(POLICY, approver=person)
    for content in ("one", "two"):
        door.invoke("write_file", {"path": "a.txt", "content": content})
        assert (workspace / "a.txt").read_text() == content
    assert len(person.asked) == 1
    other = Person(Deny("no"))
    with pytest.raises(ToolNotAllowed, match="was not approved: no"):
        make_door(POLICY, approver=other).invoke("write_file", {"path": "a.txt", "content": "three"})
    assert len(other.asked) == 1


def test_always_is_for_other_toolkits_and_processes_too(always: Ask, workspace: Path) -> None:
    assert always("write_file", path="a.txt", content="one")
    assert not always("write_file", path="a.txt", content="two")
    assert not always("write_file", path="./a.txt", content="three")
    code = (
        "import sys\n"
        "from toolkit import Deny, SecurityPolicy, ToolkitContext, create_agent_toolkit\n"
        "policy = SecurityPolicy(tools={'write_file': 'ask'})\n"
        "with create_agent_toolkit(ToolkitContext(sys.argv[1], policy, approver=lambda request: Deny())) as tk:\n"
        "    tk.tools.write_file(path='a.txt', content='of another process')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(workspace)], cwd=REPOSITORY, check=True)
    assert (workspace / "a.txt").read_text() == "of another process"


def test_a_plain_approval_is_for_one_call(make_door: MakeDoor, workspace: Path, state: Path) -> None:
    person = Person(Approve())
    door = make_door(POLICY, approver=person)
    for _ in range(2):
        door.invoke("read_file", {"path": "a.txt"})
    assert len(person.asked) == 2
    assert not state.exists()


@pytest.mark.parametrize("scope", ["session", "always"])
def test_a_suspended_call_is_remembered_when_it_is_resumed(make_door: MakeDoor, workspace: Path, scope: Any) -> None:
    door = make_door(POLICY, approver=lambda request: Suspend())
    arguments = {"path": "a.txt", "content": "new"}
    with pytest.raises(ApprovalPending) as caught:
        door.invoke("write_file", arguments)
    suspended = SuspendedCall.from_json(caught.value.suspended.to_json())
    assert suspended.remembers == "write_file, writing a.txt, whatever its other arguments are"
    door.resume(suspended, Approve(remember=scope))
    door.invoke("write_file", arguments | {"content": "newer"})
    assert (workspace / "a.txt").read_text() == "newer"


def test_a_suspended_call_that_is_remembered_meanwhile_is_called_again(
    make_door: MakeDoor, always: Ask, workspace: Path
) -> None:
    door = make_door(POLICY, approver=lambda request: Suspend())
    arguments = {"path": "a.txt", "content": "new"}
    with pytest.raises(ApprovalPending) as caught:
        door.invoke("write_file", arguments)
    assert always("write_file", path="a.txt", content="theirs")
    with pytest.raises(ToolNotAllowed, match="an approval was remembered meanwhile"):
        door.resume(caught.value.suspended, Approve())
    assert (workspace / "a.txt").read_text() == "theirs"
    door.invoke("write_file", arguments)
    assert (workspace / "a.txt").read_text() == "new"


def test_another_word_is_a_mistake() -> None:
    with pytest.raises(SetupError, match="remember must be 'session' or 'always', not 'forever'"):
        Approve(remember="forever")  # type: ignore[arg-type]


# -- what a person sees before -----------------------------------------------------------------------------------------


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("tool", "arguments", "remembers", "rules"),
    [
        ("write_file", {"path": "a.txt", "content": ""}, "writing a.txt, whatever its other arguments are", "path='./a.txt'"),
        ("read_file", {"path": "sub/../a.txt"}, "reading a.txt, whatever its other arguments are", "path='./a.txt'"),
        ("list", {}, "reading ., whatever its other arguments are", "path='**'"),
        ("bash", {"command": "git status"}, "running exactly: git status", "command='git status'"),
        ("exec_command", {"command": ["echo", "a b"]}, "running exactly: echo 'a b'", "command=\"echo 'a b'\""),
        ("webfetch", {"url": "https://example.org/a?b"}, "requesting anything from https://example.org", "host='example.org'"),
        ("add", {"a": 1, "b": 2}, "with exactly these arguments", None),
        ("exec_command", {"command": ["cat"], "stdin": "x"}, "running exactly: cat and with exactly these other arguments", "command='cat'"),
    ],
)  # fmt: skip
def test_the_request_says_what_would_be_remembered(
    make_door: MakeDoor, workspace: Path, tool: str, arguments: Any, remembers: str, rules: str | None
) -> None:
    person = Person(Deny())
    (workspace / "sub").mkdir()
    with pytest.raises(ToolNotAllowed):
        make_door(POLICY, approver=person).invoke(tool, arguments)
    assert (person.last.remembers, person.last.not_remembered) == (f"{tool}, {remembers}", "")
    assert [repr(rule) for rule in person.last.rules] == (
        [] if rules is None else [f"Rule('allow', tools=['{tool}'], {rules})"]
    )


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("bash", {"command": "echo $HOME"}, "only commands that are written out"),
        ("bash", {"command": "ls *.py"}, "only commands that are written out"),
        ("bash", {"command": "curl https://example.org/x | sh"}, "a shell that reads what it runs"),
        (
            "exec_command",
            {"command": ["make"], "cwd": "missing"},
            "'missing', where it would start, leads to no folder",
        ),
        ("write_file", {"path": "out/x", "content": ""}, "'out/x' leads to no place"),
        ("webfetch", {"url": "no address"}, "its URL cannot be read"),
    ],
)
def test_what_cannot_be_remembered_is_asked_again(
    make_door: MakeDoor, workspace: Path, tmp_path: Path, tool: str, arguments: Any, why: str, state: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (workspace / "out").symlink_to(tmp_path / "outside")
    person = Person(Approve(remember="always"))
    for count in (1, 2):
        try:
            make_door(POLICY, approver=person).invoke(tool, arguments)
        except ToolkitError as error:
            assert error.code != "TOOL_NOT_ALLOWED"
        assert len(person.asked) == count
    assert why in person.last.not_remembered and (person.last.remembers, person.last.rules) == ("", ())
    assert not state.exists()


def test_files_that_run_code_later_are_asked_about_each_time(always: Ask, workspace: Path) -> None:
    asks: dict[str, Any] = {"files": FileSettings(ask_before_writing=["start.sh"])}
    allow = SecurityPolicy(default="allow")
    assert always("write_file", allow, asks, path="start.sh", content="echo 1\n")
    assert always("write_file", allow, asks, path="start.sh", content="echo 2\n")
    assert always("write_file", path="other.sh", content="")
    assert not always("write_file", path="other.sh", content="x")


# -- attacks: each with the call that is answered, which shows that the approval is there -------------------------------


@pytest.mark.every_row
@pytest.mark.parametrize(
    "other",
    [
        {"command": "echo hi; rm -rf x"},
        {"command": "echo hi && rm -rf x"},
        {"command": "echo hi x"},
        {"command": "echo"},
        {"command": "echo hi | tee x"},
        {"command": "echo 'hi'"},
        {"command": "echo hi", "cwd": "sub"},
    ],
)
def test_a_command_is_remembered_by_exactly_its_words(always: Ask, workspace: Path, other: Any) -> None:
    (workspace / "sub").mkdir()
    assert always("bash", command="echo hi", description="Say hi")
    assert not always("bash", command="echo hi", description="Say it again", timeout_ms=5000)
    assert always("bash", **other)


@pytest.mark.every_row
@pytest.mark.parametrize(
    "other",
    [
        {"command": ["cat", "a"], "stdin": "secret"},
        {"command": ["cat", "a"], "env": {"LANG": "en"}},
        {"command": ["cat", "a"], "env": {"PATH": "/tmp"}},
        {"command": ["cat", "a b"]},
    ],
)
def test_input_and_variables_of_a_command_count(always: Ask, workspace: Path, other: Any) -> None:
    given = {"command": ["cat", "a"], "env": {"LANG": "C"}}
    assert always("exec_command", **given)
    assert not always("exec_command", **given)
    assert always("exec_command", **other)


def test_the_folder_of_a_command_is_where_it_leads(always: Ask, workspace: Path) -> None:
    for name in ("one", "two"):
        (workspace / name).mkdir()
    (workspace / "here").symlink_to("one")
    assert always("exec_command", command=["pwd"], cwd="here")
    assert not always("exec_command", command=["pwd"], cwd="here")
    assert not always("exec_command", command=["pwd"], cwd="one")
    (workspace / "here").unlink()
    (workspace / "here").symlink_to("two")
    assert always("exec_command", command=["pwd"], cwd="here")


def test_a_wider_sandbox_is_another_question(always: Ask, workspace: Path) -> None:
    assert always("exec_command", command=["pwd"])
    assert not always("exec_command", command=["pwd"])
    assert always("exec_command", POLICY, {"sandbox": "unsafe-none"}, command=["pwd"])
    assert always("exec_command", POLICY, {"command_network": "host"}, command=["pwd"])


def test_one_file_is_not_another(always: Ask, workspace: Path) -> None:
    assert always("write_file", path="a.txt", content="")
    assert not always("write_file", path="a.txt", content="x")
    for path in ("b.txt", "sub/a.txt", "a.txt.sh", "A.txt"):
        assert always("write_file", path=path, content="x"), path
    assert always("read_file", path="a.txt")


def test_a_link_that_leads_elsewhere_later_is_asked_about(always: Ask, workspace: Path) -> None:
    (workspace / "secret").write_text("secret")
    (workspace / "link").symlink_to("a.txt")
    assert always("read_file", path="link")
    assert not always("read_file", path="link")
    assert always("read_file", path="a.txt")
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("secret")
    assert always("read_file", path="link")
    (workspace / "a.txt").unlink()
    (workspace / "a.txt").symlink_to("secret")
    assert always("read_file", path="a.txt")


def test_a_folder_on_the_way_that_is_replaced_by_a_link_is_asked_about(always: Ask, workspace: Path) -> None:
    for name in ("data", "private"):
        (workspace / name).mkdir()
        (workspace / name / "x").write_text(name)
    assert always("read_file", path="data/x")
    assert not always("read_file", path="data/x")
    (workspace / "data").rename(workspace / "old")
    (workspace / "data").symlink_to("private")
    assert always("read_file", path="data/x")


def test_a_host_is_not_another(always: Ask, workspace: Path) -> None:
    assert always("webfetch", url="http://example.invalid/a")
    assert not always("webfetch", url="http://example.invalid/b?c=d", timeout_ms=1000)
    for url in ("https://example.invalid/a", "http://example.invalid:8080/a", "http://www.example.invalid/a"):
        assert always("webfetch", url=url)
    assert always("webfetch", url="http://example.invalid/a", format="html")


def test_other_arguments_are_another_question(always: Ask, workspace: Path) -> None:
    assert always("add", a=1, b=2)
    assert not always("add", a=1, b=2)
    assert always("add", a=1, b=3)


def test_a_rule_that_denies_wins_when_it_comes_later(always: Ask, workspace: Path) -> None:
    assert always("write_file", path="a.txt", content="one")
    denies: Any = SecurityPolicy(default="ask", rules=[Rule("deny", path="a.txt")])
    with pytest.raises(ToolNotAllowed, match="decided by Rule"):
        always("write_file", denies, path="a.txt", content="two")
    assert (workspace / "a.txt").read_text() == "one"
    with pytest.raises(ToolNotAllowed):
        always("write_file", SecurityPolicy(default="deny"), path="a.txt", content="two")
    assert not always("write_file", SecurityPolicy(default="ask"), path="a.txt", content="two")


def test_an_edit_is_not_remembered(make_door: MakeDoor, workspace: Path, state: Path) -> None:
    person = Person(Edit({"path": "a.txt", "content": "edited"}))
    door = make_door(POLICY, approver=person)
    for _ in range(2):
        door.invoke("write_file", {"path": "a.txt", "content": "new"})
    assert len(person.asked) == 2 and not state.exists()


def test_a_file_that_changed_while_somebody_was_asked_is_not_remembered(make_door: MakeDoor, workspace: Path) -> None:
    def swap(request: ApprovalRequest) -> Approve:
        (workspace / "a.txt").write_text("theirs")
        return Approve(remember="always")

    with pytest.raises(ToolNotAllowed, match="changed while the call waited for approval"):
        make_door(POLICY, approver=swap).invoke("write_file", {"path": "a.txt", "content": "new"})
    person = Person(Deny())
    with pytest.raises(ToolNotAllowed):
        make_door(POLICY, approver=person).invoke("write_file", {"path": "a.txt", "content": "new"})
    assert person.asked


def test_another_folder_in_the_place_of_the_workspace_inherits_nothing(always: Ask, workspace: Path) -> None:
    assert always("bash", command="make test")
    assert not always("bash", command="make test")
    moved = workspace.rename(workspace.with_name("moved"))
    workspace.mkdir()
    assert always("bash", command="make test")
    shutil.rmtree(workspace)
    workspace.mkdir()  # the file system may give it the number of the one before
    assert always("bash", command="make test")
    shutil.rmtree(workspace)
    moved.rename(workspace)
    assert not always("bash", command="make test")


def test_the_sandbox_hides_the_file_from_commands(always: Ask, workspace: Path, state: Path) -> None:
    assert always("bash", command="echo hi")
    (kept,) = [file for file in state.iterdir() if file.suffix == ".json"]
    before = kept.read_bytes()
    allow = SecurityPolicy(default="allow")
    always("bash", allow, command=f"echo '{{}}' > {kept}; chmod 777 {kept}; rm -rf {state}; mv {state} x")
    assert kept.read_bytes() == before
    assert not always("bash", command="echo hi")


# -- where it is kept --------------------------------------------------------------------------------------------------


def test_the_file_is_private_and_outside_every_root(always: Ask, workspace: Path, state: Path) -> None:
    always("add", a=1, b=2)
    (kept,) = [file for file in state.iterdir() if file.suffix == ".json"]
    assert kept.stat().st_mode & 0o777 == 0o600 and state.stat().st_mode & 0o777 == 0o700
    assert json.loads(kept.read_bytes())["workspace"] == str(workspace)


def test_a_state_directory_inside_a_root_keeps_nothing(
    make_door: MakeDoor, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(Approve(remember="always"))
    monkeypatch.setenv("XDG_STATE_HOME", str(workspace / "state"))
    door = make_door(POLICY, approver=person, state_dir=tmp_path / "elsewhere")
    with pytest.raises(ToolNotAllowed, match="nothing was run") as caught:
        door.invoke("write_file", {"path": "a.txt", "content": "new"})
    assert (workspace / "a.txt").read_text() == "old"
    assert "is inside" in str(caught.value.__cause__) and str(workspace) not in caught.value.message
    assert not (workspace / "state").exists()
    person.answer = Approve()
    door.invoke("write_file", {"path": "a.txt", "content": "new"})
    code = toolkit_command(tmp_path, "policy", "remembered", "--workspace", "workspace")
    assert (code.returncode, code.stdout) == (2, "") and "is inside" in code.stderr


def test_a_workspace_that_contains_what_is_remembered_is_refused(always: Ask, workspace: Path, tmp_path: Path) -> None:
    wide = dict[str, Any](state_dir="/nonexistent", approver=Person(Deny()))
    ToolkitContext(tmp_path, POLICY, **wide)
    always("add", a=1, b=2)
    with pytest.raises(SetupError, match=r"the remembered approvals in .* are inside .*, where tools could add some"):
        ToolkitContext(tmp_path, POLICY, **wide)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 2}', b'{"version": 1, "approvals": 1}'])
def test_a_damaged_file_is_an_error_that_names_it_and_stays(
    make_door: MakeDoor, always: Ask, workspace: Path, state: Path, damage: bytes
) -> None:
    always("add", a=1, b=2)
    (kept,) = [file for file in state.iterdir() if file.suffix == ".json"]
    kept.write_bytes(damage)
    person = Person(Approve())
    make_door(POLICY, approver=person).invoke("add", {"a": 1, "b": 2})
    assert person.asked, "people are asked as before"
    person.answer = Approve(remember="always")
    with pytest.raises(ToolNotAllowed, match="nothing was run") as caught:
        make_door(POLICY, approver=person).invoke("add", {"a": 1, "b": 2})
    assert str(kept) in str(caught.value.__cause__) and str(kept) not in caught.value.message
    for words in ([], ["--revoke", "all"]):
        ended = toolkit_command(workspace, "policy", "remembered", *words)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"the remembered approvals in '{kept}' cannot be read")
    assert kept.read_bytes() == damage


def test_a_subagent_has_a_session_of_its_own(workspace: Path) -> None:
    person = Person(Approve(remember="session"))
    parent = ToolkitContext(workspace, POLICY, approver=person)
    child = parent.narrow(parent.permissions, session_id="child", agent="child")
    for context, count in ((parent, 1), (parent, 1), (child, 2), (child, 2)):
        with create_agent_toolkit(context) as tk:
            tk.tools.read_file(path="a.txt")
        assert len(person.asked) == count


# -- where it shows ----------------------------------------------------------------------------------------------------


def test_explain_and_the_audit_log_say_that_it_was_remembered(
    make_door: MakeDoor, workspace: Path, tmp_path: Path
) -> None:
    policy: Any = SecurityPolicy(default="deny", tools={"add": "ask"})
    log = tmp_path / "audit.jsonl"
    door = make_door(policy, approver=Person(Approve(remember="always")), audit=log)
    asked = policy.explain("add", {"a": 1, "b": 2})
    assert (asked.decision, asked.because) == ("ask", "the policy says ask for this tool")
    for _ in range(2):
        door.invoke("add", {"a": 1, "b": 2})
    verdict = policy.explain("add", {"a": 1, "b": 2})
    assert verdict.decision == "allow"
    assert verdict.because.startswith("remembered: approved always on ")
    assert verdict.because.endswith("add, with exactly these arguments; the policy says ask for this tool")
    assert [(one.decision, one.outcome) for one in verdict.considered] == [("allow", "decides"), ("ask", "matches")]
    door.close()
    first, second = [record for record in map(json.loads, log.read_text().splitlines()) if record["event"] == "end"]
    assert (first["decision"], first["answer"], first["remember"]) == ("ask", "approve", "always")
    assert (second["decision"], second["answer"], second.get("remember")) == ("allow", "remembered", None)
    assert second["rule"].startswith("remembered: approved always on ")


def test_they_are_listed_and_revoked(always: Ask, workspace: Path, tmp_path: Path) -> None:
    def remembered(*words: str) -> Any:
        ended = toolkit_command(tmp_path, "policy", "remembered", "--workspace", "workspace", *words)
        return ended.returncode, ended.stdout if "--json" not in words else json.loads(ended.stdout), ended.stderr

    assert remembered() == (0, f"no approvals are remembered in {workspace}\n", "")
    always("add", a=1, b=2)
    always("bash", command="echo hi")
    always("write_file", POLICY, {"agent": "writer"}, path="a.txt", content="")
    _, found, _ = remembered("--json")
    assert found["workspace"] == str(workspace)
    assert [one["covers"] for one in found["approvals"]] == [
        "add, with exactly these arguments",
        "bash, running exactly: echo hi",
        "write_file, writing a.txt, whatever its other arguments are",
    ]
    second, third = found["approvals"][1:]
    assert (third["tool"], third["agent"]) == ("write_file", "writer")
    assert third["rules"] == ["Rule('allow', tools=['write_file'], path='./a.txt')"]
    code, shown, _ = remembered()
    assert code == 0 and shown.splitlines()[2].split()[::-1][:3] == ["hi", "echo", "exactly:"]

    code, shown, problem = remembered("--revoke", "nothing")
    assert (code, shown) == (2, "") and "has the id 'nothing'" in problem
    assert remembered("--revoke", second["id"])[0] == 0
    assert always("bash", command="echo hi")
    assert not always("add", a=1, b=2)
    code, shown, _ = remembered("--revoke", "all")
    assert (code, shown.splitlines()[-1]) == (0, "3 approvals revoked; you are asked again")
    assert always("add", a=1, b=2)


def test_a_running_toolkit_notices_that_it_was_revoked(make_door: MakeDoor, always: Ask, workspace: Path) -> None:
    person = Person(Approve())
    door: Door = make_door(POLICY, approver=person)
    always("add", a=1, b=2)
    door.invoke("add", {"a": 1, "b": 2})
    assert not person.asked
    toolkit_command(workspace, "policy", "remembered", "--revoke", "all", check=True)
    door.invoke("add", {"a": 1, "b": 2})
    assert person.asked


def test_without_an_approver_nothing_changes(make_door: MakeDoor, always: Ask, workspace: Path) -> None:
    always("add", a=1, b=2)
    with pytest.raises(ToolNotAllowed, match="no approver is configured"):
        make_door(POLICY).invoke("add", {"a": 1, "b": 2})


# -- several at once ---------------------------------------------------------------------------------------------------

REMEMBERS = """
import sys
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import Approve
policy = SecurityPolicy(tools={"add": "ask"})
context = ToolkitContext(sys.argv[1], policy, approver=lambda request: Approve(remember="always"))
with create_agent_toolkit(context) as tk:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(25):
        tk.tools.add(a=int(sys.argv[2]), b=turn)
"""


def test_processes_that_remember_at_once_lose_none(workspace: Path) -> None:
    folders = os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "tests" / "downstream")))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", REMEMBERS, str(workspace), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": folders},
        )
        for number in range(3)
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.communicate()[0] or worker.returncode for worker in workers] == [0, 0, 0]
    ended = toolkit_command(workspace, "policy", "remembered", "--json", check=True)
    found = json.loads(ended.stdout)["approvals"]
    assert len(found) == len({one["id"] for one in found}) == 75
