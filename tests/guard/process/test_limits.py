"""What a command and all it starts use together is limited, and the result names the limit that ended it.

Each attack is Python that uses too much and then waits to be ended; unguarded it gets to its end. Time limits here are
watchdogs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guard import nobody
from tests.guard.ways import FULL, SANDBOXED, Way, guard_in, needs
from toolkit.errors import SetupError
from toolkit.guard import CommandLimits, ProcessResult

MIB = 1 << 20
WATCHDOG = 60.0
LIMITS = CommandLimits(memory=64 * MIB, processes=30, file_size=32 * MIB, disk=24 * MIB)


def only(limit: str) -> CommandLimits:
    """One small limit. Where the kernel does not tell, the use of the whole machine counts, and other tests run there."""
    return CommandLimits(**{limit: getattr(LIMITS, limit)})


PRELUDE = """
import ctypes, mmap, os, signal, subprocess, sys, threading, time
MIB = 1 << 20
SUPERVISOR = os.getppid()
libc = ctypes.CDLL(None, use_errno=True)

def forever():
    time.sleep(30 if UNGUARDED else 10000)  # nobody ends what leaves its session without a guard

def hold():
    print("THROUGH", flush=True)
    os._exit(0) if UNGUARDED else forever()

def child(act, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            act(*arguments)
        finally:
            os._exit(0)
    return pid

def hide():
    libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: nobody may look into this process

def until_looked_at(times=3):
    # Wait until the supervisor has worked and rested that often: it looks, and goes on waiting.
    if UNGUARDED:
        return
    clock = ~SUPERVISOR << 3 | 2  # the time that it has used: CPUCLOCK_SCHED
    used = time.clock_gettime_ns(clock)
    for _ in range(times):
        while time.clock_gettime_ns(clock) == used:
            time.sleep(0.001)
        while used != (used := time.clock_gettime_ns(clock)):
            time.sleep(0.001)

def fill(size):
    block = bytearray(size)
    block[::4096] = b"x" * len(block[::4096])
    return block

def write(name, mebibytes=8):
    with open(name, "wb", buffering=0) as file:
        for _ in range(mebibytes):
            file.write(b"x" * MIB)

def fill_memory_file():
    fd = os.memfd_create("x")
    os.truncate(fd, 25 * MIB)
    for at in range(25):
        os.pwrite(fd, b"x" * MIB, at * MIB)
    return fd
"""

# Others may free space on the same disk, or shared memory, meanwhile, so these go on until they are ended.
MANY = "range(5 if UNGUARDED else 60)"


@dataclass(frozen=True)
class Excess:
    limit: str
    name: str
    code: str
    ways: tuple[Way, ...] = SANDBOXED
    like: str = ""  # the row of `make test` that is found out in the same way


ATTACKS = [
    Excess("memory", "one process", "kept = fill(100 * MIB); hold()"),
    Excess("memory", "many processes, each below the limit", "[child(lambda: (fill(20 * MIB), forever())) for _ in range(6)]; hold()"),
    Excess("memory", "in the background", "os.waitpid(child(child, lambda: (os.setsid(), fill(100 * MIB), forever())), 0); hold()", like="many processes, each below the limit"),
    Excess("memory", "a process that hides", "hide(); kept = fill(100 * MIB); hold()"),
    Excess("memory", "a process whose first thread has ended", "threading.Thread(target=lambda: (ended.wait(), fill(100 * MIB), hold())).start(); end_first_thread()"),
    Excess("memory", "page tables of memory that was only read", "for_page_tables(); hold()"),
    Excess("memory", "shared memory", "kept = mmap.mmap(-1, 100 * MIB); kept[::4096] = b'x' * len(kept[::4096]); hold()"),
    Excess("memory", "shared memory that is in no page table", f"kept = [fill_and_forget() for _ in {MANY}]; hold()"),
    Excess("memory", "shared memory that children have filled", f"kept = [mmap.mmap(-1, 20 * MIB) for _ in {MANY}]; [os.waitpid(child(fill_shared, area), 0) for area in kept]; hold()", like="shared memory that is in no page table"),
    Excess("memory", "files without a name that are closed and mapped", f"[map_a_page(fill_memory_file()) for _ in {MANY}]; hold()"),
    Excess("memory", "files without a name", "kept = [fill_memory_file() for _ in range(4)]; hold()"),
    Excess("memory", "files without a name that are hidden", f"hide(); kept = [fill_memory_file() for _ in {MANY}]; hold()", like="a process that hides"),
    Excess("memory", "files in /tmp", "[write(f'{tmp()}/{n}', 20) for n in range(4)]; hold()", FULL),
    Excess("memory", "removed files in /tmp", "kept = [write_removed(f'{tmp()}/{n}') for n in range(4)]; hold()", FULL, like="files in /tmp"),
    Excess("memory", "segments that nobody has attached", "kept = [segment() for _ in range(4)]; hold_segments(kept)", FULL),
    Excess("processes", "children", "[child(forever) for _ in range(40)]; hold()"),
    Excess("processes", "orphans", "os.waitpid(child(lambda: [child(forever) for _ in range(40)]), 0); hold()"),
    Excess("processes", "zombies", "[child(int) for _ in range(40)]; hold()"),
    # Elsewhere the kernel itself allows no more.
    Excess("processes", "threads", "threading.stack_size(64 << 10); [threading.Thread(target=forever, daemon=True).start() for _ in range(1200)]; hold()", ("reduced", "bubblewrap") if os.geteuid() == 0 else ("reduced",)),
    Excess("disk", "several files", "[write(f'f{n}') for n in range(4)]; hold()"),
    Excess("disk", "many small files", "os.mkdir('d'); [open(f'd/{n}', 'w').write('x') for n in range(700 if UNGUARDED else 7000)]; hold()"),
    Excess("disk", "one file again and again", "rewrite('f'); hold()", like="several files"),
    Excess("disk", "a mapped file", "map_and_fill('f'); hold()"),
    Excess("disk", "past the page cache", "write_directly('f'); hold()"),
    Excess("disk", "children that have ended", "[os.waitpid(child(write, f'f{n}'), 0) for n in range(4)]; hold()"),
    Excess("disk", "orphans that have ended", "[os.waitpid(child(child, write, f'f{n}'), 0) for n in range(4)]; hold()", like="children that have ended"),
    Excess("disk", "threads that have ended", "[in_thread(write, f'f{n}') for n in range(4)]; hold()", like="children that have ended"),
    Excess("disk", "a process that hides", f"hide(); [write(f'f{{n}}') for n in {MANY}]; hold()"),
    Excess("disk", "children that nobody waits for", f"signal.signal(signal.SIGCHLD, signal.SIG_IGN); [until_gone(child(write, f'f{{n}}')) for n in {MANY}]; hold()"),
    Excess("disk", "children that nobody can wait for", f"forget_children(); [(until_gone(child(write_and_stay, f'f{{n}}')), until_looked_at()) for n in {MANY}]; hold()", like="children that nobody waits for"),
    Excess("disk", "children that stay zombies", "[os.waitid(os.P_PID, child(write, f'f{n}'), os.WEXITED | os.WNOWAIT) for n in range(5 if UNGUARDED else 25)]; hold()", like="children that have ended"),
    Excess("disk", "space that a C library reserves", "[os.posix_fallocate(os.open(f'f{n}', os.O_CREAT | os.O_RDWR), 0, 8 * MIB) for n in range(4)]; hold()", like="past the page cache"),
]  # fmt: skip

ACTS = """
ended = threading.Event()

def end_first_thread():
    ended.set()
    libc.pthread_exit(None)

def for_page_tables():
    # One page of tables for every 2 MiB that are read, and no memory behind it.
    for _ in range(6):
        child(lambda: (read_everywhere(), forever()))

def read_everywhere():
    area = mmap.mmap(-1, 8 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, 8 << 30, 2 * MIB):
        area[at]
    return area

def fill_shared(area):
    area[::4096] = b"x" * len(area[::4096])

def fill_and_forget():
    area = mmap.mmap(-1, 20 * MIB)
    fill_shared(area)
    area.madvise(mmap.MADV_DONTNEED)
    return area

def map_a_page(fd):
    libc.mmap.restype = ctypes.c_void_p
    assert libc.mmap(None, ctypes.c_size_t(4096), 1, 2, fd, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
    os.close(fd)

def tmp():
    return os.environ["TMPDIR"]

def write_removed(name):
    file = open(name, "wb", buffering=0)
    os.remove(name)
    file.write(b"x" * 20 * MIB)
    return file

def segment():
    libc.shmat.restype, libc.shmdt.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    number = libc.shmget(0, ctypes.c_size_t(20 * MIB), 0o1600)
    assert number >= 0
    place = libc.shmat(number, None, 0)
    ctypes.memset(place, 1, 20 * MIB)
    libc.shmdt(place)
    return number

def hold_segments(numbers):
    if UNGUARDED:
        for number in numbers:
            libc.shmctl(number, 0, None)
    hold()

def rewrite(name):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY)
    for _ in range(4):
        os.pwrite(fd, b"x" * 8 * MIB, 0)
        os.fsync(fd)

def map_and_fill(name):
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    os.truncate(fd, 30 * MIB)
    area = mmap.mmap(fd, 30 * MIB)
    area[::4096] = b"x" * len(area[::4096])

def write_directly(name):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    block = mmap.mmap(-1, MIB)
    for _ in range(30):
        os.write(fd, block)

def in_thread(act, *arguments):
    thread = threading.Thread(target=act, args=arguments)
    thread.start()
    thread.join()

def forget_children():
    # SA_NOCLDWAIT, which unlike SIG_IGN nobody can see from outside.
    class Action(ctypes.Structure):
        _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_byte * 128), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]
    assert libc.sigaction(signal.SIGCHLD, ctypes.byref(Action(flags=2)), None) == 0

