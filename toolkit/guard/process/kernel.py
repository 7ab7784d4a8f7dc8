"""What the sandbox asks of the Linux kernel, and the standard library cannot: system calls made through ``ctypes``.

A supervisor, or the command process before it runs its program, calls this on itself: it drops its capabilities, restricts
itself to some files with Landlock (``restrict``), and installs a system call filter (``install_filter``).

Every failure is an ``OSError`` that names the step, because that text becomes the reason why a machine has no sandbox.
Numbers are those of x86_64 and aarch64; ``machine`` refuses other architectures.

Inside bubblewrap this module is loaded for every command, with a stand-in for ``typing``: it imports little.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

MACHINES: Final = ("x86_64", "aarch64")

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_SECUREBITS: Final = 28
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

# SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, both locked: uid 0 does not regain any capability.
_SECUREBITS: Final = 0x0F
_LAST_CAPABILITY: Final = 63
_CAPABILITY_VERSION_3: Final = 0x20080522
_CLOSE_RANGE_CLOEXEC: Final = 4

# (x86_64, aarch64)
_CAPSET: Final = (126, 91)
_CLONE: Final = (56, 220)
_PRCTL: Final = (157, 167)
_CLOSE_RANGE: Final = (436, 436)


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


class Unsupported(Exception):
    """This machine cannot do what was asked; the message says why."""


def reason(error: Exception) -> str:
    """Why something failed, without the path an ``OSError`` may carry: the text is shown to callers."""
    return (error.strerror or "unknown error").lower() if isinstance(error, OSError) else str(error)


def number_of(error: Exception) -> int:
    """The ``errno`` of an error, 0 if it has none: it tells what may pass from what this machine cannot do."""
    return (error.errno or 0) if isinstance(error, OSError) else 0


@functools.cache
def machine() -> int:
    """The column of this machine in the tables of system call numbers."""
    name = os.uname().machine
    if sys.platform != "linux" or name not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise Unsupported(f"the sandbox needs Linux on {' or '.join(MACHINES)}, not {sys.platform} on {name}")
    return MACHINES.index(name)


def syscall(what: str, numbers: tuple[int, int] | int, *arguments: object) -> int:
    """Make one system call; a failure is an ``OSError`` whose message starts with ``what``."""
    number = numbers if isinstance(numbers, int) else numbers[machine()]
    # A bare Python number would be passed as a C int, which leaves the upper half of the register undefined.
    values: list[Any] = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _syscall(ctypes.c_long(number), *values)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(what: str, option: int, value: int = 0) -> int:
    """One ``prctl`` with one value."""
    return syscall(what, _PRCTL, option, value, 0, 0, 0)


def clone(flags: int) -> int:
    """Fork into new namespaces: returns 0 in the child, its pid in the caller.

    Limit: skips Python's own work after a fork, which is safe only in a process with a single thread.
    """
    return syscall("new namespaces", _CLONE, flags, 0, 0, 0, 0)


def mark_descriptors_for_closing(first: int) -> None:
    """Close every descriptor from ``first`` on when a program is started, no matter who opened it."""
    syscall("close_range", _CLOSE_RANGE, first, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def forbid_new_capabilities() -> None:
    """No program started from here on gets a capability, not even as uid 0; those held now stay until dropped.

    Does nothing where the process holds none: there ``no_new_privs`` keeps it from gaining any.
    """
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl("capability bounding set", PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the last one this kernel knows, or not privileged
    try:
        prctl("securebits", PR_SET_SECUREBITS, _SECUREBITS)
    except PermissionError:
        return


def drop_capabilities() -> None:
    """Drop every capability, for good once ``no_new_privs`` is set."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    syscall("drop capabilities", _CAPSET, ctypes.byref(header), ctypes.byref(nothing))


def forbid_new_privileges() -> None:
    """setuid programs and file capabilities have no effect from here on; cannot be undone."""
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)


# -- Landlock ----------------------------------------------------------------------------------------------------------

# Landlock: the kernel denies every file, TCP port and outside process that no rule names.
#
# Promise: survives ``exec``, holds for uid 0, and cannot be widened. Limits: descriptors opened before stay open;
# metadata (``stat``, ``chmod``, ``utime``) and, up to ABI 7, UDP and socket files are not covered; ABI 4 and 5 do not
# keep signals and abstract sockets inside. Mounts and the filter cover what it leaves open.

_CREATE_RULESET: Final = 444  # x86_64 and aarch64 alike
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1

