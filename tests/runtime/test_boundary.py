"""One rule at every door: what the policy keeps from file tools, commands, own tools and servers do not open either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.guard.ways import needs
from toolkit import (
    ApprovalPending,
    ApprovalRequest,
    Approve,
    CommandSettings,
    Deny,
    Preview,
    Rule,
    SecurityPolicy,
    Suspend,
    ToolCall,
    ToolContext,
    ToolkitContext,
    create_agent_toolkit,
    tool,
)
from toolkit.builtin import BUILTIN
from toolkit.errors import SandboxViolation, ToolNotAllowed

SECRET, OPEN = "the-key-itself", "open to all"
FILES = {"secret/k": SECRET, "secret/deep/k": SECRET, "open.txt": OPEN, "docs/a.md": OPEN}

READ = "cat secret/k secret/deep/k; cat open.txt"
COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bash": ("bash", {"command": READ}),
    "bash in a directory": ("bash", {"command": "cat ../secret/k ../secret/deep/k; cat ../open.txt", "cwd": "docs"}),
    "exec_command": ("exec_command", {"command": ["sh", "-c", READ]}),
    "an own tool": ("own_command", {}),
}
RULES: dict[str, list[Any]] = {
    "deny": [Rule("deny", path="secret/**")],
    "deny for the tools that read": [Rule("deny", path="secret/**", permission="read")],
    "deny for the tools that run": [Rule("deny", path="secret/**", permission="execute")],
    "ask": [Rule("ask", path="*et/**")],
    "by name": [Rule("deny", path="k", tools=["bash", "exec_command", "own_command"])],  # type: ignore[list-item]
}


@tool(permissions=["execute"])
def own_command(ctx: ToolContext) -> str:
    """Run a command as an own tool does."""
    return ctx.process.shell(READ).stdout.decode()


def preview_reader(args: Any, ctx: ToolContext) -> Preview:
    return Preview(reads=(args.path,))


@tool(permissions=["read", "execute"], preview=preview_reader)
def own_reader(ctx: ToolContext, path: str) -> str:
    """Read a directory with a command.

    :param path: the directory
    """
    return ctx.process.run(["grep", "-r", ".", path]).stdout.decode()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    needs("full")
    for name, text in FILES.items():
        (tmp_path / "ws" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ws" / name).write_text(text)
    yield tmp_path / "ws"
    assert (tmp_path / "ws/secret/k").read_text() == SECRET


def over(workspace: Path, *rules: Any, **settings: Any) -> Any:
    context: Any = ToolkitContext(
        workspace,
        SecurityPolicy(default="allow", rules=rules),
        **{"state_dir": workspace.parent / "state", "commands": CommandSettings(sandbox="full"), **settings},
    )
    return create_agent_toolkit(context, packs=[BUILTIN, own_command, own_reader])


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("door", COMMANDS)
def test_what_a_rule_keeps_from_tools_no_command_reads(workspace: Path, door: str, rules: list[Any]) -> None:
    name, arguments = COMMANDS[door]
    approver = Asked(False)
    with over(workspace, *rules, approver=approver) as tk:
        told = str(tk.call(ToolCall("1", name, arguments)).value)
    assert SECRET not in told
    assert OPEN in told or approver.requests


@pytest.mark.parametrize("door", COMMANDS)
def test_without_the_rule_it_does(workspace: Path, door: str) -> None:
    """The control."""
    name, arguments = COMMANDS[door]
    with over(workspace, Rule("deny", path="secret/**", tools=["read_file"])) as tk:
        assert SECRET in tk.invoke(name, arguments).text()


def test_the_result_says_how_many_paths_were_hidden_and_by_which_rule(workspace: Path) -> None:
    with over(workspace, Rule("deny", path="secret/**"), Rule("ask", path="docs/a.md")) as tk:
        output = tk.tools.bash(command="true")
        assert output.hidden == [
            "1 path by Rule('deny', path='secret/**')",
            "1 path by Rule('ask', path='docs/a.md') (name the path in the command to ask for approval)",
        ]
        assert tk.invoke("bash", {"command": "true"}).text().endswith("to ask for approval)]")
    with over(workspace, Rule("deny", path="elsewhere/**")) as tk:
        assert tk.tools.bash(command="true").hidden == []


def test_without_the_permission_read_commands_see_no_file(workspace: Path) -> None:
    with over(workspace, permissions={"execute", "write"}) as tk:
        told = tk.invoke("bash", {"command": READ}).text()
        assert SECRET not in told and OPEN not in told
        assert "by the permission 'read', which this context does not grant" in told
    with over(workspace, Rule("deny", permission="read")) as tk:
        told = tk.invoke("bash", {"command": READ}).text()
        assert SECRET not in told and OPEN not in told


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_a_rule_on_writes_keeps_what_is_read(workspace: Path, decision: Any) -> None:
    with over(workspace, Rule(decision, path="docs/**", permission="write")) as tk:
        output = tk.tools.bash(command="cat docs/a.md; echo x > new; echo x > docs/a.md; echo x > docs/b.md")
    assert output.stdout == OPEN
    assert (workspace / "docs/a.md").read_text() == OPEN
    assert (workspace / "new").exists() and not (workspace / "docs/b.md").exists()


def test_a_rule_that_asks_before_writes_withholds_them_from_commands(workspace: Path) -> None:
    with over(workspace, Rule("ask", permission="write")) as tk:
        tk.tools.bash(command="echo x > new; cat open.txt")
    assert not (workspace / "new").exists()


class Asked:
    """An approver that notes what it is shown."""

    def __init__(self, approves: bool) -> None:
        self.requests: list[ApprovalRequest] = []
        self._approves = approves

    def __call__(self, request: ApprovalRequest) -> Approve | Deny:
        self.requests.append(request)
        return Approve() if self._approves else Deny("no")


@pytest.mark.parametrize(
    ("command", "cwd", "shown"),
    [
        ("cat secret/k", ".", ("secret/k",)),
        ("cat ./secret/k | wc -c; cat secret/k", ".", ("./secret/k", "secret/k")),
        ("cat ../secret/k", "docs", ("docs/../secret/k",)),
        ("cat <secret/k", ".", ("secret/k",)),
        ("dd if=secret/k status=none", ".", ("secret/k",)),
        ("cat 'secret/k'", ".", ("secret/k",)),
        ("cat secret/*", ".", ("secret",)),
        ("cat s*/k", ".", ()),
        ("cat $(printf 'sec%s' ret)/k", ".", ()),
    ],
)
def test_a_path_that_the_command_names_is_asked_about_and_opened_when_approved(
    workspace: Path, command: str, cwd: str, shown: tuple[str, ...]
) -> None:
    approver = Asked(True)
    with over(workspace, Rule("ask", path="secret/**"), approver=approver) as tk:
        told = tk.invoke("bash", {"command": command, "cwd": cwd}).text()
    assert [set(request.preview.reads) for request in approver.requests] == ([set(shown)] if shown else [])
    assert (SECRET in told) == bool(shown)


def test_an_approval_opens_what_was_named_and_nothing_else(workspace: Path) -> None:
    with over(workspace, Rule("ask", path="secret/**"), Rule("deny", path="deep"), approver=Asked(True)) as tk:
        named = tk.tools.bash(command="cat secret/k; cat secret/deep/*")
        assert named.stdout == SECRET
        assert SECRET not in tk.tools.bash(command="cat sec*/k").stdout, "the next call has no approval"
        assert tk.tools.bash(command="cat secret/deep/k").stdout == "", "no approval lifts a rule that denies"


def test_an_approval_for_one_rule_lifts_no_other(workspace: Path) -> None:
    """As for file tools, where the approval of a directory opens nothing in it that another rule asks about."""
    rules = [Rule("ask", path="secret/**"), Rule("ask", path="deep"), Rule("ask", tools=["own_reader"])]  # type: ignore[list-item]
    with over(workspace, *rules, approver=Asked(True)) as tk:
        told = tk.tools.bash(command="grep -r . secret").stdout
        assert SECRET in told and "deep" not in told
        assert SECRET in tk.tools.bash(command="cat secret/deep/k").stdout, "both rules ask about this path"
        told = tk.invoke("own_reader", {"path": "."}).text()
        assert OPEN in told and SECRET not in told, "no rule but that on the tool has asked"


def test_what_was_not_approved_does_not_run(workspace: Path) -> None:
    for approver, why in ((Asked(False), "not approved: no"), (None, "no approver")):
        with (
            over(workspace, Rule("ask", path="secret/**"), approver=approver) as tk,
            pytest.raises(ToolNotAllowed, match=why),
        ):
            tk.tools.bash(command="cat secret/k > copy")
    assert not (workspace / "copy").exists()


def test_explain_says_the_same(workspace: Path) -> None:
    policy = SecurityPolicy(default="allow", rules=[Rule("ask", path="secret/**")])
    with create_agent_toolkit(ToolkitContext(workspace, policy)):
        assert policy.explain("bash", {"command": "cat secret/k"}).decision == "ask"
        assert policy.explain("bash", {"command": "cat open.txt"}).decision == "allow"


def test_a_file_that_is_turned_into_a_link_after_the_approval_stays_hidden(workspace: Path) -> None:
    """What is approved is the real path that was shown."""
    (workspace / "secret/shown").write_text("shown")

    def approve(request: ApprovalRequest) -> Approve:
        (workspace / "secret/shown").unlink()
        (workspace / "secret/shown").symlink_to("k")
        return Approve()

    with over(workspace, Rule("ask", path="secret/**"), approver=approve) as tk:
        result = tk.call(ToolCall("1", "bash", {"command": "cat secret/shown"}))
    assert SECRET not in str(result.value)


@pytest.mark.parametrize("later", [False, True])
def test_an_approval_is_void_if_a_file_that_the_command_names_changes(workspace: Path, later: bool) -> None:
    rule = Rule("ask", path="secret/**")

    def approve(request: ApprovalRequest) -> Approve | Suspend:
        if later:
            return Suspend()
        (workspace / "secret/k").write_text("other")
        return Approve()

    with over(workspace, rule, approver=approve) as tk:
        if not later:
            with pytest.raises(ToolNotAllowed, match="'secret/k' changed while the call waited for approval"):
                tk.tools.bash(command="cat secret/k")
        else:
            with pytest.raises(ApprovalPending) as pending:
                tk.tools.bash(command="cat secret/k")
            assert SECRET in tk.resume(pending.value.suspended, Approve()).text()
            with pytest.raises(ApprovalPending) as pending:
                tk.tools.bash(command="cat secret/k")
            (workspace / "secret/k").write_text("other")
            with pytest.raises(ToolNotAllowed):
                tk.resume(pending.value.suspended, Approve())
    (workspace / "secret/k").write_text(SECRET)


def test_a_working_directory_that_is_hidden_is_refused(workspace: Path) -> None:
    (workspace / "link").symlink_to("secret/deep")
    with over(workspace, Rule("deny", path="secret/**")) as tk:
        for cwd in ("secret", "secret/deep", "docs/../secret", "link"):
            with pytest.raises(SandboxViolation, match=rf"'{cwd}' is hidden from commands by Rule\('deny'"):
                tk.tools.bash(command="ls", cwd=cwd)


def test_the_reduced_tier_refuses_and_names_the_setting_that_accepts_it(workspace: Path) -> None:
    needs("reduced")
    with (
        over(workspace, Rule("deny", path="secret/**"), commands=CommandSettings(sandbox="reduced")) as tk,
        pytest.raises(ToolNotAllowed, match=r"which the reduced sandbox.*unenforced_rules=\"accept\""),
    ):
        tk.tools.bash(command=READ)
    accepting = CommandSettings(sandbox="reduced", unenforced_rules="accept")
    with over(workspace, Rule("deny", path="secret/**"), commands=accepting) as tk:
        assert SECRET in tk.tools.bash(command=READ).stdout