def write_and_stay(name):
    write(name)
    until_looked_at()

def until_gone(pid):
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
"""


def program(code: str, *, unguarded: bool = False) -> list[str]:
    return [sys.executable, "-c", f"{PRELUDE}\nUNGUARDED = {unguarded}\n{ACTS}\n{code}"]


def run(way: Way, workspace: Path, code: str, limits: CommandLimits) -> ProcessResult:
    with guard_in(way, workspace, limits=limits) as guard:
        return guard.run(program(code, unguarded=way == "unsafe-none"), timeout=WATCHDOG)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def title(row: Excess) -> str:
    return f"{row.limit}-{row.name}".replace(" ", "-")


def test_a_row_that_is_left_out_is_like_one_that_is_not() -> None:
    assert {row.like for row in ATTACKS} <= {row.name for row in ATTACKS if not row.like} | {""}


@pytest.mark.sample(every=8)
@pytest.mark.parametrize(
    ("row", "way"),
    [
        pytest.param(row, way, id=f"{title(row)}-{way}", marks=[pytest.mark.whole] if row.like else [])
        for row in ATTACKS
        for way in row.ways
    ],
)
def test_89_a_command_that_uses_too_much_is_ended_and_says_why(workspace: Path, row: Excess, way: Way) -> None:
    result = run(way, workspace, row.code, only(row.limit))

    assert (result.ended_by, result.signal, result.timed_out) == (row.limit, signal.SIGKILL, False), result.stderr
    assert f"the limit is CommandLimits.{row.limit}]\n" in result.stderr.decode()


@pytest.mark.sample
@pytest.mark.parametrize(
    "row", [pytest.param(row, id=title(row), marks=[pytest.mark.whole] if row.like else []) for row in ATTACKS]
)
def test_without_a_sandbox_it_gets_to_its_end(workspace: Path, row: Excess) -> None:
    result = run("unsafe-none", workspace, row.code, only(row.limit))

    assert (result.stdout, result.ended_by) == (b"THROUGH\n", None), result.stderr.decode()


AS_NOBODY = """
import json, sys, tempfile
from toolkit.guard import CommandLimits, ProcessGuard
workspace, sandbox, carrier, programs = sys.argv[1:]
ended = {}
for name, (code, limits) in json.load(open(programs)).items():
    with (
        tempfile.TemporaryDirectory(dir=workspace) as folder,
        ProcessGuard(folder, sandbox=sandbox, carrier=carrier, limits=CommandLimits(**limits)) as guard,
    ):
        if guard.tier == "none":
            print(json.dumps(guard.choice.reason))
            raise SystemExit
        result = guard.run([sys.executable, "-c", code], timeout=60)
        ended[name] = [result.ended_by, result.exit_code]
