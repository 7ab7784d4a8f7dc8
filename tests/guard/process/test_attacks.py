"""What a hostile command tries, in each tier; the numbers are those of the attack list.

Each attack is a piece of Python that raises unless it succeeds. Unguarded it must succeed, or the row proves nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guard.ways import ALL, FULL, SANDBOXED, Way, guard_in, has_ipv6
from toolkit.guard import CommandNetwork, ProcessResult

THROUGH = b"THROUGH\n"
SECRET = "SECRET"
# EINVAL, ENOTTY, ENOSYS, EOPNOTSUPP: what a kernel or a file system answers that has no such thing.
NOT_THERE = re.compile(rb"^OSError: \[Errno (22|25|38|95)\]", re.MULTILINE)


@dataclass(frozen=True)
class Attack:
    number: int
    name: str
    code: str
    through: tuple[Way, ...] = ()  # where it is a documented gap
    lacking: str = ""  # what some machines lack, so that it cannot succeed there
    like: str = ""  # the row of `make test` that the full tier stops in the same way


ATTACKS = [
    Attack(79, "environment of another process", "assert b'VICTIM_SECRET' in open(f'/proc/{PID}/environ', 'rb').read()"),
    Attack(79, "memory of another process", "open(f'/proc/{PID}/mem', 'rb')", like="environment of another process"),
    Attack(91, "read a file outside", "assert 'SECRET' in open(f'{OUT}/secret').read()"),
    Attack(91, "list a directory outside", "assert 'secret' in os.listdir(OUT)", like="read a file outside"),
    Attack(91, "read through a link of its own", "os.symlink(f'{OUT}/secret', 'own-link'); assert 'SECRET' in open('own-link').read()", like="read a file outside"),
    Attack(91, "stat a file outside", "os.stat(f'{OUT}/secret')", through=("reduced",)),
    Attack(91, "climb out of the root", "assert 'SECRET' in open('/proc/self/root' + OUT + '/secret').read()"),
    Attack(91, "climb out of the working directory", "assert 'SECRET' in open('/proc/self/cwd/../outside/secret').read()", like="climb out of the root"),
    Attack(92, "write a file outside", "open(f'{OUT}/new', 'w').write('x')"),
    Attack(92, "overwrite a file outside", "open(f'{OUT}/mine', 'w').write('x')", like="write a file outside"),
    Attack(92, "truncate a file outside", "os.truncate(f'{OUT}/mine', 0)", like="write a file outside"),
    Attack(92, "remove a file outside", "os.remove(f'{OUT}/mine')"),
    Attack(92, "make a directory outside", "os.mkdir(f'{OUT}/directory')", like="write a file outside"),
    Attack(92, "move a file out", "open('f', 'w').close(); os.rename('f', f'{OUT}/moved')"),
    Attack(92, "move a file in", "os.rename(f'{OUT}/mine', 'stolen')", like="move a file out"),
    Attack(92, "link a file in", "os.link(f'{OUT}/mine', 'linked')", like="move a file out"),
    Attack(92, "write through a link of its own", "os.symlink(f'{OUT}/mine', 'link'); open('link', 'w').write('x')"),
    Attack(92, "write beside the workspace by dots", "open('../outside/new', 'w').write('x')", like="write a file outside"),
    Attack(93, "change a mode outside", "os.chmod(f'{OUT}/mine', 0o600)", through=("reduced",)),
    Attack(93, "change an owner outside", "os.chown(f'{OUT}/mine', os.getuid(), os.getgid())", through=("reduced",), like="change a mode outside"),
    Attack(93, "change times outside", "os.utime(f'{OUT}/mine', (1, 1))", through=("reduced",), like="change a mode outside"),
    Attack(91, "read a link outside", "assert os.readlink(f'{OUT}/link') == 'secret'", through=("reduced",)),
    Attack(91, "read an attribute outside", "assert os.getxattr(f'{OUT}/secret', 'user.note') == b'SECRET'"),
    Attack(91, "list attributes outside", "assert 'user.note' in os.listxattr(f'{OUT}/secret')", like="read an attribute outside"),
    Attack(91, "watch a directory outside", "fd = check(libc.inotify_init1(0)); check(libc.inotify_add_watch(fd, OUT.encode(), 0xFFF))"),
    Attack(91, "watch a directory outside by fanotify", "fd = check(libc.fanotify_init(0x200, 0)); check(libc.fanotify_mark(fd, 1, ctypes.c_ulong(0x102), -100, OUT.encode()))"),
    Attack(93, "change an attribute outside", "os.setxattr(f'{OUT}/mine', 'user.x', b'y')"),
    Attack(93, "remove an attribute outside", "os.removexattr(f'{OUT}/secret', 'user.note')", like="change an attribute outside"),
    Attack(93, "change an attribute through a descriptor of a system file", "fd = os.open(ROOT_FILE, os.O_RDONLY); os.setxattr(fd, 'user.x', b'y')"),
    Attack(93, "change flags of a file of a read root", "fd = os.open(ROOT_FILE, os.O_RDONLY); have = bytearray(8); fcntl.ioctl(fd, 0x80086601, have); fcntl.ioctl(fd, 0x40086602, struct.pack('q', struct.unpack('q', have)[0] ^ 0x40))", lacking="flags of files"),
    Attack(93, "change flags of a file of a read root by the newer call", "fd = os.open(ROOT_FILE, os.O_RDONLY); have = bytearray(28); fcntl.ioctl(fd, 0x801C581F, have); have[0] ^= 0x80; fcntl.ioctl(fd, 0x401C5820, bytes(have))", lacking="flags of files"),
    Attack(93, "lock a file of a read root", "fcntl.flock(os.open(ROOT_FILE, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)", through=SANDBOXED),
    Attack(93, "make others wait to write a file of a read root", "fd = os.open(ROOT_FILE, os.O_RDONLY); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)", lacking="leases"),
    Attack(93, "make others wait, with another upper half of the number", "fd = os.open(ROOT_FILE, os.O_RDONLY); check(syscall(SYS_fcntl, fd, 1 << 32 | fcntl.F_SETLEASE, fcntl.F_RDLCK))", lacking="leases"),
    Attack(94, "TCP", "socket.create_connection(('127.0.0.1', TCP), 5)"),
    Attack(94, "TCP over IPv6", "socket.create_connection(('::1', TCP6), 5)", like="TCP"),
    Attack(94, "TCP by a mapped address", "s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', TCP))", like="TCP"),
    Attack(94, "UDP", "s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('127.0.0.1', UDP)); s.send(b'x'); assert s.recv(9) == b'x'", like="TCP"),
    Attack(94, "find a port of the host in use", "assert bind_error(('127.0.0.1', TCP)) == errno.EADDRINUSE", like="TCP"),
    Attack(94, "list the sockets of the host", "assert f':{TCP:04X}' in open('/proc/net/tcp').read()"),
    Attack(94, "ask the kernel for the sockets of the host", "assert TCP in listening_ports()"),
    Attack(94, "listen to the devices of the host", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)"),
    Attack(94, "ask other parts of the kernel", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)"),
    Attack(94, "unix socket by path", "socket.socket(socket.AF_UNIX).connect(f'{OUT}/socket')"),
    Attack(94, "abstract unix socket", "socket.socket(socket.AF_UNIX).connect(chr(0) + ABSTRACT)"),
    Attack(95, "signal another process", "os.kill(PID, 0)"),
    Attack(95, "trace another process", "check(libc.ptrace(16, PID, 0, 0)); os.waitpid(PID, 0x40000000); check(libc.ptrace(17, PID, 0, 0))", like="signal another process"),
    Attack(95, "process_vm_readv", "check(syscall(SYS_process_vm_readv, PID, 0, 0, 0, 0, 0))", like="signal another process"),
    Attack(95, "limit another process", "import resource; resource.prlimit(PID, resource.RLIMIT_NOFILE, (64, 64))"),
    Attack(95, "priority of another process", "os.setpriority(os.PRIO_PROCESS, PID, 1)", like="limit another process"),
    Attack(95, "priority of a group of processes", "os.setpriority(os.PRIO_PGRP, PID, 1)"),
    Attack(95, "disk priority of another process", "check(syscall(SYS_ioprio_set, 1, PID, 3 << 13))"),
    Attack(95, "processors of another process", "os.sched_setaffinity(PID, os.sched_getaffinity(PID))", like="limit another process"),
    Attack(95, "scheduler of another process", "os.sched_setscheduler(PID, os.SCHED_BATCH, os.sched_param(0))", like="limit another process"),
    Attack(95, "scheduling parameters of another process", "os.sched_setparam(PID, os.sched_param(0))", like="limit another process"),
    Attack(95, "compare with another process", "check(syscall(SYS_kcmp, PID, PID, 1, 0, 0))"),
    Attack(95, "shared memory of the user", "libc.shmat.restype = ctypes.c_void_p; assert ctypes.string_at(libc.shmat(SHARED, None, 0o10000), 6) == b'SECRET'"),
    Attack(95, "find shared memory by its key", "check(libc.shmget(SHARED_KEY, 0, 0))", like="shared memory of the user"),
    Attack(95, "message of the user", "text = ctypes.create_string_buffer(14); check(libc.msgrcv(MESSAGES, text, 6, 0, 0o4000)); assert text.raw[8:] == b'SECRET'"),
    Attack(95, "message to the user", "check(libc.msgsnd(MESSAGES, ctypes.create_string_buffer(b'\\1' + bytes(7) + b'x'), 1, 0o4000))", like="message of the user"),
    Attack(95, "semaphores of the user", "check(libc.semctl(SEMAPHORES, 0, 16, 3))"),
    Attack(95, "message queue of the user", "check(libc.mq_open(QUEUE.encode(), os.O_RDONLY | os.O_NONBLOCK))"),
    Attack(95, "remove a message queue of the user", "check(libc.mq_unlink(QUEUE.encode()))", like="message queue of the user"),
    Attack(95, "trace itself", "check(libc.ptrace(0, 0, 0, 0))"),
    Attack(96, "new user namespace", "check(libc.unshare(0x10000000))"),
    Attack(96, "new namespaces by clone", "pid = check(syscall(SYS_clone, 0x30000011, 0, 0, 0, 0)); pid or os._exit(0); os.waitpid(pid, 0)"),
    Attack(96, "mount", "fork_and_check(lambda: (check(libc.unshare(0x10020000)), check(libc.mount(b'x', b'/mnt', b'tmpfs', 0, None))))"),
    Attack(96, "io_uring", "os.close(check(syscall(425, 1, ctypes.create_string_buffer(120))))"),
    Attack(96, "keyring", "check(syscall(SYS_keyctl, 0, -3, 1))"),
    Attack(89, "memory that nobody but its owner can see", "os.ftruncate(check(syscall(447, 0)), 1)", lacking="memfd_secret"),
    Attack(102, "controlling terminal", "pid, fd = pty.fork(); pid or (open('/dev/tty'), os._exit(7)); assert os.waitpid(pid, 0)[1] == 7 << 8"),
]  # fmt: skip
# Calls that only newer kernels have.
SINCE = {
    (6, 13): [
        Attack(91, "read an attribute outside by the newer call", "value = ctypes.create_string_buffer(9); what = struct.pack('QII', ctypes.addressof(value), 9, 0); check(syscall(464, -100, f'{OUT}/secret'.encode(), 0, b'user.note', what, 16)); assert value.value == b'SECRET'"),
        Attack(93, "change an attribute outside by the newer call", "value = ctypes.create_string_buffer(b'y'); what = struct.pack('QII', ctypes.addressof(value), 1, 0); check(syscall(463, -100, f'{OUT}/mine'.encode(), 0, b'user.x', what, 16))"),
    ],
    (6, 17): [Attack(93, "change flags outside", "check(syscall(469, -100, f'{OUT}/mine'.encode(), struct.pack('QIIII', 0x80, 0, 0, 0, 0), 24, 0))")],
}  # fmt: skip
AS_ROOT = [
    Attack(94, "raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    Attack(94, "every packet", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", like="raw socket"),
    Attack(94, "change an interface", "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 0x49))"),
    Attack(91, "read the password hashes", "open('/etc/shadow').read()"),
    Attack(92, "write into the system's programs", "p = '/usr/local/bin/toolkit-test'; open(p, 'w').close(); os.remove(p)"),
    Attack(96, "become another user", "os.setuid(65534)"),
    Attack(96, "make a device", "os.mknod('device', 0o20600, os.makedev(1, 3)); os.remove('device')"),
    Attack(96, "change the root directory", "fork_and_check(lambda: os.chroot('/usr'))"),
    Attack(96, "raise a limit", "import resource; resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)"),
    Attack(96, "write a switch of the whole machine", "fd = os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY); os.close(fd)"),
    Attack(96, "open a device of the host", "fd = os.open('/dev/kmsg', os.O_RDONLY); os.close(fd)"),
    Attack(93, "change the mode of the null device", "os.chmod('/dev/null', 0o666)", through=("reduced", "bubblewrap")),
    Attack(93, "change a mode through its input", "assert (1, 3) == divmod(os.fstat(0).st_rdev, 256); os.fchmod(0, 0o666)"),
]  # fmt: skip

PRELUDE = """
import ctypes, errno, fcntl, os, pty, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
SYS_clone = 220 if arm else 56
SYS_fcntl = 25 if arm else 72
SYS_ioprio_set = 30 if arm else 251
SYS_kcmp = 272 if arm else 312
SYS_keyctl = 219 if arm else 250
SYS_process_vm_readv = 270 if arm else 310

