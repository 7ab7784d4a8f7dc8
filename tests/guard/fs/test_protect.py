"""What may not be changed, what may not be read, and roots in addition to the workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.guard.fs.test_escapes import OPERATIONS, outcome
from tests.guard.world import ROWS, Row, build, name_of
from toolkit.errors import SandboxViolation, SetupError, ToolFailed
from toolkit.guard import DirEntry, ResolverName, SandboxDir, SandboxFS
from toolkit.guard.files import place
from toolkit.guard.files.place import real_names

Act: TypeAlias = Callable[[SandboxFS, str], object]

CHANGES: dict[str, Act] = {
    "write": lambda fs, text: fs.write_file(text, b"new"),
    "create": lambda fs, text: fs.write_file(text, b"new", create_only=True),
    "make_dir": lambda fs, text: fs.make_dir(text),
    "remove_file": lambda fs, text: fs.remove_file(text),
    "remove_dir": lambda fs, text: fs.remove_dir(text),
    "rename": lambda fs, text: fs.rename(text, "moved"),
    "rename_to": lambda fs, text: fs.rename("plain.txt", text),
    "rename_over": lambda fs, text: fs.rename("plain.txt", text, replace=True),
    "lock": lambda fs, text: fs.lock(text).__enter__(),
}
READS: dict[str, Act] = {
    "open_file": lambda fs, text: fs.open_file(text),
    "open_dir": lambda fs, text: fs.open_dir(text),
    "stat": lambda fs, text: fs.stat(text),
    "fingerprint": lambda fs, text: fs.fingerprint(text),
}


def blind_to_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    readlink = os.readlink

    def without_proc(path: str, **options: int) -> str:
        if str(path).startswith("/proc/"):
            raise FileNotFoundError
        return readlink(path, **options)

    monkeypatch.setattr(os, "readlink", without_proc)


@pytest.fixture(params=["with /proc", "without /proc"])
def proc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without /proc":
        blind_to_proc(monkeypatch)


@pytest.fixture
def root(memory: Path) -> Path:
    root = memory / "ws"
    for name in (
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        "sub/code.py",
        "plain.txt",
        ".env",
        "keys/a.pem",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("old")
    (root / "empty").mkdir()
    (root / "git-link").symlink_to(".git")
    (root / "sub/config-link").symlink_to("../.git/config")
    (root / "harmless-name").symlink_to(".env")
    (root / "keys-link").symlink_to("keys")
    return root


@pytest.fixture
def fs(root: Path, resolver: ResolverName, proc: None) -> Iterator[SandboxFS]:
    with SandboxFS(root, resolver=resolver, protected=["*.lock", "conf/secret.toml"]) as fs:
        yield fs


def snapshot(root: Path) -> dict[str, str]:
    return {str(path): path.read_text() if path.is_file() else "" for path in sorted(root.rglob("*"))}


# Protected names


@pytest.mark.each("text", "change")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "text",
    [
        ".git",
        ".git/",
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/new",
        ".git/new/deep/x",
        ".GIT/config",
        ".Git/hooks/post-checkout",
        ".g\u200cit/config",
        ".git./config",
        "GIT~1/config",
        "git-link/config",
        "git-link/hooks/new",
        "git-link/../.git/config",
        "sub/.git",
        "sub/.git/config",
        "sub/../.git/config",
        "empty/.git",
        "empty/.git/hooks/post-checkout",
        "new/.git/config",
        "new/.GIT",
        "uv.lock",
        "sub/UV.LOCK",
        "conf/secret.toml",
        "Conf/Secret.toml",
        "empty/../conf/secret.toml/x",
        "sub/.git/../code.py",
    ],
)
def test_a_protected_place_is_never_changed(fs: SandboxFS, root: Path, text: str, change: str) -> None:
    before = snapshot(root)

    with pytest.raises(SandboxViolation, match="protected"):
        CHANGES[change](fs, text)

    assert snapshot(root) == before


@pytest.mark.parametrize("change", ["write", "create", "make_dir"])
def test_a_link_to_a_protected_file_is_not_written_through(fs: SandboxFS, root: Path, change: str) -> None:
    (root / "hook").symlink_to(".git/hooks/not-yet")
    before = snapshot(root)

    for text in ("sub/config-link", "hook"):
        with pytest.raises(SandboxViolation, match="protected"):
            CHANGES[change](fs, text)

    assert snapshot(root) == before
    (root / "hook").write_text("unguarded")
    assert (root / ".git/hooks/not-yet").exists()


@pytest.mark.parametrize(
    "text", [".gitignore", ".gitattributes", ".github/workflows/ci.yml", ".gitmodules", "git", "x.git/y", "sub/code.py"]
)
def test_what_only_resembles_git_is_changed(fs: SandboxFS, root: Path, text: str) -> None:
    fs.write_file(text, b"new")

    assert (root / text).read_bytes() == b"new"


def test_protected_files_are_read(fs: SandboxFS) -> None:
    for text in (".git/config", ".git/hooks/pre-commit", "git-link/config", "sub/config-link"):
        with fs.open_file(text) as file:
            assert file.read(10) == b"old"


@pytest.mark.parametrize("replace", [False, True])
def test_a_directory_that_holds_something_protected_stays_where_it_is(fs: SandboxFS, root: Path, replace: bool) -> None:
    (root / "outer/middle").mkdir(parents=True)
    (root / "sub").rename(root / "outer/middle/sub")
    (root / "conf").mkdir()
    (root / "conf/secret.toml").write_text("old")
    (root / "plan").mkdir()
    (root / "plan/secret.toml").write_text("planted")

    for old, new in [("outer", "moved"), ("outer/middle", "moved"), ("outer/middle/sub", "moved"), ("conf", "moved")]:
        with pytest.raises(SandboxViolation, match=r"protected"):
            fs.rename(old, new, replace=replace)
    (root / "conf/secret.toml").unlink()
    (root / "conf").rmdir()
    with pytest.raises(SandboxViolation, match="protected"):
        fs.rename("plan", "conf", replace=replace)  # it would bring the protected file into being
    fs.rename("plan", "other", replace=replace)

    assert (root / "outer/middle/sub/.git/config").read_text() == "old"
    assert (root / "other/secret.toml").exists() and not (root / "conf").exists()


def test_a_link_made_later_does_not_help(fs: SandboxFS, root: Path) -> None:
    """As a command may do that ran in between."""
    fs.write_file("empty/config", b"fine")
    (root / "empty/config").unlink()
    (root / "empty").rmdir()
    (root / "empty").symlink_to(".git")

    with pytest.raises(SandboxViolation, match="protected"):
        fs.write_file("empty/config", b"evil")
    (root / "empty").unlink()
    (root / "empty").symlink_to(root.parent)
    with pytest.raises(SandboxViolation, match="outside"):
        fs.write_file("empty/config", b"evil")

    assert (root / ".git/config").read_text() == "old"
    assert not (root.parent / "config").exists()


# Deny rules

DENY = [".env", "keys/**", "/plain.txt"]


@pytest.mark.each("text", "act")
@pytest.mark.parametrize("act", [*READS.values(), *CHANGES.values()], ids=[*READS, *CHANGES])
@pytest.mark.parametrize(
    "text",
    [
        ".env",
        ".ENV",
        "./.env",
        "sub/../.env",
        "sub/.env",
        ".env/below",
        "keys/a.pem",
        "keys/none",
        "KEYS/A.PEM",
        "keys-link/a.pem",
        "sub/../keys/a.pem",
        "{root}/keys/a.pem",
        "{root}/.env",
    ],
)
def test_what_is_denied_is_neither_read_nor_changed(fs: SandboxFS, root: Path, text: str, act: Act) -> None:
    before = snapshot(root)

    with pytest.raises(SandboxViolation, match="deny rule"):
        act(fs.with_deny(DENY), text.format(root=root))

    assert snapshot(root) == before


@pytest.mark.each("act")
@pytest.mark.parametrize("act", [*READS.values(), CHANGES["write"], CHANGES["create"]], ids=[*READS, "write", "create"])
def test_a_link_of_another_name_does_not_lead_to_what_is_denied(fs: SandboxFS, root: Path, act: Act) -> None:
    (root / "second").symlink_to("harmless-name")
    (root / "dangling").symlink_to("keys/none")
    view = fs.with_deny(DENY)

    for text in ("harmless-name", "second", "dangling"):
        with pytest.raises(SandboxViolation, match="deny rule"):
            act(view, text)
    assert (root / "second").read_text() == "old"


def test_an_absolute_pattern_holds_through_a_link(fs: SandboxFS, root: Path) -> None:
    for glob in (f"{root}/keys", f"{root}/keys/*.pem"):
        for text in ("keys-link/a.pem", "sub/../keys/a.pem"):
            with pytest.raises(SandboxViolation, match="deny rule"):
                fs.with_deny([glob]).open_file(text)


def test_what_is_not_denied_is_used_as_before(fs: SandboxFS, root: Path) -> None:
    view = fs.with_deny(DENY)

    with view.open_file("sub/code.py") as file:
        assert (file.path, file.read(10)) == ("sub/code.py", b"old")
    view.write_file("sub/plain.txt", b"new")
    view.rename("sub/plain.txt", "sub/moved")
    view.make_dir("sub/keys")
    view.remove_file("harmless-name")  # the link, not what it leads to
    assert (root / ".env").read_text() == "old"
    assert view.stat("keys").kind == "directory"  # only what is below it is denied
    with fs.open_file(".env") as file:
        assert file.read(10) == b"old"


def listed(folder: SandboxDir) -> set[str]:
    return {entry.name for entry in folder.entries()}


def entry(name: str) -> DirEntry:
    return DirEntry(name, name, "file", 0, 0)


def test_listings_leave_out_what_is_denied_and_count_it(fs: SandboxFS, root: Path) -> None:
    view = fs.with_deny(DENY).with_deny(["sub/code.py"])
    (root / "sub/.ENV").touch()

    with view.open_dir(".") as top, view.open_dir("keys-link") as keys:
        assert listed(top) == {".git", "sub", "keys", "empty", "git-link", "harmless-name", "keys-link"}
        assert top.hidden == 2
        assert (listed(keys), keys.hidden) == (set(), 1)
        with top.child(entry("sub")) as sub:
            assert listed(sub) == {".git", "config-link"}
            assert (sub.hidden, listed(sub), sub.hidden) == (2, {".git", "config-link"}, 2)
            for name in ("code.py", "CODE.PY", ".env"):
                for step in (sub.open_child_file, sub.child):
                    with pytest.raises(SandboxViolation, match="deny rule"):
                        step(entry(name))
            with sub.child(entry(".git")) as git, git.open_child_file(entry("config")) as file:
                assert file.path == "sub/.git/config"
    (root / os.fsdecode(b"not-utf8-\xff")).touch()
    (root / os.fsdecode(b"\xff")).mkdir()
    (root / os.fsdecode(b"\xff/file")).touch()
    (root / "odd-link").symlink_to(os.fsdecode(b"\xff/file"))
    with view.open_dir(".") as top, fs.with_deny(["not-utf8*"]).open_dir(".") as fewer:
        assert "not-utf8-\\xff" in listed(top)
        assert "not-utf8-\\xff" not in listed(fewer)
    assert view.stat("odd-link").kind == "file"
    with fs.open_dir(".") as top:
        assert {".env", "plain.txt"} <= listed(top)
        assert top.hidden == 0


def test_suggestions_do_not_name_what_is_denied(fs: SandboxFS) -> None:
    assert fs.similar_paths("plain.tx") == ["plain.txt"]
    assert fs.with_deny(DENY).similar_paths("plain.tx") == []


def test_a_directory_that_holds_something_denied_stays_where_it_is(fs: SandboxFS, root: Path) -> None:
    view = fs.with_deny(["keys/a.pem", "store/b.pem"])
    (root / "new").mkdir()
    (root / "new/b.pem").touch()

    for old, new in (("keys", "moved"), ("new", "store")):
        with pytest.raises(SandboxViolation, match="denied"):
            view.rename(old, new)
    view.rename("new", "moved")


def test_views_combine_and_each_keeps_its_own(fs: SandboxFS) -> None:
    asked: list[str] = []

    for view in (
        fs.with_check(lambda: asked.append("asked")).with_deny([".env"]),
        fs.with_deny([".env"]).with_check(lambda: asked.append("asked")),
    ):
        asked.clear()
        with pytest.raises(SandboxViolation):
            view.stat(".env")
        assert asked
    assert fs.with_deny([]).stat(".env").kind == "file"
    with pytest.raises(SetupError):
        fs.with_deny(".env")
    with pytest.raises(SetupError):
        fs.with_deny(["["])


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world")
    build(base)
    return base


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_rules_that_do_not_concern_a_path_change_no_answer(
    row: Row, operation: str, base: Path, resolver: ResolverName
) -> None:
    text = row.text.format(base=base)

    with SandboxFS(base / "ws", resolver=resolver) as fs, fs.with_deny(["of no concern", "nor/this"]) as view:
        assert outcome(operation, view, text) == outcome(operation, fs, text)


# Extra roots


@pytest.fixture
def wide(root: Path, resolver: ResolverName, proc: None) -> Iterator[SandboxFS]:
    for name in ("library/deep", "library/scratch", "output"):
        (root.parent / name).mkdir(parents=True)
        (root.parent / name / "file").write_text(name)
    (root.parent / "library/up").symlink_to("../output/file")
    (root / "to-output").symlink_to("../output/file")
    with SandboxFS(
        root,
        resolver=resolver,
        read_roots=[root.parent / "library"],
        write_roots=[root.parent / "output", root.parent / "library/scratch"],
    ) as fs:
        yield fs


def test_an_absolute_path_below_an_extra_root_is_read_and_shown_as_asked(wide: SandboxFS, root: Path) -> None:
    library = root.parent / "library"

    with wide.open_file(f"{library}//deep/./file") as file, wide.open_dir(str(library)) as folder:
        assert (file.path, file.read(100)) == (f"{library}/deep/file", b"library/deep")
        assert folder.path == str(library)
        assert listed(folder) == {"deep", "scratch", "up"}
        with folder.child(entry("deep")) as deep, deep.open_child_file(entry("file")) as again:
            assert again.path == f"{library}/deep/file"
    assert wide.similar_paths(f"{library}/deep/fiel") == [f"{library}/deep/file"]
    with pytest.raises(ToolFailed) as failure:
        wide.stat(f"{library}/none")
    assert failure.value.details["path"] == f"{library}/none"


def test_no_root_is_a_way_into_another_one_or_out(wide: SandboxFS, root: Path) -> None:
    outer = root.parent

    for text in (
        "to-output",
        f"{outer}/library/up",
        f"{outer}/library/../output/file",
        f"{outer}",
        f"{outer}/output-2/x",
        "../output/file",
    ):
        with pytest.raises(SandboxViolation, match="outside"):
            wide.open_file(text)
        with pytest.raises(SandboxViolation):
            wide.write_file(text, b"new")
    assert (root / "to-output").read_text() == "output"


def test_a_read_root_is_not_written_and_a_write_root_is(wide: SandboxFS, root: Path) -> None:
    outer = root.parent

    for text in (f"{outer}/library/deep/file", f"{outer}/library/new", f"{outer}/library/deep/../scratch/file"):
        with pytest.raises(SandboxViolation, match="read-only root"):
            wide.write_file(text, b"new")
    written = wide.write_file(f"{outer}/output/deep/new", b"new")
    wide.write_file(f"{outer}/library/scratch/file", b"new")
    wide.rename("plain.txt", f"{outer}/output/plain.txt")

    assert written.path == f"{outer}/output/deep/new"
    assert (outer / "output/deep/new").read_bytes() == (outer / "library/scratch/file").read_bytes() == b"new"
    assert (outer / "output/plain.txt").exists()
    assert (outer / "library/deep/file").read_text() == "library/deep"
    with pytest.raises(SandboxViolation, match="protected"):
        wide.write_file(f"{outer}/output/.git/config", b"new")
    with pytest.raises(SandboxViolation):
        wide.remove_dir(f"{outer}/output")


def test_deny_rules_hold_in_extra_roots(wide: SandboxFS, root: Path) -> None:
    library = f"{root.parent}/library"

    for glob in ("file", "deep/file", "deep/**", f"{library}/deep", f"{library}/**"):
        with pytest.raises(SandboxViolation, match="deny rule"):
            wide.with_deny([glob]).open_file(f"{library}/deep/file")
    wide.with_deny(["library", "/deep/none"]).open_file(f"{library}/deep/file").close()


def test_of_roots_in_each_other_the_deepest_decides(root: Path, resolver: ResolverName, proc: None) -> None:
    (root.parent / "x").mkdir()
    around = f"{root.parent}/x/../ws"  # a way to the workspace that begins at the root around it
    with SandboxFS(root, resolver=resolver, read_roots=[root / "keys"], write_roots=[root.parent]) as fs:
        for text in ("keys/a.pem", "keys-link/a.pem", f"{root}/keys/new", f"{around}/keys/a.pem"):
            with pytest.raises(SandboxViolation, match="read-only root"):
                fs.write_file(text, b"new")
        for text in ("keys", around):
            with pytest.raises(SandboxViolation, match="root"):
                fs.rename(text, f"{root.parent}/moved")
        with pytest.raises(SandboxViolation, match="protected"):
            fs.write_file(f"{around}/.git/config", b"new")
        with pytest.raises(SandboxViolation, match="deny"):
            fs.with_deny(["/sub/code.py"]).open_file(f"{around}/sub/code.py")
        fs.write_file(f"{around}/sub/code.py", b"new")
        assert fs.write_file(f"{root}/sub/new.py", b"new").path == "sub/new.py"

    assert (root / "keys/a.pem").read_text() == "old"
    assert (root / "sub/code.py").read_text() == "new"


def test_an_empty_root_is_not_removed_through_the_one_around_it(root: Path, resolver: ResolverName) -> None:
    with SandboxFS(root, resolver=resolver, write_roots=[root / "empty"]) as fs:
        with pytest.raises(SandboxViolation, match="root"):
            fs.remove_dir("empty")
        fs.make_dir("other")
        fs.remove_dir("other")

    assert (root / "empty").is_dir()


def test_roots_are_pinned_and_closed_with_their_owner(wide: SandboxFS, root: Path) -> None:
    output = root.parent / "output"
    output.rename(root.parent / "moved")
    output.symlink_to(root.parent)

    assert wide.write_file(f"{output}/file", b"new").path == f"{output}/file"
    assert (root.parent / "moved/file").read_bytes() == b"new"
    wide.close()
    for act in (lambda: wide.stat(f"{output}/file"), lambda: wide.write_file("x", b""), lambda: wide.with_deny(["x"])):
        with pytest.raises(ToolFailed, match="closed"):
            act()


def test_read_only_mode_holds_for_write_roots_too(root: Path) -> None:
    with SandboxFS(root / "sub", mode="read-only", write_roots=[root / "keys"]) as fs:
        with pytest.raises(SandboxViolation, match="read-only"):
            fs.write_file(f"{root}/keys/a.pem", b"new")
        assert fs.stat(f"{root}/keys/a.pem").kind == "file"


def test_roots_that_cannot_be_used_are_setup_errors(root: Path) -> None:
    for roots, words in (
        ([root / "none"], "none"),
        ([root / "plain.txt"], "plain"),
        (str(root / "keys"), "list"),
        ([root], "a root is duplicated"),
    ):
        with pytest.raises(SetupError, match=words):
            SandboxFS(root, read_roots=roots)
        with pytest.raises(SetupError, match=words):
            SandboxFS(root, write_roots=roots)
    with pytest.raises(SetupError, match="a root is duplicated"):
        SandboxFS(root, read_roots=[root / "keys"], write_roots=[root / "keys"])
    with pytest.raises(SetupError, match="list"):
        SandboxFS(root, protected="*.lock")


# Where a directory is


@pytest.mark.parametrize("name", [".", "sub/.git", "empty", "new\nline (deleted)"])
def test_both_ways_to_learn_a_real_path_agree(root: Path, name: str) -> None:
    (root / name).mkdir(exist_ok=True)
    number = os.open(root / name, os.O_RDONLY)
    try:
        expected = tuple(os.path.realpath(root / name).split("/")[1:])
        assert real_names(number) == place._climb(number) == expected
    finally:
        os.close(number)


def test_a_directory_that_was_moved_out_after_it_was_opened_is_not_written(
    fs: SandboxFS, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = place.find_place

    def meanwhile(*arguments: object, **options: object) -> object:
        found = find(*arguments, **options)  # type: ignore[arg-type]
        (root / "empty").rename(root.parent / "empty")
        return found

    monkeypatch.setattr("toolkit.guard.files.changes.find_place", meanwhile)
    with pytest.raises(SandboxViolation, match="outside"):
        fs.write_file("empty/x", b"new")

    assert os.listdir(root.parent / "empty") == []
