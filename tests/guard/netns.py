"""A network of its own for the fetch tests: a child process in a new network namespace, with nothing but a loopback.

All kinds of addresses, public ones included, are on that loopback. One web server notes which of them was used. The guard
runs in that process too; jobs are sent in and outcomes come back as pickles. No packet leaves the machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import http.client
import ipaddress
import os
import pickle
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import tracemalloc
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.guard.netns_server import Connection, Recorder, Request, start_servers
from toolkit.errors import ToolCancelled, ToolFailed, ToolkitError
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.guard import NetGuard, Network, Response
from toolkit.web import Method

REPOSITORY = Path(__file__).parents[2]
WATCHDOG = 120

PUBLIC = "203.0.114.10"
OTHER_PUBLIC = "203.0.114.11"
PUBLIC_V6 = "2606:2800:220:1::10"
ADDRESSES = (
    PUBLIC, OTHER_PUBLIC, PUBLIC_V6,
    "10.1.2.3", "100.64.1.1", "100.100.100.200", "168.63.129.16", "169.254.7.7", "169.254.169.254", "172.16.5.4",
    "192.0.0.192", "192.0.2.7", "192.88.99.7", "192.168.7.7", "198.18.0.7", "198.51.100.7", "203.0.113.7", "240.0.0.7",
    "::7f00:1", "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b::cb00:720a", "64:ff9b:1::7f00:1", "2002:7f00:1::",
    "2001:0:7f00:1::1", "2001:10::7", "2001:db8::7", "3fff::7", "fc00::7", "fd00:ec2::254", "fec0::7",
)  # fmt: skip

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_SET_FLAGS, _SET_ADDRESS, _SET_NETMASK = 0x8914, 0x8916, 0x891C
_UP = 1


@dataclass(frozen=True)
class Job:
    """One fetch. ``names`` holds the answers to the first lookup of a name, the second and so on; the last stays.

    With ``tool`` it is a call of that tool instead, with ``arguments`` as JSON text.
    """

    url: str = ""
    names: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    guarded: bool = True
    follow: bool = False
    allow_hosts: Sequence[str] | None = None
    deny_hosts: Sequence[str] = ()
    allow_addresses: Sequence[str] = ()
    method: Method = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = WATCHDOG
    max_bytes: int = 5 << 20
    environment: Mapping[str, str] = field(default_factory=dict)
    cancel_at_check: int | None = None
    measure: bool = False
    tool: str = ""
    arguments: str = "{}"


@dataclass
class Outcome:
    """The outcome of a job, and what lookups and servers saw of it. ``peak``: bytes of memory, the server's included."""

    response: Response | None = None
    content: dict[str, object] = field(default_factory=dict)
    text: str = ""
    code: str = ""
    reason: object = None
    message: str = ""
    timed_out: bool = False
    peak: int = 0
    lookups: list[str] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def ok(self) -> Response:
        assert self.response is not None, self
        return self.response

    @property
    def reached(self) -> list[str]:
        """The server's addresses that were connected to, in order."""
        return [connection.address for connection in self.connections]


class Lab:
    """The parent's side: start, ``run`` jobs, ``close``. ``skip`` is the reason if there is no such network here."""

    def __init__(self, certificates: Path | None) -> None:
        command = [sys.executable, "-c", "from tests.guard.netns import main; main()", str(certificates or "")]
        clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, cwd=REPOSITORY, env=clean, stdin=pipe, stdout=pipe)
        self.skip = str(self._receive())

    def run(self, job: Job) -> Outcome:
        assert self._child.stdin
        pickle.dump(job, self._child.stdin)
        self._child.stdin.flush()
        outcome = self._receive()
        assert isinstance(outcome, Outcome), outcome
        return outcome

    def close(self) -> None:
        assert self._child.stdin and self._child.stdout
        self._child.stdin.close()
        self._child.wait(WATCHDOG)
        self._child.stdout.close()

    def _receive(self) -> object:
        assert self._child.stdout
        watchdog = threading.Timer(2 * WATCHDOG, self._child.kill)
        watchdog.start()
        try:
            received: object = pickle.load(self._child.stdout)
            return received
        finally:
            watchdog.cancel()


def main() -> None:
    """The child: enter the namespace, serve, do jobs until the input ends."""
    jobs, outcomes = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    folder = Path(sys.argv[1]) if sys.argv[1] else None
    try:
        enter_namespace()
    except OSError as error:
        pickle.dump(f"no network namespace can be made here: {error}", outcomes)
        outcomes.flush()
        return
    recorder = Recorder()
    start_servers(recorder, folder)
    pickle.dump("", outcomes)
    outcomes.flush()
    with contextlib.suppress(EOFError):
        while True:
            pickle.dump(do(pickle.load(jobs), recorder, folder), outcomes)
            outcomes.flush()


