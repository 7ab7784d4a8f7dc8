"""The attack list through the tools that run commands, a row each; the depth is in tests/guard.

Each attack prints THROUGH if it succeeds. Without a sandbox it must, or the row proves nothing.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.builtin.commands import OPEN_LINE, WATCHDOG_MS, line_in, needs_a_sandbox, offline
from toolkit.errors import SandboxViolation, ToolkitError
from toolkit.generated import BashOutput, ExecCommandOutput, Toolkit

Run: TypeAlias = Callable[[Toolkit, str], ExecCommandOutput | BashOutput]

THROUGH: Final = "THROUGH\n"
RUNS: Final[dict[str, Run]] = {
    "exec_command": lambda toolkit, text: toolkit.tools.exec_command(command=["bash", "-c", text], timeout_ms=WATCHDOG_MS),
    "bash": lambda toolkit, text: toolkit.tools.bash(command=text, timeout_ms=WATCHDOG_MS),
}  # fmt: skip


@dataclass(frozen=True)
class Attack:
    number: int
    name: str
    text: str
    reduced: bool = True
    """Whether the reduced tier stops it, too."""


PYTHON: Final = "python3 -c"
ATTACKS = [
    Attack(79, "environment of another process", "grep -q VICTIM_SECRET /proc/{pid}/environ && echo THROUGH"),
    Attack(79, "memory of another process", "exec 3< /proc/{pid}/mem && echo THROUGH"),
    Attack(91, "read outside", "grep -q SECRET {out}/secret && echo THROUGH"),
    Attack(91, "read outside by dots", "grep -q SECRET ../outside/secret && echo THROUGH"),
    Attack(91, "read through a link of its own", "ln -s {out}/secret own; grep -q SECRET own && echo THROUGH"),
    Attack(92, "write outside", "echo x > {out}/new && echo THROUGH"),
    Attack(92, "remove outside", "rm {out}/mine && echo THROUGH"),
    Attack(92, "move a file out", "touch f; mv f {out}/moved && echo THROUGH"),
    Attack(92, "link a file in", "ln {out}/mine linked && echo THROUGH"),
    Attack(93, "change a mode outside", "chmod 600 {out}/mine && echo THROUGH", reduced=False),
    Attack(93, "change times outside", "touch -d @1 {out}/mine && echo THROUGH", reduced=False),
    Attack(94, "TCP", "exec 3<> /dev/tcp/127.0.0.1/{tcp} && echo THROUGH"),
    Attack(94, "UDP", "exec 3> /dev/udp/127.0.0.1/{udp} && echo x >&3 && echo y >&3 && echo THROUGH"),  # nobody listens: the second fails
    Attack(94, "unix socket by path", PYTHON + " 'import socket; socket.socket(socket.AF_UNIX).connect(\"{out}/socket\")' && echo THROUGH"),
    Attack(94, "abstract unix socket", PYTHON + " 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")' && echo THROUGH"),
    Attack(95, "signal another process", "kill -0 {pid} && echo THROUGH"),
    Attack(96, "new user namespace", "unshare -U true && echo THROUGH"),
    Attack(102, "feed a terminal", PYTHON + " 'import pty, os; p, f = pty.fork(); p or (open(\"/dev/tty\"), os._exit(7)); assert os.waitpid(p, 0)[1] == 7 << 8' && echo THROUGH"),
]  # fmt: skip
AS_ROOT = [
    Attack(96, "mount", "unshare -m mount -t tmpfs x /mnt && echo THROUGH"),
    Attack(96, "make a device", "mknod device c 1 3 && rm device && echo THROUGH"),
    Attack(96, "become another user", PYTHON + " 'import os; os.setuid(65534)' && echo THROUGH"),
]


@dataclass(frozen=True)
class World:
    base: Path
    facts: dict[str, object]

    @property
    def workspace(self) -> Path:
        return self.base / "ws"

    def traces(self) -> list[tuple[str, int, int, bytes]]:
        """Everything below ``outside``: names, modes, times and contents."""
        found = []
        for path in sorted((self.base / "outside").iterdir()):
            info = path.lstat()
            found.append((path.name, info.st_mode, info.st_mtime_ns, path.read_bytes() if path.is_file() else b""))
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    needs_a_sandbox()
    outside = tmp_path / "outside"
    for folder in (outside, tmp_path / "ws"):
        folder.mkdir()
    (outside / "secret").write_text("SECRET")
    (outside / "mine").write_text("mine")
    abstract = f"toolkit-test-{os.getpid()}-{tmp_path.name}"
    environment = {**os.environ, "VICTIM_SECRET": "x"}
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as named,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=environment) as victim,
    ):
        udp.bind(("127.0.0.1", 0))
        before = os.getcwd()
        os.chdir(outside)  # an address may not be as long as this path
        unix.bind("socket")
        os.chdir(before)
        named.bind("\0" + abstract)
        for server in (unix, named):
            server.listen()
        ports = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        yield World(tmp_path, {"out": outside, "pid": victim.pid, "abstract": abstract, **ports})
        assert victim.stdin
        victim.stdin.close()


def title(row: object) -> str:
    return f"{row.number}-{row.name}" if isinstance(row, Attack) else str(row)


@pytest.mark.sample
@pytest.mark.parametrize("tool", RUNS)
@pytest.mark.parametrize("row", [*ATTACKS, *(AS_ROOT if os.geteuid() == 0 else [])], ids=title)
def test_an_attack_goes_through_only_without_a_sandbox(world: World, row: Attack, tool: str) -> None:
    text = row.text.format(**world.facts)
    before = world.traces()

    with offline(world.workspace) as toolkit:
        output = RUNS[tool](toolkit, text)

    if output.sandbox == "full" or row.reduced:
        assert output.stdout == ""
        assert world.traces() == before
    for path in world.workspace.iterdir():
        path.unlink()
    with offline(world.workspace, sandbox="unsafe-none") as toolkit:
        assert RUNS[tool](toolkit, text).stdout == THROUGH


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    needs_a_sandbox()
    return RUNS[request.param]


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[Toolkit]:
    with offline(tmp_path) as toolkit:
        yield toolkit


def test_65_arguments_are_never_shell_text(tmp_path: Path, toolkit: Toolkit) -> None:
    needs_a_sandbox()
    hostile = [
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "| touch pwned",
        "&& touch pwned",
        "$HOME",
        "*",
        "-n",
    ]

    output = toolkit.tools.exec_command(command=["printf", "%s\\n", *hostile])

    assert output.stdout.splitlines() == hostile
    assert list(tmp_path.iterdir()) == []


def test_74_a_bare_name_is_never_a_file_of_the_workspace(tmp_path: Path, toolkit: Toolkit, run: Run) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\necho pwned\n")
    (tmp_path / "git").chmod(0o755)

    assert run(toolkit, "git --version").stdout.startswith("git version")
    assert toolkit.tools.exec_command(command=["git", "--version"]).stdout.startswith("git version")
    with pytest.raises(SandboxViolation):
        toolkit.tools.exec_command(command=["git", "--version"], env={"PATH": "."})


def test_77_the_working_directory_never_moves_the_root(tmp_path: Path, run: Run) -> None:
    (tmp_path / "ws/sub").mkdir(parents=True)
    (tmp_path / "ws/out").symlink_to("..")
    with offline(tmp_path / "ws") as toolkit:
        for cwd in ("..", "out", "sub/../..", "/", "/proc/self/cwd"):
            with pytest.raises(SandboxViolation):
                toolkit.tools.exec_command(command=["touch", "pwned"], cwd=cwd)
            with pytest.raises(SandboxViolation):
                toolkit.tools.bash(command="touch pwned", cwd=cwd)
        run(toolkit, "cd sub && touch ../beside; touch ../../pwned; cd / && touch pwned")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ws"]
    assert (tmp_path / "ws/beside").exists()


def test_78_no_variable_is_inherited(toolkit: Toolkit, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "CLIENT_SECRET", "GITHUB_TOKEN", "DB_PASSWORD", "HARMLESS_NAME"):
        monkeypatch.setenv(name, "inherited-value")

    names = {row.partition("=")[0] for row in run(toolkit, "env").stdout.splitlines()}

    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD", "SHLVL", "OLDPWD", "_"}


def test_80_only_three_descriptors(tmp_path: Path, toolkit: Toolkit, run: Run) -> None:
    number = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(number, True)
    try:
        output = run(
            toolkit, "python3 -c 'import os; print([f for f in range(1000) if os.path.exists(f\"/proc/self/fd/{f}\")])'"
        )
    finally:
        os.close(number)

    assert output.stdout == "[0, 1, 2]\n"


def test_81_input_ends_at_once(toolkit: Toolkit, run: Run) -> None:
    output = run(toolkit, "cat; read line; echo $?")

    assert (output.stdout, output.timed_out) == ("1\n", False)


# Beside others, so many processes would fill the limit of one user.
@pytest.mark.xdist_group("many-processes")
def test_86_processes_are_bounded_and_none_survives(tmp_path: Path, toolkit: Toolkit, run: Run) -> None:
    code = "import os, time\nn = 0\ntry:\n    while n < 2000:\n        os.fork() or time.sleep(10000)\n        n += 1\n    time.sleep(10000)\nexcept OSError: pass\nprint(n, flush=True)"

    with line_in(tmp_path) as line:
        output = run(toolkit, f"{OPEN_LINE}echo ready >&9; python3 - <<'E'\n{code}\nE")
        assert line.heard() == b"ready\n"
        assert not line.is_held()

    assert output.signal == "SIGKILL" and "more than 256 processes" in output.stderr
    assert run(toolkit, "echo alive").stdout == "alive\n"


def test_87_endless_output_is_cut(toolkit: Toolkit) -> None:
    needs_a_sandbox()

    output = toolkit.tools.exec_command(command=["yes"], timeout_ms=1000, max_output_bytes=1000)

    assert output.timed_out and output.stdout_truncated
    assert output.stdout.startswith("y\n" * 250) and len(output.stdout) < 1100


def test_98_a_link_made_by_a_command_is_not_followed_by_file_tools(tmp_path: Path, run: Run) -> None:
    (tmp_path / "secret").write_text("SECRET")
    (tmp_path / "ws").mkdir()
    with offline(tmp_path / "ws") as toolkit:
        run(toolkit, f"ln -s {tmp_path}/secret innocent; ln -s ../secret beside")
        for path in ("innocent", "beside"):
            with pytest.raises(SandboxViolation):
                toolkit.tools.read_file(path=path)
    assert (tmp_path / "ws/innocent").read_text() == "SECRET"


@pytest.mark.parametrize(
    "name", ["BASH_ENV", "LD_PRELOAD", "PYTHONPATH", "PATH", "GIT_DIR", "NODE_OPTIONS", "Ld_Preload"]
)
def test_101_variables_that_run_code_are_refused_by_name(toolkit: Toolkit, name: str) -> None:
    needs_a_sandbox()

    with pytest.raises(SandboxViolation, match=name) as caught:
        toolkit.tools.exec_command(command=["true"], env={name: "hostile-value"})

    assert "hostile-value" not in str(caught.value)


def test_mode_read_only_holds_for_commands(tmp_path: Path, run: Run) -> None:
    (tmp_path / "kept").write_text("kept")
    with offline(tmp_path, mode="read-only") as toolkit:
        output = run(toolkit, "echo x > kept; rm kept; touch new; cat kept; echo y > $TMPDIR/t; cat $TMPDIR/t")

    assert output.stdout == "kepty\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_closed_toolkit_runs_nothing(tmp_path: Path, run: Run) -> None:
    toolkit = offline(tmp_path)
    toolkit.close()

    with pytest.raises(ToolkitError, match="closed"):
        run(toolkit, "touch ran")

    assert list(tmp_path.iterdir()) == []
