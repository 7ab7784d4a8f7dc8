"""Path rules are judged by where a path leads: every spelling of a call leads to the approval that its place needs.

Each row is one call. Without the rule it succeeds, which shows that the attack would work.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit import ApprovalRequest, Approve, Deny, Edit, Rule, SecurityPolicy, ToolCall, ToolkitContext, ToolkitError
from toolkit.errors import SandboxViolation, ToolNotAllowed
from toolkit.generated import create_agent_toolkit

SECRET, PUBLIC = "the secret\n", "the public text\n"
APPROVE = Approve()
ASK: list[Rule] = [Rule("ask", path="secrets/**")]
ALLOW: list[Rule] = [Rule("allow", path="docs/**")]

Call = tuple[str, dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    files = {
        "secrets/key": SECRET,
        "secrets/deep/more": SECRET,
        "SECRETS/key": SECRET,
        "docs/a.md": PUBLIC,
        "plain": PUBLIC,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    links = {
        "docs/to-key": "../secrets/key",
        "docs/chain-1": "chain-2",
        "docs/chain-2": "to-key",
        "docs/folder": "../secrets",
        "docs/dangling": "../secrets/new",
        "shortcut": "secrets",
        "here": ".",
        "alias": "docs",
        "to-public": "docs/a.md",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


class Person:
    """Approves, or gives another answer, and remembers what was asked."""

    def __init__(self, answer: Any = APPROVE, before: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.before = before
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        self.before()
        return self.answer


def run(root: Path, call: Call, rules: list[Rule], default: Any = "allow", tools: Any = None, **settings: Any) -> str:
    """The text of a call's answer."""
    policy = SecurityPolicy(default, tools, rules)
    context = ToolkitContext(root, policy, state_dir=root.parent / "state", **settings)
    name, arguments = call
    with create_agent_toolkit(context) as toolkit:
        toolkit_any: Any = toolkit
        text: str = toolkit_any.invoke(name, fill(arguments, root)).text()
        return text


def fill(arguments: dict[str, Any], root: Path) -> dict[str, Any]:
    return {
        key: value.replace("{root}", str(root)) if isinstance(value, str) else value for key, value in arguments.items()
    }


def snapshot(root: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()}


def read(path: str) -> Call:
    return "read_file", {"path": path}


