"""What a stdio server can reach: no more than a command can, unless its pack says ``sandbox=False``, which is on record."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from tests.builtin.site import HERE, running_site
from tests.guard.proxied import proxy_threads
from tests.guard.ways import Way, needs
from tests.packs.conftest import Doors
from tests.packs.test_mcp_endings import odd, told
from toolkit import CommandSettings, Network, Rule, SecurityPolicy
from toolkit.errors import SetupError, ToolFailed, ToolNotAllowed
from toolkit.guard import CommandLimits
from toolkit.packs import McpServer, McpTool, mcp_pack


def audited(log: Path) -> list[tuple[Any, Any]]:
    return [(line["event"], line.get("sandbox")) for line in map(json.loads, log.read_text().splitlines())]


@pytest.mark.parametrize("way", ["full", "reduced", "unsafe-none"])
def test_it_reads_nothing_outside_the_workspace(make_sync: Doors, workspace: Path, tmp_path: Path, way: Way) -> None:
    needs(way)
    outside, log = tmp_path / "outside", tmp_path / "audit.jsonl"
    outside.write_text("a secret of the host")
    (workspace / "inside").write_text("a file of the workspace")
    door = make_sync(odd("obeys"), sandbox=way, audit=log)
    assert told(door, "read inside") == "a file of the workspace"
    if way == "unsafe-none":  # the control
        assert told(door, f"read {outside}") == "a secret of the host"
    else:
        with pytest.raises(ToolFailed, match=r"TOOL_ERROR: (FileNotFoundError|PermissionError)"):
            told(door, f"read {outside}")
    tier = "none" if way == "unsafe-none" else way
    assert audited(log)[:2] == [("start", tier), ("end", tier)]


def test_one_that_opted_out_reads_what_its_user_may_and_every_record_says_so(make_sync: Doors, tmp_path: Path) -> None:
    outside, log = tmp_path / "outside", tmp_path / "audit.jsonl"
    outside.write_text("a secret of the host")
    door = make_sync(odd("obeys", sandbox=False), audit=log)
    message = door.invoke("odd_text", {"text": f"read {outside}"})
    assert message.content.text == "a secret of the host"
    assert message.metadata == {"sandbox": "none (sandbox=false)"}
    assert audited(log) == [("start", "none (sandbox=false)"), ("end", "none (sandbox=false)")]


RULES: dict[str, Any] = {
    "denied": Rule("deny", path="secret/**"),
    "to be asked about": Rule("ask", path="secret/**"),
    "denied to one of its tools": Rule("deny", path="secret/**", tools=["odd"]),  # type: ignore[list-item]
    "denied as a name": Rule("deny", path="k"),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_a_rule_keeps_from_tools_a_server_does_not_read(make_sync: Doors, workspace: Path, rule: Any) -> None:
    needs("full")
    (workspace / "secret").mkdir()
    (workspace / "secret/k").write_text("the key itself")
    (workspace / "inside").write_text("a file of the workspace")
    control = make_sync(odd("obeys"), sandbox="full")
    assert told(control, "read secret/k") == "the key itself"
    control.close()
    door = make_sync(odd("obeys"), sandbox="full", policy=SecurityPolicy(default="allow", rules=[rule]))
    assert told(door, "read inside") == "a file of the workspace"
    with pytest.raises(ToolFailed, match="TOOL_ERROR: PermissionError"):
        told(door, "read secret/k")


@pytest.mark.parametrize("is_link", [False, True])
def test_rules_also_hold_in_directories_that_only_a_server_reads(
    make_sync: Doors, tmp_path: Path, is_link: bool
) -> None:
    needs("full")
    notes, name = tmp_path / "notes", tmp_path / "link"
    (notes / "secret").mkdir(parents=True)
    (notes / "secret/k").write_text("the key itself")
    (notes / "open").write_text("a note")
    name.symlink_to(notes)
    given = str(name if is_link else notes)
    control = make_sync(odd("obeys", read_roots=[given]), sandbox="full")
    assert told(control, f"read {given}/secret/k") == "the key itself"
    control.close()
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="secret/**")])
    door = make_sync(odd("obeys", read_roots=[given]), sandbox="full", policy=policy)
    assert told(door, f"read {notes}/open") == "a note"
    for place in (notes, name):
        with pytest.raises(ToolFailed, match=r"TOOL_ERROR: (PermissionError|FileNotFoundError)"):
            told(door, f"read {place}/secret/k")


def test_a_server_in_the_reduced_tier_does_not_start_where_a_rule_hides_something(
    make_sync: Doors, workspace: Path
) -> None:
    needs("reduced")
    (workspace / ".env").write_text("a secret")
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path=".env")])
    with pytest.raises(ToolNotAllowed, match="which the reduced sandbox of this machine cannot hide"):
        told(make_sync(odd("obeys"), sandbox="reduced", policy=policy), "read .env")


@pytest.mark.parametrize("sandbox", [True, False])
def test_it_gets_the_variables_that_are_named_and_no_other(
    make_sync: Doors, sandbox: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    monkeypatch.setenv("SECRET_OF_THE_HOST", "s3cret")
    found = json.loads(told(make_sync(odd("obeys", env=("TOKEN",), sandbox=sandbox)), "env"))
    assert found["TOKEN"] == "t0ken"
    assert found.keys() - {"LC_CTYPE"} == {"HOME", "LANG", "PATH", "TERM", "TMPDIR", "TOKEN"}


@pytest.mark.parametrize(
    "limit",
    [
        {"mode": "read-only"},
        {"permissions": ["read", "execute", "network"]},
        {"policy": SecurityPolicy(default="allow", rules=[Rule("deny", permission="write")])},
    ],
    ids=["mode", "permissions", "a rule"],
)
def test_where_it_may_not_write_it_writes_nothing(make_sync: Doors, workspace: Path, limit: dict[str, Any]) -> None:
    door = make_sync(odd("silent", timeout=2, startup_timeout=60), **limit)
    with pytest.raises(ToolFailed, match="SERVER_DIED"):  # it dies of the file it wants to write
        door.tool("odd")
    assert not (workspace / "asked").exists()


@pytest.mark.parametrize(
    ("network", "host", "outcome"),
    [
        (False, "site.test", "URLError"),
        (True, HERE, "from the site"),
        ("guarded", "site.test", "from the site"),
        ("guarded", HERE, "Connection refused"),  # its own localhost
        ("guarded", "other.example", "403"),
        ("guarded", "denied.test", "403"),
    ],
)
def test_it_reaches_what_its_network_says(
    make_sync: Doors, served: ModuleType, network: bool | Literal["guarded"], host: str, outcome: str
) -> None:
    needs("full")
    server = McpServer(name="odd", command=("python", "odd.py", "obeys"), network=network)
    tools = mcp_pack(server, {"odd_online": McpTool("ask", "served.generated.models.odd_online:OddOnlineOutput")})
    internet = Network(allow_hosts=["*.test"], allow_addresses=[HERE], resolve=lambda host, port: [HERE])
    policy = served.SecurityPolicy(default="allow", rules=[Rule("deny", host="denied.test")])
    with running_site() as site:
        site.serve("from the site")
        door = make_sync(tools, sandbox="full", network=internet, policy=policy)
        if outcome == "from the site":
            assert door.tool("odd_online", text=f"fetch {site.url(host=host)}").text == outcome
        else:
            with pytest.raises(ToolFailed, match=outcome):
                door.tool("odd_online", text=f"fetch {site.url(host=host)}")
            assert site.asked == []
        door.close()
    assert not proxy_threads()


def test_a_guarded_network_without_its_sandbox_is_refused(make_sync: Doors) -> None:
    with pytest.raises(SetupError, match="'guarded', which needs the sandbox"):
        McpServer(name="odd", command=("x",), network="guarded", sandbox=False)
    needs("reduced")
    server = McpServer(name="odd", command=("python", "odd.py", "obeys"), network="guarded")
    tools = mcp_pack(server, {"odd_online": McpTool("ask", "served.generated.models.odd_online:OddOnlineOutput")})
    with pytest.raises(ToolNotAllowed, match="needs the full sandbox tier"):
        make_sync(tools, sandbox="reduced").tool("odd_online", text="count")


def test_one_that_a_limit_ends_is_reported_with_that_limit(make_sync: Doors) -> None:
    door = make_sync(
        odd("obeys"), commands=CommandSettings(limits=CommandLimits(memory=1 << 20))
    )  # less than any program of Python needs
    with pytest.raises(ToolFailed, match=r"SERVER_DIED.*more than 1 MiB of memory; the limit is CommandLimits.memory"):
        told(door, "wait x")