print(json.dumps(ended))
"""


HARD_FOR_OTHERS = {"memory a process that hides", "processes children", "disk a process that hides"}
"""``make test`` tries these only: root may look into a process that hides, and may exceed the kernel's limit on processes."""


@nobody.only_root
@pytest.mark.parametrize(
    ("sandbox", "carrier"),
    [
        ("full", "own"),
        pytest.param("full", "bubblewrap", marks=pytest.mark.whole),
        pytest.param("reduced", "auto", marks=pytest.mark.whole),
    ],
)
def test_the_limits_as_another_user(sandbox: str, carrier: str, everything: bool) -> None:
    """What a process may learn about others depends on its user: root may read more of /proc."""
    if carrier == "bubblewrap":
        needs("bubblewrap")
    rows = {
        f"{row.limit} {row.name}": row
        for row in ATTACKS
        if row.ways == SANDBOXED or (sandbox == "full" and row.ways == FULL)
    }
    neighbours = {row.name: dataclasses.replace(row, code=f"{NEIGHBOUR_ACTS}\n{row.code}") for row in NEIGHBOURS}
    if not everything:
        rows = {name: row for name, row in rows.items() if name in HARD_FOR_OTHERS}
        assert rows.keys() == HARD_FOR_OTHERS
        neighbours = {}
    programs = {
        name: (program(row.code)[2], dataclasses.asdict(only(row.limit))) for name, row in (rows | neighbours).items()
    }
    with nobody.folder("ws") as base:
        (base / "programs").write_text(json.dumps(programs))
        answer = nobody.run(AS_NOBODY, str(base / "ws"), sandbox, carrier, str(base / "programs"))
    ended = json.loads(answer)
    if isinstance(ended, str):
        pytest.skip(f"this machine gives another user no {sandbox} tier: {ended}")
    expected = {name: [row.limit, None] for name, row in rows.items()} | {name: [None, 0] for name in neighbours}
    assert ended == expected