def patch(*lines: str) -> Call:
    return "apply_patch", {"patch": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


UPDATE = ("@@", "-the secret", "+changed")
DELETE_KEY = patch("*** Delete File: docs/folder/key")

# The real path that an approver is shown, and the call. "" for a path that is real as it is written.
ASKED: list[tuple[str, Call]] = [
    ("", read("secrets/key")),
    ("secrets/key", read("docs/../secrets/key")),
    ("", read("{root}/secrets/key")),
    ("", read("./secrets/key")),
    ("", read("secrets//key")),
    ("secrets/key", read("secrets/deep/../key")),
    ("secrets/key", read("docs/to-key")),
    ("secrets/key", read("docs/chain-1")),
    ("secrets/key", read("docs/folder/key")),
    ("secrets/key", read("docs/folder/../secrets/key")),
    ("secrets/key", read("shortcut/key")),
    ("secrets/deep/more", read("alias/folder/deep/more")),
    ("secrets/key", read("here/here/secrets/key")),
    ("secrets/key", read("{root}/here/docs/to-key")),
    ("", read("SECRETS/key")),
    ("", ("grep", {"pattern": "secret", "path": "secrets/"})),
    ("secrets", ("grep", {"pattern": "secret", "path": "docs/folder"})),
    ("secrets/key", ("grep", {"pattern": "secret", "path": "docs/chain-1"})),
    ("secrets", ("glob", {"pattern": "*", "path": "shortcut"})),
    ("secrets", ("list", {"path": "docs/folder/"})),
    ("secrets/deep", ("tree", {"path": "docs/folder/deep"})),
    ("secrets/key", ("write_file", {"path": "docs/to-key", "content": "changed"})),
    ("secrets/new", ("write_file", {"path": "docs/folder/new", "content": "changed"})),
    ("secrets/new/deep", ("write_file", {"path": "docs/folder/new/deep", "content": "changed"})),
    ("secrets/new", ("write_file", {"path": "docs/dangling", "content": "changed"})),
    ("secrets/key", ("edit", {"path": "docs/chain-1", "old_string": "secret", "new_string": "changed"})),
    ("secrets/key", patch("*** Update File: docs/folder/key", *UPDATE)),
    ("secrets/key", patch("*** Update File: shortcut/key", "*** Move to: docs/k", *UPDATE)),
    ("secrets/a.md", patch("*** Update File: docs/a.md", "*** Move to: docs/folder/a.md", "@@", "-the public text", "+x")),
    ("secrets/new", patch("*** Add File: docs/folder/new", "+changed")),
    ("secrets/key", DELETE_KEY),
]  # fmt: skip


def name_of(value: object) -> str:
    if isinstance(value, tuple):
        tool, arguments = value
        return f"{tool}-{' '.join(map(str, arguments.values()))[:60]!r}"
    return str(value)


@pytest.mark.every_row
@pytest.mark.parametrize(("real", "call"), ASKED, ids=name_of)
def test_every_spelling_is_asked_about(root: Path, real: str, call: Call) -> None:
    before = snapshot(root)

    with pytest.raises(
        ToolNotAllowed, match=r"decided by Rule\('ask', path='secrets/\*\*'\), and no approver"
    ) as refusal:
        run(root, call, ASK)
    denying = Person(Deny("no"))
    with pytest.raises(ToolNotAllowed, match="was not approved: no"):
        run(root, call, ASK, approver=denying)
    assert SECRET.strip() not in str(refusal.value)
    assert snapshot(root) == before

    (request,) = denying.asked
    assert list(request.real_paths.values()) == ([real] if real else [])


@pytest.mark.each("call")
@pytest.mark.parametrize(("real", "call"), ASKED, ids=name_of)
def test_nobody_is_asked_about_what_a_deny_rule_covers(root: Path, real: str, call: Call) -> None:
    """Not even where the policy asks about everything else."""
    before, person = snapshot(root), Person()

    with pytest.raises(ToolkitError) as refusal:
        run(root, call, [Rule("deny", path="secrets")], "ask", approver=person)

    assert not person.asked
    assert refusal.value.code in ("TOOL_NOT_ALLOWED", "SANDBOX_VIOLATION")
    assert SECRET.strip() not in str(refusal.value)
    assert snapshot(root) == before


@pytest.mark.parametrize(("real", "call"), ASKED, ids=name_of)
def test_what_is_approved_runs_as_without_the_rule(root: Path, tmp_path: Path, real: str, call: Call) -> None:
    before = snapshot(root)
    person = Person()

    text = run(root, call, ASK, approver=person)

    assert len(person.asked) == 1
    assert SECRET.strip() in text or "key" in text or "more" in text or snapshot(root) != before


@pytest.mark.parametrize(("real", "call"), ASKED, ids=name_of)
def test_without_the_rule_each_of_them_succeeds(root: Path, real: str, call: Call) -> None:
    """The control."""
    before = snapshot(root)
    text = run(root, call, [])
    assert SECRET.strip() in text or "key" in text or "more" in text or snapshot(root) != before


@pytest.mark.parametrize(
    "path", ["docs/a.md", "alias/a.md", "to-public", "secrets/../docs/a.md", "{root}/docs/a.md", "plain"]
)
def test_what_the_rule_does_not_concern_is_read_without_a_question(root: Path, path: str) -> None:
    person = Person()
    assert PUBLIC.strip() in run(root, read(path), ASK, approver=person)
    # The text of a path counts as well as its place; too much is asked rather than too little.
    assert len(person.asked) == path.startswith("secrets/")


WALKS: list[Call] = [
    ("grep", {"pattern": "secret", "path": "."}),
    ("grep", {"pattern": "secret", "path": "{root}"}),
    ("grep", {"pattern": "secret", "path": "here"}),
    ("grep", {"pattern": "secret", "path": "docs/.."}),
    ("glob", {"pattern": "**/*"}),
    ("glob", {"pattern": "secrets/*"}),
    ("glob", {"pattern": "**/key"}),
    ("tree", {"path": "."}),
    ("list", {"path": ".", "recursive": True}),
]


@pytest.mark.parametrize("call", WALKS, ids=name_of)
@pytest.mark.parametrize(
    "tools", [{}, {"grep": "ask", "glob": "ask", "tree": "ask", "list": "ask"}], ids=["allowed", "asked"]
)
def test_a_walk_over_the_parent_leaves_it_out_and_says_so(root: Path, call: Call, tools: Any) -> None:
    """Also if the call was approved, but for another reason."""
    person = Person()

    text = run(root, call, ASK, tools=tools, approver=person)

    assert "the secret" not in text and "secrets/key" not in text and "more" not in text and "  key" not in text
    assert "left out, denied by the policy or not approved" in text
    assert len(person.asked) == len(tools) / 4
    control = run(root, call, [])
    assert "secrets/key" in control or "key" in control
    assert "left out" not in control


@pytest.mark.parametrize("decision", ["ask", "deny"])
@pytest.mark.parametrize("call", [WALKS[0], WALKS[4], ("tree", {"path": "vendor"}), WALKS[8]], ids=name_of)
def test_a_walk_over_a_root_inside_another_leaves_out_what_the_inner_root_does(
    root: Path, call: Call, decision: Any
) -> None:
    """A pattern starts at each root, for paths that are named and for paths that a walk finds."""
    inner = root / "vendor/lib"
    (inner / "private").mkdir(parents=True)
    (inner / "private/key").write_text(SECRET)
    rules = [Rule(decision, path=pattern) for pattern in ("private/**", "secrets/**")]
    with pytest.raises((ToolNotAllowed, SandboxViolation)):
        run(root, read("vendor/lib/private/key"), rules, read_roots=[inner])

    text = run(root, call, rules, read_roots=[inner])

    assert "private/key" not in text and "  key" not in text and "the secret" not in text
    control = run(root, call, rules)
    assert "private/key" in control or "  key" in control


def test_git_status_leaves_out_what_an_inner_root_does(root: Path) -> None:
    inner = root / "vendor/lib"
    for path in (inner / "private/key", root / "private/key", root / "open"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "vendor", "private", "open"], cwd=root, check=True)
    rules: list[Rule] = [Rule("ask", path="private/**")]

    text = run(root, ("git_status_summary", {}), rules, read_roots=[inner])

    assert "open" in text and "private/key" not in text and "2 changed paths not shown" in text
    assert "vendor/lib/private/key" in run(root, ("git_status_summary", {}), rules)