# In the kernel's order.
(
    EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR,
    MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV,
) = (1 << bit for bit in range(16))  # fmt: skip

READ: Final = EXECUTE | READ_FILE | READ_DIR
# Device nodes are never made, and only the harmless devices get more than reading.
WRITE: Final = (
    READ
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE
)
DEVICE: Final = READ_FILE | WRITE_FILE
_FILE_ONLY: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_BIND_TCP_AND_CONNECT_TCP: Final = 0b11
_SCOPE_SIGNAL: Final = 0b10
_SCOPE_ABSTRACT_UNIX_AND_SIGNAL: Final = 0b11

# The file rights each ABI version added; a kernel refuses rights it does not know.
_FILE_RIGHTS: Final = ((1, REFER - 1), (2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))
_ABI_WITH_TCP: Final = 4
_ABI_WITH_SCOPES: Final = 6


class _RulesetAttr(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def landlock_abi() -> int:
    """The Landlock ABI version of this kernel; ``OSError`` where there is none."""
    return syscall("Landlock", _CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)


def restrict(rules: Iterable[tuple[int, int]], *, network: bool) -> None:
    """Restrict this process to what ``rules`` name: pairs of a descriptor and the rights at and below it.

    Without ``network``, TCP is denied too, as far as the kernel can (ABI 4). Needs ``no_new_privs``.
    """
    version = landlock_abi()
    known = sum(rights for since, rights in _FILE_RIGHTS if version >= since)
    tcp = 0 if network or version < _ABI_WITH_TCP else _BIND_TCP_AND_CONNECT_TCP
    scopes = _SCOPE_ABSTRACT_UNIX_AND_SIGNAL if version >= _ABI_WITH_SCOPES else 0
    _enforce(_RulesetAttr(known, tcp, scopes), [(fd, rights & known) for fd, rights in rules])


def scope_signals() -> bool:
    """Let signals of this process, and of all it will start, reach only these processes; nothing else changes.

    False where the kernel cannot (before ABI 6). Needs ``no_new_privs``. Tested on the parent process before returning
    True, because a caller that relies on it may signal every process.
    """
    if landlock_abi() < _ABI_WITH_SCOPES:
        return False
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    # A ruleset denies moves between directories unless it handles and allows them, so they are allowed everywhere.
    _enforce(_RulesetAttr(REFER, 0, _SCOPE_SIGNAL), [(root, REFER)])
    os.close(root)
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def _enforce(attr: _RulesetAttr, rules: Iterable[tuple[int, int]]) -> None:
    ruleset = syscall("Landlock ruleset", _CREATE_RULESET, ctypes.byref(attr), ctypes.sizeof(attr), 0)
    for fd, rights in rules:
        rule = _PathBeneathAttr(rights, fd)
        syscall("Landlock rule", _ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    syscall("Landlock", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def file_rights(rights: int) -> int:
    """The part of ``rights`` that a rule on a single file may have."""
    return rights & _FILE_ONLY


# -- the system call filter --------------------------------------------------------------------------------------------

# Promise: the calls below, which no command needs or which would bypass the other restrictions, fail in the command and all
# it starts, for good, by the numbers of foreign architectures (32 bit, x32) too. In the reduced tier, which has no
# namespaces, calls that reach other processes of the user or what the whole machine shares also fail; in the full tier,
# those that would slow down the supervisor. Limits: it sees numbers, not what pointers point to: paths and addresses are
# left to mounts, Landlock and the network namespace. Everything not named is allowed.

_SECCOMP: Final = (317, 277)
_SET_MODE_FILTER: Final = 1

_AUDIT_ARCH: Final = (0xC000003E, 0xC00000B7)
_X32_BIT: Final = 0x40000000

# Refused whatever the arguments. (x86_64, aarch64); None where the architecture has no such call.
REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438),
    # a second way to make any call, which this filter does not see
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # keys, which are not bound to any namespace
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # large parts of the kernel that commands never need
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "vhangup": (153, 58),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97),
    "setns": (308, 268),
}  # fmt: skip

# Answered as by a kernel without them, so that programs do without.
ABSENT: Final[dict[str, tuple[int, int]]] = {
    # Its flags are in memory, where the filter cannot look; every C library falls back to clone.
    "clone3": (435, 435),
    # Memory of a process that no count of the kernel contains.
    "memfd_secret": (447, 447),
}

