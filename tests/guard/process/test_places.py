"""The places a guard is built with: roots below each other, roots that are swapped, and the state directory."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.guard.ways import FULL, SANDBOXED, Way, guard_in
from toolkit.errors import SetupError, ToolNotAllowed
from toolkit.guard import ProcessGuard, ProcessResult


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def succeeded(result: ProcessResult) -> str:
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode()


# --- roots that a command could replace


def plant(guard: ProcessGuard, target: Path) -> None:
    """Put a link to ``target`` where the root ``vendor`` was, as far as the sandbox lets it."""
    guard.shell(f"mv vendor moved && ln -s {target} vendor")


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_root_in_the_workspace_never_becomes_another_place(
    tmp_path: Path, workspace: Path, way: Way, kind: str
) -> None:
    """Reduced, the root can be moved, but the next command is not handed what its name leads to by then."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("SECRET")
    (workspace / "vendor").mkdir()
    (workspace / "vendor/f").write_text("mine")
    roots = [str(workspace / "vendor")]
    with guard_in(
        way, workspace, read_roots=roots if kind == "read" else (), write_roots=roots if kind == "write" else ()
    ) as guard:
        assert succeeded(guard.run(["cat", "vendor/f"])) == "mine"
        plant(guard, outside)
        assert (workspace / "vendor").is_symlink() == (way == "reduced")
        for act in (f"cat {outside}/secret", "cat vendor/secret", f"echo x > {outside}/new"):
            assert guard.shell(act).exit_code != 0
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.parametrize("way", SANDBOXED)
def test_nor_when_the_fork_server_is_started_again(tmp_path: Path, workspace: Path, way: Way) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("SECRET")
    (workspace / "vendor").mkdir()
    with guard_in(way, workspace, read_roots=[str(workspace / "vendor")]) as guard:
        succeeded(guard.run(["true"]))
        server = guard._sandbox._server
        assert server is not None
        (workspace / "vendor").rename(workspace / "moved")
        (workspace / "vendor").symlink_to(outside)
        os.kill(server.pid, signal.SIGKILL)
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ToolNotAllowed, match="moved or replaced"):
            guard.run(["cat", f"{outside}/secret"])


@pytest.mark.parametrize("way", FULL)
def test_a_writable_root_inside_a_readable_one_and_the_other_way_round(
    tmp_path: Path, workspace: Path, way: Way
) -> None:
    for name in ("read/a/write", "write/a/read/b/write"):
        (tmp_path / name).mkdir(parents=True)
    read = [str(tmp_path / name) for name in ("read", "write/a/read")]
    write = [str(tmp_path / name) for name in ("read/a/write", "write", "write/a/read/b/write")]
    with guard_in(way, workspace, read_roots=read, write_roots=write) as guard:
        for folder in ("read/a/write", "write", "write/a", "write/a/read/b/write"):
            succeeded(guard.run(["touch", f"{tmp_path}/{folder}/f"]))
        for folder in ("read", "read/a", "write/a/read", "write/a/read/b"):
            assert guard.run(["touch", f"{tmp_path}/{folder}/f"]).exit_code != 0, folder


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_read_only_view_is_read_only_around_a_root_below_the_workspace(workspace: Path, way: Way) -> None:
    (workspace / "a/b/root").mkdir(parents=True)
    with guard_in(way, workspace, read_roots=[str(workspace / "a/b/root")]) as guard:
        for folder in (".", "a", "a/b", "a/b/root"):
            result = guard.read_only().shell(f"touch {folder}/f; chmod 700 {folder} && echo changed")
            assert not (workspace / folder / "f").exists()
            assert result.stdout == (b"changed\n" if way == "reduced" else b""), "metadata are the documented gap"
        succeeded(guard.shell("touch a/f a/b/f"))


@pytest.mark.parametrize("way", FULL)
@pytest.mark.parametrize("place", ["/dev/shm", "/var/tmp", "/tmp"])
def test_a_workspace_among_temporary_files(way: Way, place: str) -> None:
    """Where the sandbox has links and a directory of its own otherwise."""
    if not os.access(place, os.W_OK):
        pytest.skip(f"{place} is not there for us")
    with tempfile.TemporaryDirectory(dir=place) as folder, guard_in(way, Path(folder)) as guard:
        assert succeeded(guard.shell("echo x > f; cat f; pwd")).split() == ["x", folder]
        assert Path(folder, "f").exists()