@pytest.mark.parametrize("pattern", ["/docs", "/docs/", "/docs/**", "./docs", "docs/**"])
def test_an_allow_rule_with_a_slash_starts_at_the_workspace(root: Path, pattern: str) -> None:
    (root / "src/docs").mkdir(parents=True)
    (root / "src/docs/a.md").write_text(SECRET)
    rules: list[Rule] = [Rule("allow", path=pattern)]
    assert PUBLIC.strip() in run(root, read("docs/a.md"), rules, "deny")
    with pytest.raises(ToolNotAllowed):
        run(root, read("src/docs/a.md"), rules, "deny")
    assert SECRET.strip() in run(root, read("src/docs/a.md"), [Rule("allow", path="docs")], "deny")


def test_an_approval_counts_for_the_rules_that_concern_its_path(root: Path) -> None:
    rules: list[Rule] = [Rule("ask", path="secrets/**"), Rule("ask", path="more")]
    call: Call = ("grep", {"pattern": "secret", "path": "shortcut"})
    person = Person()

    text = run(root, call, rules, approver=person)

    assert "key" in text and "more" not in text, "the approver saw 'secrets', not 'secrets/deep/more'"
    assert "1 entry left out" in text
    assert "more" in run(root, ("grep", {"pattern": "secret", "path": "secrets/deep/more"}), rules, approver=person)


@pytest.mark.parametrize(
    "pattern", ["{root}/secrets/**", "/secrets/**", "{root}/secrets", "key", "**/key", "secrets/k?y"]
)
@pytest.mark.parametrize(
    "path", ["secrets/key", "docs/to-key", "{root}/here/secrets/key", "docs/folder/../secrets/key"]
)
def test_every_form_of_a_pattern_finds_every_form_of_a_path(root: Path, pattern: str, path: str) -> None:
    rules: list[Rule] = [Rule("ask", path=pattern.format(root=root))]
    with pytest.raises(ToolNotAllowed, match=r"decided by Rule\('ask'"):
        run(root, read(path), rules)
    assert PUBLIC.strip() in run(root, read("docs/a.md"), rules)