def syscall(*arguments):
    # A plain int would leave the upper half of its slot to chance, and the kernel reads all of it.
    return libc.syscall(*(ctypes.c_long(value) if isinstance(value, int) else value for value in arguments))

def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result

def bind_error(place):
    with socket.socket() as server:
        try:
            server.bind(place)
        except OSError as error:
            return error.errno

def listening_ports():
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
    listening, dump = 1 << 10, 0x301
    netlink.send(struct.pack("=IHHIIBBBBI48x", 72, 20, dump, 1, 0, socket.AF_INET, 6, 0, 0, listening))
    ports, kind = set(), 20
    while kind == 20:
        data = netlink.recv(1 << 20)
        while data and kind == 20:
            size, kind = struct.unpack_from("=IH", data)
            if kind == 20:
                ports.add(struct.unpack_from(">H", data, 20)[0])
            data = data[size + 3 & ~3:]
    return ports

def fork_and_check(act):
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
"""


@dataclass
class World:
    base: Path
    facts: dict[str, object]

    def workspace(self, way: Way) -> Path:
        """One for each way: what the attack left behind must not stop its control."""
        folder = self.base / f"ws-{way}"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    def code(self, attack: Attack) -> str:
        facts = "\n".join(f"{name} = {value!r}" for name, value in self.facts.items())
        return f"{PRELUDE}\n{facts}\n{attack.code}\nprint('THROUGH')"

    def traces(self) -> list[tuple[str, int, int, bytes]]:
        """Everything below ``outside``: names, modes, times and contents."""
        found = []
        for path in sorted(self.outside.rglob("*")):
            info = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found.append((path.name, info.st_mode, info.st_mtime_ns, content))
        return found


@contextlib.contextmanager
def things_of_the_user() -> Iterator[dict[str, object]]:
    """Shared memory, a message, a semaphore and a queue, which any process of the same user can reach."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype, libc.shmdt.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    libc.mq_close.argtypes = [ctypes.c_int]
    key = uuid.uuid4().int & 0x7FFFFFFF
    shared, messages, semaphores = libc.shmget(key, 4096, 0o1600), libc.msgget(0, 0o1600), libc.semget(0, 1, 0o1600)
    place = libc.shmat(shared, None, 0)
    ctypes.memmove(place, SECRET.encode(), len(SECRET))
    libc.shmdt(place)
    message = struct.pack("l", 1) + SECRET.encode()
    for _ in range(2):
        assert libc.msgsnd(messages, message, len(SECRET), 0) == 0
    queue = f"/toolkit-{uuid.uuid4().hex}"
    descriptor = libc.mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    assert min(shared, messages, semaphores, descriptor) >= 0
    yield {"SHARED": shared, "SHARED_KEY": key, "MESSAGES": messages, "SEMAPHORES": semaphores, "QUEUE": queue}
    libc.mq_close(descriptor)
    libc.mq_unlink(queue.encode())
    libc.semctl(semaphores, 0, 0)
    libc.msgctl(messages, 0, None)
    libc.shmctl(shared, 0, None)


