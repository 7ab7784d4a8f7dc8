"""What a call touches, in the audit log: where its paths lead, its command, its host; no secret, and no content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from acme.generated import Rule, SecurityPolicy
from tests.runtime.conftest import MakeDoor
from toolkit import Approve, Deny, Edit, Pack, ToolkitError, tool
from toolkit.stores import AuditFile, verify_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "secret").write_text("key")
    (folder / "link").symlink_to("src")
    (folder / "out").symlink_to(tmp_path)
    return folder


def touched(log: Path) -> list[Any]:
    """What the first record of each call says."""
    lines = log.read_bytes().splitlines(keepends=True)
    assert verify_lines(lines).problems == ()
    first = {record["call"]: record for record in map(json.loads, reversed(lines))}
    assert sum("touched" in json.loads(line) for line in lines) <= len(first), "said once for each call"
    return [record.get("touched") for record in reversed(first.values())]


CALLS: Any = [
    ("read_file", {"path": "src/a.py"}, {"reads": ["src/a.py"]}),
    ("read_file", {"path": "./link/../src//a.py"}, {"reads": ["src/a.py"]}),
    ("read_file", {"path": "link/a.py"}, {"reads": ["src/a.py"]}),
    ("list", {"path": "link"}, {"reads": ["src/"]}),
    ("tree", {}, {"reads": ["./"]}),
    ("write_file", {"path": "new/deep.txt", "content": "private"}, {"writes": ["new/deep.txt"]}),
    ("read_file", {"path": "out/x"}, {"reads": [{"unresolved": "out/x"}]}),
    ("exec_command", {"command": ["echo", "a b"], "env": {"LANG": "private"}, "stdin": "private"}, {"argv": ["echo", "a b"], "variables": ["LANG"]}),
    ("bash", {"command": "echo hi", "cwd": "src"}, {"shell": "echo hi", "cwd": "src"}),
    ("webfetch", {"url": "http://user.invalid:81/private?private#private"}, {"host": "http://user.invalid:81"}),
    ("webfetch", {"url": "http://x:private@example.invalid/"}, {"host": None}),
    ("add", {"a": 1, "b": 2}, None),
]  # fmt: skip
POLICIES: Any = {
    "always": SecurityPolicy(default="allow"),
    "by rules": SecurityPolicy(default="allow", rules=[Rule("deny", path="nothing"), Rule("deny", command="nothing")]),
    "asked": SecurityPolicy(default="ask"),
}  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch", [None, 0.05])
def test_the_log_says_what_calls_touch(
    make_door: MakeDoor, workspace: Path, log: Path, policy: str, batch: float | None
) -> None:
    audit = AuditFile(log, batch_seconds=batch)
    door = make_door(POLICIES[policy], audit=audit, approver=lambda request: Approve())
    for name, arguments, _ in CALLS:
        try:
            door.invoke(name, arguments)
        except ToolkitError as error:
            assert error.code in ("SANDBOX_VIOLATION", "TOOL_FAILED", "INVALID_TOOL_ARGUMENTS"), error
    door.close()
    expected = [found for _, _, found in CALLS]
    assert [found or None for found in touched(log)] == expected
    assert "private" not in log.read_text().replace(str(workspace), "")


def test_refused_calls_say_it_too(make_door: MakeDoor, workspace: Path, log: Path) -> None:
    rules: Any = [Rule("deny", path="secret"), Rule("ask", path="src/**")]
    door = make_door(
        SecurityPolicy(default="allow", tools={"bash": "deny"}, rules=rules), audit=log, approver=lambda request: Deny()
    )
    for name, arguments in (
        ("read_file", {"path": "secret"}),
        ("read_file", {"path": "link/a.py"}),
        ("bash", {"command": "ls"}),
    ):
        with pytest.raises(ToolkitError):
            door.invoke(name, arguments)
    door.close()
    assert touched(log) == [{"reads": [{"unresolved": "secret"}]}, {"reads": ["src/a.py"]}, None]


def test_an_edited_call_says_what_ran(make_door: MakeDoor, workspace: Path, log: Path) -> None:
    policy: Any = SecurityPolicy(default="allow", tools={"read_file": "ask"})
    door = make_door(policy, audit=log, approver=lambda request: Edit({"path": "secret"}))
    door.invoke("read_file", {"path": "src/a.py"})
    door.close()
    assert touched(log) == [{"reads": ["secret"]}]


def test_a_link_that_changes_does_not_change_the_record(make_door: MakeDoor, workspace: Path, log: Path) -> None:
    """Paths are looked up before the handler runs, not when a batch is written."""
    door = make_door(SecurityPolicy(default="allow"), audit=AuditFile(log, batch_seconds=30))
    door.invoke("read_file", {"path": "link/a.py"})
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("secret")
    door.close()
    assert touched(log) == [{"reads": ["src/a.py"]}]


@tool(permissions=["execute"])
def run_with(
    command: Annotated[list[str], Field(json_schema_extra={"x-resource": "argv"})],
    token: Annotated[str, Field(json_schema_extra={"x-secret": True})],
) -> str:
    """Run a program with a token.

    :param command: the words
    :param token: the token
    """
    return "done"


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_marked_as_secret_is_not_in_it(make_door: MakeDoor, log: Path, policy: str) -> None:
    door = make_door(POLICIES[policy], audit=log, approver=lambda request: Approve(), packs=[Pack(tools=[run_with])])
    for words in (["login", "--token=s3cr3t"], ["login", "--help"]):
        door.invoke("run_with", {"command": words, "token": "s3cr3t"})
    door.close()
    assert "s3cr3t" not in log.read_text()
    assert touched(log) == [{"redacted": True}, {"argv": ["login", "--help"]}]


def test_long_texts_are_counted(make_door: MakeDoor, workspace: Path, log: Path) -> None:
    door = make_door(SecurityPolicy(default="allow"), audit=log)
    door.invoke("bash", {"command": f"true {'x' * 20_000}"})
    door.close()
    assert touched(log) == [{"too_long": 20_005}]


def test_a_file_can_be_told_not_to_have_it(make_door: MakeDoor, workspace: Path, log: Path) -> None:
    door = make_door(POLICIES["by rules"], audit=AuditFile(log, touched=False))
    door.invoke("read_file", {"path": "src/a.py"})
    door.close()
    assert touched(log) == [None]