# Ways out of what `allow docs/**` allows.
OUT: list[Call] = [
    read("docs/../secrets/key"),
    read("docs/to-key"),
    read("docs/chain-1"),
    read("docs/folder/key"),
    read("alias/folder/key"),
    read("docs/folder/../plain"),
    read("plain"),
    ("grep", {"pattern": "secret", "path": "docs/folder"}),
    ("list", {"path": "docs/folder"}),
    ("glob", {"pattern": "*", "path": "docs/.."}),
    ("tree", {"path": "docs/folder/deep"}),
    ("write_file", {"path": "docs/to-key", "content": "changed"}),
    ("write_file", {"path": "docs/folder/new", "content": "changed"}),
    ("write_file", {"path": "docs/dangling", "content": "changed"}),
    ("edit", {"path": "docs/to-key", "old_string": "secret", "new_string": "changed"}),
    patch("*** Update File: docs/folder/key", *UPDATE),
    patch("*** Update File: docs/a.md", "*** Move to: docs/folder/a.md", "@@", "-the public text", "+x"),
    DELETE_KEY,
]


@pytest.mark.every_row
@pytest.mark.parametrize("call", OUT, ids=name_of)
def test_an_allow_rule_covers_real_places_only(root: Path, call: Call) -> None:
    before = snapshot(root)

    with pytest.raises(ToolNotAllowed, match="the policy's default is deny"):
        run(root, call, ALLOW, "deny")

    assert snapshot(root) == before
    text = run(root, call, [])  # the control
    assert any(word in text for word in ("secret", "public", "key", "more")) or snapshot(root) != before


@pytest.mark.parametrize("call", OUT, ids=name_of)
def test_what_no_allow_rule_covers_can_be_approved(root: Path, call: Call) -> None:
    before = snapshot(root)
    person = Person()
    text = run(root, call, ALLOW, "ask", approver=person)
    assert len(person.asked) == 1
    assert any(word in text for word in ("secret", "public", "key", "more")) or snapshot(root) != before


INSIDE: list[Call] = [
    read("docs/a.md"),
    read("{root}/docs/a.md"),
    read("docs/./../docs/a.md"),
    read("to-public"),
    read("alias/a.md"),
    ("grep", {"pattern": "public", "path": "docs"}),
    ("grep", {"pattern": "public", "path": "alias"}),
    ("list", {"path": "docs"}),
    ("tree", {"path": "docs/"}),
    ("write_file", {"path": "docs/new/deep.md", "content": "changed"}),
    ("write_file", {"path": "alias/new.md", "content": "changed"}),
    ("edit", {"path": "to-public", "old_string": "public", "new_string": "changed"}),
    patch("*** Update File: docs/a.md", "*** Move to: docs/b/c.md", "@@", "-the public text", "+x"),
]  # fmt: skip


@pytest.mark.parametrize("call", INSIDE, ids=name_of)
def test_what_an_allow_rule_covers_needs_no_approval(root: Path, call: Call) -> None:
    before = snapshot(root)
    text = run(root, call, ALLOW, "deny")
    assert "public" in text or "a.md" in text or snapshot(root) != before


def test_patterns_of_allow_rules_start_at_the_workspace_or_are_absolute(root: Path) -> None:
    top = root.parts[1]  # the first name of the absolute path, "tmp" for example
    extra = root.parent / "extra"
    (extra / "docs").mkdir(parents=True)
    (extra / "docs/b.md").write_text(PUBLIC)
    settings: dict[str, Any] = {"default": "deny", "read_roots": [extra]}

    for pattern in (f"{top}/**", "ws/**", "docs/**", "extra"):
        for path in ("plain", f"{root}/plain", f"{extra}/docs/b.md"):
            with pytest.raises(ToolNotAllowed):
                run(root, read(path), [Rule("allow", path=pattern)], **settings)
    for pattern in (f"{extra}/**", f"{extra}/docs/*.md", "*.md"):
        assert PUBLIC.strip() in run(root, read(f"{extra}/docs/b.md"), [Rule("allow", path=pattern)], **settings)
    assert PUBLIC.strip() in run(root, read("plain"), [Rule("allow", path=f"{root}/plain")], **settings)


# Between the approval and the run

NEW_FILE: Call = ("write_file", {"path": "out/deep/new.txt", "content": "approved"})


@pytest.fixture
def out(root: Path) -> Path:
    (root / "out/deep").mkdir(parents=True)
    return root / "out"


def swap_for_link(out: Path) -> None:
    (out / "deep").rmdir()
    (out / "deep").symlink_to("../secrets")