# Each uses less than the limits, but would seem to use more to somebody who counts carelessly. Sanitizers, WebAssembly and
# some garbage collectors reserve terabytes of addresses.
NEIGHBOURS = [
    Excess("memory", "workers that share what they were forked with", "kept = fill(35 * MIB); until_looked_at_with([child(forever) for _ in range(8)])"),
    Excess("memory", "a file without a name that all have mapped", "until_looked_at_with(readers_of(fill_memory_file()))"),
    Excess("memory", "starting programs from a large process", "kept = fill(35 * MIB); [subprocess.run(['true']) for _ in range(100)]"),
    Excess("disk", "a sparse file", "os.pwrite(os.open('f', os.O_CREAT | os.O_WRONLY), b'x', 30 * MIB)"),
    Excess("memory", "mapped files", "kept = [read_sparse(f'f{n}') for n in range(4)]; until_looked_at()"),
    Excess("memory", "address space that is not used", "kept = mmap.mmap(-1, 1 << 44, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); until_looked_at()"),
    Excess("memory", "memory that was freed", "[fill(30 * MIB).clear() for _ in range(20)]"),
    Excess("processes", "processes one after another", "[os.waitpid(child(int), 0) for _ in range(200)]"),
    Excess("processes", "many threads", "done = threading.Event(); many = [threading.Thread(target=done.wait) for _ in range(100)]; [t.start() for t in many]; until_looked_at(); done.set()"),
    Excess("disk", "holes in a file", "punch_hole()"),
]  # fmt: skip
NEIGHBOUR_ACTS = """
def until_looked_at_with(pids):
    until_looked_at()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)

def readers_of(fd):
    done, told = os.pipe()
    pids = [child(read_map, fd, told) for _ in range(8)]
    for _ in pids:
        os.read(done, 1)
    return pids

def read_map(fd, told):
    area = mmap.mmap(fd, 25 * MIB)
    area[::4096]
    os.write(told, b".")
    forever()

def read_sparse(name):
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    os.truncate(fd, 30 * MIB)
    area = mmap.mmap(fd, 30 * MIB)
    area[::4096]
    return area

def punch_hole():
    write("f", 1)
    fd = os.open("f", os.O_RDWR)
    if libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(MIB)):
        raise OSError(ctypes.get_errno(), "fallocate")
"""