# Refused in the reduced tier only, by the answer: in the full tier the namespaces make them harmless.
REFUSED_IN_REDUCED: Final[dict[int, dict[str, tuple[int | None, int | None]]]] = {
    errno.EPERM: {
        # other processes
        "kcmp": (312, 272), "migrate_pages": (256, 238), "move_pages": (279, 239), "process_mrelease": (448, 448),
        # attributes of any file of the user, by path
        "file_setattr": (469, 469),
    },
    # What a kernel without them answers: programs do without (``tail -f`` looks again and again).
    errno.ENOSYS: {
        # memory, messages and semaphores that every process of the user can reach
        "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
        "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
        "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
        # what happens in directories that the command cannot list
        "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    },
    # What a file system without them answers: ``cp -a`` and ``tar`` do without.
    errno.EOPNOTSUPP: {
        "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
        "getxattr": (191, 8), "lgetxattr": (192, 9), "getxattrat": (464, 464), "listxattr": (194, 11),
        "llistxattr": (195, 12), "listxattrat": (465, 465), "removexattr": (197, 14), "lremovexattr": (198, 15),
        "fremovexattr": (199, 16), "removexattrat": (466, 466),
    },
}  # fmt: skip

# They change how a process runs. The first argument is its pid, 0 for the caller; it may be any process of the user.
ON_PROCESS: Final[dict[str, tuple[int, int]]] = {
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip
# The same; the first argument says whether the second is a process, a process group or a user.
ON_PROCESSES: Final[dict[str, tuple[int, int]]] = {"setpriority": (141, 140), "ioprio_set": (251, 30)}

# Decided by an argument.
CONDITIONAL: Final[dict[str, tuple[int, int]]] = {
    "clone": (56, 220), "fcntl": (72, 25), "ioctl": (16, 29), "socket": (41, 198), "socketpair": (53, 199),
    "fallocate": (285, 47),
    **ON_PROCESS,
    **ON_PROCESSES,
}  # fmt: skip

_NEW_NAMESPACES: Final = 0x7E020000  # mount, cgroup, uts, ipc, user, pid, net
_LEASES: Final = (1024, 1040)  # F_SETLEASE, F_SETDELEG
# FS_IOC_SETFLAGS and FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION and FS_IOC32_SETVERSION,
# FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY
_SET_FLAGS: Final = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602, 0x40806685, 0x800C6613)
_TERMINAL_INJECTION: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_FREES_SPACE: Final = 0x0A  # FALLOC_FL_PUNCH_HOLE, FALLOC_FL_COLLAPSE_RANGE
_ONE_PROCESS: Final = {"setpriority": 0, "ioprio_set": 1}  # PRIO_PROCESS, IOPRIO_WHO_PROCESS
_SUPERVISOR: Final = 1  # its pid in the full tier
_AF_UNIX: Final = 1
# Only those that stay connected to each other: a datagram socket of a pair may send to any socket file.
_PAIR_TYPES: Final = (1, 5)  # SOCK_STREAM, SOCK_SEQPACKET
_TYPE_MASK: Final = 0x0F  # the rest are flags
# The protocols of each family that programs use; others load parts of the kernel that nobody needs.
_PROTOCOLS: Final = {
    2: (0, 1, 6, 17),  # AF_INET: the default, ICMP, TCP, UDP
    10: (0, 6, 17, 58),  # AF_INET6: the default, TCP, UDP, ICMP
    16: (0, 4),  # AF_NETLINK: routes, and the sockets of this network
}

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_IF_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_KILL_PROCESS: Final = 0x80000000

_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


@functools.cache
def filter_program(column: int, *, network: bool, full: bool) -> bytes:
    """The filter program of a tier for the architecture in ``column`` of the tables, as the kernel reads it.

    With ``network``, sockets of the internet families can be made; what they reach is decided elsewhere.
    """
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _AUDIT_ARCH[column]),
        _return(_KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(),
    ]
    refused: list[tuple[int, Mapping[str, tuple[int | None, int | None]]]]
    refused = [(errno.EPERM, REFUSED), (errno.ENOSYS, ABSENT)]
    if not full:
        refused += REFUSED_IN_REDUCED.items()
    for answer, calls in refused:
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                code += [(_IF_EQUAL, 0, 1, number), _refuse(answer)]
    code += _on("clone", column, [_load_argument(0), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse()])
    # Whoever opens the file to write waits for them, also where the command may only read. Some file systems have none.
    code += _on("fcntl", column, [_load_argument(1), *_refuse_values(_LEASES, errno.EINVAL)])
    # A descriptor that may only read is enough to change flags of a file, and Landlock does not see it.
    flags = _refuse_values(_SET_FLAGS, errno.EOPNOTSUPP)
    code += _on("ioctl", column, [_load_argument(1), *_refuse_values(_TERMINAL_INJECTION), *flags])
    code += _on("socket", column, _allow_sockets(_PROTOCOLS if network else {}))
    code += _on("socketpair", column, _allow_pairs())
    # Space that was never written is not counted as written; C libraries fall back to writing.
    refuse = _refuse(errno.EOPNOTSUPP)
    code += _on("fallocate", column, [_load_argument(1), (_IF_ANY_BIT, 1, 0, _FREES_SPACE), refuse])
    for name in ON_PROCESS:
        code += _on(name, column, _refuse_other_process(0, full=full))
    for name, one_process in _ONE_PROCESS.items():
        code += _on(
            name,
            column,
            [_load_argument(0), (_IF_EQUAL, 1, 0, one_process), _refuse(), *_refuse_other_process(1, full=full)],
        )
    code.append(_return(_ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def install_filter(*, network: bool, full: bool) -> None:
    """Install the filter for this process and all it will start. Needs ``no_new_privs``."""
    code = filter_program(machine(), network=network, full=full)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    syscall("seccomp filter", _SECCOMP, _SET_MODE_FILTER, 0, header)


def _on(name: str, column: int, body: Sequence[_Instruction]) -> list[_Instruction]:
    """``body`` runs only for that call; what it does not decide is allowed."""
    whole = [*body, _return(_ALLOW)]
    return [(_IF_EQUAL, 0, len(whole), CONDITIONAL[name][column]), *whole]


def _load_argument(index: int) -> _Instruction:
    """The lower half of an argument: the kernel itself looks at no more of those that are decided here."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _refuse_values(values: Sequence[int], answer: int = errno.EPERM) -> list[_Instruction]:
    return [step for value in values for step in ((_IF_EQUAL, 0, 1, value), _refuse(answer))]


def _refuse_other_process(index: int, *, full: bool) -> list[_Instruction]:
    """The argument is a pid: in the reduced tier only 0, the caller, is allowed; in the full tier all but the supervisor."""
    allowed = (_IF_EQUAL, 0, 1, _SUPERVISOR) if full else (_IF_EQUAL, 1, 0, 0)
    return [_load_argument(index), allowed, _refuse()]


def _allow_values(values: Sequence[int]) -> list[_Instruction]:
    return [step for value in values for step in ((_IF_EQUAL, 0, 1, value), _return(_ALLOW))]


def _allow_sockets(protocols: Mapping[int, Sequence[int]]) -> list[_Instruction]:
    """Allow these protocols of these families; programs take an unknown protocol for one that the kernel lacks."""
    code = [_load_argument(0)]
    for family, allowed in protocols.items():
        body = [_load_argument(2), *_allow_values(allowed), _refuse(errno.EPROTONOSUPPORT)]
        code += [(_IF_EQUAL, 0, len(body), family), *body]
    return [*code, _refuse()]


def _allow_pairs() -> list[_Instruction]:
    types = [_load_argument(1), (_AND, 0, 0, _TYPE_MASK), *_allow_values(_PAIR_TYPES)]
    return [_load_argument(0), (_IF_EQUAL, 0, len(types), _AF_UNIX), *types, _refuse()]


def _refuse(number: int = errno.EPERM) -> _Instruction:
    return _return(_ERROR | number)


def _return(value: int) -> _Instruction:
    return (_RETURN, 0, 0, value)


# -- the command's proxy -----------------------------------------------------------------------------------------------

PROXY_PORT: Final = 3128
"""Where commands with the guarded network find their proxy."""

_BACKLOG: Final = 128


def hand_out_listener(client: int) -> None:
    """Listen for the command's proxy, and send the listening socket to the caller, who serves it from outside.

    The supervisor calls this before it restricts itself. What listens there is reached only from inside the command's
    own network, and through the descriptor that was handed out.
    """
    # Late, and not ``socket``: a supervisor inside bubblewrap starts again for each command, and few have a proxy.
    from _socket import AF_INET, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

    listener, connection = socket(AF_INET, SOCK_STREAM), socket(fileno=client)
    try:
        listener.bind(("127.0.0.1", PROXY_PORT))
        listener.listen(_BACKLOG)
        descriptor = struct.pack("i", listener.fileno())
        connection.sendmsg([b"listener 0 "], [(SOL_SOCKET, SCM_RIGHTS, descriptor)])
    finally:
        connection.detach()
        listener.close()
