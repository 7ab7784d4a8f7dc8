"""The write attacks of the boundary's list, made through ``write_file`` and ``edit``; the numbers are the list's.

Each is shown to work when nothing guards it, and stands beside the harmless act that must keep working.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builtin.workspace import toolkit_for
from toolkit import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

OLD, NEW = "secret old text\n", "secret new text\n"


def write_file(toolkit: Toolkit, path: str) -> object:
    return toolkit.tools.write_file(path=path, content=NEW)


def create_file(toolkit: Toolkit, path: str) -> object:
    return toolkit.tools.write_file(path=path, content=NEW, create_only=True)


def edit(toolkit: Toolkit, path: str) -> object:
    return toolkit.tools.edit(path=path, old_string="old", new_string="new")


def edit_nothing(toolkit: Toolkit, path: str) -> object:
    return toolkit.tools.edit(path=path, old_string="odl text", new_string="new")


Act = Callable[[Toolkit, str], object]
ACTS: list[Act] = [write_file, create_file, edit, edit_nothing]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """``ws`` is the workspace, and everything beside it is none of the tools' business."""
    ws = tmp_path / "ws"
    for folder in (ws / "a", ws / ".git/hooks", ws / "bare/objects", ws / "bare/refs", tmp_path / "outside"):
        folder.mkdir(parents=True)
    for file in (
        ws / "top.txt",
        ws / "a/file.txt",
        ws / ".git/config",
        ws / "bare/HEAD",
        ws / "bare/config",
        tmp_path / "secret",
        tmp_path / "outside/inner",
    ):
        file.write_text(OLD)
    for name, target in {
        "link": "../secret",
        "absolute": f"{tmp_path}/secret",
        "folder": "../outside",
        "dangling": "../outside/new",
        "inside": "top.txt",
        "inside-folder": "a",
        "g": ".git",
    }.items():
        (ws / name).symlink_to(target)
    return tmp_path


@pytest.fixture
def toolkit(base: Path) -> Iterator[Toolkit]:
    with toolkit_for(base / "ws") as toolkit:
        yield toolkit


def everything(top: Path) -> dict[str, object]:
    """Each path below with what it is and holds; the time of a directory tells even of what came and went."""
    seen: dict[str, object] = {}
    for path in sorted([top, *top.rglob("*")]):
        info = path.lstat()
        held = path.read_bytes() if stat.S_ISREG(info.st_mode) else None
        seen[str(path)] = (info.st_mode, info.st_ino, info.st_mtime_ns, held)
    return seen


ESCAPES = [
    (41, "../secret"),
    (41, "a/../../secret"),
    (41, "{base}/secret"),
    (41, "../new"),
    (42, "link"),
    (42, "absolute"),
    (43, "folder/inner"),
    (43, "folder/new"),
    (44, "dangling"),
    (45, "folder/deep/er/new"),
]


@pytest.mark.each("act", "path")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(("number", "path"), ESCAPES)
def test_nothing_outside_is_touched(base: Path, toolkit: Toolkit, act: Act, number: int, path: str) -> None:
    before = everything(base)

    with pytest.raises(SandboxViolation) as caught:
        act(toolkit, path.format(base=base))

    assert everything(base) == before
    assert "secret old" not in str(caught.value) and str(base) not in str(caught.value)


@pytest.mark.parametrize(("number", "path"), ESCAPES)
def test_the_same_path_writes_outside_when_nothing_guards_it(base: Path, number: int, path: str) -> None:
    place = base / "ws" / path.format(base=base)
    outside = {path: held for path, held in everything(base).items() if not path.startswith(str(base / "ws"))}

    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(NEW)

    after = everything(base)
    assert outside != {path: held for path, held in after.items() if not path.startswith(str(base / "ws"))}


@pytest.mark.parametrize("act", [write_file, edit])
@pytest.mark.parametrize(("path", "file"), [("top.txt", "top.txt"), ("inside", "top.txt"), ("inside-folder/file.txt", "a/file.txt"), ("a/../top.txt", "top.txt"), ("{base}/ws/top.txt", "top.txt")])  # fmt: skip
def test_what_stays_inside_is_written(base: Path, toolkit: Toolkit, act: Act, path: str, file: str) -> None:
    act(toolkit, path.format(base=base))

    assert (base / "ws" / file).read_text() == NEW
    assert (base / "ws/inside").is_symlink()