@contextlib.contextmanager
def udp_echo() -> Iterator[int]:
    """The port of a server of the host that sends every datagram back."""

    def serve() -> None:
        while True:
            data, place = udp.recvfrom(16)
            if data == b"stop":
                return
            udp.sendto(data, place)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=serve)
        thread.start()
        yield udp.getsockname()[1]
        udp.sendto(b"stop", udp.getsockname())
        thread.join()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text(SECRET)
    (tmp_path / "outside/mine").write_text("mine")
    (tmp_path / "outside/link").symlink_to("secret")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_text("x")
    os.setxattr(tmp_path / "outside/secret", "user.note", SECRET.encode())
    abstract = f"toolkit-test-{os.getpid()}-{tmp_path.name}"
    unix = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(tmp_path / "outside")  # an address may not be as long as this path
    unix.bind("socket")
    os.chdir(before)
    named = socket.socket(socket.AF_UNIX)
    named.bind("\0" + abstract)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.create_server(("::1", 0), family=socket.AF_INET6) if has_ipv6() else contextlib.nullcontext() as tcp6,
        udp_echo() as udp_port,
        unix,
        named,
        things_of_the_user() as things,
        subprocess.Popen(
            [shutil.which("cat") or "cat"], stdin=subprocess.PIPE, env={"VICTIM_SECRET": "x"}, process_group=0
        ) as victim,
    ):
        unix.listen()
        named.listen()
        facts: dict[str, object] = {
            "OUT": str(tmp_path / "outside"),
            "PID": victim.pid,
            "TCP": tcp.getsockname()[1],
            "TCP6": tcp6.getsockname()[1] if tcp6 else 0,
            "UDP": udp_port,
            "ABSTRACT": abstract,
            "ROOT_FILE": str(tmp_path / "root/file"),
            **things,
        }
        yield World(tmp_path, facts)
        assert victim.stdin
        victim.stdin.close()