def enter_namespace() -> None:
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER | _NEW_NET) == 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    elif libc.unshare(_NEW_NET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as v4,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as v6,
    ):
        fcntl.ioctl(v4, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
        index = socket.if_nametoindex("lo")
        for number, text in enumerate(ADDRESSES):
            packed = ipaddress.ip_address(text).packed
            if len(packed) == 16:
                fcntl.ioctl(v6, _SET_ADDRESS, struct.pack("=16sIi", packed, 128, index))
            else:
                name = f"lo:{number}".encode()
                for request, value in ((_SET_ADDRESS, packed), (_SET_NETMASK, b"\xff" * 4)):
                    fcntl.ioctl(v4, request, struct.pack("=16sHH4s16x", name, socket.AF_INET, 0, value))


def do(job: Job, recorder: Recorder, folder: Path | None) -> Outcome:
    lookups: list[str] = []
    outcome = Outcome(lookups=lookups)
    recorder.clear()
    os.environ.update(job.environment)
    if job.measure:
        tracemalloc.start()
    try:
        if job.tool:
            outcome.content, outcome.text = called(job, network_for(job, lookups, folder))
        elif job.guarded:
            outcome.response = guarded(job, network_for(job, lookups, folder))
        else:
            outcome.response = unguarded(job)
    except ToolkitError as error:
        outcome.code, outcome.message = error.code, error.message
        outcome.reason = error.reason if isinstance(error, ToolFailed) else None
        outcome.timed_out = error.details.get("timed_out") is True
    except Exception:
        outcome.code, outcome.message = "UNEXPECTED", traceback.format_exc()
    finally:
        for name in job.environment:
            del os.environ[name]
    if job.measure:
        outcome.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    outcome.connections, outcome.requests = recorder.all_until_now()
    return outcome


def network_for(job: Job, lookups: list[str], folder: Path | None) -> Network:
    def resolve(host: str, port: int) -> Sequence[str]:
        answers = job.names.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "no such name on 10.1.2.3")
        lookups.append(host)
        return answers[min(lookups.count(host), len(answers)) - 1]

    return Network(
        allow_hosts=job.allow_hosts,
        deny_hosts=job.deny_hosts,
        allow_addresses=job.allow_addresses,
        resolve=resolve,
        tls=ssl.create_default_context(cafile=str(folder / "ca.pem")) if folder else None,
    )


def called(job: Job, network: Network) -> tuple[dict[str, object], str]:
    """What the tool gave, as the fields that were set and as the text a model reads."""
    with tempfile.TemporaryDirectory() as workspace:
        context = ToolkitContext(workspace, SecurityPolicy(default="allow"), network=network)
        with create_agent_toolkit(context) as toolkit:
            message = toolkit.execute_raw(job.tool, job.arguments)
            return message.content.model_dump(mode="json", by_alias=True, exclude_unset=True), message.text()


def guarded(job: Job, network: Network) -> Response:
    return (
        NetGuard(network)
        .with_check(canceller(job.cancel_at_check))
        .fetch(job.url, method=job.method, headers=job.headers, timeout=job.timeout, max_bytes=job.max_bytes)
    )


def canceller(at: int | None) -> Callable[[], None]:
    seen: list[None] = []

    def check() -> None:
        seen.append(None)
        if len(seen) == at:
            raise ToolCancelled("cancelled by the test")

    return check


def unguarded(job: Job) -> Response:
    """The same request as a program without a guard makes it; ``follow`` takes redirects and proxies as urllib does."""
    if job.follow:
        request = urllib.request.Request(job.url, headers=dict(job.headers))
        with urllib.request.build_opener().open(request, timeout=WATCHDOG) as page:
            return Response(job.url, page.url, page.status, (), "", page.read(job.max_bytes), False, ())
    parts = urllib.parse.urlsplit(job.url)
    answers = job.names.get(parts.hostname or "")
    # Checks one lookup and connects by another, as programs do that hand a checked name to their HTTP library.
    host = answers[-1][-1] if answers else parts.hostname
    connection = http.client.HTTPConnection(host or "", parts.port or 80, timeout=WATCHDOG)
    with contextlib.closing(connection):
        connection.putrequest("GET", parts.path or "/", skip_host=True)
        connection.putheader("Host", "unguarded")
        connection.endheaders()
        answer = connection.getresponse()
        return Response(job.url, job.url, answer.status, (), "", answer.read(job.max_bytes), False, ())
