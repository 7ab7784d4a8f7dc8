"""A log that is written in batches: what it promises, and what it does not."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.runtime.audit.programs import run_program, run_well
from tests.runtime.conftest import MakeDoor
from toolkit import ToolCall
from toolkit.runtime.audit import AuditFile, verify


def calls(log: Path) -> list[tuple[str, str]]:
    return [(record["call_id"], record["event"]) for record in map(json.loads, log.read_text().splitlines())]


def test_records_are_written_when_the_toolkit_is_closed(make_door: MakeDoor, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    door = make_door(audit=AuditFile(log, batch_seconds=60))
    for number in range(3):
        door.call(ToolCall(str(number), "add", {"a": 1, "b": 1}))
    door.call(ToolCall("3", "no-such-tool", {}))
    assert log.read_bytes() == b""

    door.close()

    assert calls(log) == [(str(number), event) for number in range(3) for event in ("start", "end")] + [("3", "end")]
    assert log.read_bytes().count(b'"hash"') == 1
    assert (verify(log).head.lines, verify(log).problems, verify(log).open_calls) == (7, (), 0)


def test_a_batch_that_was_changed_or_cut_shows(make_door: MakeDoor, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    door = make_door(audit=AuditFile(log, batch_seconds=60))
    for number in range(3):
        door.call(ToolCall(str(number), "add", {"a": 1, "b": 1}))
    door.close()
    lines = log.read_bytes().splitlines(keepends=True)
    for changed, problem in [
        ([*lines[:2], lines[2].replace(b"add", b"adb"), *lines[3:]], "lines 1 to 6 were changed"),
        (lines[1:], "lines 1 to 5 were changed"),
        ([lines[1], lines[0], *lines[2:]], "lines 1 to 6 were changed"),
        ([*lines[:2], b"garbage\n", *lines[2:]], "line 3 is not a record"),
        (lines[:4], "the last line is not a complete record"),
    ]:
        log.write_bytes(b"".join(changed))
        assert verify(log).problems[0].startswith(problem)

    # the next writer says that it found lines without a seal, and they are not taken for records
    door = make_door(audit=AuditFile(log, batch_seconds=60))
    door.call(ToolCall("x", "add", {"a": 1, "b": 1}))
    door.close()
    assert (verify(log).head.lines, verify(log).problems) == (2, ())


def test_records_are_written_soon_and_after_many(tmp_path: Path) -> None:
    """In both cases it waits until they are there."""
    run_well(
        """
        from toolkit.runtime.audit import verify
        soon = make(batch_seconds=0.01)
        soon.call(call(1))
        while verify(LOG).head.lines < 2:
            time.sleep(0.001)
        many = make(batch_seconds=60)
        for number in range(600):
            many.call(call(number))
        while verify(LOG).head.lines < 1002:
            time.sleep(0.001)
        os._exit(0)
        """,
        tmp_path,
    )
    assert verify(tmp_path / "audit.jsonl").problems == ()
    assert verify(tmp_path / "audit.jsonl").head.lines >= 1002


def test_records_are_written_when_the_program_ends(tmp_path: Path) -> None:
    for end in ("", "raise SystemExit(0)", "import gc; del toolkit; gc.collect()"):
        run_well(f"toolkit = make(batch_seconds=60)\ntoolkit.call(call(1))\n{end}", tmp_path)
    assert (verify(tmp_path / "audit.jsonl").head.lines, verify(tmp_path / "audit.jsonl").problems) == (6, ())


def test_the_load_says_how_far_behind_the_log_is(tmp_path: Path) -> None:
    printed = run_well(
        """
        toolkit = make(batch_seconds=60)
        print(toolkit.load.unwritten)
        toolkit.call(call(1))
        toolkit.call(call(2))
        print(toolkit.load.unwritten)
        toolkit._core.audit.flush()
        print(toolkit.load.unwritten)
        """,
        tmp_path,
    )
    assert printed.split() == ["0", "4", "0"]


def test_a_killed_process_loses_what_was_not_written_and_nothing_else(tmp_path: Path) -> None:
    code, _, _ = run_program(
        """
        toolkit = make(batch_seconds=60)
        toolkit.call(call(1))
        toolkit._core.audit.flush()
        toolkit.call(call(2))
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path,
    )
    assert code == -signal.SIGKILL
    log = tmp_path / "audit.jsonl"
    assert (calls(log), verify(log).problems) == ([("1", "start"), ("1", "end")], ())


def test_nothing_runs_while_batches_cannot_be_written(tmp_path: Path) -> None:
    """A file size limit stands for a full disk; when there is room again, nothing is missing."""
    printed = run_well(
        """
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        toolkit = make(batch_seconds=0.01)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        toolkit.call(call(1))
        number, value = 1, ""
        while not isinstance(value, str) or not value:  # the first batch has to fail first
            number += 1
            value = toolkit.call(call(number)).value
        print(value)
        assert ran == list(range(1, number)), (ran, number)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(toolkit.call(call(0)).value)
        toolkit.close()
        print(number)
        """,
        tmp_path,
    )
    refused, answer, number = printed.splitlines()
    assert refused == "TOOL_FAILED: IO: nothing was run, because the audit log cannot be written"
    assert answer == "{'sum': 1}"
    log = tmp_path / "audit.jsonl"
    starts = [call for call, event in calls(log) if event == "start"]
    assert starts == [*map(str, range(1, int(number))), "0"]
    assert verify(log).problems == ()


def test_threads_share_a_batched_log(make_door: MakeDoor, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    door = make_door(audit=AuditFile(log, batch_seconds=0.001))
    door.call_all([ToolCall(str(n), "count-words", {"text": "a b"}) for n in range(200)])
    door.close()
    assert (verify(log).head.lines, verify(log).problems, verify(log).open_calls) == (400, (), 0)


def test_batched_records_say_what_others_say(make_door: MakeDoor, tmp_path: Path) -> None:
    said = []
    for name, seconds in (("one", None), ("two", 60.0)):
        log = tmp_path / f"{name}.jsonl"
        door = make_door(audit=AuditFile(log, batch_seconds=seconds), session_id="s % 1")
        for _ in range(2):  # the first call of a tool takes the whole call path
            door.call(ToolCall("c-1", "add", {"a": 1, "b": 2}))
            door.call(ToolCall("é\ud800" + "x" * 2000, "add", {"b": 1.0, "a": 2, "note": "é\n\x7f"}))
            door.call(ToolCall("c-3", "shout", {"text": "y" * 100_000}))
            door.call(ToolCall("c-4", "count-words", {"text": "a b"}))
            door.call(ToolCall("c-5", "fail", {"how": "expected"}))
            door.call(ToolCall("c-6", "fail", {"how": "unexpected"}))
            door.call(ToolCall("c-7", "add", {"a": "x"}))
            door.invoke("add", {"a": 5, "b": 6})
        door.close()
        records = [json.loads(line) for line in log.read_text().splitlines()]
        ids = list(dict.fromkeys(record["call"] for record in records))
        for record in records:
            record["call"] = ids.index(record["call"])
            took = record.pop("duration_ms", None)
            assert (took is None) == (record["event"] == "start")
            assert len(record.pop("time")) == 32
            record.pop("previous", None), record.pop("hash", None)
        said.append(records)
        assert verify(log).problems == () and verify(log).open_calls == 0
    assert said[0] == said[1]