def attack(world: World, row: Attack, way: Way, network: CommandNetwork = "none") -> ProcessResult:
    with guard_in(way, world.workspace(way), read_roots=[str(world.base / "root")]) as guard:
        return guard.run([sys.executable, "-c", world.code(row)], timeout=60, network=network)


def rows() -> list[Attack]:
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    newer = [row for since, some in SINCE.items() if release >= since for row in some]
    found = [*ATTACKS, *newer, *(AS_ROOT if os.geteuid() == 0 else [])]
    return found if has_ipv6() else [row for row in found if "TCP6" not in row.code and "INET6" not in row.code]


def title(row: Attack) -> str:
    return f"{row.number}-{row.name}"


def test_a_row_that_is_left_out_is_like_one_that_is_not() -> None:
    everywhere = [*ATTACKS, *AS_ROOT]
    assert {row.like for row in everywhere} <= {row.name for row in everywhere if not row.like} | {""}


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize(
    "row", [pytest.param(row, id=title(row), marks=[pytest.mark.whole] if row.like else []) for row in rows()]
)
def test_an_attack_goes_through_only_unguarded(world: World, row: Attack, way: Way) -> None:
    before = world.traces()

    inside = attack(world, row, way)

    if way not in row.through:
        assert THROUGH not in inside.stdout
        assert world.traces() == before
    else:
        assert inside.stdout == THROUGH, "the gap is documented; where it is closed, the documents are wrong"
    if row.code.startswith("assert (1, 3)"):
        return  # its control is a plain child with the host's null device, below
    control = attack(world, row, "unsafe-none")
    if row.lacking and NOT_THERE.search(control.stderr):
        pytest.skip(f"this machine has no {row.lacking}")
    assert control.stdout == THROUGH, control.stderr.decode()


