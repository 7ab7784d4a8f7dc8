"""Which tier is picked and why, as root and as somebody else; and the numbers the kernel is asked by."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.guard import nobody
from tests.guard.ways import needs
from tests.projects import REPOSITORY
from toolkit.errors import ToolFailed, ToolNotAllowed
from toolkit.guard import ProcessGuard
from toolkit.guard.files import resolve
from toolkit.guard.process import bubblewrap, kernel, namespaces, supervisor, tier
from toolkit.guard.process.kernel import MACHINES, Unsupported
from toolkit.guard.process.tier import TierChoice, pick_tier, probe

BWRAP = "/usr/bin/bwrap"
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def give(
    monkeypatch: pytest.MonkeyPatch, *, full: str, reduced: str, uid: int, bubblewrapped: str | None = None
) -> None:
    """A machine whose probes answer so; ``bubblewrapped`` is what the probe of bubblewrap answers, where it is installed."""

    def probe(name: str, program: str = "") -> str:
        return {"full": full, "reduced": reduced, f"full{BWRAP}": bubblewrapped or ""}[name + program]

    def find(avoid: Sequence[str]) -> str:
        if bubblewrapped is None:
            raise Unsupported("not installed")
        return BWRAP

    monkeypatch.setattr(tier, "probe", probe)
    monkeypatch.setattr(bubblewrap, "find", find)
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def test_auto_is_full_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="", reduced="", uid=0)
    assert pick_tier("auto").name == "full"


def test_auto_is_reduced_for_users_only(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="no namespaces", reduced="", uid=1000)
    assert pick_tier("auto") == TierChoice("reduced", "full: no namespaces; bubblewrap: not installed")
    give(monkeypatch, full="no namespaces", reduced="", uid=0)
    by_name = "not for uid 0 unless requested by name"
    assert pick_tier("auto") == TierChoice("none", f"full: no namespaces; bubblewrap: {by_name}; reduced: {by_name}")
    assert pick_tier("reduced").name == "reduced"


def test_a_tier_asked_for_by_name_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="no namespaces", reduced="", uid=1000)
    assert pick_tier("full") == TierChoice("none", "full: no namespaces; bubblewrap: not installed")
    give(monkeypatch, full="", reduced="no Landlock", uid=1000)
    assert pick_tier("reduced") == TierChoice("none", "reduced: no Landlock")


def test_bubblewrap_builds_the_full_tier_where_we_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="no namespaces", reduced="", uid=1000, bubblewrapped="")
    for choice in (pick_tier("auto"), pick_tier("full")):
        assert (choice.name, choice.carrier, choice.bubblewrap) == ("full", "bubblewrap", BWRAP)
        assert choice.reason == "full: no namespaces; bubblewrap: builds the full tier on this machine"
    assert pick_tier("reduced").carrier == "own"


def test_our_own_comes_first_and_either_can_be_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="", reduced="", uid=1000, bubblewrapped="")
    assert pick_tier("auto").carrier == pick_tier("auto", "own").carrier == "own"
    assert pick_tier("auto", "bubblewrap").carrier == "bubblewrap"
    give(monkeypatch, full="no namespaces", reduced="", uid=1000, bubblewrapped="")
    assert pick_tier("full", "own") == TierChoice("none", "full: no namespaces")
    assert pick_tier("auto", "own") == TierChoice("reduced", "full: no namespaces")


def test_a_bubblewrap_that_fails_is_a_reason_not_a_weaker_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="no namespaces", reduced="", uid=1000, bubblewrapped="no permission")
    assert pick_tier("full") == TierChoice("none", "full: no namespaces; bubblewrap: no permission")
    assert pick_tier("auto") == TierChoice("reduced", "full: no namespaces; bubblewrap: no permission")
    assert pick_tier("auto", "bubblewrap") == TierChoice("reduced", "bubblewrap: no permission")
    give(monkeypatch, full="no namespaces", reduced="no Landlock", uid=1000, bubblewrapped="no permission")
    assert pick_tier("auto").reason == "full: no namespaces; bubblewrap: no permission; reduced: no Landlock"


def test_uid_0_gets_bubblewrap_only_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="no namespaces", reduced="", uid=0, bubblewrapped="")
    assert pick_tier("full").name == "none"
    assert pick_tier("full", "bubblewrap").carrier == "bubblewrap"


def test_97_without_a_tier_nothing_runs_and_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, full="no namespaces", reduced="no Landlock", uid=1000)
    for variable in ("TOOLKIT_SANDBOX", "SANDBOX", "UNSAFE"):
        monkeypatch.setenv(variable, "unsafe-none")
    with (
        ProcessGuard(str(tmp_path)) as guard,
        pytest.raises(ToolNotAllowed, match="full: no namespaces; bubblewrap: not installed; reduced: no Landlock"),
    ):
        guard.run(["touch", "ran"])
    assert list(tmp_path.iterdir()) == []
    with ProcessGuard(str(tmp_path), sandbox="unsafe-none") as guard:  # the same command, on the same machine
        guard.run(["touch", "ran"])
    assert [path.name for path in tmp_path.iterdir()] == ["ran"]


def test_unsafe_none_runs_and_every_result_says_so(tmp_path: Path) -> None:
    with ProcessGuard(str(tmp_path), sandbox="unsafe-none") as guard:
        assert guard.choice.unsafe and "without any sandbox" in guard.choice.reason
        result = guard.run(["true"])
        assert (result.tier, result.network) == ("none", "host")


VARIABLES_READ = """
import os, sys

