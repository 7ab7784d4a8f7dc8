"""The attacks on the sandbox of commands, from inside a program. Their controls are in ``tests/guard/process``.

All rows of a tier run in one program, each in a child of its own, which writes a byte into a pipe if it succeeds.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import toolkit
from tests.guard.process.test_attacks import PRELUDE, Attack, rows, title, world  # noqa: F401  # a fixture
from tests.guard.process.test_attacks import World as AttackedWorld
from tests.guard.ways import SANDBOXED, Way, guard_in
from tests.programs.hostile.world import PRELUDE as PROGRAM_PRELUDE
from tests.programs.hostile.world import SOURCE, World
from toolkit import CancelSignal, ProgramSettings
from toolkit.runtime.late_imports import open_package
from toolkit.runtime.programs.host import ProgramHost, Ran, SyncCaller
from toolkit.runtime.programs.process import Interpreters
from toolkit.runtime.programs.result import TimeLimit
from toolkit.runtime.sync import Runner

# What a program can do by itself, so that a row that is stopped by the way it is run would be noticed.
NEIGHBOURS = {
    "files in /tmp": "open('f', 'w').write('x'); os.chmod('f', 0o600); os.link('f', 'g'); assert open('g').read() == 'x'",
    "threads and pipes": "import asyncio; asyncio.run(asyncio.to_thread(int))",
    "socket pairs": "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
    "children": "fork_and_check(lambda: None)",
    "the code that it runs from": "assert 'toolkit' in open(ROOT_FILE).read()",
}
OF_THE_AGENT = [
    Attack(0, "memory of the agent", "open(f'/proc/{AGENT}/mem', 'rb')"),
    Attack(0, "environment of the agent", "open(f'/proc/{AGENT}/environ', 'rb').read()[0]"),
    Attack(0, "descriptors of the agent", "os.listdir(f'/proc/{AGENT}/fd')[0]"),
    Attack(0, "trace the agent", "check(libc.ptrace(0x4206, AGENT, 0, 0))"),
    Attack(0, "a descriptor of the agent", "check(syscall(438, os.pidfd_open(AGENT), 0, 0))"),
    Attack(0, "signal the agent", "os.kill(AGENT, 0)"),
    Attack(0, "memory of its supervisor", "open(f'/proc/{SUPERVISOR}/mem', 'rb')"),
    Attack(0, "trace its supervisor", "check(libc.ptrace(16, SUPERVISOR, 0, 0))"),
    Attack(0, "limit its supervisor", "import resource; resource.prlimit(SUPERVISOR, resource.RLIMIT_NOFILE, (0, 0))"),
    Attack(0, "files of the workspace", "os.listdir(WORKSPACE)[0]"),
    Attack(0, "files of the state directory", "assert 'SECRET' in open(STATE + '/secret').read()"),
    Attack(0, "write the code that it runs from", "open(ROOT_FILE, 'a')"),
]
ATTACK = """
def attempt(code):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            folder = f"{os.environ['TMPDIR']}/{os.getpid()}"
            os.mkdir(folder)
            os.chdir(folder)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 2)
            exec(inputs.attack_prelude + code, dict(facts))
            os.write(writing, b"1")
        finally:
            os._exit(0)
    os.close(writing)
    through = os.read(reading, 1) == b"1"
    os.close(reading)
    os.waitpid(pid, 0)
    return through

facts = json.loads(inputs.facts) | {"SUPERVISOR": os.getppid()}
answer = {name: attempt(code) for name, code in json.loads(inputs.rows).items()}
"""


def run_table(way: Way, base: Path, inputs: dict[str, object]) -> Ran:
    """Runs the program over a guard of that way: a context cannot choose bubblewrap."""
    settings = ProgramSettings(imports=["builtins"])
    made = World(base)
    folder = base / "empty"
    folder.mkdir()
    opened = {name: open_package(name) for name in ("toolkit", "toolkit.generated")}
    packages = {name: root for name, root in opened.items() if root is not None}
    try:
        with guard_in(
            way, folder, mode="read-only", read_roots=list(packages.values()), state_dir=str(base / "homes")
        ) as guard:
            interpreters = Interpreters(guard, packages)
            process = interpreters.take(TimeLimit.beginning_now(60), CancelSignal())
            try:
                runner = Runner._over(made.toolkit._core)
                names = ["done", "read_file"]
                known: list[dict[str, object]] = [
                    {"name": name, "attribute": name, "module": None, "output": "", "wire": {}} for name in names
                ]
                request = json.dumps({"source": SOURCE, "tools": known, "inputs": {**inputs, "mark": made.mark}})
                limit = TimeLimit.beginning_now(120)
                host = ProgramHost(process, SyncCaller(runner), settings, "table", names, CancelSignal(), limit)
                return host.run(request.encode())
            finally:
                process.close()
                interpreters.close()
                assert made.survivors() == []
    finally:
        made.close()


@pytest.mark.every_tier
@pytest.mark.parametrize("way", SANDBOXED)
def test_what_a_program_can_do_to_the_machine(world: AttackedWorld, tmp_path: Path, way: Way) -> None:  # noqa: F811
    (tmp_path / "state").mkdir()
    (tmp_path / "state/secret").write_text("SECRET")
    facts = {
        **world.facts,
        "AGENT": os.getpid(),
        "WORKSPACE": str(tmp_path / "table/workspace"),
        "STATE": str(tmp_path / "state"),
        # Programs have no read roots of their own; they read the code of the toolkit.
        "ROOT_FILE": toolkit.__file__,
    }
    table = {title(row): row for row in (*rows(), *OF_THE_AGENT)}
    before = world.traces()

    inputs: dict[str, object] = {
        "prelude": PROGRAM_PRELUDE,
        "code": ATTACK,
        "attack_prelude": PRELUDE,
        "facts": json.dumps(facts),
        "rows": json.dumps({name: row.code for name, row in table.items()} | NEIGHBOURS),
    }
    ran = run_table(way, tmp_path / "table", inputs)

    assert ran.error is None, ran.error
    through = {name for name, succeeded in ran.value.items() if succeeded}
    # Its input is the null device here, so both rows about that device are the same gap.
    gaps = {name for name, row in table.items() if way in row.through or _is_null_device(row) and way != "full"}
    assert through == gaps | set(NEIGHBOURS)
    assert world.traces() == before or way == "reduced"


def _is_null_device(row: Attack) -> bool:
    return row.code.startswith("assert (1, 3)")