AT_ONCE = """
import json
rows, facts = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for name, code in rows.items():
    pid = os.fork()
    if pid == 0:
        try:
            os.mkdir(str(os.getpid()))
            os.chdir(str(os.getpid()))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            exec(code, globals() | facts)
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        print(name)
"""


HARMLESS = "an act that every tier allows"
"""The control: the program does try what it is given."""


@pytest.mark.every_tier
@pytest.mark.parametrize("way", SANDBOXED)
def test_no_attack_goes_through_where_all_are_tried_by_one_command(world: World, way: Way) -> None:
    """Every row in every tier, without the controls above, for which each needs commands of its own."""
    before = world.traces()
    # Links and paths that start in the workspace are one level further down.
    table = {title(row): row.code.replace("'../outside", "'../../outside") for row in rows()}
    gaps = {title(row) for row in rows() if way in row.through}
    table[HARMLESS] = "open('made', 'x').close()"
    program = [sys.executable, "-c", PRELUDE + AT_ONCE, json.dumps(table), json.dumps(world.facts)]
    with guard_in(way, world.workspace(way), read_roots=[str(world.base / "root")]) as guard:
        result = guard.run(program, timeout=60)

    assert (result.exit_code, set(result.stdout.decode().splitlines())) == (0, gaps | {HARMLESS}), (
        result.stderr.decode()
    )
    assert world.traces() == before or way == "reduced"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the owner of a device can change its mode")
