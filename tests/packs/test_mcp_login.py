"""Servers that need a login: who is asked and when, what is kept and where, and what happens where nobody is there."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.forks import relayed
from tests.packs.conftest import Doors
from tests.packs.locked_server import LockedServer, locked_server
from tests.projects import Project, run_on_terminal, tool
from tests.runtime.conftest import Door
from toolkit import Pack
from toolkit.codegen.imports.mcp import import_mcp
from toolkit.codegen.imports.settings import ImportSettings, OAuthSettings
from toolkit.errors import SandboxViolation, SetupError, ToolFailed
from toolkit.packs import McpCallbacks, McpOAuth, McpServer, McpTool, mcp_pack

GREET = "served.generated.models.web_greet:WebGreetOutput"


class Person:
    """Somebody with a browser."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def open(self, url: str) -> None:
        self.pages.append(url)
        with urllib.request.urlopen(url, timeout=20) as page:
            assert b"You can close this window" in page.read()


@pytest.fixture
def locked() -> Iterator[LockedServer]:
    with locked_server() as server:
        yield server


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a user who has never logged in."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def person() -> Person:
    return Person()


def pack(locked: LockedServer, **oauth: Any) -> Pack:
    server = McpServer(name="locked", url=locked.url, oauth=McpOAuth(**oauth), timeout=20)
    return mcp_pack(server, {"web_greet": McpTool("greet", GREET)})


def greet(door: Door) -> str:
    text: str = door.tool("web_greet", name="Ann").text
    return text


def records(state: Path) -> list[Path]:
    return list((state / "typed-toolkit" / "mcp-tokens").glob("*"))