class Watched(dict):
    read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)

    def __contains__(self, name):
        self.read.add(name)
        return super().__contains__(name)

    def __iter__(self):
        self.read.add("all of them")
        return super().__iter__()

    def items(self):
        self.read.add("all of them")
        return super().items()

os.environ = Watched(os.environ)
from toolkit.guard import ProcessGuard
with ProcessGuard(sys.argv[1]) as guard:
    if guard.choice.runs_commands:
        guard.run(["true"])
    os.environ.get(sys.argv[2])
print(*sorted(Watched.read))
"""


def test_no_variable_decides_whether_there_is_a_sandbox(tmp_path: Path) -> None:
    """These say where things are: temporary files, the user's state, git's configuration, a start-up file to protect."""
    code = [sys.executable, "-c", VARIABLES_READ, str(tmp_path), "SEEN"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(code, env=environment, capture_output=True, text=True, check=True)
    places = {
        "GIT_CONFIG_GLOBAL",
        "HOME",
        "PYTHONSTARTUP",
        "TEMP",
        "TMP",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    }
    read = set(done.stdout.split())
    assert "SEEN" in read
    assert read <= places | {"SEEN"}


def test_a_machine_without_our_numbers_has_no_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        machine = "riscv64"

    monkeypatch.setattr(os, "uname", Other)
    kernel.machine.cache_clear()
    monkeypatch.setattr(tier, "_working", set())
    try:
        assert "riscv64" in probe("reduced")
    finally:
        monkeypatch.undo()
        kernel.machine.cache_clear()


def test_a_sandbox_that_cannot_be_built_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tier worked when it was probed and does not now: refused, not weakened."""
    if probe("full"):
        pytest.skip(f"this machine gives no full tier: {probe('full')}")
    workspace, extra = tmp_path / "ws", tmp_path / "extra"
    workspace.mkdir()
    extra.mkdir()
    with ProcessGuard(str(workspace), sandbox="full", read_roots=[str(extra)], write_roots=[str(extra)]) as guard:
        monkeypatch.setattr("toolkit.guard.process.fork_client._CODE", "raise SystemExit(1)")
        with pytest.raises(ToolFailed, match="could not be started"):
            guard.run(["touch", "ran"])
    assert list(workspace.iterdir()) == []


AS_NOBODY = '''
import json, os, sys
from toolkit.guard import ProcessGuard
from toolkit.guard.process.tier import pick_tier, probe
workspace, outside, sandbox, carrier = sys.argv[1:]
BOMB = """
import os, time
for n in range(2000):
    try:
        if os.fork() == 0: time.sleep(10000)
    except OSError:
        break
time.sleep(10000)  # whoever counts processes now and then gets the time to
"""
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier) as guard:
    def act(text):
        result = guard.shell(text, timeout=60)
        return [result.exit_code, result.stdout.decode(), result.stderr.decode()]
    print(json.dumps({
        "tier": guard.tier, "reason": guard.choice.reason, "auto": pick_tier("auto").name,
        "uid": act("id -u"), "write": act("echo x > f && cat f"), "git": act("git init -q . && git status --short"),
        "read outside": act(f"cat {outside}/secret"), "write outside": act(f"echo x > {outside}/new"),
        "chmod outside": act(f"chmod 600 {outside}/mine"), "setuid": act("su -c id"), "device": act("chmod 600 /dev/null"),
        "bomb": act(f"{sys.executable} -c '{BOMB}'"),
    }))
'''


