"""What a call may touch is judged on the opened object: by every operation, after an exchange, and below a directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.guard.fs.test_protect import CHANGES, READS, Act, listed, snapshot
from toolkit.errors import SandboxViolation
from toolkit.guard import Drop, Put, ResolverName, SandboxFS
from toolkit.guard.files.consent import AskRule, Consent, Globs, RealPath

OLD = b"old"


@pytest.fixture
def root(memory: Path) -> Path:
    root = memory / "ws"
    for name in (
        "secrets/key",
        "secrets/deep/more",
        "docs/a.md",
        "docs/.envrc",
        "app/.vscode/tasks.json",
        "app/x",
        "plain.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(OLD)
    (root / "empty").mkdir()
    (root / "link").symlink_to("secrets/key")
    (root / "folder").symlink_to("secrets")
    (root / "docs/out").symlink_to("../plain.txt")
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver) as fs:
        yield fs


def asks(*globs: str, only_writes: bool = False) -> AskRule:
    return AskRule(Globs(globs), "decided by a rule", only_writes)


def in_docs(real: RealPath) -> bool:
    return real.in_workspace and real.below[0][:1] == ("docs",)


def approved(fs: SandboxFS, consent: Consent, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> SandboxFS:
    """The view of a call that was approved with these paths."""
    paths = [*map(fs.locate, reads), *(fs.locate(path, is_written=True) for path in writes)]
    return fs.with_consent(consent.approve(paths))


SECRETS = asks("secrets/**")
SPELLINGS = [
    "secrets/key",
    "SECRETS/key",
    "secrets/none",
    "docs/../secrets/key",
    "folder/key",
    "folder/new/deep",
    "{root}/secrets/key",
]


@pytest.mark.each("text", "act")
@pytest.mark.parametrize("act", [*READS.values(), *CHANGES.values()], ids=[*READS, *CHANGES])
@pytest.mark.parametrize("text", SPELLINGS)
def test_what_needs_approval_is_neither_read_nor_changed(fs: SandboxFS, root: Path, text: str, act: Act) -> None:
    before = snapshot(root)

    with pytest.raises(SandboxViolation, match="needs approval: decided by a rule; call the tool with that path"):
        act(fs.with_consent(Consent([SECRETS])), text.format(root=root))

    assert snapshot(root) == before


@pytest.mark.each("text", "act")
@pytest.mark.parametrize("act", [*READS.values(), *CHANGES.values()], ids=[*READS, *CHANGES])
@pytest.mark.parametrize("text", ["plain.txt", "docs/../plain.txt", "link", "secrets/key", "docs/../new"])
def test_what_no_allow_rule_covers_is_neither_read_nor_changed(fs: SandboxFS, root: Path, text: str, act: Act) -> None:
    view = fs.with_consent(Consent([], in_docs))
    before = snapshot(root)
    with pytest.raises(SandboxViolation, match="no allow rule covers it, and it was not approved for this call"):
        act(view, text)

    assert snapshot(root) == before


def test_a_link_that_leads_out_of_what_is_allowed_is_only_removed(fs: SandboxFS, root: Path) -> None:
    view = fs.with_consent(Consent([], in_docs))
    for act in (*READS.values(), CHANGES["write"], CHANGES["make_dir"], CHANGES["lock"]):
        with pytest.raises(SandboxViolation, match="no allow rule covers it"):
            act(view, "docs/out")
    view.remove_file("docs/out")  # the link itself is in docs
    assert (root / "plain.txt").read_bytes() == OLD


@pytest.mark.parametrize("text", [*SPELLINGS, "link", "plain.txt", "docs/../plain.txt"])
def test_without_consent_each_of_them_is_written(fs: SandboxFS, root: Path, text: str) -> None:
    """The control."""
    fs.write_file(text.format(root=root), b"evil")


def test_an_approval_covers_its_place_and_what_is_below(fs: SandboxFS, root: Path) -> None:
    one = approved(fs, Consent([SECRETS]), reads=["link"])
    tree = approved(fs, Consent([SECRETS]), reads=["folder"])

    for text in ("link", "secrets/key", "folder/key"):
        assert one.open_file(text).read(9) == OLD
    one.write_file("secrets/key", b"new")
    for text in ("secrets/deep/more", "secrets/key2", "secrets/keys/x"):
        with pytest.raises(SandboxViolation, match="needs approval"):
            one.write_file(text, b"new")
    with one.open_dir("secrets") as folder:
        assert (listed(folder), folder.hidden) == ({"key"}, 1)
    with tree.open_dir("secrets") as folder, folder.child("deep") as deep:
        assert (listed(folder), folder.hidden) == ({"key", "deep"}, 0)
        assert deep.read_child_file("more", 9) == OLD
    tree.write_file("secrets/new/file", b"new")


def test_an_approval_does_not_follow_an_exchanged_link(fs: SandboxFS, root: Path) -> None:
    (root / "way").symlink_to("docs/a.md")
    (root / "way-in").symlink_to("docs")
    consent = Consent([SECRETS], lambda real: False)
    view = approved(fs, consent, reads=["way"], writes=["way-in/new"])
    assert view.open_file("way").read(9) == OLD

    for name, target in (("way", "secrets/key"), ("way-in", "secrets")):
        (root / name).unlink()
        (root / name).symlink_to(target)

    with pytest.raises(SandboxViolation, match="needs approval"):
        view.open_file("way")
    with pytest.raises(SandboxViolation, match="needs approval"):
        view.write_file("way-in/new", b"evil")
    fs.write_file("way-in/new", b"evil")  # the control
    assert (root / "secrets/new").read_bytes() == b"evil"


def test_listings_leave_out_what_needs_approval_and_count_it(fs: SandboxFS) -> None:
    view = fs.with_consent(Consent([asks("secrets"), asks("*.md")])).with_deny(["app"])

    with view.open_dir(".") as top, view.open_dir("docs") as docs:
        assert listed(top) == {"docs", "plain.txt", "empty", "link", "folder"}
        assert top.hidden == 2
        assert set(docs.names().symlinks) == {"out"} and docs.hidden == 1
        for name in ("a.md", "A.MD"):
            for step in (docs.open_child_file, docs.child):
                with pytest.raises(SandboxViolation, match="needs approval"):
                    step(name)
            with pytest.raises(SandboxViolation, match="needs approval"):
                docs.changed_ns([name])
        with pytest.raises(SandboxViolation, match="deny rule"):
            top.child("app")
    assert view.hides("secrets/key") and view.hides("app/x") and not view.hides("plain.txt")
    restricted = fs.with_consent(Consent([], in_docs))
    assert restricted.hides("plain.txt") and not restricted.hides("docs/a.md")
    assert view.similar_paths("docs/a.m") == [] and restricted.similar_paths("plain.tx") == []


def test_a_deny_rule_is_final(fs: SandboxFS) -> None:
    view = approved(fs.with_deny(["key"]), Consent([SECRETS]), reads=["secrets/key", "secrets"])
    with pytest.raises(SandboxViolation, match="deny rule"):
        view.open_file("secrets/key")
    assert fs.with_deny(["key"]).locate("link").real is None, "what is denied is covered by no allow rule"


# Rules for writes only

LATER = asks(".vscode", ".envrc", only_writes=True)
WRITES = [
    "docs/.envrc",
    "docs/.ENVRC",
    "app/.vscode/tasks.json",
    "app/.vscode/new/x",
    "new/.vscode",
    "app/../docs/.envrc",
]


@pytest.mark.each("text", "change")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("text", WRITES)
def test_rules_for_writes_hold_for_every_change(fs: SandboxFS, root: Path, text: str, change: str) -> None:
    view = fs.with_consent(Consent([LATER]))
    before = snapshot(root)

    with pytest.raises(SandboxViolation, match="needs approval"):
        CHANGES[change](view, text)
    with pytest.raises(SandboxViolation, match="needs approval"):
        CHANGES[change](approved(fs, Consent([LATER]), reads=[text]), text)  # somebody approved that it is read

    assert snapshot(root) == before
    fs.write_file(text, b"evil")  # the control


def test_rules_for_writes_do_not_concern_reads(fs: SandboxFS) -> None:
    view = fs.with_consent(Consent([LATER]))
    assert view.open_file("docs/.envrc").read(9) == OLD
    with view.open_dir("docs") as docs:
        assert ".envrc" in listed(docs) and docs.hidden == 0


def test_a_directory_that_holds_one_is_not_moved_without_approval(fs: SandboxFS, root: Path) -> None:
    view = fs.with_consent(Consent([LATER, asks("store/b")]))
    (root / "new").mkdir()
    (root / "new/b").touch()
    (root / "outer/inner").mkdir(parents=True)
    (root / "app").rename(root / "outer/inner/app")

    for old in ("outer", "outer/inner", "outer/inner/app"):
        with pytest.raises(SandboxViolation, match=r"it contains 'outer/inner/app/\.vscode', which needs approval"):
            view.rename(old, "moved")
    with pytest.raises(SandboxViolation, match="which needs approval"):
        view.rename("new", "store")
    view.rename("new", "other")
    view.rename("empty", "full")
    with pytest.raises(SandboxViolation, match="needs approval"):
        view.rename("full", ".vscode")
    approved(fs, Consent([LATER]), writes=["full", ".vscode"]).rename("full", ".vscode")
    fs.rename("outer", "moved")  # the control


def test_transactions_and_both_ends_of_a_move(fs: SandboxFS, root: Path) -> None:
    view = fs.with_consent(Consent([LATER, SECRETS]))
    old = fs.fingerprint("docs/.envrc")
    key = fs.fingerprint("secrets/key")
    for change in (
        Put("docs/.envrc", b"evil", old),
        Put("docs/new/.envrc", b"evil", None),
        Put("link", b"evil", key),
        Drop("docs/.envrc", old),
    ):
        with pytest.raises(SandboxViolation, match="needs approval"):
            view.transaction([Put("fine.txt", b"new", None), change])
    for pair in (
        ("plain.txt", "docs/.envrc"),
        ("docs/.envrc", "plain"),
        ("secrets/key", "plain"),
        ("plain.txt", "folder/k"),
    ):
        with pytest.raises(SandboxViolation, match="needs approval"):
            view.rename(*pair, replace=True)
    assert not (root / "fine.txt").exists()
    fine = approved(fs, Consent([LATER, SECRETS]), writes=["docs/.envrc", "plain.txt"])
    fine.transaction([Put("docs/.envrc", b"new", old), Put("fine.txt", b"new", None)])
    assert (root / "docs/.envrc").read_bytes() == b"new"


# Where paths lead


def test_paths_are_located_without_failing(fs: SandboxFS, root: Path) -> None:
    (root / "loop").symlink_to("loop")
    (root / "away").symlink_to("/etc")
    for text in (
        "",
        "\0",
        "../x",
        "/etc/passwd",
        "loop",
        "loop/x",
        "away",
        "away/passwd",
        "plain.txt/x",
        "none/../x",
        "n" * 300,
    ):
        assert fs.locate(text).real is None, text
    for text, real in {
        ".": (),
        "{root}": (),
        "docs/": ("docs",),
        "link": ("secrets", "key"),
        "folder/none/deep": ("secrets", "none", "deep"),
        "docs/../none": ("none",),
    }.items():
        found = fs.locate(text.format(root=root)).real
        assert found is not None and found.below == (real,)
    assert fs.locate("link").shown == "secrets/key" and fs.locate("secrets/key").shown == ""


def test_the_identity_of_a_path_changes_with_the_way_to_it(fs: SandboxFS, root: Path) -> None:
    texts = ("docs/new", "docs/none/new", "docs/a.md", "docs", "link")
    before = [fs.locate(text).identity for text in texts]
    (root / "docs/neighbour").touch()
    assert [fs.locate(text).identity for text in texts] == before
    (root / "docs").rename(root / "old")
    (root / "docs").mkdir()
    (root / "docs/a.md").hardlink_to(root / "old/a.md")
    (root / "link").unlink()
    (root / "link").symlink_to("folder/key")
    assert all(now != then for now, then in zip((fs.locate(text).identity for text in texts), before, strict=True))
