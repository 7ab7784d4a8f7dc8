"""What is bubblewrap's own: finding it, falling back to it, and what its taking names instead of handles could cost.

That commands in it are held as in our own full tier is shown by the tables of the other files, which run through it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard import nobody
from tests.guard.ways import FULL, Way, guard_in, needs
from tests.projects import PACKAGES
from toolkit.errors import SetupError, ToolNotAllowed
from toolkit.guard import ProcessGuard, ProcessResult
from toolkit.guard.process import bubblewrap, tier
from toolkit.guard.process.kernel import Unsupported
from toolkit.guard.process.tier import pick_tier, probe

WATCHDOG = 60.0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def guard(workspace: Path) -> Iterator[ProcessGuard]:
    with guard_in("bubblewrap", workspace) as guard:
        yield guard


def succeeded(result: ProcessResult) -> str:
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode()


# --- finding it


def test_it_is_looked_for_only_in_the_systems_own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bwrap").symlink_to("/usr/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bubblewrap, "SYSTEM_PATH", ("/usr/share",))
    with pytest.raises(Unsupported, match="not installed"):
        bubblewrap.find([])
    assert shutil.which("bwrap") == str(tmp_path / "bwrap")


def test_one_that_others_could_have_changed_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "SYSTEM_PATH", (str(tmp_path),))
    shutil.copy("/usr/bin/true", tmp_path / "bwrap")
    with pytest.raises(Unsupported, match="users other than root"):  # directories above it are anybody's
        bubblewrap.find([])
    (tmp_path / "bwrap").unlink()
    (tmp_path / "bwrap").symlink_to("/usr/bin/true")
    with pytest.raises(Unsupported, match="users other than root"):  # a program of root's, but chosen by anybody
        bubblewrap.find([])


def test_one_in_the_workspace_or_a_root_is_not_taken() -> None:
    needs("bubblewrap")
    place = bubblewrap.find([])
    assert bubblewrap.find(["/usr/share"]) == place
    for folder in (os.path.dirname(place), "/usr"):
        with pytest.raises(Unsupported, match="inside the workspace"):
            bubblewrap.find([folder])


def test_the_roots_of_a_guard_are_what_is_avoided(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bubblewrap")
    place = os.path.dirname(bubblewrap.find([]))
    with ProcessGuard(str(workspace), sandbox="full", carrier="bubblewrap", read_roots=[f"{place}/."]) as guard:
        assert guard.tier == "none" and "inside the workspace or another root" in guard.choice.reason


# --- falling back to it

WITHOUT_UNSHARE = """
import ctypes, json, os, struct, sys
from toolkit.guard import ProcessGuard
from toolkit.guard.process.kernel import REFUSED
from toolkit.guard.process.kernel import machine, prctl, forbid_new_privileges
forbid_new_privileges()
number = REFUSED["unshare"][machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("HBBI", *step) for step in steps)
buffer = ctypes.create_string_buffer(code, len(code))
header = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
assert ctypes.CDLL(None).prctl(22, 2, header, 0, 0) == 0
with ProcessGuard(sys.argv[1]) as guard:
    result = guard.shell("id -u; echo x > f; cat f; cat /proc/self/status | grep NoNewPrivs")
    print(json.dumps([guard.choice.reason, result.tier, result.carrier, result.stdout.decode()]))
"""


@nobody.only_root
def test_it_is_used_where_the_kernel_refuses_namespaces_to_us() -> None:
    """Our own way needs ``unshare``, bubblewrap's only ``clone``: a filter that refuses the first is such a machine."""
    needs("bubblewrap")
    with nobody.folder("ws") as base:
        reason, name, carrier, out = json.loads(nobody.run(WITHOUT_UNSHARE, str(base / "ws")))
    if name != "full":
        pytest.skip(f"this machine gives another user no bubblewrap: {reason}")
    assert carrier == "bubblewrap"
    assert reason.startswith("full: new user namespace: operation not permitted; bubblewrap: builds the full tier")
    assert out.split() == [str(nobody.NOBODY), "x", "NoNewPrivs:", "1"]


