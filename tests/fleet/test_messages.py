"""What goes between a driver and its workers, and which calls may be repeated."""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from tests.projects import Project, tool
from toolkit import Conversation, Progress, RunLimitReached, TextMessage, ToolFailed, ToolResult
from toolkit.fleet.messages import _READABLE, ProgressEvent, Report, RunOutcome, read_from_worker, write, write_report
from toolkit.fleet.worker import is_repeatable


class Calls:
    """Pickles as the call of a function."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self._parts = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self._parts


def test_reports_are_read_as_they_were_written() -> None:
    said = Conversation([TextMessage("user", "hi")], turns=2)
    event = ProgressEvent(7, 0, Progress("bash", "1", "title", {"text": "x"}))
    for outcome in (
        ToolResult("1", "echo", "data", {"a": [1, None, "x"]}, "ref"),
        RunOutcome(said, None),
        RunOutcome(said, RunLimitReached("turns", "too many", said)),
        RunOutcome(said, ToolFailed("WORKER_DIED", "gone")),
    ):
        report = read_from_worker(write_report(Report(outcome, [event]), 10_000))
        assert content(report) == content(Report(outcome, [event]))


def content(report: Report) -> bytes:
    """All that is in it, whatever the identity of equal texts."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    pickler.fast = True
    pickler.dump(report)
    return written.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        write(Calls(os.getpid)),
        write(Calls(eval, "1")),
        write(Report(ToolResult("1", "echo", "data", Calls(os.getpid)), [])),
        write(Path("x")),
        # Through a module of ours to what it has imported.
        b"\x80\x04ctoolkit.fleet.messages\npickle.Unpickler\n.",
        b"\x80\x04\x8c\x16toolkit.fleet.messages\x8c\x10pickle.Unpickler\x93.",
        b"\x80\x04\x8c\x16toolkit.fleet.messages\x8c\x05write\x93.",
    ],
)
def test_the_driver_reads_nothing_but_data(data: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        read_from_worker(data)


def planting(module: str, name: str) -> bytes:
    """Sets the attribute ``planted`` of what it names."""
    state = pickle.dumps((None, {"planted": True}), 4)[2:-1].replace(b"\x94", b"")  # without head, end and memo
    return b"\x80\x04c" + f"{module}\n{name}\n".encode() + state.replace(b"\x95" + state[1:9], b"") + b"b."


def test_bytes_of_a_worker_change_no_class() -> None:
    pickle.loads(planting("toolkit.wire.call", "ToolResult"))
    assert ToolResult.planted  # type: ignore[attr-defined]  # the control: plain pickle changes it
    del ToolResult.planted  # type: ignore[attr-defined]

    for module, name in [("toolkit.wire.call", "ToolResult"), ("uuid", "UUID"), *_READABLE]:
        with pytest.raises((pickle.UnpicklingError, TypeError, AttributeError)):
            read_from_worker(planting(module, name))
        assert not hasattr(getattr(import_module(module), name), "planted")


@pytest.mark.parametrize("value", [UUID(int=7), Decimal("1.50"), datetime(2026, 1, 2), {"a": {1, 2}}])
def test_values_of_the_standard_library_are_read_as_they_were(value: object) -> None:
    report = read_from_worker(write_report(Report(ToolResult("1", "echo", "data", value), []), 10_000))
    assert report.outcome.value == value


def test_a_result_that_cannot_be_sent_says_that_the_call_ran() -> None:
    for value in (Path("x"), lambda: None, object()):
        report = read_from_worker(write_report(Report(ToolResult("1", "echo", "data", value), []), 10_000))
        assert report.outcome.kind == "error" and "the call ran" in report.outcome.value


@pytest.mark.parametrize("size", [10, 5_000, 100_000, 3_000_000])
@pytest.mark.parametrize("letter", ["a", "é", "\U0001f600"])
def test_a_report_has_at_most_the_bytes_that_are_allowed(size: int, letter: str) -> None:
    written = write_report(Report(ToolResult("1", "echo", "text", letter * size), []), 8192)
    value = read_from_worker(written).outcome.value
    assert len(written) <= 8192
    assert value == letter * size or (value.startswith(letter) and value.endswith(letter) and "left out" in value)


REPEATED = {
    "done", "fail", "git_status_summary", "glob", "grep", "list", "read_file", "todoread", "todowrite", "tool_output_cache",
    "tool_output_cache_grep", "tree", "webfetch", "write_file",
}  # fmt: skip
"""Of a project and of the built-in tools: they only read, or their specs say that they are idempotent."""


def test_only_tools_whose_specs_say_so_are_repeated(tmp_path: Path) -> None:
    with create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow"))) as toolkit:
        names = [tool.name for tool in toolkit.get_allowed_tools()]
        assert {name for name in names if is_repeatable(toolkit, name)} == REPEATED
        assert not is_repeatable(toolkit, "no_such_tool")


IDEMPOTENT = {"annotations": {"idempotentHint": True}, "permissions": ["network"]}
ONLY_READS = {"annotations": {"readOnlyHint": True}, "permissions": []}
CHANGES = {"annotations": {"readOnlyHint": False}, "permissions": ["read"]}
READS = {"permissions": ["read"]}
SHOW = """
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.fleet.worker import is_repeatable
with create_agent_toolkit(ToolkitContext("workspace", SecurityPolicy(default="allow")), packs=[]) as toolkit:
    print(*(name for name in {names} if is_repeatable(toolkit, name)))
"""


@pytest.mark.slow
def test_what_an_imported_tool_declares_about_itself_does_not_count(tmp_path: Path) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "idempotent": IDEMPOTENT,
        "only_reads": ONLY_READS,
        "changes": CHANGES,
        "reads": READS,
        "silent": {"permissions": []},
    }
    project = Project(tmp_path, [tool(f"own_{kind}", **keys) for kind, keys in kinds.items()])
    foreign = {
        "origin": {"kind": "tools", "name": "foreign", "forms": ["mcp"]},
        "prefix": "foreign_",
        "tools": [tool(kind, **keys) for kind, keys in kinds.items()],
    }
    project.write("acme/tools/foreign.json", json.dumps(foreign))
    settings = (tmp_path / "pyproject.toml").read_text()
    project.write(
        "pyproject.toml", f'{settings}\n[tool.toolkit.imports.foreign]\ntools = "foreign.json"\nprefix = "foreign_"\n'
    )
    (tmp_path / "workspace").mkdir()
    project.generate()
    names = [f"{owner}_{kind}" for owner in ("own", "foreign") for kind in kinds]

    repeated = project.python(SHOW.replace("{names}", repr(names))).stdout.split()
    assert repeated == ["own_idempotent", "own_only_reads", "own_reads", "foreign_reads"]
