"""Commands with the guarded network: ordinary programs reach what ``Network`` allows, through the proxy, and nothing else."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import io
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.guard.net.test_fetch import certificates
from tests.guard.proxied import proxy_threads
from tests.guard.ways import FULL, SANDBOXED, Way, guard_in
from toolkit.errors import InvalidArguments, ToolFailed, ToolNotAllowed
from toolkit.guard import LongProcess, Network, ProcessGuard, ProcessResult
from toolkit.guard.process.fork_client import CommandHandle

__all__ = ["certificates"]  # a fixture

WATCHDOG = 120
HERE = "127.0.0.1"


@dataclass
class Site:
    """A web server of this machine, which commands know as ``site.test``."""

    port: int
    tls: bool = False
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://site.test:{self.port}"


@contextlib.contextmanager
def running_site(folder: Path, certificate: Path | None = None) -> Iterator[Site]:
    """Serves the files of ``folder``."""
    asked: list[str] = []

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer((HERE, 0), Files) as server:
        server.daemon_threads = True
        made = Site(server.server_port, certificate is not None, asked)
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate / "site.pem", certificate / "site.key")
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def only_the_site() -> Network:
    names = {"site.test": [HERE], "other.test": [HERE]}
    return Network(
        allow_hosts=["site.test"], allow_addresses=[f"{HERE}/32"], resolve=lambda host, port: names.get(host, [])
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/page").write_text("from the site\n")
    return tmp_path / "site"


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    with running_site(folder) as site:
        yield site


@pytest.fixture
def secure_site(folder: Path, certificates: Path | None) -> Iterator[Site]:
    if certificates is None:
        pytest.skip("no openssl command (3.0 or later) to make certificates with")
    with running_site(folder, certificates) as site:
        yield site


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture(params=FULL)
def guard(request: pytest.FixtureRequest, workspace: Path) -> Iterator[ProcessGuard]:
    with guard_in(request.param, workspace, internet=only_the_site()) as guard:
        yield guard
    assert not proxy_threads(), "nothing is left running"


def run(guard: ProcessGuard, *argv: str, env: Mapping[str, str] | None = None) -> ProcessResult:
    return guard.run(list(argv), network="guarded", timeout=WATCHDOG, env=env or {})


def succeeded(result: ProcessResult) -> str:
    assert result.exit_code == 0, result.stdout.decode() + result.stderr.decode()
    return result.stdout.decode()


def needs_program(name: str) -> None:
    if shutil.which(name, path="/usr/bin:/usr/local/bin:/bin") is None:
        pytest.skip(f"no {name} here")


FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"


# --- programs


def test_urllib(guard: ProcessGuard, site: Site) -> None:
    assert succeeded(run(guard, sys.executable, "-c", FETCH, f"{site.url}/page")) == "from the site\n"
    refused = run(guard, sys.executable, "-c", FETCH, f"http://other.test:{site.port}/page")
    assert refused.exit_code == 1 and b"403" in refused.stderr
    assert site.asked == ["/page"]
    open_network = Network(allow_addresses=[f"{HERE}/32"], resolve=lambda host, port: [HERE])
    with guard_in("full", Path(guard.workspace), internet=open_network) as unrestricted:  # the control
        url = f"http://other.test:{site.port}/page"
        assert succeeded(run(unrestricted, sys.executable, "-c", FETCH, url)) == "from the site\n"


def test_urllib_over_tls(guard: ProcessGuard, secure_site: Site, certificates: Path, workspace: Path) -> None:
    shutil.copy(certificates / "ca.pem", workspace)
    known = {"SSL_CERT_FILE": "ca.pem"}
    assert succeeded(run(guard, sys.executable, "-c", FETCH, f"{secure_site.url}/page", env=known)) == "from the site\n"
    refused = run(guard, sys.executable, "-c", FETCH, f"https://other.test:{secure_site.port}/page", env=known)
    assert b"Tunnel connection failed: 403 the host 'other.test' is not one of the allowed hosts" in refused.stderr
    unknown = run(guard, sys.executable, "-c", FETCH, f"{secure_site.url}/page")
    assert b"CERTIFICATE_VERIFY_FAILED" in unknown.stderr, "the tunnel changes nothing about certificates"


def test_curl(guard: ProcessGuard, site: Site, secure_site: Site, certificates: Path, workspace: Path) -> None:
    needs_program("curl")
    shutil.copy(certificates / "ca.pem", workspace)
    assert succeeded(run(guard, "curl", "-sS", f"{site.url}/page")) == "from the site\n"
    secure = run(guard, "curl", "-sS", "--cacert", "ca.pem", f"{secure_site.url}/page")
    assert succeeded(secure) == "from the site\n"
    assert "'other.test' is not one of the allowed hosts" in succeeded(run(guard, "curl", "-sS", "http://other.test/"))
    assert b"403" in run(guard, "curl", "-sS", "https://other.test/").stderr


def test_git_clone(guard: ProcessGuard, site: Site, folder: Path, workspace: Path) -> None:
    needs_program("git")
    if not any(Path(place, "git-remote-http").exists() for place in ("/usr/lib/git-core", "/usr/libexec/git-core")):
        pytest.skip("git has no http here")
    source = folder / "source"
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (
        ["git", "init", "-q", str(source)],
        ["git", "-C", str(source), *author, "commit", "-q", "--allow-empty", "-m", "the first"],
        ["git", "clone", "-q", "--bare", str(source), str(folder / "repo.git")],
        ["git", "-C", str(folder / "repo.git"), "update-server-info"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    succeeded(run(guard, "git", "clone", "-q", f"{site.url}/repo.git", "clone"))
    assert succeeded(guard.run(["git", "-C", "clone", "log", "--format=%s"])) == "the first\n"
    assert run(guard, "git", "clone", "-q", f"http://other.test:{site.port}/repo.git", "other").exit_code != 0


def wheel(name: str) -> bytes:
    files = {
        f"{name}.py": b"print('installed from the index')\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{name}-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    record = f"{name}-1.0.dist-info/RECORD"
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return made.getvalue()


@pytest.fixture
def index(folder: Path) -> str:
    """A package index (PEP 503) with one package; returns the name of the package."""
    package = folder / "simple/greeting"
    package.mkdir(parents=True)
    data = wheel("greeting")
    (package / "greeting-1.0-py3-none-any.whl").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    link = f'<a href="greeting-1.0-py3-none-any.whl#sha256={digest}">greeting-1.0-py3-none-any.whl</a>'
    (package / "index.html").write_text(f"<!doctype html><html><body>{link}</body></html>")
    return "greeting"


def pip_install(guard: ProcessGuard, package: str, *options: str) -> ProcessResult:
    quiet = ["--no-input", "--disable-pip-version-check", "--no-cache-dir", "--retries", "0", "--target", "packages"]
    pytest.importorskip("pip")  # environments of uv have none
    return run(guard, sys.executable, "-m", "pip", "install", *quiet, *options, package)


@pytest.mark.whole
def test_pip_install_over_http(guard: ProcessGuard, site: Site, index: str, workspace: Path) -> None:
    succeeded(pip_install(guard, index, "--index-url", f"{site.url}/simple/", "--trusted-host", "site.test"))
    greeted = guard.run([sys.executable, "packages/greeting.py"])
    assert succeeded(greeted) == "installed from the index\n"
    other = f"http://other.test:{site.port}/simple/"
    refused = pip_install(guard, index, "--index-url", other, "--trusted-host", "other.test")
    assert refused.exit_code != 0 and b"No matching distribution" in refused.stderr, "pip itself hides the reason"
    assert refused.stderr.endswith(f"\n[{OTHER_REFUSED}]\n".encode())


def test_pip_install_over_https(
    guard: ProcessGuard, secure_site: Site, index: str, certificates: Path, workspace: Path
) -> None:
    shutil.copy(certificates / "ca.pem", workspace)
    succeeded(pip_install(guard, index, "--index-url", f"{secure_site.url}/simple/", "--cert", "ca.pem"))
    assert (workspace / "packages/greeting.py").exists()
    asked = len(secure_site.asked)
    other = f"https://other.test:{secure_site.port}/simple/"
    refused = pip_install(guard, index, "--index-url", other, "--cert", "ca.pem")
    assert refused.exit_code != 0 and refused.notes == (OTHER_REFUSED,)
    assert len(secure_site.asked) == asked


OTHER_REFUSED = (
    "the guarded network refused a request: the host 'other.test' is not one of the allowed hosts; what commands reach is set by "
    "ToolkitContext(network=Network(allow_hosts=[...], allow_addresses=[...]))"
)
MANY_HOSTS = """
import contextlib, sys, urllib.request
for number in range(40):
    for url in (f"http://h{number}.test/", f"http://h{number}.test/again"):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url)