# Beside each other, two such runs would share one user's limit of processes, and fill it.
@pytest.mark.xdist_group("many-processes")
@nobody.only_root
@pytest.mark.parametrize(("sandbox", "carrier"), [("full", "own"), ("full", "bubblewrap"), ("reduced", "auto")])
def test_the_tiers_as_another_user(sandbox: str, carrier: str) -> None:
    if carrier == "bubblewrap":
        needs("bubblewrap")
    with nobody.folder("ws", "outside") as base:
        for name in ("secret", "mine"):
            (base / "outside" / name).write_text("SECRET")
            os.chown(base / "outside" / name, nobody.NOBODY, nobody.NOBODY)
        facts = json.loads(nobody.run(AS_NOBODY, str(base / "ws"), str(base / "outside"), sandbox, carrier))
    if facts["tier"] == "none":
        pytest.skip(f"this machine gives another user no {sandbox} tier: {facts['reason']}")
    assert facts["tier"] == sandbox and facts["auto"] in ("full", "reduced")
    assert facts["uid"][:2] == [0, f"{nobody.NOBODY}\n"]
    assert facts["write"][:2] == [0, "x\n"]
    assert facts["git"][0] == 0, facts["git"]
    for act in ("read outside", "write outside", "setuid", "device"):
        assert facts[act][0] != 0 and "SECRET" not in facts[act][1], act
    assert (facts["chmod outside"][0] != 0) == (sandbox == "full"), "documented for the reduced tier"
    assert "more than 256 processes" in facts["bomb"][2]


# Those that are made, where the filter names those that are refused.
OTHER_CALLS: dict[str, tuple[int, int] | int] = {
    "capset": kernel._CAPSET,
    "kcmp": supervisor._KCMP,
    "clone": kernel._CLONE,
    "close_range": kernel._CLOSE_RANGE,
    "prctl": kernel._PRCTL,
    "seccomp": kernel._SECCOMP,
    "landlock_create_ruleset": kernel._CREATE_RULESET,
    "landlock_add_rule": kernel._ADD_RULE,
    "landlock_restrict_self": kernel._RESTRICT_SELF,
    "openat2": resolve._SYS_OPENAT2,
    "unshare": namespaces._UNSHARE,
    "mount": namespaces._MOUNT,
    "umount2": namespaces._UMOUNT2,
    "pivot_root": namespaces._PIVOT_ROOT,
    "sethostname": namespaces._SETHOSTNAME,
    "open_tree": namespaces._OPEN_TREE,
    "move_mount": namespaces._MOVE_MOUNT,
    "mount_setattr": namespaces._MOUNT_SETATTR,
}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip("the kernel's headers (linux-libc-dev) are not installed")
    found = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE))
    column = MACHINES.index(machine)
    ours: dict[str, int | None] = {name: numbers[column] for name, numbers in kernel.CONDITIONAL.items()}
    ours |= {name: numbers[column] for name, numbers in kernel.ABSENT.items()}
    for table in (kernel.REFUSED, *kernel.REFUSED_IN_REDUCED.values()):
        ours |= {name: numbers[column] for name, numbers in table.items()}
    ours |= {name: number if isinstance(number, int) else number[column] for name, number in OTHER_CALLS.items()}
    newer_than_some_headers = {
        *("open_tree_attr", "file_setattr", "setxattrat", "getxattrat", "listxattrat", "removexattrat"),
    }
    for name, number in ours.items():
        if name in newer_than_some_headers and name not in found:
            continue
        assert (int(found[name]) if name in found else None) == number, name


def test_every_number_in_the_guard_is_compared() -> None:
    """A table of two numbers that is not in the lists above would not be."""
    tables = {
        name: value
        for module in (kernel, namespaces, resolve, supervisor)
        for name, value in vars(module).items()
        if isinstance(value, tuple) and len(value) == 2 and all(isinstance(number, int) for number in value)
    }
    others = {"_AUDIT_ARCH", "_LEASES", "_OWN_PID_MAX", "_PAIR_TYPES", "_TERMINAL_INJECTION"}
    assert {name for name, value in tables.items() if value not in OTHER_CALLS.values()} == others


