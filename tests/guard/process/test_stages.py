"""Attacks that need a stage: a terminal to type into, a program of another user's, a name server to ask.

Each stage is a program of its own that plays the agent: it runs the attack plainly, then in the sandbox.
The numbers are those of the attack list.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard import nobody
from tests.guard.ways import SANDBOXED, Way, needs
from tests.projects import REPOSITORY

# --- 102: keys typed for the user

# Tries every door to the terminal that it knows of, and types a line at each that opens.
TYPE = """
import fcntl, os, sys
for door in (0, 1, 2, "/dev/tty", sys.argv[1]):
    try:
        fd = door if isinstance(door, int) else os.open(door, os.O_RDWR)
        for key in b"typed by the command\\n":
            fcntl.ioctl(fd, 0x5412, bytes([key]))
        print("typed at", door)
        break
    except OSError as error:
        print(error.errno)
"""
AT_A_TERMINAL = """
import json, os, select, subprocess, sys
from pathlib import Path
from tests.guard.ways import guard_in
workspace, way, code = sys.argv[1:]
argv = [sys.executable, "-c", code, os.ttyname(0)]
if way == "plain":
    said = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True).stdout
else:
    with guard_in(way, Path(workspace)) as guard:
        said = guard.run(argv).stdout
waiting = select.select([0], [], [], 0)[0]
print("ANSWER" + json.dumps([said.decode(), os.read(0, 100).decode() if waiting else ""]))
"""


def at_a_terminal(workspace: Path, way: str) -> tuple[str, str]:
    """What the command said, and what then waited to be read from the agent's terminal."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        os.execve(
            sys.executable,
            [sys.executable, "-c", AT_A_TERMINAL, str(workspace), way, TYPE],
            {**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
    shown = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    os.waitpid(pid, 0)
    os.close(master)
    _, found, answer = shown.decode().partition("ANSWER")
    assert found, shown
    said, waiting = json.loads(answer)
    return said, waiting


@pytest.mark.parametrize("way", SANDBOXED)
def test_102_a_command_cannot_type_into_the_agents_terminal(tmp_path: Path, way: Way) -> None:
    needs(way)
    said, waiting = at_a_terminal(tmp_path, way)
    assert "typed" not in said and waiting == ""
    said, waiting = at_a_terminal(tmp_path, "plain")
    switch = Path("/proc/sys/dev/tty/legacy_tiocsti")
    if os.geteuid() != 0 and switch.exists() and switch.read_text() == "0\n":
        assert "5" in said.split(), "the kernel refuses it to everybody, with EIO"
    else:
        assert "typed at /dev/tty" in said and waiting == "typed by the command\n"


# --- 96: a program of root's that is set-user-id

RUN_SETUID = """
import json, subprocess, sys
from toolkit.guard import ProcessGuard
workspace, sandbox, carrier = sys.argv[1:]
plain = subprocess.run(["./whoami", "-u"], cwd=workspace, capture_output=True, text=True).stdout
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier) as guard:
    if guard.tier == "none":
        print(json.dumps([plain, None, guard.choice.reason]))
    else:
        print(json.dumps([plain, guard.run(["./whoami", "-u"]).stdout.decode(), ""]))
"""


@pytest.mark.every_tier
@nobody.only_root
@pytest.mark.parametrize(("sandbox", "carrier"), [("full", "own"), ("full", "bubblewrap"), ("reduced", "auto")])
def test_96_a_setuid_program_gives_nothing(sandbox: str, carrier: str) -> None:
    """A real one, of root's, in the workspace of somebody else: ``id -u`` tells whom it runs as."""
    with nobody.folder("ws") as base:
        shutil.copy("/usr/bin/id", base / "ws/whoami")
        (base / "ws/whoami").chmod(0o4755)
        plain, inside, reason = json.loads(nobody.run(RUN_SETUID, str(base / "ws"), sandbox, carrier))
    if inside is None:
        pytest.skip(f"this machine gives another user no {sandbox} tier: {reason}")
    if plain != "0\n":
        pytest.skip("set-user-id bits have no effect where temporary files are: the row would prove nothing")
    assert inside == f"{nobody.NOBODY}\n"


# --- 94: names asked of a server

# In a network and with mounts of its own: a name server on its loopback, and a resolv.conf that leads there.
BESIDE_A_NAME_SERVER = """
import json, os, socket, struct, subprocess, sys, tempfile, threading
from pathlib import Path
from tests.guard.netns import enter_namespace
from tests.guard.ways import guard_in
from toolkit.guard.process.namespaces import _MOUNT, _NEWNS, _UNSHARE
from toolkit.guard.process.kernel import syscall

workspace, settings, way = sys.argv[1:]
Path(settings).write_text("nameserver 127.0.0.1\\noptions timeout:2 attempts:1\\n")
try:
    enter_namespace()
    syscall("mounts", _UNSHARE, _NEWNS)
    syscall("bind", _MOUNT, settings.encode(), os.path.realpath("/etc/resolv.conf").encode(), None, 4096, None)
except OSError as error:
    print(json.dumps(str(error)))
    raise SystemExit

asked = []

def answer(query, road):
    asked.append(road)
    end = query.index(b"\\0", 12) + 5
    return query[:2] + struct.pack(">5H", 0x8180, 1, 1, 0, 0) + query[12:end] + struct.pack(">3HIH4B", 0xC00C, 1, 1, 60, 4, 203, 0, 114, 9)

def over_udp():
    while True:
        query, place = udp.recvfrom(4096)
        udp.sendto(answer(query, "udp"), place)

def over_tcp():
    while True:
        connection, _ = tcp.accept()
        query = connection.recv(4096)[2:]
        reply = answer(query, "tcp")
        connection.sendall(struct.pack(">H", len(reply)) + reply)

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 53))
tcp = socket.create_server(("127.0.0.1", 53))
for serve in (over_udp, over_tcp):
    threading.Thread(target=serve, daemon=True).start()

def ask(run, options):
    # Through the C library, and for TCP with its own option: what programs do.
    lookup = "import socket; print(socket.gethostbyname('name.example'))"
    asked.clear()
    found = run(["env", f"RES_OPTIONS={options}", sys.executable, "-c", lookup])
    return [found.decode().strip(), sorted(set(asked))]

def plainly(argv):
    return subprocess.run(argv, capture_output=True).stdout

with guard_in(way, Path(workspace)) as guard:
    print(json.dumps({
        "plain udp": ask(plainly, "none"), "plain tcp": ask(plainly, "use-vc"),
        "udp": ask(lambda argv: guard.run(argv, timeout=60).stdout, "none"),
        "tcp": ask(lambda argv: guard.run(argv, timeout=60).stdout, "use-vc"),
        "network": ask(lambda argv: guard.run(argv, timeout=60, network='host').stdout, "none"),
    }))
"""


@pytest.mark.parametrize("way", SANDBOXED)
def test_94_no_name_is_asked_of_anybody(tmp_path: Path, way: Way) -> None:
    needs(way)
    (tmp_path / "ws").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_A_NAME_SERVER, str(tmp_path / "ws"), str(tmp_path / "resolv.conf"), way],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    if "Skipped" in done.stderr:
        pytest.skip(f"no {way} beside a name server of our own: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    if isinstance(facts, str):
        pytest.skip(f"no network namespace for a name server: {facts}")
    assert facts["plain udp"] == ["203.0.114.9", ["udp"]]
    assert facts["plain tcp"] == ["203.0.114.9", ["tcp"]]
    assert facts["udp"] == facts["tcp"] == ["", []]
    assert facts["network"] == ["203.0.114.9", ["udp"]], "who may use the network may ask"
