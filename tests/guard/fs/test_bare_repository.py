"""Repositories that are not called ``.git``: file tools neither complete one nor change one.

The oracle is git itself, run by the user in the directory. The control is ``git="write"``, where nobody stops it.
"""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from toolkit.errors import SandboxViolation
from toolkit.files.transaction import Drop
from toolkit.guard import FileChange, GitMode, Put, SandboxFS

Act: TypeAlias = Callable[[SandboxFS], object]
MODES: tuple[GitMode, ...] = ("commit", "read-only")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def settings(root: Path) -> bytes:
    program = f"touch '{root}/ran'; false"
    return f'[core]\n\trepositoryformatversion = 0\n\tworktree = ..\n\tfsmonitor = "{program}"\n'.encode()


def pieces(root: Path) -> dict[str, bytes]:
    return {"b/HEAD": b"ref: refs/heads/main\n", "b/config": settings(root), "b/objects/x": b"", "b/refs/x": b""}


def status(folder: Path) -> None:
    """What the user does later; whether git finds a repository is not the question."""
    subprocess.run(["git", "status", "-s"], cwd=folder, capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": "/"})


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_a_repository_is_not_completed_in_any_order(root: Path, order: tuple[int, ...]) -> None:
    files = list(pieces(root).items())
    with SandboxFS(root) as fs:
        refused = []
        for at in order:
            try:
                fs.write_file(*files[at])
            except SandboxViolation as error:
                assert (
                    "'b' is a git repository, or would become one" in error.message and 'git="write"' in error.message
                )
                refused.append(files[at][0])
    status(root / "b")

    last = max((place for place, at in enumerate(order) if files[at][0] != "b/config"))
    assert refused == [files[order[last]][0]]
    assert not (root / "ran").exists()


def test_the_same_files_run_a_program_where_nobody_refuses_them(root: Path) -> None:
    with SandboxFS(root, git="write") as fs:
        for name, data in pieces(root).items():
            fs.write_file(name, data)
    status(root / "b")
    assert (root / "ran").exists()


def put_all(fs: SandboxFS, files: dict[str, bytes]) -> None:
    changes: list[FileChange] = [Put(name, data, None) for name, data in files.items()]
    fs.transaction(changes)


def put_one_by_one(fs: SandboxFS, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        put_all(fs, {name: data})


def write_all(fs: SandboxFS, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        fs.write_file(name, data)


def common(root: Path) -> dict[str, bytes]:
    """A repository whose objects and settings are elsewhere."""
    files = {"b/HEAD": b"ref: refs/heads/main\n", "b/commondir": b"../c\n"}
    elsewhere = settings(root).replace(b"\tworktree = ..\n", b"") + b"[extensions]\n\tworktreeConfig = true\n"
    files |= {"c/objects/x": b"", "c/refs/x": b"", "c/config": elsewhere}
    return files | {"b/config.worktree": b"[core]\n\tworktree = ..\n"}


def by_links(fs: SandboxFS, root: Path) -> None:
    (root / "b").mkdir()
    (root / "way").symlink_to("b")
    (root / "last").symlink_to("b/HEAD")
    write_all(fs, {name.replace("b/", "way/"): data for name, data in pieces(root).items() if name != "b/HEAD"})
    fs.write_file("last", b"ref: refs/heads/main\n")


def after_a_command(fs: SandboxFS, root: Path) -> None:
    """Without HEAD it is no repository, so a review after the command leaves it."""
    for name, data in pieces(root).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if name != "b/HEAD":
            (root / name).write_bytes(data)
    fs.write_file("b/HEAD", b"ref: refs/heads/main\n")


def by_directories(fs: SandboxFS, root: Path) -> None:
    fs.make_dir("b/objects")
    write_all(fs, {name: data for name, data in pieces(root).items() if name in ("b/HEAD", "b/config")})
    fs.make_dir("b/refs")


def by_moves(fs: SandboxFS, root: Path) -> None:
    write_all(fs, {name.replace("refs/", "other/"): data for name, data in pieces(root).items()})
    fs.rename("b/other", "b/refs")


def by_moving_the_head(fs: SandboxFS, root: Path) -> None:
    write_all(fs, {name.replace("HEAD", "other"): data for name, data in pieces(root).items()})
    fs.rename("b/other", "b/HEAD")


def beside_another_thread(fs: SandboxFS, root: Path) -> None:
    """Each of two writes would be harmless without the other. The second begins before the first has ended."""
    write_all(fs, {name: data for name, data in pieces(root).items() if name in ("b/config", "b/refs/x")})
    other = threading.Thread(target=lambda: refuse_or_not(lambda: fs.write_file("b/objects/x", b"")))
    calls = itertools.count()

    def check() -> None:
        if next(calls) == 2:  # in the middle of the first write
            other.start()
            other.join(0.3)  # it waits for the first one, or is done

    fs.with_check(check).write_file("b/HEAD", b"ref: refs/heads/main\n")
    other.join()
    if not (root / "b/objects/x").exists():
        raise SandboxViolation("the second was refused")


def refuse_or_not(act: Callable[[], object]) -> None:
    try:
        act()
    except SandboxViolation:
        return


WAYS: dict[str, Callable[[SandboxFS, Path], object]] = {
    "one patch": lambda fs, root: put_all(fs, pieces(root)),
    "several patches": lambda fs, root: put_one_by_one(fs, pieces(root)),
    "objects elsewhere": lambda fs, root: write_all(fs, common(root)),
    "objects elsewhere, head last": lambda fs, root: write_all(fs, dict(reversed(common(root).items()))),
    "objects elsewhere, one patch": lambda fs, root: put_all(fs, common(root)),
    "links": by_links,
    "the rest by a command": after_a_command,
    "directories": by_directories,
    "a moved directory": by_moves,
    "a moved file": by_moving_the_head,
    "two threads": beside_another_thread,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_writing_completes_a_repository(root: Path, way: str) -> None:
    with SandboxFS(root) as fs, pytest.raises(SandboxViolation):
        WAYS[way](fs, root)
    status(root / "b" if (root / "b").exists() else root)
    assert not (root / "ran").exists()


@pytest.mark.parametrize("way", WAYS)
def test_every_way_works_where_nobody_refuses_it(root: Path, way: str) -> None:
    with SandboxFS(root, git="write") as fs:
        WAYS[way](fs, root)
    status(root / "b")
    assert (root / "ran").exists()


@pytest.mark.parametrize("name", ["b/head", "b/Head", "b/OBJECTS/x", "b/Refs/x", "b/HEAD.", "b/he\u200cad"])
def test_other_spellings_that_some_file_systems_take_for_the_same(root: Path, name: str) -> None:
    present = [piece for piece in pieces(root) if name.split("/")[1][:2].lower() != piece.split("/")[1][:2].lower()]
    with SandboxFS(root) as fs:
        write_all(fs, dict.fromkeys(present, b""))
        with pytest.raises(SandboxViolation, match="is a git repository"):
            fs.write_file(name, b"")


@pytest.fixture
def bare(root: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", "store/r.git"], cwd=root, check=True)
    return root / "store/r.git"


CHANGES: dict[str, Act] = {
    "settings": lambda fs: fs.write_file("store/r.git/config", b"x"),
    "a hook": lambda fs: fs.write_file("store/r.git/hooks/pre-receive", b"x"),
    "a hook by a patch": lambda fs: fs.transaction([Put("store/r.git/hooks/pre-receive", b"x", None, executable=True)]),
    "settings by a patch": lambda fs: fs.transaction(
        [Drop("store/r.git/config", fs.fingerprint("store/r.git/config"))]
    ),
    "settings of a work tree": lambda fs: fs.write_file("store/r.git/worktrees/w/config.worktree", b"x"),
    "settings of a submodule": lambda fs: fs.write_file("store/r.git/modules/m/config", b"x"),
    "the common directory": lambda fs: fs.write_file("store/r.git/commondir", b"x"),
    "an unfinished rebase": lambda fs: fs.write_file("store/r.git/rebase-merge/git-rebase-todo", b"x"),
    "a removed file": lambda fs: fs.remove_file("store/r.git/config"),
    "a removed directory": lambda fs: fs.remove_dir("store/r.git/refs/tags"),
    "a moved file": lambda fs: fs.rename("store/r.git/config", "moved"),
    "a moved directory": lambda fs: fs.rename("store/r.git/hooks", "moved"),
    "a file that is moved in": lambda fs: fs.rename("plain", "store/r.git/config", replace=True),
    "an absolute path": lambda fs: fs.write_file(f"{fs._name}/store/r.git/config", b"x"),
    "another way": lambda fs: fs.write_file("store/../store/r.git/config", b"x"),
}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(root.rglob("*"))}


@pytest.mark.each("change")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("git", MODES)
def test_a_repository_that_exists_is_not_changed(root: Path, bare: Path, change: str, git: GitMode) -> None:
    (root / "plain").write_text("x")
    before = contents(root)
    with SandboxFS(root, git=git) as fs, pytest.raises(SandboxViolation, match=r"'store/r\.git' is a git repository"):
        CHANGES[change](fs)
    assert contents(root) == before


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_changed_where_nobody_refuses_it(root: Path, bare: Path, change: str) -> None:
    (root / "plain").write_text("x")
    before = contents(root)
    with SandboxFS(root, git="write") as fs:
        CHANGES[change](fs)
    assert contents(root) != before


def test_in_another_root_and_at_the_top_of_one(root: Path, bare: Path) -> None:
    other = root.parent / "other"
    subprocess.run(["git", "init", "-q", "--bare", str(other)], check=True)
    with SandboxFS(root, write_roots=[str(other)]) as fs, pytest.raises(SandboxViolation, match=r"'\.' is a git repo"):
        fs.write_file(f"{other}/hooks/pre-receive", b"x")
    with SandboxFS(bare) as fs, pytest.raises(SandboxViolation, match=r"'\.' is a git repository"):
        fs.write_file("config", b"x")
    with SandboxFS(root, write_roots=[str(bare / "hooks")]) as fs, pytest.raises(SandboxViolation, match=r"r\.git' is"):
        fs.write_file(f"{bare}/hooks/x", b"x")


# Ordinary work, which must go on.
NEIGHBOURS: dict[str, list[str]] = {
    "a file called HEAD": ["docs/HEAD"],
    "settings": ["app/config", "config", "lib/config/settings.py"],
    "hooks": ["src/hooks/use_state.ts", "src/hooks/index"],
    "refs": ["refs/a", "paper/refs/b.bib"],
    "objects and refs": ["game/objects/a", "game/refs/b", "game/config"],
    "HEAD and refs": ["game/HEAD", "game/refs/b"],
    "HEAD and objects in two directories": ["a/HEAD", "a/refs/x", "b/objects/x"],
    "parts of a page": ["parts/objects/x", "parts/refs/x", "parts/head/title.tsx"],
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("write", [write_all, put_all])
def test_ordinary_directories_are_written(root: Path, name: str, write: Callable[..., None]) -> None:
    with SandboxFS(root) as fs:
        write(fs, dict.fromkeys(NEIGHBOURS[name], b"x"))
    assert all((root / file).read_bytes() == b"x" for file in NEIGHBOURS[name])


def test_work_trees_inside_a_bare_repository_are_written(root: Path, bare: Path) -> None:
    """A usual layout: all work trees of a repository are directories in it."""
    git = ["git", "-C", str(bare), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    tree = subprocess.run(
        [*git, "hash-object", "-t", "tree", "-w", "/dev/null"], capture_output=True, check=True, text=True
    )
    commit = subprocess.run(
        [*git, "commit-tree", "-m", "m", tree.stdout.strip()], capture_output=True, check=True, text=True
    )
    subprocess.run([*git, "worktree", "add", "-q", "feature", commit.stdout.strip()], check=True)
    with SandboxFS(root) as fs:
        write_all(fs, {"store/r.git/feature/src/a.py": b"x", "store/r.git/feature/config/b": b"x"})
        fs.rename("store/r.git/feature/src", "store/r.git/feature/lib")
    assert (bare / "feature/lib/a.py").read_bytes() == b"x"


def test_a_repository_is_moved_as_a_whole(root: Path, bare: Path) -> None:
    with SandboxFS(root) as fs:
        fs.rename("store/r.git", "r.git")
    assert (root / "r.git/HEAD").exists()
