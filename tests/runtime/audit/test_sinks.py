"""Sinks of other people, written with public names only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import MakeDoor
from toolkit import Pack, ToolCall
from toolkit.stores import AUDIT_BEGINNING, AuditHead, AuditSink, chain_records, verify_lines


class ListSink:
    """Keeps lines in memory, as a sink over a database keeps them there."""

    def __init__(self, *, blocking: bool = False) -> None:
        self.lines: list[bytes] = []
        self.records: list[Mapping[str, Any]] = []
        self.threads: set[int] = set()
        self.flushed = 0
        self.failure: Exception | None = None
        self.blocking = blocking
        self._last = AUDIT_BEGINNING
        self._lock = threading.Lock()

    def append(self, record: Mapping[str, Any], check: Callable[[], None], /) -> None:
        if self.failure is not None:
            raise self.failure
        with self._lock:
            line, self._last = chain_records([record], self._last)
            self.lines.append(line)
            self.records.append(record)
            self.threads.add(threading.get_ident())

    def flush(self) -> None:
        self.flushed += 1


@pytest.mark.parametrize("blocking", [False, True])
def test_a_sink_gets_every_record_in_order(make_door: MakeDoor, blocking: bool) -> None:
    sink = ListSink(blocking=blocking)
    assert isinstance(sink, AuditSink)
    door = make_door(audit=sink)
    for number in range(3):
        door.call(ToolCall(str(number), "add", {"a": number, "b": 1}))
    door.call(ToolCall("3", "no-such-tool", {}))
    threads = set(sink.threads)
    door.close()  # stores what is left, in this thread

    shown = [(record["call_id"], record["event"]) for record in sink.records]
    assert shown == [(str(number), event) for number in range(3) for event in ("start", "end")] + [("3", "end")]
    assert sink.flushed == 1
    report = verify_lines(sink.lines)
    assert (report.head.lines, report.problems, report.open_calls) == (7, (), 0)
    assert verify_lines(sink.lines[:-1], report.head).problems[0].endswith("the tail was cut off")
    assert verify_lines(sink.lines[1:]).problems[0].startswith("line 1 does not follow")
    assert verify_lines([]).head == AuditHead(0, AUDIT_BEGINNING)
    in_loop = door.loop is not None
    if in_loop and blocking:
        assert threading.get_ident() not in threads
    else:
        assert threads == {threading.get_ident()}


@pytest.mark.parametrize("blocking", [False, True])
def test_nothing_runs_while_a_sink_fails(make_door: MakeDoor, blocking: bool, caplog: pytest.LogCaptureFixture) -> None:
    ran = []

    def add(args: Any, ctx: Any) -> Any:
        ran.append(args.a)
        return {"sum": 0}

    sink = ListSink(blocking=blocking)
    door = make_door(audit=sink, packs=[Pack({"add": add})])
    sink.failure = RuntimeError("the server is gone")
    result = door.call(ToolCall("1", "add", {"a": 1, "b": 1}))
    assert result.value == "TOOL_FAILED: IO: nothing was run, because the audit log cannot be written"
    assert ran == [] and "the server is gone" in caplog.text

    sink.failure = None
    assert door.call(ToolCall("2", "add", {"a": 2, "b": 1})).value == {"sum": 0}
    door.close()
    assert ran == [2]


def test_two_toolkits_share_a_sink(make_door: MakeDoor, tmp_path: Path) -> None:
    sink = ListSink()
    one, two = make_door(audit=sink), make_door(audit=sink)
    one.call(ToolCall("1", "add", {"a": 1, "b": 1}))
    one.close()
    two.call(ToolCall("2", "add", {"a": 1, "b": 1}))
    assert (verify_lines(sink.lines).head.lines, verify_lines(sink.lines).problems) == (4, ())