def test_93_the_hosts_null_device_is_what_a_plain_child_could_change() -> None:
    code = "import os; assert divmod(os.fstat(0).st_rdev, 256) == (1, 3); os.fchmod(0, 0o666); print('THROUGH')"
    assert subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True).stdout == THROUGH


NEIGHBOURS = [
    ("write and read back", "open('f', 'w').write('x'); assert open('f').read() == 'x'"),
    ("mode, owner and times of its own", "open('f', 'w').close(); os.chmod('f', 0o600); os.utime('f', (1, 1)); os.chown('f', os.getuid(), os.getgid())"),
    ("links of its own", "open('f', 'w').close(); os.symlink('f', 'l'); os.link('f', 'h'); os.rename('h', 'i')"),
    ("directories and moves between them", "os.makedirs('a/b'); open('a/f', 'w').close(); os.rename('a/f', 'a/b/f')"),
    ("temporary files and HOME", "import tempfile; tempfile.NamedTemporaryFile(); open(os.path.expanduser('~/f'), 'w').close()"),
    ("system files", "open('/etc/passwd').read(); os.listdir('/usr/bin')"),
    ("harmless devices", "open('/dev/null', 'w').write('x'); assert open('/dev/zero', 'rb').read(1) == b'\\0'; open('/dev/urandom', 'rb').read(1)"),
    ("its own children and signals", "pid = os.fork(); pid or signal_pause(); os.kill(pid, 9); assert os.waitpid(pid, 0)[1] == 9"),
    ("socket pairs", "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'"),
    ("socket pairs of packets", "a, b = socket.socketpair(type=socket.SOCK_SEQPACKET); a.send(b'x'); assert b.recv(1) == b'x'"),
    ("threads", "import threading; t = threading.Thread(target=int); t.start(); t.join()"),
    ("files without a name", "fd = os.memfd_create('x'); os.truncate(fd, 9); assert os.fstat(fd).st_size == 9"),
    ("locks", "f = open('f', 'w'); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); assert fcntl.fcntl(f, fcntl.F_GETFD)"),
    ("FIFOs", "os.mkfifo('fifo')"),
    ("pipes and event loops", "import asyncio; asyncio.run(asyncio.sleep(0))"),
    ("its own uid", "assert os.getuid() == UID"),
]  # fmt: skip


