"""What commands reach without the guarded network's rules: ``none`` has a loopback of its own and nothing else; ``host`` is
what this machine reaches. ``test_guarded_network.py`` has the programs that use the proxy.

Every refusal stands next to a control on the host, or to the same act inside the sandbox's own network.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.netns import OTHER_PUBLIC, PUBLIC, PUBLIC_V6
from tests.guard.ways import FULL, SANDBOXED, Way, guard_in, has_ipv6, needs
from tests.projects import REPOSITORY
from toolkit.guard import CommandNetwork, ProcessResult

WATCHDOG = 120

# A server and its client in one command, as tests of web programs have them.
SERVE_AND_FETCH = """
import http.server, sys, threading, urllib.request, socket
host, family = sys.argv[1], socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
class Server(http.server.ThreadingHTTPServer):
    address_family = family
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from inside")
    def log_message(self, *args):
        pass
server = Server((host, 0), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
name = f"[{host}]" if ":" in host else host
print(urllib.request.urlopen(f"http://{name}:{server.server_port}/").read().decode())
"""
TEST_WITH_A_SERVER = """
import http.server, threading, urllib.request
import pytest

@pytest.fixture
def port():
    with http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()

def test_it(port):
    assert b"test_it.py" in urllib.request.urlopen(f"http://localhost:{port}/").read()
"""
UDP_AND_NAMES = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.sendto(b"datagram", server.getsockname())
print(server.recv(64).decode(), sorted({found[4][0] for found in socket.getaddrinfo("localhost", 80)} & {"127.0.0.1"}))
"""


def succeeded(result: ProcessResult) -> str:
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode()


# --- none


@pytest.mark.parametrize("way", FULL)
@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", *(["::1"] if has_ipv6() else [])])
def test_none_has_a_loopback_of_its_own(tmp_path: Path, way: Way, host: str) -> None:
    with guard_in(way, tmp_path) as guard:
        said = succeeded(guard.run([sys.executable, "-c", SERVE_AND_FETCH, host], timeout=WATCHDOG))
    assert said == "hello from inside\n"


@pytest.mark.parametrize("way", FULL)
def test_datagrams_and_localhost_work_inside(tmp_path: Path, way: Way) -> None:
    with guard_in(way, tmp_path) as guard:
        said = succeeded(guard.run([sys.executable, "-c", UDP_AND_NAMES], timeout=WATCHDOG))
    assert said == "datagram ['127.0.0.1']\n"


@pytest.mark.parametrize("way", FULL)
def test_pytest_with_a_local_server(tmp_path: Path, way: Way) -> None:
    (tmp_path / "test_it.py").write_text(TEST_WITH_A_SERVER)
    with guard_in(way, tmp_path) as guard:
        said = succeeded(
            guard.run([sys.executable, "-m", "pytest", "-q", "-p", "no:toolkit", "test_it.py"], timeout=WATCHDOG)
        )
    assert "1 passed" in said


@pytest.mark.parametrize("way", FULL)
def test_each_command_has_its_own_loopback(tmp_path: Path, way: Way) -> None:
    """A server of one command is not there for another, nor for the host."""
    serve = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    reach = "import socket, sys; print(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))))"
    with guard_in(way, tmp_path) as guard:
        server = guard.start([sys.executable, "-c", serve])
        port = read_line(server.stdout)
        other = succeeded(guard.run([sys.executable, "-c", reach, port], timeout=WATCHDOG))
        host = subprocess.run([sys.executable, "-c", reach, port], capture_output=True, text=True, check=True).stdout
    assert int(other) != 0 and int(host) != 0


def read_line(fd: int) -> str:
    os.set_blocking(fd, True)
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(fd, 64)
        assert data, "it ended"
        line += data
    return line.decode().strip()


# --- families of sockets

OPEN_FAMILIES = """
import errno, json, socket
opened = []
for family in range(64):
    try:
        socket.socket(family, socket.SOCK_DGRAM if family != socket.AF_NETLINK else socket.SOCK_RAW).close()
        opened.append(family)
    except OSError as error:
        if error.errno != errno.EPERM:
            opened.append(family)  # the kernel has no such family, but the filter let the call through
print(json.dumps(opened))
"""


@pytest.mark.every_tier
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("network", ["none", "host"])
def test_only_three_families_of_sockets_can_be_made(tmp_path: Path, way: Way, network: CommandNetwork) -> None:
    """AF_UNIX reaches socket files, AF_VSOCK the host of a virtual machine, AF_ALG and others the kernel."""
    with guard_in(way, tmp_path) as guard:
        opened = json.loads(succeeded(guard.run([sys.executable, "-c", OPEN_FAMILIES], network=network)))
    internet = [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK]
    assert opened == ([] if way == "reduced" and network == "none" else internet)
    plain = subprocess.run([sys.executable, "-c", OPEN_FAMILIES], capture_output=True, check=True).stdout
    assert len(json.loads(plain)) > 40, "without the filter only the kernel refuses, and in other words"


# --- addresses of the host

# In a network whose loopback has addresses of every kind, one server for all of them.
BESIDE_THE_HOSTS_ADDRESSES = """
import json, socket, subprocess, sys
from pathlib import Path
from tests.guard.netns import ADDRESSES, enter_namespace
from tests.guard.ways import guard_in

workspace, way = sys.argv[1:]
try:
    enter_namespace()
except OSError as error:
    print(json.dumps(str(error)))
    raise SystemExit
server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
reach = '''
import json, socket, sys
places = json.loads(sys.argv[1])
def connect(place):
    with socket.socket(socket.AF_INET6 if ":" in place else socket.AF_INET) as client:
        return client.connect_ex((place, int(sys.argv[2])))
print(json.dumps([place for place in places if connect(place) == 0]))
'''
tunnel = '''
import json, socket, sys
def connect(place):
    name = f"[{place}]" if ":" in place else place
    with socket.create_connection(("127.0.0.1", 3128)) as client:
        client.sendall(f"CONNECT {name}:{sys.argv[2]} HTTP/1.1".encode() + bytes([13, 10, 13, 10]))
        return client.recv(99).startswith(b"HTTP/1.1 200 ")
print(json.dumps([place for place in json.loads(sys.argv[1]) if connect(place)]))
'''
places = [json.dumps(["127.0.0.1", "::1", *ADDRESSES]), str(server.getsockname()[1])]
argv = [sys.executable, "-c", reach, *places]
with guard_in(way, Path(workspace)) as guard:
    found = {
        "plain": json.loads(subprocess.run(argv, capture_output=True, check=True).stdout),
        "none": json.loads(guard.run(argv, timeout=60).stdout or "[]"),
        "host": json.loads(guard.run(argv, timeout=60, network="host").stdout),
        "count": 2 + len(ADDRESSES),
    }
    if way != "reduced":
        found["guarded"] = json.loads(guard.run(argv, timeout=60, network="guarded").stdout)
        found["tunnels"] = json.loads(guard.run([sys.executable, "-c", tunnel, *places], timeout=60, network="guarded").stdout)
    print(json.dumps(found))
"""


@pytest.mark.parametrize("way", SANDBOXED)
def test_94_no_address_of_the_host_is_reached(tmp_path: Path, way: Way) -> None:
    """Loopback, local networks and metadata services: reached plainly and with the host's network, not without."""
    needs(way)
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_THE_HOSTS_ADDRESSES, str(tmp_path), way],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    if "Skipped" in done.stderr:
        pytest.skip(f"no {way} in a network of our own: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    if isinstance(facts, str):
        pytest.skip(f"no network namespace here: {facts}")
    assert "169.254.169.254" in facts["plain"] and len(facts["plain"]) > facts["count"] // 2
    assert facts["host"] == facts["plain"]
    assert facts["none"] == facts.get("guarded", []) == []
    if way != "reduced":
        assert facts["tunnels"] == [PUBLIC, OTHER_PUBLIC, PUBLIC_V6], "without settings, public addresses"