def log_in(locked: LockedServer, tmp_path: Path, person: Person, **oauth: Any) -> None:
    """As ``toolkit import`` does on a terminal."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    settings = ImportSettings("locked", url=locked.url, oauth=OAuthSettings(**oauth))
    assert [tool["name"] for tool in import_mcp(settings, project, person.open).tools] == ["greet"]


def test_a_person_logs_in_once_and_later_processes_use_the_token(
    make_door: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    assert greet(make_door(pack(locked))) == "Hello Ann"
    log_in(locked, tmp_path, person)
    assert len(person.pages) == locked.logins.logins == len(locked.logins.clients) == 1
    assert "code_challenge_method=S256" in person.pages[0] and "resource=" in person.pages[0]


def test_the_token_is_kept_where_only_this_user_reads(
    locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    old = os.umask(0)
    try:
        log_in(locked, tmp_path, person)
    finally:
        os.umask(old)
    [record] = records(state)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    assert next(iter(locked.logins.access)) in record.read_text()


def test_a_record_that_others_could_have_written_is_not_used(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    records(state)[0].chmod(0o622)
    with pytest.raises(ToolFailed, match="no token for it is stored"):
        greet(make_sync(pack(locked)))


def test_without_a_token_and_a_person_the_error_says_what_to_run(
    make_door: Doors, locked: LockedServer, state: Path
) -> None:
    with pytest.raises(ToolFailed, match="run `toolkit import locked` on a terminal to log in") as caught:
        greet(make_door(pack(locked)))
    assert caught.value.reason == "NOT_CONFIGURED"
    assert not locked.logins.clients and not records(state)


def test_a_program_with_a_person_logs_in_during_the_call(
    make_door: Doors, locked: LockedServer, state: Path, person: Person
) -> None:
    door = make_door(pack(locked), mcp=McpCallbacks(open_url=person.open))
    assert [greet(door), greet(door)] == ["Hello Ann", "Hello Ann"]
    assert len(person.pages) == 1


def test_a_token_that_has_ended_is_refreshed_also_after_a_restart(
    make_door: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    [record] = records(state)
    record.write_text(json.dumps({**json.loads(record.read_text()), "expires_at": 1}))
    assert greet(make_door(pack(locked))) == "Hello Ann"
    assert locked.logins.refreshes == 1
    assert greet(make_door(pack(locked))) == "Hello Ann"
    assert locked.logins.refreshes == 1 and len(person.pages) == 1


def test_a_token_that_is_refused_before_its_end_is_refreshed(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    door = make_sync(pack(locked))
    assert greet(door) == "Hello Ann"
    locked.logins.access.clear()
    assert greet(door) == "Hello Ann"
    assert locked.logins.refreshes == 1


def test_a_refused_refresh_is_an_error_that_says_what_to_run_and_a_new_login_repairs_it(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    locked.logins.access.clear()
    locked.logins.refresh.clear()
    door = make_sync(pack(locked))
    with pytest.raises(ToolFailed, match=r"refused the stored token.*run `toolkit import locked`") as caught:
        greet(door)
    assert caught.value.reason == "NOT_CONFIGURED"
    log_in(locked, tmp_path, person)
    assert greet(door) == "Hello Ann" and len(person.pages) == 2


def test_another_process_that_was_faster_with_the_refresh_does_no_harm(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    slow, fast = make_sync(pack(locked)), make_sync(pack(locked))
    assert greet(slow) == greet(fast) == "Hello Ann"
    locked.logins.access.clear()
    assert greet(fast) == "Hello Ann"  # the refresh token of the other one has ended now
    assert greet(slow) == "Hello Ann"
    assert len(person.pages) == 1


def test_more_rights_need_a_new_login_which_asks_for_them(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    [record] = records(state)
    login = json.loads(record.read_text())
    record.write_text(json.dumps({**login, "tokens": {**login["tokens"], "scope": "other"}}))
    locked.logins.access[login["tokens"]["access_token"]].scopes = ["other"]
    locked.logins.clients[login["client"]["client_id"]].scope = "other greet"
    with pytest.raises(
        ToolFailed, match=r"asks for more rights than were granted \('greet'\); run `toolkit import locked`"
    ):
        greet(make_sync(pack(locked)))
    assert locked.logins.refreshes == 0
    log_in(locked, tmp_path, person)
    assert greet(make_sync(pack(locked))) == "Hello Ann"
    assert len(person.pages) == 2 and "greet" in person.pages[1].partition("scope=")[2]


def test_a_person_who_refuses_is_asked_once(
    make_sync: Doors, locked: LockedServer, state: Path, person: Person
) -> None:
    locked.logins.refuses_people = True
    with pytest.raises(ToolFailed, match=r"the login was refused.*access_denied: not you"):
        greet(make_sync(pack(locked), mcp=McpCallbacks(open_url=person.open)))
    assert len(person.pages) == 1 and not locked.logins.access


def test_only_the_answer_to_this_login_counts(make_sync: Doors, locked: LockedServer, state: Path) -> None:
    """What another page sends to the port of the login changes nothing."""

    def open_url(url: str) -> None:
        back = urllib.parse.unquote(url.partition("redirect_uri=")[2].partition("&")[0])
        for wrong, status in ((f"{back}?code=evil&state=wrong", 400), (f"{back}?code=evil", 400), (f"{back}/x", 404)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(wrong, timeout=20)
            assert caught.value.code == status
            caught.value.close()
        urllib.request.urlopen(url, timeout=20).close()

    assert greet(make_sync(pack(locked), mcp=McpCallbacks(open_url=open_url))) == "Hello Ann"


def test_the_token_is_in_no_error(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    locked.logins.access.clear()
    locked.logins.refresh.clear()
    with pytest.raises(ToolFailed) as caught:
        greet(make_sync(pack(locked)))
    assert "access-" not in str(caught.value) and "refresh-" not in str(caught.value)


def test_a_login_at_another_host_needs_https_and_a_public_address(
    make_sync: Doors, locked: LockedServer, state: Path, person: Person
) -> None:
    """The server names its authorization server: it must not lead us into the network of the user."""
    moved = locked.url.replace("127.0.0.1", "localhost")
    server = McpServer(name="locked", url=moved, oauth=McpOAuth(), timeout=20)
    tools = mcp_pack(server, {"web_greet": McpTool("greet", GREET)})
    with pytest.raises((SandboxViolation, ToolFailed), match=r"must be reached over https|does not match expected"):
        greet(make_sync(tools, mcp=McpCallbacks(open_url=person.open)))
    assert not person.pages


def test_another_issuer_than_the_configured_one_is_refused(
    make_sync: Doors, locked: LockedServer, state: Path, person: Person
) -> None:
    tools = pack(locked, issuer="https://login.example.org")
    with pytest.raises(ToolFailed, match=r"wants a login at .* but its 'issuer' in the settings"):
        greet(make_sync(tools, mcp=McpCallbacks(open_url=person.open)))
    assert not person.pages and not locked.logins.clients


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_refresh_token_goes_only_to_the_server_that_gave_it(
    make_sync: Doors, locked: LockedServer, state: Path, tmp_path: Path, person: Person, *, by_hand: bool
) -> None:
    """The server may name another authorization server at any time."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    oauth = {"client_id": "ours", "redirect_port": port} if by_hand else {}
    with locked_server() as thief:
        for server in (locked, thief):
            server.add_client("ours", f"http://127.0.0.1:{port}/callback")
        log_in(locked, tmp_path, person, **oauth)
        locked.logins.access.clear()
        assert greet(make_sync(pack(locked, **oauth))) == "Hello Ann"
        assert len(locked.logins.offered) == 1

        locked.logins.access.clear()
        locked.logs_in_at = thief.url.removesuffix("mcp")
        with pytest.raises(ToolFailed, match="has another authorization server now; run `toolkit import locked`"):
            greet(make_sync(pack(locked, **oauth)))
        assert not thief.logins.offered and len(locked.logins.offered) == 1


