"""``toolkit policy learn``: a policy from logs of real calls, proved by judging them again; and what it never allows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import toolkit as toolkit_command
from toolkit import Approve, Rule, SecurityPolicy, ToolkitContext, ToolkitError, create_agent_toolkit
from toolkit.stores import AuditFile

Calls = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for name in ("src/a.py", "src/b.py", "src/c.py", "src/deep/d.py", "docs/x.md", "secrets/key", "notes.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    return folder


@pytest.fixture
def record(tmp_path: Path, workspace: Path) -> Callable[..., Path]:
    """Makes calls under a policy; returns their log."""

    def make(policy: Any, calls: Calls, name: str = "audit.jsonl", **settings: Any) -> Path:
        log = tmp_path / name
        audit = AuditFile(log, **settings)
        context = ToolkitContext(workspace, policy, audit=audit, approver=lambda request: Approve())
        with create_agent_toolkit(context) as tk:
            for tool, arguments in calls:
                with suppress(ToolkitError):
                    tk.execute_raw(tool, json.dumps(arguments))
        return log

    return make


def learn(log: Path, *options: str, code: int = 0) -> dict[str, Any]:
    ended = toolkit_command(log.parent, "policy", "learn", str(log), "--json", *options)
    assert (ended.returncode, ended.stderr) == (code, ""), ended
    found: dict[str, Any] = json.loads(ended.stdout)
    if "policy" in found:
        found["toml"] = tomllib.loads(found["policy"])
    return found


def rules_of(found: dict[str, Any]) -> list[tuple[str, list[str], str]]:
    rows = found["toml"].get("rules", [])
    return [
        (row["decision"], row["tools"], next(row[key] for key in ("path", "command", "host") if key in row))
        for row in rows
    ]


ALLOW: Any = SecurityPolicy(default="allow")
WORK: Calls = [
    ("read_file", {"path": "src/a.py"}),
    ("read_file", {"path": "src/b.py"}),
    ("read_file", {"path": "./src/../src/c.py"}),
    ("read_file", {"path": "notes.md"}),
    ("grep", {"pattern": "x", "path": "docs"}),
    ("write_file", {"path": "notes.md", "content": "new\n"}),
    ("exec_command", {"command": ["git", "log", "-1"]}),
    ("bash", {"command": "git status && ls src"}),
    ("webfetch", {"url": "http://example.invalid/a?b"}),
    ("done", {"message": "done"}),
]


def test_it_allows_what_was_used_and_no_more(record: Callable[..., Path], tmp_path: Path, workspace: Path) -> None:
    found = learn(record(ALLOW, WORK))
    assert (found["calls"], found["different"], found["lacking"]) == (len(WORK), [], {})
    assert found["toml"]["default"] == "deny" and found["toml"]["tools"] == {"done": "allow"}
    assert rules_of(found) == [
        ("allow", ["exec_command"], "git log -1"),
        ("allow", ["bash"], "git status"),
        ("allow", ["bash"], "ls src"),
        ("allow", ["webfetch"], "example.invalid"),
        ("allow", ["grep"], "docs/**"),
        ("allow", ["read_file", "write_file"], "./notes.md"),
        ("allow", ["read_file"], "src/**"),
    ]
    assert found["profile"] == (
        '[tool.toolkit.profiles.learned]\ntools = ["bash", "done", "exec_command", "grep", "read_file", "webfetch", "write_file"]\n'
    )
    assert "edit" in found["impossible"]["tools"] and "bash" not in found["impossible"]["tools"]
    assert found["impossible"]["permissions"] == []
    # The policy is real: the same calls pass with it, and their neighbours do not.
    (tmp_path / "policy.toml").write_text(found["policy"])
    policy = SecurityPolicy.load(tmp_path / "policy.toml")
    with create_agent_toolkit(ToolkitContext(workspace, policy)):
        for tool, arguments in WORK:
            assert policy.explain(tool, arguments).decision == "allow", tool  # type: ignore[arg-type]
        for tool, arguments in (
            ("read_file", {"path": "secrets/key"}),
            ("write_file", {"path": "src/a.py", "content": ""}),
            ("read_file", {"path": "sub/notes.md"}),
            ("grep", {"pattern": "x", "path": "."}),
            ("exec_command", {"command": ["rm", "-rf", "x"]}),
            ("bash", {"command": "git status; rm -rf x"}),
            ("webfetch", {"url": "http://www.example.invalid/"}),
            ("edit", {"path": "notes.md", "old_string": "new", "new_string": "x"}),
        ):
            assert policy.explain(tool, arguments).decision == "deny", tool  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "expected"),
    [("3", ["src/**"]), ("4", ["src/a.py", "src/b.py", "src/c.py"]), ("1", ["src/**"])],
)
def test_a_directory_needs_so_many_files(record: Callable[..., Path], files: str, expected: list[str]) -> None:
    log = record(ALLOW, [("read_file", {"path": f"src/{name}.py"}) for name in "abcab"])
    assert [pattern for _, _, pattern in rules_of(learn(log, "--files", files))] == expected


def test_the_workspace_itself_is_no_such_directory(record: Callable[..., Path], workspace: Path) -> None:
    for name in "abcd":
        (workspace / name).write_text("")
    found = learn(record(ALLOW, [("read_file", {"path": name}) for name in "abcd"]), "--files", "1")
    assert [pattern for _, _, pattern in rules_of(found)] == ["./a", "./b", "./c", "./d"]


def test_a_directory_in_which_something_was_denied_is_not_allowed(record: Callable[..., Path]) -> None:
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="src/deep/**")])
    found = learn(record(policy, [("read_file", {"path": f"src/{name}.py"}) for name in ("a", "b", "c", "deep/d")]))
    assert rules_of(found) == [("allow", ["read_file"], f"src/{name}.py") for name in "abc"]
    assert found["different"] == []


def test_what_a_search_did_not_see_stays_hidden(record: Callable[..., Path], tmp_path: Path, workspace: Path) -> None:
    rules = [Rule("deny", path="secrets/**")]
    (tmp_path / "old.toml").write_text(
        'default = "allow"\n[[rules]]\ndecision = "deny"\npath = "secrets/**"\njustification = "k\\u200be\\"y"\n'
    )
    log = record(
        SecurityPolicy(default="allow", rules=rules),
        [("grep", {"pattern": "text"}), ("tree", {}), ("read_file", {"path": "secrets/key"})],
    )
    for options, expected in (
        ((), ("deny", ["grep", "tree"], "secrets/key")),
        (("--policy", str(tmp_path / "old.toml")), None),
    ):
        found = learn(log, *options)
        assert found["toml"]["tools"] == {"grep": "allow", "tree": "allow"}
        if expected is not None:
            assert rules_of(found) == [expected]
        else:
            (kept,) = found["toml"]["rules"]
            assert kept == {"decision": "deny", "path": "secrets/**", "justification": 'k\u200be"y'}
        (tmp_path / "policy.toml").write_text(found["policy"])
        with create_agent_toolkit(ToolkitContext(workspace, SecurityPolicy.load(tmp_path / "policy.toml"))) as tk:
            assert "secrets/key" not in tk.tools.grep(pattern="text").model_dump_json()
            assert "notes.md" in tk.tools.grep(pattern="text").model_dump_json()


def test_what_was_asked_is_asked(record: Callable[..., Path]) -> None:
    policy = SecurityPolicy(
        default="allow",
        tools={"bash": "ask", "todoread": "ask"},
        rules=[Rule("ask", path="*.cfg"), Rule("deny", path="b.cfg")],
    )
    found = learn(
        record(
            policy,
            [
                ("bash", {"command": "make test"}),
                ("todoread", {}),
                ("write_file", {"path": "a.cfg", "content": ""}),
                ("write_file", {"path": "a.txt", "content": ""}),
                ("read_file", {"path": "a.cfg"}),
                ("read_file", {"path": "b.cfg"}),
                ("read_file", {"path": "a.txt"}),
            ],
        )
    )
    assert found["different"] == []
    assert found["toml"]["tools"] == {"bash": "ask", "todoread": "ask", "write_file": "ask"}
    assert rules_of(found) == [("ask", ["read_file"], "./a.cfg"), ("allow", ["read_file", "write_file"], "./a.txt")]


def test_a_remembered_approval_counts_as_asked(tmp_path: Path, workspace: Path) -> None:
    log = tmp_path / "audit.jsonl"
    policy: Any = SecurityPolicy(tools={"read_file": "ask"})
    context = ToolkitContext(workspace, policy, audit=log, approver=lambda request: Approve(remember="session"))
    with create_agent_toolkit(context) as tk:
        for _ in range(2):
            tk.tools.read_file(path="notes.md")
    found = learn(log)
    assert (found["calls"], found["toml"]["tools"], found["toml"].get("rules")) == (2, {"read_file": "ask"}, None)


def test_what_no_narrow_rule_can_say_is_reported(record: Callable[..., Path], workspace: Path) -> None:
    (workspace / "a*b").write_text("")
    log = record(
        ALLOW,
        [
            ("bash", {"command": "echo $HOME"}),
            ("read_file", {"path": "a*b"}),
            ("read_file", {"path": "../outside"}),
            ("write_file", {"path": "../outside", "content": ""}),
            ("read_file", {"path": "notes.md"}),
        ],
    )
    found = learn(log, code=1)
    assert [(one["tool"], one["then"], one["now"], one["why"]) for one in found["different"]] == [
        ("bash", "allow", "deny", "its command or URL is not one that a rule can name exactly"),
        ("read_file", "allow", "deny", "no allow rule can name 'a*b' exactly"),
        ("read_file", "allow", "deny", "it named a path that led nowhere, out of the roots, or to what was denied"),
        ("write_file", "allow", "deny", "it named a path that led nowhere, out of the roots, or to what was denied"),
    ]
    assert "tools" not in found["toml"]
    assert rules_of(found) == [("allow", ["read_file"], "./notes.md")]


def test_a_program_is_learned_with_its_calls(record: Callable[..., Path]) -> None:
    policy = SecurityPolicy(default="allow", tools={"run_program": "allow"})
    source = "print(tools.read_file(path='notes.md').total_lines)"
    found = learn(record(policy, [("run_program", {"source": source})]))
    assert (found["calls"], found["different"], found["toml"]["tools"]) == (2, [], {"run_program": "allow"})
    assert rules_of(found) == [("allow", ["read_file"], "./notes.md")]


def test_two_policies_in_one_log_that_contradict_each_other(record: Callable[..., Path]) -> None:
    record(ALLOW, [("done", {"message": "x"})])
    log = record(SecurityPolicy(default="deny"), [("done", {"message": "x"})])
    found = learn(log, code=1)
    assert found["toml"] == {"default": "deny"}
    (difference,) = found["different"]
    assert (difference["then"], difference["now"]) == ("allow", "deny")
    assert difference["why"].startswith("another call that touched the same had another verdict")


def test_calls_that_cannot_be_used_are_counted(record: Callable[..., Path]) -> None:
    log = record(ALLOW, [("read_file", {"path": "notes.md"}), ("done", {"message": "x"})], touched=False)
    record(ALLOW, [("read_file", {"pth": "x"}), ("raed_file", {}), ("bash", {"command": f"true {'x' * 20_000}"})])
    found = learn(log)
    assert found["calls"] == 1
    assert sorted(found["lacking"].items()) == [
        ("do not say what they touched: the log is older than that, or was told not to", 1),
        ("touched more than a record can say", 1),
        ("were refused before the policy judged them", 2),
    ]


def test_a_log_that_was_tampered_with_is_refused(record: Callable[..., Path]) -> None:
    log = record(ALLOW, [("read_file", {"path": "notes.md"})])
    log.write_text(log.read_text().replace("notes.md", "secrets/key"))
    found = learn(log, code=2)
    assert found["error"] == (
        f"{log}: line 1 was changed; nothing was learned from a log that may have been tampered with (`toolkit audit verify` lists what is wrong)"
    )
    assert rules_of(learn(log, "--unverified")) == [("allow", ["read_file"], "secrets/key")]


def test_the_output_is_a_policy_file_that_says_where_it_comes_from(
    record: Callable[..., Path], tmp_path: Path, workspace: Path
) -> None:
    odd = "odd\x1b[2J\u202e\U000e0041é\"'\\x"
    (workspace / odd).write_text("")
    log = record(ALLOW, [("read_file", {"path": odd}), ("read_file", {"path": "notes.md"}), ("edit", {"pth": 1})])
    ended = toolkit_command(tmp_path, "policy", "learn", str(log), "--profile", "reader")
    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout and "\u202e" not in ended.stdout and "\U000e0041" not in ended.stdout
    assert [rule["path"] for rule in tomllib.loads(ended.stdout)["rules"]] == ["./notes.md", f"./{odd}"]
    (tmp_path / "policy.toml").write_text(ended.stdout)
    toolkit_command(tmp_path, "policy", "check", "policy.toml", check=True)
    comments = [line for line in ended.stdout.splitlines() if line.startswith("#")]
    assert comments[:2] == [
        "# Judged again with this policy: 2 calls, 2 with the same verdict.",
        "#   read_file       2  allow, as before",
    ]
    assert "# Not used: 1 call, because they were refused before the policy judged them." in comments
    assert "# Permissions that no tool above needs: write, execute, network." in comments
    assert comments[-2:] == ["# [tool.toolkit.profiles.reader]", '# tools = ["read_file"]']


def test_no_text_of_a_log_adds_a_line_to_the_policy(record: Callable[..., Path]) -> None:
    log = record(ALLOW, [("bash", {"command": "echo $HOME"})])
    log.write_text(log.read_text().replace('"time":"20', '"time":"\\n[tools]\\nx=1#'))
    ended = toolkit_command(log.parent, "policy", "learn", str(log), "--unverified")
    assert ended.returncode == 1 and "Different: bash at \\n[tools]" in ended.stdout
    assert tomllib.loads(ended.stdout) == {"default": "deny"}


def test_several_logs_are_learned_together(record: Callable[..., Path]) -> None:
    one = record(ALLOW, [("read_file", {"path": "notes.md"})], "one.jsonl")
    two = record(ALLOW, [("read_file", {"path": "docs/x.md"})], "two.jsonl", batch_seconds=0.05)
    found = learn(one, str(two))
    assert rules_of(found) == [("allow", ["read_file"], "docs/x.md"), ("allow", ["read_file"], "./notes.md")]
    assert learn(one, str(one.with_name("none.jsonl")), code=2)["error"].endswith(
        "cannot be read: No such file or directory"
    )