def swap_for_directory(out: Path) -> None:
    (out / "deep").rename(out / "old")
    (out / "deep").mkdir()


def swap_ancestor(out: Path) -> None:
    out.rename(out.parent / "old")
    (out / "deep").mkdir(parents=True)


def swap_ancestor_for_link(out: Path) -> None:
    out.rename(out.parent / "old")
    out.symlink_to("secrets")


@pytest.mark.parametrize("swap", [swap_for_link, swap_for_directory, swap_ancestor, swap_ancestor_for_link])
def test_the_approval_of_a_new_file_is_void_in_another_directory(
    root: Path, out: Path, swap: Callable[[Path], None]
) -> None:
    person = Person(before=lambda: swap(out))

    words = "the place of the new file '.*' changed while the call waited for approval, .*; call the tool again"
    with pytest.raises(ToolNotAllowed, match=words):
        run(root, NEW_FILE, [], tools={"write_file": "ask"}, approver=person)

    assert list(root.rglob("new.txt")) == []
    run(root, NEW_FILE, [])  # the control: the same call writes where the directory is now
    assert [path.read_text() for path in root.rglob("new.txt")] != []


def test_the_approval_of_a_new_file_holds_where_its_directory_is_the_same(root: Path, out: Path) -> None:
    person = Person(before=lambda: (out / "deep/neighbour").write_text("made meanwhile"))
    run(root, NEW_FILE, [], tools={"write_file": "ask"}, approver=person)
    assert (out / "deep/new.txt").read_text() == "approved"


def test_a_directory_that_is_exchanged_voids_the_approval_to_search_it(root: Path) -> None:
    def swap() -> None:
        (root / "docs").rename(root / "old")
        (root / "docs").symlink_to("secrets")

    call: Call = ("grep", {"pattern": "secret", "path": "docs"})
    with pytest.raises(ToolNotAllowed, match="changed while the call waited for approval"):
        run(root, call, [], tools={"grep": "ask"}, approver=Person(before=swap))
    assert "the secret" in run(root, call, [])


def test_an_edit_is_the_approval_of_its_own_paths(root: Path) -> None:
    person = Person(Edit({"path": "docs/to-key"}))
    assert "the secret" in run(root, read("secrets/deep/more"), ASK, approver=person)
    rules = [*ASK, Rule("deny", path="secrets/key")]
    with pytest.raises(ToolNotAllowed, match="decided by Rule\\('deny', path='secrets/key'\\)"):
        run(root, read("secrets/deep/more"), rules, approver=person)
    with pytest.raises(ToolkitError):
        run(root, read("docs/to-key"), rules, approver=Person())


@pytest.mark.parametrize("name", ["to-key", "to-secrets/key", "to-secrets/missing", "nowhere"])
def test_a_refusal_says_that_a_path_leads_elsewhere_but_not_where(root: Path, name: str) -> None:
    """As the refusal by a deny rule does. It must not tell whether something is there, either."""
    (root / "docs/to-secrets").symlink_to("../secrets")
    (root / "docs/nowhere").symlink_to("../secrets/missing")
    allow = SecurityPolicy("deny", rules=[Rule("allow", path="docs/**")])
    with create_agent_toolkit(ToolkitContext(root, allow, state_dir=root.parent / "state")) as toolkit:
        answer = toolkit.call(ToolCall("1", "read_file", {"path": f"docs/{name}"}))
        assert str(answer.value) == (
            "TOOL_NOT_ALLOWED: 'read_file' is not allowed: the policy's default is deny"
            f" ('docs/{name}' leads to a place that no allow rule covers)"
        )
        plain = toolkit.call(ToolCall("2", "read_file", {"path": "secrets/key"}))
        assert str(plain.value).endswith("the policy's default is deny")


def test_the_policy_explains_by_the_real_place(root: Path) -> None:
    policy = SecurityPolicy("allow", rules=ASK)
    with create_agent_toolkit(ToolkitContext(root, policy, state_dir=root.parent / "state")):
        assert policy.explain("read_file", {"path": "docs/to-key"}).decision == "ask"
        assert policy.explain("read_file", {"path": "docs/a.md"}).decision == "allow"
        verdict = policy.explain("write_file", {"path": ".envrc", "content": ""})
        assert verdict.decision == "ask" and "can run code for the user later" in verdict.because