def test_missing_parents_are_made_below_an_inner_link(base: Path, toolkit: Toolkit) -> None:
    write_file(toolkit, "inside-folder/new/deep/x")

    assert (base / "ws/a/new/deep/x").read_text() == NEW


PROTECTED = [
    (55, ".git/hooks/pre-commit"),
    (55, ".git/config"),
    (56, "sub/.git/config"),
    (56, "sub/.git"),
    (57, ".GIT/config"),
    (57, ".Git/hooks/post-checkout"),
    (57, "git~1/config"),
    (57, "g/config"),
    (57, "g/hooks/new"),
    (57, "a/../.git/config"),
    (55, "bare/config"),
    (55, "bare/hooks/pre-receive"),
    (57, "a/../bare/hooks/new"),
]


@pytest.mark.each("act", "path")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(("number", "path"), PROTECTED)
def test_what_git_keeps_is_not_changed(base: Path, toolkit: Toolkit, act: Act, number: int, path: str) -> None:
    before = everything(base)

    with pytest.raises(SandboxViolation, match="is protected"):
        act(toolkit, path)

    assert everything(base) == before


FILES = {"b/config": "[core]", "b/HEAD": "ref: refs/heads/main", "b/objects/x": "", "b/refs/x": ""}
ADDED = "".join(f"*** Add File: {path}\n+{text}\n" for path, text in FILES.items())
HOOK = "--- /dev/null\n+++ b/bare/hooks/pre-receive\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
MOVED = f"*** Update File: top.txt\n*** Move to: bare/commondir\n@@\n-{OLD}+{OLD}"


@pytest.mark.parametrize(
    "patch", [f"*** Begin Patch\n{ADDED}*** End Patch\n", HOOK, f"*** Begin Patch\n{MOVED}*** End Patch\n"]
)
def test_a_patch_makes_and_changes_no_repository(base: Path, toolkit: Toolkit, patch: str) -> None:
    before = everything(base)

    with pytest.raises(SandboxViolation, match="is a git repository, or would become one"):
        toolkit.tools.apply_patch(patch=patch)

    assert everything(base) == before
    context = ToolkitContext(base / "ws", SecurityPolicy(default="allow"), git="write")
    with create_agent_toolkit(context) as permitted:
        permitted.tools.apply_patch(patch=patch)
    assert everything(base) != before


@pytest.mark.parametrize("path", [".gitignore", ".gitattributes", ".github/workflows/ci.yml", "sub/.gitkeep", "git"])
def test_what_only_looks_like_it_is_written(base: Path, toolkit: Toolkit, path: str) -> None:
    write_file(toolkit, path)
    toolkit.tools.edit(path=path, old_string="new", new_string="newer")

    assert (base / "ws" / path).read_text() == "secret newer text\n"