@pytest.mark.sample(every=4, of_each_tier=True)
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("row", NEIGHBOURS, ids=title)
def test_the_legitimate_neighbour_gets_to_its_end(workspace: Path, row: Excess, way: Way) -> None:
    result = run(way, workspace, f"{NEIGHBOUR_ACTS}\n{row.code}\nprint('done')", only(row.limit))

    assert (result.stdout, result.ended_by, result.exit_code) == (b"done\n", None, 0), result.stderr.decode()


RESERVE = "fd = os.open('f', os.O_CREAT | os.O_RDWR); print(libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(MIB)), ctypes.get_errno(), os.fstat(fd).st_blocks)"


@pytest.mark.parametrize("way", SANDBOXED)
def test_disk_space_cannot_be_reserved_without_writing(workspace: Path, way: Way) -> None:
    """The kernel would not count it as written."""
    result = run(way, workspace, RESERVE, LIMITS)
    control = subprocess.run(program(RESERVE), cwd=workspace, capture_output=True)

    assert result.stdout.split() == [b"-1", b"95", b"0"]  # EOPNOTSUPP: do without
    if control.stdout.split()[0] != b"0":
        pytest.skip("the file system of the test cannot reserve space either")
    assert int(control.stdout.split()[2]) >= MIB // 512


TOO_LARGE = "head -c 40000000 /dev/zero > big"
FILES = {
    "the command itself": ["bash", "-c", f"exec {TOO_LARGE}"],
    "the last program of a shell": ["bash", "-c", TOO_LARGE],
    "the last of a list": ["bash", "-c", f"true; {TOO_LARGE}"],
}


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("name", FILES)
def test_90_a_program_that_writes_too_large_a_file_says_why(workspace: Path, name: str, way: Way) -> None:
    limits = dataclasses.replace(LIMITS, disk=1 << 30)
    with guard_in(way, workspace, limits=limits) as guard:
        result = guard.run(FILES[name], timeout=WATCHDOG)
    assert result.ended_by == "file_size" and result.exit_code != 0
    assert (
        b"[ended: a file would have become larger than 32 MiB; the limit is CommandLimits.file_size]" in result.stderr
    )
    assert (workspace / "big").stat().st_size == 32 * MIB
    with guard_in("unsafe-none", workspace, limits=limits) as guard:
        assert guard.run(FILES[name]).exit_code == 0


@pytest.mark.parametrize("way", SANDBOXED)
def test_the_defaults_leave_room_for_ordinary_work(workspace: Path, way: Way) -> None:
    """A file of 100 MB, 300 MB in /tmp, and more threads than processes."""
    threads = "done = threading.Event(); many = [threading.Thread(target=done.wait) for _ in range(400)]; [t.start() for t in many]; done.set()"
    with guard_in(way, workspace) as guard:
        assert guard.shell("head -c 100000000 /dev/zero > f && wc -c < f", timeout=WATCHDOG).stdout == b"100000000\n"
        assert guard.shell("head -c 300000000 /dev/zero > $TMPDIR/f", timeout=WATCHDOG).exit_code == 0
        assert guard.run(program(threads), timeout=WATCHDOG).exit_code == 0


OWN_LIMITS = {"ulimit -t": b"21600\n", "ulimit -n": b"4096\n"}  # 6 hours of CPU, and open files


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("limit", OWN_LIMITS)
def test_each_process_has_limits_that_it_cannot_raise(workspace: Path, way: Way, limit: str) -> None:
    option = limit.split()[1]
    with guard_in(way, workspace) as guard:
        result = guard.shell(f"ulimit -S {option}; ulimit -H {option}; ulimit {option} 30000 || echo kept; {limit}")
        assert result.stdout == OWN_LIMITS[limit] * 2 + b"kept\n" + OWN_LIMITS[limit]
        server = guard.start(["bash", "-c", "ulimit -t; ulimit -n"])
        text = b""
        while (piece := server.read()) != b"":
            text += piece or b""
        server.close()
    assert text == b"unlimited\n4096\n"  # it may run for days