def test_a_server_that_needs_a_login_says_which_setting_is_missing(make_sync: Doors, locked: LockedServer) -> None:
    tools = mcp_pack(McpServer(name="locked", url=locked.url), {"web_greet": McpTool("greet", GREET)})
    with pytest.raises(ToolFailed, match="returned status 401: it needs authorization; set 'oauth = true'"):
        greet(make_sync(tools))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"client_secret": "${X}"}, "'client_secret' of oauth needs 'client_id' and 'issuer'"),
        ({"issuer": "ftp://x"}, "'issuer' of oauth"),
        ({"redirect_port": 70000}, "'redirect_port' of oauth"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SetupError, match=words):
        McpOAuth(**wrong)


def test_a_login_over_plain_http_is_for_this_machine_only() -> None:
    """Tokens could be read on the way (OAuth 2.1 demands https)."""
    for url in ("http://mcp.example.org/mcp", "http://10.1.2.3/mcp"):
        with pytest.raises(SetupError, match="'oauth' of the MCP server 'x' needs an https url"):
            McpServer(name="x", url=url, oauth=McpOAuth())
    for url in ("http://localhost:3000/mcp", "http://127.0.0.2/mcp", "http://[::1]/mcp", "https://10.1.2.3/mcp"):
        assert McpServer(name="x", url=url, oauth=McpOAuth()).url == url
    with pytest.raises(SetupError, match="'issuer' of oauth needs an https url"):
        McpOAuth(issuer="http://login.example.org")


def test_a_login_and_a_header_with_a_token_exclude_each_other() -> None:
    with pytest.raises(SetupError, match="no 'Authorization' among its headers"):
        McpServer(name="x", url="https://example.org", oauth=McpOAuth(), headers={"authorization": "x"})


def test_the_record_holds_what_a_refresh_needs(
    locked: LockedServer, state: Path, tmp_path: Path, person: Person
) -> None:
    log_in(locked, tmp_path, person)
    record = json.loads(records(state)[0].read_text())
    assert record["server"] == locked.url and record["metadata"]["token_endpoint"].endswith("/token")
    assert record["expires_at"] > 0 and record["client"]["client_id"] in locked.logins.clients


# -- the command line --------------------------------------------------------------------------------------------------

BROWSER = """#!{python}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=20).read()
"""


@pytest.fixture
def behind_a_login(tmp_path: Path, locked: LockedServer) -> Project:
    made = Project(tmp_path / "project", [tool("own")])
    table = f'\n[tool.toolkit.imports.locked]\nurl = "{locked.url}"\noauth = true\n'
    made.write("pyproject.toml", (made.root / "pyproject.toml").read_text() + table)
    return made


@pytest.mark.slow
def test_on_a_terminal_the_address_is_printed_and_the_browser_opened(
    behind_a_login: Project, locked: LockedServer, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    monkeypatch.setenv("DISPLAY", ":0")
    code, shown = run_on_terminal(relayed("toolkit", "import", "--trust"), behind_a_login.root)
    assert code == 0, shown
    assert "Log in to the server in a browser on this machine:" in shown and "/authorize?response_type=code" in shown
    assert locked.logins.logins == 1 and len(records(state)) == 1
    # From now on also without a terminal.
    command_line.toolkit(behind_a_login.root, "import", check=True)
    command_line.toolkit(behind_a_login.root, "generate", check=True)
    assert "oauth=McpOAuth()," in (behind_a_login.root / "acme/generated/imported.py").read_text()
    assert "nothing changed" in command_line.toolkit(behind_a_login.root, "check", "--live", check=True).stdout
    assert locked.logins.logins == 1


@pytest.mark.slow
def test_without_a_terminal_nobody_is_asked(behind_a_login: Project, locked: LockedServer, state: Path) -> None:
    done = command_line.toolkit(behind_a_login.root, "import", "--trust")
    assert done.returncode == 1 and "run `toolkit import locked` on a terminal to log in" in done.stderr
    assert not locked.logins.clients