def test_requests_are_those_of_the_kernels_headers(tmp_path: Path) -> None:
    """Each is computed from the size of a structure, so the compiler is asked."""
    names = [
        *("FS_IOC_SETFLAGS", "FS_IOC32_SETFLAGS", "FS_IOC_FSSETXATTR", "FS_IOC_SETVERSION", "FS_IOC32_SETVERSION"),
        *("FS_IOC_ENABLE_VERITY", "FS_IOC_SET_ENCRYPTION_POLICY"),
    ]
    if shutil.which("cc") is None or not Path("/usr/include/linux/fsverity.h").exists():
        pytest.skip("no C compiler, or the kernel's headers (linux-libc-dev) are not installed")
    prints = " ".join(f'printf("%lu\\n", (unsigned long) {name});' for name in names)
    headers = "".join(f"#include <{header}.h>\n" for header in ("stdio", "linux/fs", "linux/fsverity", "linux/fscrypt"))
    (tmp_path / "p.c").write_text(f"{headers}int main(void) {{ {prints} }}\n")
    subprocess.run(["cc", "-o", str(tmp_path / "p"), str(tmp_path / "p.c")], check=True)
    shown = subprocess.run([str(tmp_path / "p")], capture_output=True, check=True, text=True).stdout
    assert tuple(map(int, shown.split())) == kernel._SET_FLAGS