@pytest.mark.sample(every=4, of_each_tier=True)
@pytest.mark.parametrize("way", ALL)
@pytest.mark.parametrize(("name", "code"), NEIGHBOURS, ids=[name for name, _ in NEIGHBOURS])
def test_the_legitimate_neighbour_works(world: World, name: str, code: str, way: Way) -> None:
    world.facts["UID"] = os.getuid()
    helper = "import signal\ndef signal_pause():\n    signal.pause()\n"
    result = attack(world, Attack(0, name, helper + code), way)
    assert result.stdout == THROUGH, result.stderr.decode()


SHELL_NEIGHBOURS = {
    "copies with all they have": "echo x > a; mkdir d; cp -p a b; cp -a a c; cp -a d e; install -p a f; cp --preserve=mode,timestamps a g; mv a d/a",
    "archives": "echo x > a; tar cf t.tar a; mkdir x; tar xpf t.tar -C x; cmp a x/a",
    "following a file": "echo one > log; (echo two >> log) & tail -f -s 0.1 --pid=$! log | grep -q two",
    "listing with all details": "echo x > a; ls -la a; stat a",
    "git": "git init -q r; cd r; echo x > f; git add f; git -c user.name=x -c user.email=x@y commit -qm m; git status",
    "own priority and limits": "nice -n 1 true; ulimit -n 100; taskset -c 0 true; ionice -c 3 true; chrt -b 0 true",
}  # fmt: skip


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("name", SHELL_NEIGHBOURS)
def test_everyday_programs_do_without_what_is_refused(world: World, name: str, way: Way) -> None:
    with guard_in(way, world.workspace(way)) as guard:
        result = guard.shell(f"set -e; {SHELL_NEIGHBOURS[name]}", timeout=60)
    assert result.exit_code == 0, result.stderr.decode()


ON_OTHERS = """
import ctypes, os, resource, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def ioprio_set(which, who):
    if libc.syscall(*map(ctypes.c_long, (30 if os.uname().machine == "aarch64" else 251, which, who, 3 << 13))) < 0:
        raise OSError(ctypes.get_errno(), "refused")
ACTS = {
    "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)),
    "setpriority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "ioprio_set": lambda pid: ioprio_set(1, pid),
    "sched_setaffinity": lambda pid: os.sched_setaffinity(pid, {0}),
    "sched_setparam": lambda pid: os.sched_setparam(pid, os.sched_param(0)),
    "sched_setscheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
}
def done_to(pid):
    done = []
    for name, act in ACTS.items():
        try:
            act(pid)
            done.append(name)
        except OSError:
            pass
    return sorted(done)
child = os.fork()
if child == 0:
    signal.pause()
print(done_to(os.getppid()) == [], done_to(child) == sorted(ACTS))
os.kill(child, signal.SIGKILL)
"""


@pytest.mark.parametrize("way", SANDBOXED)
def test_95_a_command_cannot_hold_back_its_supervisor(world: World, way: Way) -> None:
    """The supervisor has the same user, so the kernel alone would allow it. The control is the command's own child,
    which the reduced tier cannot tell apart."""
    with guard_in(way, world.workspace(way)) as guard:
        result = guard.run([sys.executable, "-c", ON_OTHERS], timeout=60)
    assert result.stdout == (b"True False\n" if way == "reduced" else b"True True\n"), result.stderr.decode()


