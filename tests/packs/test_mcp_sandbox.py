"""What a stdio server can reach: no more than a command can, unless its pack says ``sandbox=False``, which is on record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guard.ways import Way, needs
from tests.packs.conftest import Doors
from tests.packs.test_mcp_endings import odd, told
from toolkit.errors import ToolFailed
from toolkit.guard import CommandLimits


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


@pytest.mark.parametrize("sandbox", [True, False])
def test_it_gets_the_variables_that_are_named_and_no_other(
    make_sync: Doors, sandbox: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    monkeypatch.setenv("SECRET_OF_THE_HOST", "s3cret")
    found = json.loads(told(make_sync(odd("obeys", env=("TOKEN",), sandbox=sandbox)), "env"))
    assert found["TOKEN"] == "t0ken"
    assert found.keys() - {"LC_CTYPE"} == {"HOME", "LANG", "PATH", "TERM", "TMPDIR", "TOKEN"}


def test_in_a_read_only_context_it_writes_nothing(make_sync: Doors, workspace: Path) -> None:
    door = make_sync(odd("silent", timeout=2), mode="read-only")
    with pytest.raises(ToolFailed, match="SERVER_DIED"):  # it dies of the file it wants to write
        door.tool("odd")
    assert not (workspace / "asked").exists()


def test_one_that_a_limit_ends_is_reported_with_that_limit(make_sync: Doors) -> None:
    door = make_sync(odd("obeys"), limits=CommandLimits(memory=1 << 20))  # less than any program of Python needs
    with pytest.raises(ToolFailed, match=r"SERVER_DIED.*more than 1 MiB of memory; the limit is CommandLimits.memory"):
        told(door, "wait x")