@pytest.mark.parametrize("machine", MACHINES)
def test_architectures_are_those_of_the_kernels_headers(machine: str) -> None:
    header = Path("/usr/include/linux/elf-em.h")
    if not header.exists():
        pytest.skip("the kernel's headers (linux-libc-dev) are not installed")
    found = dict(re.findall(r"^#define EM_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE))
    sixty_four_bit, little_endian = 0x80000000, 0x40000000
    expected = int(found[machine.upper()]) | sixty_four_bit | little_endian
    assert kernel._AUDIT_ARCH[MACHINES.index(machine)] == expected


def verdict(code: bytes, arch: int, number: int, *arguments: int) -> int:
    """Run the filter as the kernel would."""
    words = [number, arch, 0, 0]
    for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]:
        words += [argument & 0xFFFFFFFF, argument >> 32]
    steps = list(struct.iter_unpack("HBBI", code))
    at = accumulator = 0
    while True:
        kind, true, false, value = steps[at]
        at += 1
        if kind == 0x20:
            accumulator = words[value // 4]
        elif kind == 0x54:
            accumulator &= value
        elif kind == 0x06:
            return int(value)
        else:
            test = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[kind]
            at += true if test else false


ALLOWED, KILLED, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
EINVAL, EOPNOTSUPP, UNKNOWN = 0x50000 | errno.EINVAL, 0x50000 | errno.EOPNOTSUPP, 0x50000 | errno.EPROTONOSUPPORT
UNIX, INET, INET6, NETLINK, VSOCK = 1, 2, 10, 16, 40


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_the_filter_answers_by_number_and_argument(machine: str, network: bool, full: bool) -> None:
    column = MACHINES.index(machine)
    code = kernel.filter_program(column, network=network, full=full)
    arch = kernel._AUDIT_ARCH[column]
    call = {name: numbers[column] for name, numbers in kernel.CONDITIONAL.items()}
    assert verdict(code, arch, 63 if machine == "aarch64" else 0) == ALLOWED  # read
    assert verdict(code, kernel._AUDIT_ARCH[1 - column], 0) == KILLED
    assert verdict(code, 0x40000003, 0) == KILLED  # 32 bit
    assert verdict(code, arch, 0x40000000) == EPERM  # x32
    for number in (numbers[column] for numbers in kernel.REFUSED.values()):
        assert number is None or verdict(code, arch, number) == EPERM
    for number in (numbers[column] for numbers in kernel.ABSENT.values()):
        assert verdict(code, arch, number) == ENOSYS
    assert verdict(code, arch, call["clone"], 0x003D0F00) == ALLOWED  # a thread
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(code, arch, call["clone"], 17 | flag) == EPERM
    assert verdict(code, arch, call["ioctl"], 0, 0x5412) == EPERM
    assert verdict(code, arch, call["ioctl"], 0, 0x1_0000_5412) == EPERM  # the kernel drops the upper half
    for set_flags in (*kernel._SET_FLAGS, 0x1_401C_5820):
        assert verdict(code, arch, call["ioctl"], 0, set_flags) == EOPNOTSUPP
    for harmless in (0x5401, 0x80086601, 0x801C581F, 0x40049409):  # TCGETS, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, FICLONE
        assert verdict(code, arch, call["ioctl"], 0, harmless) == ALLOWED
    for act in (1024, 1040, 1 << 32 | 1024):  # F_SETLEASE, F_SETDELEG
        assert verdict(code, arch, call["fcntl"], 3, act) == EINVAL
    for act in (1, 6, 38, 1025, 1030, 1033):  # F_GETFD, F_SETLK, F_OFD_SETLKW, F_GETLEASE, F_DUPFD_CLOEXEC, F_ADD_SEALS
        assert verdict(code, arch, call["fcntl"], 3, act) == ALLOWED
    for family, allowed, refused in (
        (INET, (0, 6, 17), (132, 262)),
        (INET6, (0, 6, 17), (33, 136)),
        (NETLINK, (0, 4), (15, 16)),
    ):
        for protocol in allowed:
            assert verdict(code, arch, call["socket"], family, 1, protocol) == (ALLOWED if network else EPERM)
        for protocol in refused:
            assert verdict(code, arch, call["socket"], family, 1, protocol) == (UNKNOWN if network else EPERM)
    for family in (UNIX, VSOCK):
        assert verdict(code, arch, call["socket"], family) == EPERM
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    for kind, answer in ((socket.SOCK_STREAM, ALLOWED), (socket.SOCK_SEQPACKET, ALLOWED), (socket.SOCK_DGRAM, EPERM)):
        assert verdict(code, arch, call["socketpair"], UNIX, kind) == answer
        assert verdict(code, arch, call["socketpair"], UNIX, kind | flags) == answer
        assert verdict(code, arch, call["socketpair"], INET, kind) == EPERM
    assert verdict(code, arch, call["socketpair"], UNIX, socket.SOCK_RAW) == EPERM  # the kernel's other word for it
    for mode in (0, 1, 0x10, 0x20, 0x40):  # plain, keep the size, zero, insert, unshare
        assert verdict(code, arch, call["fallocate"], 3, mode, 0, 1) == EOPNOTSUPP
    for mode in (3, 8):  # punch a hole, collapse
        assert verdict(code, arch, call["fallocate"], 3, mode, 0, 1) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_of_the_reduced_tier_refuses_more(machine: str) -> None:
    column = MACHINES.index(machine)
    arch = kernel._AUDIT_ARCH[column]
    full, reduced = (kernel.filter_program(column, network=False, full=full) for full in (True, False))
    for number, calls in kernel.REFUSED_IN_REDUCED.items():
        for name, numbers in calls.items():
            call = numbers[column]
            if call is not None:
                assert (verdict(full, arch, call), verdict(reduced, arch, call)) == (ALLOWED, 0x50000 | number), name


# Who is meant: the argument, whether a command of the full tier may, and one of the reduced tier.
WHOM = [(0, ALLOWED, ALLOWED), (1, EPERM, EPERM), (77, ALLOWED, EPERM), (1 << 32, ALLOWED, ALLOWED), (1 << 32 | 1, EPERM, EPERM)]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("whom", "full", "reduced"), WHOM)
def test_the_filter_answers_by_the_process_that_is_meant(machine: str, whom: int, full: int, reduced: int) -> None:
    """The kernel reads the lower half of a pid. The first process of the full tier is the supervisor."""
    column = MACHINES.index(machine)
    arch = kernel._AUDIT_ARCH[column]
    for is_full, expected in ((True, full), (False, reduced)):
        code = kernel.filter_program(column, network=False, full=is_full)
        for numbers in kernel.ON_PROCESS.values():
            assert verdict(code, arch, numbers[column], whom) == expected
        for name, one_process in (("setpriority", 0), ("ioprio_set", 1)):
            number = kernel.ON_PROCESSES[name][column]
            assert verdict(code, arch, number, one_process, whom) == expected
            for group_or_user in (one_process + 1, one_process + 2):
                assert verdict(code, arch, number, group_or_user, whom) == EPERM