GOES_ON = "head -c 40000000 /dev/zero > big; echo after"


@pytest.mark.parametrize("way", SANDBOXED)
def test_90_a_shell_that_goes_on_tells_itself_which_program_was_ended(workspace: Path, way: Way) -> None:
    """The result names the limit only where it ended the command; see the documents."""
    with guard_in(way, workspace, limits=dataclasses.replace(LIMITS, disk=1 << 30)) as guard:
        result = guard.run(["bash", "-c", GOES_ON], timeout=WATCHDOG)
    assert (result.ended_by, result.exit_code, result.stdout) == (None, 0, b"after\n")
    assert b"CommandLimits" not in result.stderr
    assert (workspace / "big").stat().st_size == 32 * MIB


@pytest.mark.parametrize("act", ["mv a c", "chmod 000 a"])
@pytest.mark.parametrize("way", SANDBOXED)
def test_a_command_may_move_and_lock_the_way_to_a_root(workspace: Path, way: Way, act: str) -> None:
    """What it writes can still be told."""
    (workspace / "a/b").mkdir(parents=True)
    with guard_in(way, workspace, write_roots=[str(workspace / "a/b")]) as guard:
        result = guard.run(program(f"os.system('{act}'); until_looked_at(); print('end')"), timeout=WATCHDOG)
    if (workspace / "a").exists():
        (workspace / "a").chmod(0o755)
    assert (result.stdout, result.exit_code) == (b"end\n", 0)


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_server_is_ended_for_memory_but_may_write_as_long_as_it_lives(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace, limits=LIMITS) as guard:
        server = guard.start(
            program(
                "[write(f'f{n}') for n in range(6)]; until_looked_at(); print('done', flush=True); sys.stdin.read()"
            )
        )
        while (text := server.read()) is None:
            os.sched_yield()
        server.close()
        assert (text, server.outcome().ended_by, server.outcome().exit_code) == (b"done\n", None, 0)
        greedy = guard.start(program("kept = fill(100 * MIB); forever()"))
        while greedy.read() is None:
            os.sched_yield()
        greedy.close()
        assert greedy.outcome().ended_by == "memory" and "CommandLimits.memory" in greedy.outcome().note


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "4G", None, 1 << 63])
@pytest.mark.parametrize("name", ["memory", "processes", "file_size", "disk"])
def test_a_limit_is_a_whole_number(name: str, value: object) -> None:
    with pytest.raises(SetupError, match=f"limits: {name} must be a whole number from 1 to"):
        CommandLimits(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("way", FULL)
def test_the_private_directory_for_temporary_files_has_one_gibibyte(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        result = guard.run(["df", "-B1", "--output=size", "/tmp"])
    assert result.stdout.split()[-1] == str(1 << 30).encode()


@pytest.mark.parametrize("way", SANDBOXED)
def test_the_largest_limits_are_none_at_all(workspace: Path, way: Way) -> None:
    most = (1 << 63) - 1
    with guard_in(way, workspace, limits=CommandLimits(most, most, most, most)) as guard:
        result = guard.run(program("write('f', 1); until_looked_at()"), timeout=WATCHDOG)
    assert (result.exit_code, result.ended_by) == (0, None), result.stderr


def test_the_memory_limit_leaves_half_of_the_machine() -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert CommandLimits().memory == min(total // 2, 16 << 30)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(4 << 30, "4 GiB"), (3 << 29, "1.5 GiB"), (100 * MIB, "100 MiB"), (1 << 20, "1 MiB"), (1500, "1500 bytes")],
)
def test_sizes_are_shown_in_the_largest_unit(size: int, shown: str) -> None:
    assert f"more than {shown} of memory" in CommandLimits(memory=size).explain("memory")