def test_what_is_no_file_is_refused_without_waiting(base: Path, toolkit: Toolkit) -> None:
    """61"""
    names = ["a", "fifo"]
    os.mkfifo(base / "ws/fifo")
    with suppress(PermissionError):
        os.mknod(base / "ws/device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        names.append("device")
    for name in names:
        for act in ACTS:
            with pytest.raises(ToolFailed) as caught:
                act(toolkit, name)
            assert caught.value.reason == "NOT_FILE"


@pytest.mark.parametrize("act", [write_file, edit])
def test_a_link_planted_at_a_guessed_temporary_name_is_not_followed(
    base: Path, toolkit: Toolkit, act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    """62"""
    monkeypatch.setattr(os, "urandom", bytes)  # no longer unguessable
    planted = base / "ws" / f".{bytes(16).hex()}"
    planted.symlink_to("../secret")
    before = everything(base)

    with pytest.raises(ToolFailed):
        act(toolkit, "top.txt")

    assert {**everything(base), str(base / "ws"): None} == {**before, str(base / "ws"): None}
    monkeypatch.undo()
    act(toolkit, "top.txt")
    assert ((base / "ws/top.txt").read_text(), (base / "secret").read_text()) == (NEW, OLD)


def test_modes_are_as_umask_leaves_them_or_as_they_were(base: Path, toolkit: Toolkit) -> None:
    """63"""
    (base / "ws/top.txt").chmod(0o751)
    before = os.umask(0o077)
    try:
        write_file(toolkit, "new")
        edit(toolkit, "top.txt")
    finally:
        os.umask(before)

    assert [stat.S_IMODE((base / "ws" / name).stat().st_mode) for name in ("new", "top.txt")] == [0o600, 0o751]


def test_the_foreign_side_of_a_hard_link_keeps_its_content(base: Path, toolkit: Toolkit) -> None:
    """18"""
    for act, name in ((write_file, "one"), (edit, "two")):
        (base / "ws" / name).hardlink_to(base / "secret")
        act(toolkit, name)
        assert ((base / "ws" / name).read_text(), (base / "secret").read_text()) == (NEW, OLD)
    (base / "ws/three").hardlink_to(base / "secret")
    (base / "ws/three").write_text(NEW)  # unguarded, in place
    assert (base / "secret").read_text() == NEW


@pytest.mark.parametrize("content", ["\ud800", "half \udfff", "byte \udc80"])
def test_half_characters_are_refused(base: Path, toolkit: Toolkit, content: str) -> None:
    """64"""
    before = everything(base)
    calls: list[Callable[[], object]] = [
        lambda: toolkit.tools.write_file(path="top.txt", content=content),
        lambda: toolkit.tools.edit(path="top.txt", old_string="old", new_string=content),
        lambda: toolkit.tools.edit(path="top.txt", old_string=content, new_string="new"),
    ]
    for call in calls:
        with pytest.raises(InvalidArguments):
            call()
    assert everything(base) == before


@pytest.mark.parametrize("old", ["", " \n", "e", "nowhere"])
def test_empty_and_ambiguous_texts_change_nothing(base: Path, toolkit: Toolkit, old: str) -> None:
    """59"""
    before = everything(base)

    with pytest.raises(ToolFailed):
        toolkit.tools.edit(path="top.txt", old_string=old, new_string="x")

    assert everything(base) == before


@pytest.mark.slow
def test_a_huge_content_is_refused_before_any_change(base: Path, toolkit: Toolkit) -> None:
    """58"""
    before = everything(base)
    for call in (
        lambda: toolkit.tools.write_file(path="d/new", content="x" * 200_000_000),
        lambda: toolkit.tools.edit(path="top.txt", old_string="old", new_string="x" * 200_000_000),
    ):
        with pytest.raises(ToolkitError):
            call()
    assert everything(base) == before


# 54: the end of the disk, or of what a file may hold, in the middle of a write

IN_A_CHILD = """
import ctypes, os, resource, sys
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import ToolFailed
root = sys.argv[1]
"""

LIMITED = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"

MOUNTED = """
libc = ctypes.CDLL(None, use_errno=True)
user, group = os.geteuid(), os.getegid()
if libc.unshare(0x00020000 | (0x10000000 if user else 0)):
    sys.exit(print("no namespace"))
if user:
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
private = libc.mount(None, b"/", None, 0x44000, None)
if private or libc.mount(b"tmpfs", root.encode(), b"tmpfs", 0, b"size=128k"):
    sys.exit(print("no mount"))
"""

TOO_MUCH = """
with create_agent_toolkit(ToolkitContext(root, SecurityPolicy(default="allow"))) as toolkit:
    tools = toolkit.tools
    tools.write_file(path="file", content="old\\n")
    for act in (
        lambda: tools.write_file(path="file", content="x" * 300_000),
        lambda: tools.edit(path="file", old_string="old", new_string="x" * 300_000),
        lambda: tools.write_file(path="new", content="x" * 300_000),
    ):
        try:
            act()
        except ToolFailed as error:
            print(error.reason, error.message, open(f"{root}/file").read().strip(), os.listdir(root))
    tools.edit(path="file", old_string="old", new_string="new")
    print(open(f"{root}/file").read().strip())
"""


def in_a_child(code: str, root: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code, str(root)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_size_limit_in_the_middle_of_a_write_keeps_the_original(tmp_path: Path) -> None:
    told = "TOO_LARGE '{}' would be larger than the file size limit old ['file']"

    answers = in_a_child(IN_A_CHILD + LIMITED + TOO_MUCH, tmp_path)

    assert answers == [told.format("file"), told.format("file"), told.format("new"), "new"]


@pytest.mark.slow
def test_a_full_disk_in_the_middle_of_a_write_keeps_the_original(tmp_path: Path) -> None:
    told = "IO '{}' cannot be used: no space left on device old ['file']"

    answers = in_a_child(IN_A_CHILD + MOUNTED + TOO_MUCH, tmp_path)

    if answers[0].startswith("no "):
        pytest.skip(f"a small disk cannot be mounted here: {answers[0]}")
    assert answers == [told.format("file"), told.format("file"), told.format("new"), "new"]
