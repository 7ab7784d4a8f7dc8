"""A call is held to the files that it was allowed or approved to touch, whatever its handler opens.

And files that run code for the user later: writing one with a file tool asks first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Door, MakeDoor
from tests.runtime.test_approval import Person
from toolkit import (
    Approve,
    Deny,
    DynamicContext,
    DynamicPolicy,
    DynamicRule,
    FileSettings,
    Preview,
    SandboxViolation,
    ToolCall,
    ToolContext,
    tool,
)
from toolkit.guard import RUNS_LATER, SandboxChoice
from toolkit.stores import AuditFile

APPROVE = Approve()


def put(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    put(root, **{"secrets/key": "SECRET", "docs/a.md": "public", "docs/b.md": "public"})
    (root / "docs/out").symlink_to("../secrets/key")
    (root / "app").mkdir()
    (root / "config").symlink_to(".vscode")
    (root / "late").symlink_to("app/.envrc")
    return root


def value(door: Door, name: str, /, **arguments: object) -> str:
    return str(door.call(ToolCall("1", name, arguments)).value)


# Handlers that open more than they said


def only_the_first(args: Any, ctx: ToolContext) -> Preview:
    return Preview(reads=(args.path,))


@tool(permissions=["read"], preview=only_the_first)
def compare(ctx: ToolContext, path: str, other: str) -> str:
    """Read two files, and tell about the first."""
    with ctx.fs.open_file(path) as first, ctx.fs.open_file(other) as second:
        return (first.read(99) + b" " + second.read(99)).decode()


@tool(permissions=["read"])
def peek(ctx: ToolContext, path: str) -> str:
    """Read a file without telling anybody."""
    with ctx.fs.open_file(path) as file:
        return file.read(99).decode()


@tool(permissions=["read", "write"])
def stash(ctx: ToolContext, path: str) -> str:
    """Write a file without telling anybody."""
    ctx.fs.write_file(path, b"stashed")
    return "done"


PACKS = [compare, peek, stash]
ASK = DynamicRule("ask", path="secrets/**")


@pytest.mark.parametrize("other", ["secrets/key", "docs/out", "docs/../secrets/key"])
def test_what_a_handler_opens_beyond_its_preview_needs_approval_as_well(
    make_door: MakeDoor, root: Path, other: str
) -> None:
    person = Person(APPROVE)
    door = make_door(DynamicPolicy("allow", rules=[ASK]), packs=PACKS, approver=person)
    assert value(door, "compare", path="docs/a.md", other="docs/b.md") == "public public"

    words = value(door, "compare", path="docs/a.md", other=other)

    assert words.startswith(f"SANDBOX_VIOLATION: '{other}' needs approval: decided by Rule('ask', path='secrets/**')")
    assert "call the tool with that path" in words and person.asked == []
    assert value(door, "compare", path=other, other="docs/b.md") == "SECRET public" and len(person.asked) == 1
    control = make_door(DynamicPolicy("allow"), packs=PACKS)
    assert value(control, "compare", path="docs/a.md", other=other) == "public SECRET"


@pytest.mark.parametrize("default", ["deny", "ask"])
def test_what_a_handler_opens_beyond_its_preview_must_be_allowed_as_well(
    make_door: MakeDoor, root: Path, default: Any
) -> None:
    rules = [DynamicRule("allow", path="docs/**", tools=["compare"])]
    door = make_door(DynamicPolicy(default, rules=rules), packs=PACKS, approver=Person(APPROVE))
    assert value(door, "compare", path="docs/a.md", other="docs/b.md") == "public public"
    for other in ("secrets/key", "docs/out"):
        words = value(door, "compare", path="docs/a.md", other=other)
        assert words.startswith(f"SANDBOX_VIOLATION: '{other}' may not be used: no allow rule covers it")
    everything = [*rules, DynamicRule("allow", tools=["compare"])]
    control = make_door(DynamicPolicy(default, rules=everything), packs=PACKS)
    assert value(control, "compare", path="docs/a.md", other="docs/out") == "public SECRET"


@pytest.mark.parametrize(
    "policy",
    [
        DynamicPolicy("deny", tools={"compare": "ask"}),
        DynamicPolicy("ask"),
        DynamicPolicy("allow", rules=[DynamicRule("ask", permission="read")]),
        DynamicPolicy("allow", rules=[DynamicRule("ask", tools=["compare"]), DynamicRule("allow", permission="read")]),
    ],
)
def test_an_approved_call_touches_what_the_approver_saw(make_door: MakeDoor, root: Path, policy: Any) -> None:
    door = make_door(policy, packs=PACKS, approver=Person(APPROVE))
    assert value(door, "compare", path="docs/a.md", other="docs/a.md") == "public public"
    assert "not approved for this call" in value(door, "compare", path="docs/a.md", other="docs/b.md")


def test_a_tool_that_declares_no_paths_is_held_to_ask_rules(make_door: MakeDoor, root: Path) -> None:
    door = make_door(DynamicPolicy("deny", {"peek": "allow"}, [ASK]), packs=PACKS, approver=Person(APPROVE))
    assert value(door, "peek", path="docs/a.md") == "public"
    assert "needs approval" in value(door, "peek", path="docs/out")
    assert value(make_door(packs=PACKS), "peek", path="docs/out") == "SECRET"


def test_a_race_between_the_verdict_and_the_open_gains_nothing(make_door: MakeDoor, root: Path) -> None:
    """The link is exchanged by the handler itself, so at the worst moment there is."""

    @tool(permissions=["read"], preview=only_the_first)
    def swap(ctx: ToolContext, path: str) -> str:
        """Read a link that leads elsewhere by now."""
        (root / path).unlink()
        (root / path).symlink_to("secrets/key")
        return peek(ctx, path)

    for policy in (
        DynamicPolicy("allow", rules=[ASK]),
        DynamicPolicy("deny", rules=[DynamicRule("allow", path="docs/**")]),
    ):
        (root / "way").unlink(missing_ok=True)
        (root / "way").symlink_to("docs/a.md")
        words = value(make_door(policy, packs=[swap], approver=Person(APPROVE)), "swap", path="way")
        assert words.startswith("SANDBOX_VIOLATION"), words
    assert value(make_door(packs=[swap]), "swap", path="way") == "SECRET"


def test_a_standalone_context_is_held_to_the_same_rules(root: Path, tmp_path: Path) -> None:
    context = DynamicContext(root, DynamicPolicy("allow", rules=[ASK]), state_dir=tmp_path / "state")
    with ToolContext.standalone(context) as ctx:
        assert peek(ctx, "docs/a.md") == "public"
        for act, path in ((peek, "docs/out"), (stash, ".envrc")):
            with pytest.raises(SandboxViolation, match="needs approval"):
                act(ctx, path)


# Files that run code for the user later


def patch(*lines: str) -> dict[str, str]:
    return {"patch": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


LATER: list[tuple[str, dict[str, str]]] = [
    ("write_file", {"path": ".vscode/tasks.json", "content": "evil"}),
    ("write_file", {"path": "app/.VSCode/tasks.json", "content": "evil"}),
    ("write_file", {"path": "docs/../.envrc", "content": "evil"}),
    ("write_file", {"path": "config/tasks.json", "content": "evil"}),
    ("write_file", {"path": "late", "content": "evil"}),
    ("edit", {"path": "config/settings.json", "old_string": "{}", "new_string": "evil"}),
    ("apply_patch", patch("*** Add File: app/.mcp.json", "+evil")),
    ("apply_patch", patch("*** Update File: docs/a.md", "*** Move to: app/.bashrc", "@@", "-public", "+evil")),
    ("apply_patch", patch("*** Update File: .vscode/settings.json", "*** Move to: app/x", "@@", "-{}", "+evil")),
    ("apply_patch", patch("*** Delete File: .vscode/settings.json")),
]


@pytest.fixture
def settings(root: Path) -> Path:
    put(root, **{".vscode/settings.json": "{}\n", "docs/a.md": "public\n"})
    return root


def files(root: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def name_of(value: object) -> str:
    return value if isinstance(value, str) else " ".join(value.values())[:60] if isinstance(value, dict) else ""


@pytest.mark.parametrize(("name", "arguments"), LATER, ids=name_of)
def test_writing_what_runs_later_asks_first(
    make_door: MakeDoor, settings: Path, name: str, arguments: dict[str, str]
) -> None:
    before = files(settings)

    words = value(make_door(), name, **arguments)

    assert words.startswith(f"TOOL_NOT_ALLOWED: '{name}' is not allowed: ")
    assert "can run code for the user later" in words and "FileSettings(ask_before_writing=[...])" in words
    assert words.endswith("and no approver is configured: ask the user, or configure an approver")
    assert value(make_door(approver=Person(Deny("no"))), name, **arguments).endswith("was not approved: no")
    assert files(settings) == before
    person = Person(APPROVE)
    value(make_door(approver=person), name, **arguments)
    assert files(settings) != before
    assert "can run code for the user later" in person.asked[0].because


@pytest.mark.parametrize(("name", "arguments"), LATER, ids=name_of)
def test_a_context_may_ask_about_other_files(
    make_door: MakeDoor, settings: Path, name: str, arguments: dict[str, str]
) -> None:
    """The control."""
    before = files(settings)
    value(make_door(files=FileSettings(ask_before_writing=["ci/**"])), name, **arguments)
    assert files(settings) != before


@pytest.mark.sample
@pytest.mark.parametrize("sandbox", ["full", "reduced"])
@pytest.mark.parametrize(("name", "arguments"), LATER, ids=name_of)
def test_what_was_approved_while_a_program_runs_stays(
    make_door: MakeDoor, settings: Path, name: str, arguments: dict[str, str], sandbox: SandboxChoice
) -> None:
    """A server that runs for long, and a command after the call: neither has made that change."""
    before = files(settings)
    door = make_door(approver=Person(APPROVE), sandbox=sandbox)
    process = door.toolkit._core.guards.process
    program = process.start(["cat"])
    value(door, name, **arguments)
    approved = files(settings)
    assert approved != before
    assert process.shell("true").notes == ()
    assert files(settings) == approved
    program.close()
    assert files(settings) == approved


def test_the_reason_in_the_log_has_the_pattern_and_not_the_path(
    make_door: MakeDoor, root: Path, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    for approver in (None, Person(APPROVE)):
        audit = AuditFile(log, touched=False)
        value(make_door(audit=audit, approver=approver), "write_file", path="app/hush/.envrc", content="x")
    assert (root / "app/hush/.envrc").exists()
    assert "'.envrc'" in log.read_text() and "hush" not in log.read_text()


def test_its_own_list_is_asked_about(make_door: MakeDoor, root: Path) -> None:
    door = make_door(files=FileSettings(ask_before_writing=["ci/**"]))
    assert "can run code" in value(door, "write_file", path="ci/run", content="x")
    assert "created" in value(door, "write_file", path=".envrc", content="x")


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "package.json", "Makefile", ".github/workflows/ci.yml", ".gitignore", "src/vscode.py"]
)
def test_what_agents_edit_all_day_needs_no_approval(make_door: MakeDoor, root: Path, path: str) -> None:
    assert "created" in value(make_door(), "write_file", path=path, content="x")


def test_reading_what_runs_later_is_free(make_door: MakeDoor, settings: Path) -> None:
    door = make_door()
    assert "{}" in value(door, "read_file", path=".vscode/settings.json")
    assert "settings.json" in value(door, "list", path=".vscode")
    assert "left out" not in value(door, "tree", include_hidden=True)


def test_deny_stays_deny_and_ask_says_both_reasons(make_door: MakeDoor, root: Path) -> None:
    person = Person(APPROVE)
    denied = DynamicPolicy("allow", rules=[DynamicRule("deny", path=".envrc")])
    assert "Rule('deny'" in value(make_door(denied, approver=person), "write_file", path=".envrc", content="x")
    assert person.asked == []
    asked = DynamicPolicy("deny", {"write_file": "ask"})
    value(make_door(asked, approver=person), "write_file", path=".envrc", content="x")
    assert person.asked[0].because.startswith("the policy says ask for this tool; the call would change '.envrc', ")
    allowed = DynamicPolicy("deny", rules=[DynamicRule("allow", path=".envrc")])
    assert "can run code" in value(make_door(allowed), "write_file", path=".envrc", content="y")


def test_a_tool_that_declares_no_paths_cannot_write_it(make_door: MakeDoor, root: Path) -> None:
    door = make_door(packs=PACKS, approver=Person(APPROVE))
    assert "needs approval: a file like this can run code for the user later" in value(door, "stash", path="late")
    assert value(door, "stash", path="app/x") == "done"
    assert value(make_door(packs=PACKS, files=FileSettings(ask_before_writing=())), "stash", path="late") == "done"


def test_the_offered_tools_stay_the_same(make_door: MakeDoor) -> None:
    door, control = make_door(), make_door(files=FileSettings(ask_before_writing=()))
    assert door.get_allowed_tools() == control.get_allowed_tools()


def test_only_tools_that_write_are_looked_at(make_door: MakeDoor, root: Path) -> None:
    core = make_door().toolkit._core
    for name in ("read_file", "grep", "glob", "list", "tree", "done", "exec_command"):
        assert core.resolve(name).always is not None, name
    assert core.resolve("write_file").always is None
    assert make_door(files=FileSettings(ask_before_writing=())).toolkit._core.resolve("write_file").always is not None
    assert core.context.ask_before_writing == RUNS_LATER