def test_the_reason_of_one_that_fails_is_told_without_host_paths(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text('#!/bin/sh\necho "bwrap: Can\'t mount /secret/place on /x: Permission denied" >&2\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find", lambda avoid: str(broken))
    reason = pick_tier("full", "bubblewrap").reason
    assert reason == (
        "bubblewrap: a test command failed: bubblewrap: Can't mount (a path) on (a path) Permission denied"
    )
    monkeypatch.setattr(tier, "probe", lambda *asked: "")  # it worked when it was tried
    with ProcessGuard(str(workspace), sandbox="full", carrier="bubblewrap") as guard:
        with pytest.raises(ToolNotAllowed, match="could not be built") as caught:
            guard.run(["touch", "ran"])
        assert "secret" not in str(caught.value)
    assert list(workspace.iterdir()) == []


def test_every_result_names_it(guard: ProcessGuard) -> None:
    assert (guard.choice.carrier, guard.choice.name) == ("bubblewrap", "full")
    result = guard.run(["true"])
    assert (result.tier, result.carrier) == ("full", "bubblewrap")


def test_a_carrier_is_one_of_three(workspace: Path) -> None:
    with pytest.raises(SetupError, match="carrier"):
        ProcessGuard(str(workspace), carrier="docker")  # type: ignore[arg-type]


# --- names instead of handles


def test_the_supervisor_inside_is_not_read_from_the_workspace(workspace: Path) -> None:
    """Where the toolkit itself lies in the workspace, no command can rewrite it; and if somebody else does, the supervisor
    of the next command is still the one that was loaded."""
    needs("bubblewrap")
    shutil.copytree(PACKAGES / "toolkit", workspace / "toolkit", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import sys, toolkit; from pathlib import Path; from toolkit.guard import ProcessGuard\n"
        "assert toolkit.__file__.startswith(sys.argv[1])\n"
        "guard = ProcessGuard(sys.argv[1], sandbox='full', carrier='bubblewrap')\n"
        'print(guard.shell(\'for f in $(find toolkit -name "*.py"); do echo "hostile(" > $f && echo $f; done\').stdout)\n'
        "for file in Path(sys.argv[1], 'toolkit').rglob('*.py'): file.write_text('hostile(')\n"
        "print(guard.shell('echo fine').stdout)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(workspace)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(workspace)], env=environment, cwd="/", capture_output=True, text=True
    )
    assert done.stdout == "b''\nb'fine\\n'\n", done.stderr
    assert (workspace / "toolkit/guard/process/supervisor.py").read_text() == "hostile("


@pytest.mark.parametrize("way", FULL)
@pytest.mark.parametrize("name", [".git/config", ".git/hooks", ".git"])
def test_a_name_of_the_repository_that_leads_outside_shows_nothing(
    tmp_path: Path, workspace: Path, name: str, way: Way
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config").write_text("SECRET")
    (workspace / ".git").mkdir()
    if name == ".git":
        (workspace / ".git").rmdir()
    (workspace / name).symlink_to(outside / "config" if name.endswith("config") else outside)
    with guard_in(way, workspace) as guard:
        result = guard.shell(f"cat .git/config .git/hooks/config {outside}/config; ls .git/hooks/")
    assert b"SECRET" not in result.stdout and b"config" not in result.stdout
    assert "SECRET" in subprocess.run(["cat", f"{name}/config" if name != ".git/config" else name], cwd=workspace, capture_output=True, text=True).stdout  # fmt: skip


PLANT = """
import os
os.rename("a", "moved")
os.symlink("../" * 20 + "oldroot{outside}", "a")
"""


def test_bubblewrap_follows_a_link_planted_below_the_workspace(tmp_path: Path, workspace: Path) -> None:
    """Why roots below the workspace need care: asked plainly, it makes directories outside of it."""
    needs("bubblewrap")
    (workspace / "root").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "a").symlink_to("../" * 20 + f"oldroot{outside}")
    plain = [
        "bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/lib", "/lib", "--bind", str(workspace),
        str(workspace), "--ro-bind", str(workspace / "root"), str(workspace / "a/b"), "/usr/bin/true",
    ]  # fmt: skip
    subprocess.run(plain, capture_output=True)
    assert (outside / "b").is_dir()


def test_a_root_below_the_workspace_cannot_be_moved_to_plant_such_a_link(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a/b").mkdir(parents=True)
    (workspace / "a/b/f").write_text("root")
    outside = tmp_path / "outside"
    outside.mkdir()
    with guard_in("bubblewrap", workspace, read_roots=[str(workspace / "a/b")]) as guard:
        for attempt in (["mv", "a", "moved"], ["mv", "a/b", "moved"], ["python", "-c", PLANT.format(outside=outside)]):
            assert guard.run(attempt).exit_code != 0
        assert succeeded(guard.run(["cat", "a/b/f"])) == "root"
        assert guard.shell("echo x > a/b/g").exit_code != 0
        succeeded(guard.shell("echo x > a/g"))
    assert list(outside.iterdir()) == []


def test_a_root_that_was_replaced_meanwhile_is_refused(tmp_path: Path, workspace: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
    (other / "f").write_text("SECRET")
    with guard_in("bubblewrap", workspace, read_roots=[str(root)]) as guard:
        succeeded(guard.run(["true"]))
        root.rmdir()
        other.rename(root)
        with pytest.raises(ToolNotAllowed, match="moved or replaced"):
            guard.run(["cat", f"{root}/f"])


FLIP = """
import ctypes, os
libc = ctypes.CDLL(None)
os.makedirs(".git/hooks")
open(".git/config", "w").close()
os.symlink("../" * 20 + "oldroot{outside}", "planted")
open("flipping", "w").close()
while not os.path.exists("enough"):
    libc.renameat2(-100, b"planted", -100, b".git", 2)
"""


def test_a_command_that_swaps_the_repository_gains_nothing_from_the_start_of_another(
    tmp_path: Path, workspace: Path, guard: ProcessGuard
) -> None:
    """It began before there was a repository, so for it ``.git`` is no mount, and it may swap it all it likes."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("kept")
    flipping = threading.Thread(
        target=lambda: guard.run(["python", "-c", FLIP.format(outside=outside)], timeout=WATCHDOG)
    )
    flipping.start()
    try:
        deadline = time.monotonic() + WATCHDOG
        while not (workspace / "flipping").exists():
            assert time.monotonic() < deadline
        for _ in range(20):
            assert b"kept" not in guard.shell("cat .git/keep planted/keep").stdout
    finally:
        (workspace / "enough").touch()
        flipping.join(WATCHDOG)
    assert [path.name for path in outside.iterdir()] == ["keep"]


def test_the_repository_is_kept_again_once_that_command_is_gone(workspace: Path, guard: ProcessGuard) -> None:
    write = "echo x >> .git/config"
    early = threading.Thread(
        target=lambda: guard.shell(
            "git init -q; touch begun; until [ -e enough ]; do sleep 0.02; done", timeout=WATCHDOG
        )
    )
    early.start()
    try:
        deadline = time.monotonic() + WATCHDOG
        while not (workspace / "begun").exists():
            assert time.monotonic() < deadline
        assert guard.shell(write).exit_code == 0  # as the early command itself could
    finally:
        (workspace / "enough").touch()
        early.join(WATCHDOG)
    assert guard.shell(write).exit_code != 0


def test_commands_beside_each_other_keep_the_repository(workspace: Path, guard: ProcessGuard) -> None:
    succeeded(guard.shell("git init -q"))
    outcome: list[int | None] = []

    def write() -> None:
        outcome.append(guard.shell("sleep 0.2; echo x >> .git/config", timeout=WATCHDOG).exit_code)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
    assert len(outcome) == 4 and 0 not in outcome


def test_the_probe_of_one_that_is_not_there() -> None:
    assert "no such file" in probe("full", "/usr/bin/no-such-bubblewrap")
