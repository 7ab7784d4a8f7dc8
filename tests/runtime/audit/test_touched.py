"""What a call touches, in the audit log: where its paths lead, its command, its host; no secret, and no content."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from acme.generated import Rule, SecurityPolicy, ToolkitContext, create_agent_toolkit
from tests.runtime.conftest import MakeDoor
from toolkit import Approve, Deny, Edit, JsonObject, Pack, ToolkitError, tool
from toolkit.runtime.audit.learning import SeenCalls, judge_again
from toolkit.runtime.audit.verification import read_records
from toolkit.runtime.toolkit import core_of
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


RULES: Any = [
    [Rule("deny", path="src/**")],
    [Rule("deny", path="a.py")],
    [Rule("deny", path="/src/a.py")],
    [Rule("ask", path="src")],
    [Rule("ask", path="*.py")],
    [Rule("ask", path="secret"), Rule("allow", path="**")],
    [Rule("allow", path="src/**")],
    [Rule("allow", path="./secret")],
    [Rule("allow", path="a.py"), Rule("deny", path="link/**")],
    [Rule("allow", path="EXTRA/**")],
    [Rule("deny", path="EXTRA/x"), Rule("allow", path="x")],
    [Rule("allow", command="git log"), Rule("deny", command="rm"), Rule("ask", command="make")],
    [Rule("allow", host="example.invalid"), Rule("deny", host="*.example.invalid")],
]
AGAIN: Any = [
    *(("read_file", {"path": path}) for path in ("src/a.py", "link/a.py", "secret", "src", "missing", "out/x", "EXTRA/x", "../x")),
    *(("write_file", {"path": path, "content": ""}) for path in ("src/new.py", "link/a.py", "EXTRA/x")),
    *(("bash", {"command": text}) for text in ("git log -1", "git log; rm x", "make", "echo $(rm x)", "cd src && git log")),
    ("exec_command", {"command": ["git", "log"], "cwd": "src", "env": {"PATH": "x"}}),
    *(("webfetch", {"url": url}) for url in ("http://example.invalid/", "http://a.example.invalid/x", "http://[x/")),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
@pytest.mark.parametrize("number", range(len(RULES)))
def test_a_record_is_judged_as_its_call_was(
    workspace: Path, log: Path, tmp_path: Path, default: Any, number: int
) -> None:
    """So what ``toolkit policy learn`` proves of records holds for calls.

    One exception: of what a rule denies, a record has the path as it was given, so it is not seen that a link leads there.
    """
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "x").write_text("")
    rules = [replace_path(rule, extra) for rule in RULES[number]]
    policy: Any = SecurityPolicy(default=default, rules=rules)
    context = ToolkitContext(workspace, policy, audit=log, read_roots=[extra], approver=lambda request: Deny())
    with create_agent_toolkit(context) as tk:
        expected = []
        for name, arguments in AGAIN:
            arguments = {
                key: value.replace("EXTRA", str(extra)) if isinstance(value, str) else value
                for key, value in arguments.items()
            }
            expected.append((name, arguments, policy.explain(name, arguments).decision))
            with suppress(ToolkitError):
                tk.invoke(name, JsonObject(arguments))
        seen = SeenCalls()
        seen.read(read_records(log), core_of(tk))
        judged = judge_again(core_of(tk), seen.calls)
    assert [call.decision for call in seen.calls] == [decision for _, _, decision in expected]
    different = [
        (*row, verdict.decision) for row, verdict in zip(expected, judged, strict=True) if verdict.decision != row[2]
    ]
    assert [row for row in different if not (row[2] == "deny" and row[1]["path"].startswith("link/"))] == []


def replace_path(rule: Rule, extra: Path) -> Rule:
    if rule.path is None or "EXTRA" not in rule.path:
        return rule
    return Rule(rule.decision, path=rule.path.replace("EXTRA", str(extra)))