"""


def test_what_was_refused_is_named_in_a_few_notes(guard: ProcessGuard, site: Site) -> None:
    result = run(guard, sys.executable, "-c", MANY_HOSTS)
    assert [note.partition(" is not one")[0] for note in result.notes[:-1]] == [
        f"the guarded network refused a request: the host 'h{number}.test'" for number in range(5)
    ]
    assert result.notes[-1] == "the guarded network refused 70 more requests"
    fine = run(guard, "curl", "-sS", f"{site.url}/page", f"http://{HERE}:9/", "http://missing.site.test/")
    assert fine.notes == (OTHER_REFUSED.replace("other", "missing.site"),)
    assert run(guard, "curl", "-sS", f"{site.url}/page").notes == ()


# --- what surrounds it


def test_a_server_of_its_own_is_reached_without_the_proxy(guard: ProcessGuard) -> None:
    code = """
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for name in ("localhost", "127.0.0.1"):
    print(urllib.request.urlopen(f"http://{name}:{server.server_port}/").status)
"""
    assert succeeded(run(guard, sys.executable, "-c", code)) == "200\n200\n"


def test_the_environment_names_the_proxy_and_nobody_changes_that(guard: ProcessGuard) -> None:
    variables = dict(line.split("=", 1) for line in succeeded(run(guard, "env")).splitlines())
    proxy, direct = "http://127.0.0.1:3128", "localhost,127.0.0.1,::1"
    expected = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": direct}
    for name, value in expected.items():
        assert variables[name] == variables[name.lower()] == value
        for spelling in (name, name.lower(), name.title()):
            with pytest.raises(InvalidArguments, match=spelling):
                run(guard, "true", env={spelling: "http://elsewhere"})
    assert variables["NODE_USE_ENV_PROXY"] == "1"
    assert b"PROXY" not in guard.run(["env"]).stdout.upper()
    assert guard.run(["env"], env={"HTTP_PROXY": "x"}).stdout.count(b"HTTP_PROXY=x") == 1


def test_the_result_says_guarded(guard: ProcessGuard) -> None:
    assert run(guard, "true").network == "guarded"


def test_a_judge_is_asked_about_every_request(guard: ProcessGuard, site: Site) -> None:
    judged: list[str] = []

    def judge(url: str) -> None:
        judged.append(url)
        raise ToolNotAllowed(f"a rule denies {url}")

    refused = run(guard.with_judge(judge), sys.executable, "-c", FETCH, f"{site.url}/page")
    assert refused.exit_code == 1 and site.asked == []
    assert judged == [f"{site.url}/page"]
    assert succeeded(run(guard, sys.executable, "-c", FETCH, f"{site.url}/page")) == "from the site\n"


# --- ends

TALK = """
import socket, sys, urllib.request
for line in sys.stdin:
    word, url = line.split()
    if word == "fetch":
        print(urllib.request.urlopen(url).read().decode().strip(), flush=True)
    else:
        held = socket.create_connection(("127.0.0.1", 3128))  # and says nothing
        print("held", flush=True)