@pytest.mark.parametrize("way", FULL)
def test_a_root_inside_a_writable_root_cannot_be_moved(tmp_path: Path, workspace: Path, way: Way) -> None:
    writable = tmp_path / "writable"
    (writable / "a/root").mkdir(parents=True)
    with guard_in(way, workspace, read_roots=[str(writable / "a/root")], write_roots=[str(writable)]) as guard:
        assert guard.run(["mv", f"{writable}/a/root", f"{writable}/moved"]).exit_code != 0
        moved = guard.run(["mv", f"{writable}/a", f"{writable}/moved"]).exit_code == 0
        assert moved == (way == "full"), "our own mounts hold by handle, bubblewrap's by name"
        assert guard.run(["true"]).exit_code == 0


# --- HOME and TMPDIR


def test_home_is_private_to_one_command_and_gone_after_it(tmp_path: Path, workspace: Path) -> None:
    state = tmp_path / "state"
    with guard_in("reduced", workspace, state_dir=str(state)) as guard:
        seen = succeeded(guard.shell("echo $HOME $TMPDIR; stat -c %a $HOME; touch ~/f")).split()
        assert seen[0] == seen[1] and Path(seen[0]).parent == state and seen[2] == "700"
        assert state.stat().st_mode & 0o777 == 0o700 and list(state.iterdir()) == []
        again = succeeded(guard.shell("echo $HOME; ls ~")).split()  # its .gitconfig names the author
        assert len(again) == 1 and again[0] != seen[0]
    assert list(state.iterdir()) == []


@pytest.mark.parametrize(
    "end",
    ["exit 3", "kill -9 $$", "sleep 1000"],
    ids=["failure", "signal", "timeout"],
)
def test_home_is_gone_however_the_command_ended(tmp_path: Path, workspace: Path, end: str) -> None:
    state = tmp_path / "state"
    with guard_in("reduced", workspace, state_dir=str(state)) as guard:
        guard.shell(f"touch ~/f; {end}", timeout=1)
        assert list(state.iterdir()) == []


HOSTILE = """
import os
home = os.environ["HOME"]
os.symlink("{outside}", f"{{home}}/link")
os.makedirs(f"{{home}}/shut/inner")
open(f"{{home}}/shut/inner/f", "w").close()
os.mkfifo(f"{{home}}/fifo")
for path in ("shut/inner", "shut"):
    os.chmod(f"{{home}}/{{path}}", 0)
os.chdir(home)
for _ in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
"""


def test_whatever_is_left_in_home_is_removed_and_no_link_followed(tmp_path: Path, workspace: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    state = tmp_path / "state"
    with guard_in("reduced", workspace, state_dir=str(state)) as guard:
        succeeded(guard.run([sys.executable, "-c", HOSTILE.format(outside=outside)]))
    assert list(state.iterdir()) == []
    assert (outside / "kept").exists()


def test_without_a_state_directory_home_is_among_the_systems_temporary_files(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with guard_in("reduced", workspace) as guard:
        home = succeeded(guard.shell("echo $HOME; touch ~/f")).rstrip()
    assert Path(home).parent == tmp_path and not Path(home).exists()


@pytest.mark.parametrize("place", ["ws", "ws/state", "ws/link/state", "written/state", "link-in/state"])
def test_a_state_directory_where_commands_write_is_refused(tmp_path: Path, workspace: Path, place: str) -> None:
    (tmp_path / "written").mkdir()
    (workspace / "link").symlink_to(tmp_path / "written")
    (tmp_path / "link-in").symlink_to(workspace)
    with pytest.raises(SetupError, match="state_dir"):
        ProcessGuard(str(workspace), write_roots=[str(tmp_path / "written")], state_dir=str(tmp_path / place))
    with ProcessGuard(str(workspace), state_dir=str(tmp_path / "ws-beside")) as guard:
        assert guard.tier


def test_in_the_full_tier_the_state_directory_is_not_touched(tmp_path: Path, workspace: Path) -> None:
    state = tmp_path / "state"
    with guard_in("full", workspace, state_dir=str(state)) as guard:
        succeeded(guard.shell("touch ~/f"))
    assert not state.exists()