@pytest.mark.every_tier
@pytest.mark.parametrize("way", SANDBOXED)
def test_94_network_is_there_only_when_asked_for(world: World, way: Way) -> None:
    tcp = Attack(94, "TCP", "socket.create_connection(('127.0.0.1', TCP), 5)")
    unix = Attack(94, "unix", "socket.socket(socket.AF_UNIX)")
    assert attack(world, tcp, way, network="host").stdout == THROUGH
    assert attack(world, tcp, way, network="none").stdout == b""
    assert attack(world, unix, way, network="host").stdout == b""


BY_A_PAIR = """
kind, path = sys.argv[1:]
one, other = socket.socketpair(socket.AF_UNIX, int(kind))
one.setblocking(False)
one.sendto(b'x', path)
print('THROUGH')
"""


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_RAW])
@pytest.mark.parametrize("place", ["workspace", "outside"])
def test_94_a_pair_of_sockets_sends_to_nobody_else(world: World, way: Way, kind: int, place: str) -> None:
    """A datagram socket of a pair may also send to a socket file, of a service of the host for example."""
    folder = world.outside if place == "outside" else world.workspace(way)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service, guard_in(way, world.workspace(way)) as guard:
        service.bind(str(folder / "s"))
        service.setblocking(False)
        argv = [sys.executable, "-c", PRELUDE + BY_A_PAIR, str(int(kind)), str(folder / "s")]
        assert THROUGH not in guard.run(argv, timeout=60).stdout
        with pytest.raises(BlockingIOError):
            service.recv(1)
        assert subprocess.run(argv, capture_output=True, check=True).stdout == THROUGH
        assert service.recv(1) == b"x"


@pytest.mark.parametrize("way", SANDBOXED)
def test_90_a_file_cannot_grow_past_the_limit(world: World, way: Way) -> None:
    row = Attack(90, "fill the disk", "f = os.open('big', os.O_CREAT | os.O_WRONLY); os.pwrite(f, b'x', 5 << 30)")
    inside = attack(world, row, way)
    assert inside.stdout == b"" and (world.workspace(way) / "big").stat().st_size == 0
    assert attack(world, row, "unsafe-none").stdout == THROUGH
    (world.workspace("unsafe-none") / "big").unlink()


@pytest.mark.parametrize("way", FULL)
def test_96_no_capability_and_no_way_to_get_one(world: World, way: Way) -> None:
    with guard_in(way, world.workspace(way)) as guard:
        status = guard.run(["cat", "/proc/self/status"]).stdout.decode()
    lines = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert lines["NoNewPrivs"] == "1" and lines["Seccomp"] == "2"
    assert {int(lines[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}


@pytest.mark.parametrize("way", FULL)
def test_95_the_supervisor_of_a_command_is_out_of_reach(world: World, way: Way) -> None:
    code = """
import os, signal
for name in ("environ", "mem", "maps", "auxv", "root", "cwd", "exe", *(f"fd/{n}" for n in range(64))):
    for reach in (os.readlink, os.stat, os.listdir, lambda path: open(path, "rb").read(1)):
        if reach == os.stat and name in ("environ", "mem", "maps", "auxv"):
            continue  # that they exist is no secret
        try:
            print("reached", name, reach(f"/proc/1/{name}"))
        except OSError:
            pass
for number in set(signal.Signals):
    try:
        os.kill(1, number)
    except OSError:
        pass
print("alive")
"""
    with guard_in(way, world.workspace(way)) as guard:
        result = guard.run([sys.executable, "-c", code])
    assert (result.stdout, result.exit_code) == (b"alive\n", 0)


@pytest.mark.parametrize("way", FULL)
def test_91_only_what_is_listed_is_mounted(world: World, way: Way) -> None:
    with guard_in(way, world.workspace(way)) as guard:
        seen = guard.run(["ls", "/", "/dev", "/etc"]).stdout.decode().split()
    assert not {"run", "sys", "home", "boot", "shadow", "sudoers", "tty", "ptmx", "mem"} & set(seen)