"""


def tell(process: LongProcess, line: str) -> str:
    process.write(f"{line}\n".encode())
    os.set_blocking(process.stdout, True)
    answer = b""
    while not answer.endswith(b"\n"):
        data = process.read()
        if not data:
            process.close(grace=30)  # it is ending, and what it says of that is read to its end
            raise AssertionError(process.last_stderr())
        answer += data
    return answer.decode().strip()


def test_a_long_process(guard: ProcessGuard, site: Site) -> None:
    process = guard.start([sys.executable, "-c", TALK], network="guarded")
    for _ in range(2):
        assert tell(process, f"fetch {site.url}/page") == "from the site"
    assert tell(process, "hold x") == "held"
    assert proxy_threads()
    process.close()
    assert not proxy_threads()


def test_two_commands_have_two_proxies(guard: ProcessGuard, site: Site) -> None:
    def refuse(url: str) -> None:
        raise ToolNotAllowed("no")

    first = guard.start([sys.executable, "-c", TALK], network="guarded")
    second = guard.with_judge(refuse).start([sys.executable, "-c", TALK], network="guarded")
    assert tell(first, f"fetch {site.url}/page") == "from the site"
    with pytest.raises(AssertionError, match="403"):
        tell(second, f"fetch {site.url}/page")
    second.close()
    assert tell(first, f"fetch {site.url}/page") == "from the site"


def end_by_timeout(guard: ProcessGuard, code: str) -> None:
    assert guard.run([sys.executable, "-c", code], network="guarded", timeout=3).timed_out


def end_by_caller(guard: ProcessGuard, code: str) -> None:
    def stop(name: str, data: bytes) -> None:
        raise KeyError("the caller has had enough")

    with pytest.raises(KeyError):
        guard.run([sys.executable, "-c", code], network="guarded", timeout=WATCHDOG, on_output=stop)


def end_by_closing_the_guard(guard: ProcessGuard, code: str) -> None:
    running = threading.Event()
    thread = threading.Thread(target=end_by_itself, args=(guard, code, lambda: running.set()))
    thread.start()
    assert running.wait(WATCHDOG)
    guard.close()
    thread.join()


def end_by_itself(guard: ProcessGuard, code: str, started: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):  # that it was killed from outside
        guard.run(
            [sys.executable, "-c", code], network="guarded", timeout=WATCHDOG, on_output=lambda name, data: started()
        )


HOLD = """
import socket
held = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(5)]
print("held", flush=True)
held[0].recv(1)
"""


@pytest.mark.sample
@pytest.mark.parametrize("end", [end_by_timeout, end_by_caller, end_by_closing_the_guard])
def test_the_proxy_ends_with_its_command(guard: ProcessGuard, end: Callable[[ProcessGuard, str], None]) -> None:
    end(guard, HOLD)
    assert not proxy_threads()


def test_a_socket_that_got_lost_on_its_way_is_an_error() -> None:
    """The kernel drops a descriptor for which the receiver has no room."""
    ours, supervisors = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, supervisors:
        supervisors.send(b"listener 0 ")
        with pytest.raises(ToolFailed, match="too many open files"):
            CommandHandle(ours).has_ended()


# --- where there is none


@pytest.mark.parametrize("way", ["reduced", "unsafe-none"])
def test_without_the_full_tier_nothing_runs(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace, internet=only_the_site()) as guard:
        for act in (guard.run, guard.start):
            with pytest.raises(ToolNotAllowed, match=r"needs the full sandbox tier.*'none', or to 'host'"):
                act(["touch", "ran"], network="guarded")
        assert list(workspace.iterdir()) == []
        assert guard.run(["touch", "ran"], network="host").exit_code == 0  # the same command with another word
    assert [path.name for path in workspace.iterdir()] == ["ran"]


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_program_without_a_sandbox_cannot_be_guarded(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard, pytest.raises(ToolNotAllowed, match="without a sandbox"):
        guard.start(["cat"], network="guarded", sandbox=False)
