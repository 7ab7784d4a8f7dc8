"""The files of a log: one that disappears while it is used, rotation, what reaches the disk."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from pathlib import Path

import pytest

from acme.generated import SecurityPolicy, ToolkitContext
from tests.projects import run
from tests.runtime.conftest import MakeDoor
from toolkit import SetupError, ToolCall
from toolkit.runtime.audit import AuditFile, AuditHead, verify
from toolkit.runtime.audit.verification import read_records


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder / "audit.jsonl"


def add(number: int) -> ToolCall:
    return ToolCall(str(number), "add", {"a": number, "b": 1})


def called(log: Path) -> list[str]:
    """The ids of the calls in the log that ended."""
    return [str(record["call_id"]) for record in read_records(log) if record["event"] == "end"]


# A log that is not there any more


def test_a_log_that_was_removed_is_noticed_and_continued(
    make_door: MakeDoor, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    door = make_door(audit=log)
    door.call(add(1))
    head = verify(log).head
    log.unlink()

    door.call(add(2))

    assert called(log) == ["2"]
    assert "was removed while it was in use" in caplog.text
    report = verify(log, AuditHead(head.lines + 2, verify(log).head.hash))
    assert report.problems == ("the file before this one was removed while it was in use, with up to 2 records",)
    assert (report.head.lines, report.removed) == (4, 2)
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_was_renamed_is_continued_in_a_new_file(
    make_door: MakeDoor, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As programs that rotate logs do it."""
    first, second = make_door(audit=log), make_door(audit=log)
    first.call(add(1))
    second.call(add(2))
    log.rename(log.with_name("audit.jsonl.1"))

    first.call(add(3))
    second.call(add(4))

    assert called(log) == ["1", "2", "3", "4"]
    assert (verify(log).head.lines, verify(log).problems) == (8, ())
    assert verify(log.with_name("audit.jsonl.1")).problems == ()
    assert not caplog.records


def test_a_log_that_was_moved_away_is_reported(
    make_door: MakeDoor, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    door = make_door(audit=log)
    door.call(add(1))
    log.rename(log.with_name("elsewhere"))

    door.call(add(2))

    assert "was renamed or replaced while it was in use" in caplog.text
    assert (called(log), called(log.with_name("elsewhere"))) == (["2"], ["1"])
    assert (verify(log).problems, verify(log).removed) == ((), 2)


def test_a_new_toolkit_continues_a_log_that_was_renamed(make_door: MakeDoor, log: Path) -> None:
    make_door(audit=log).call(add(1))
    log.rename(log.with_name("audit.jsonl.1"))

    make_door(audit=log).call(add(2))

    assert (called(log), verify(log).problems) == (["1", "2"], ())


@pytest.mark.parametrize("what", ["folder gone", "another file", "link", "folder in the workspace"])
def test_nothing_runs_where_the_log_cannot_be_opened_again(make_door: MakeDoor, log: Path, what: str) -> None:
    door = make_door(audit=log)
    door.call(add(1))
    if what == "folder gone":
        shutil.rmtree(log.parent)
    elif what == "another file":
        log.unlink()
        log.write_text("notes\n")
    elif what == "link":
        target = log.parent.parent / "workspace" / "target"
        log.rename(target)
        log.symlink_to(target)
    else:
        shutil.rmtree(log.parent)
        log.parent.symlink_to(log.parent.parent / "workspace")

    result = door.call(add(2))

    assert result.value == "TOOL_FAILED: IO: nothing was run, because the audit log cannot be written"
    if what == "another file":
        assert log.read_text() == "notes\n"


# Rotation


def files(log: Path) -> list[str]:
    return sorted(file.name for file in log.parent.iterdir())


def test_rotation_holds_the_chain(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=AuditFile(log, max_bytes=1000))
    for number in range(8):
        door.call(add(number))

    names = files(log)
    assert names[0] == "audit.jsonl" and len(names) >= 4
    assert called(log) == [str(number) for number in range(8)]
    report = verify(log)
    assert (report.head.lines, report.problems, report.open_calls, report.removed) == (16, (), 0, 0)
    assert all(file.stat().st_size < 2000 for file in log.parent.iterdir())

    # the same with a head that was kept, and after a new start
    make_door(audit=AuditFile(log, max_bytes=1000)).call(add(8))
    assert verify(log, report.head).problems == ()
    assert verify(log).head.lines == 18


def test_older_files_are_kept_by_count(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=AuditFile(log, max_bytes=1000, keep=2))
    door.call(add(0))
    early = verify(log).head
    for number in range(1, 20):
        door.call(add(number))

    assert files(log) == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    report = verify(log)
    assert (report.head.lines, report.problems) == (40, ())
    assert report.removed == 40 - len(list(read_records(log)))
    assert verify(log, report.head).problems == ()
    assert verify(log, early).problems == (
        "the record of the given head is in a file that is no longer kept; use a later head",
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("an older file is missing", "does not follow"),
        ("an older file was changed", "was changed"),
        ("two files in another order", "does not follow"),
    ],
)
def test_tampering_with_older_files_shows(make_door: MakeDoor, log: Path, change: str, problem: str) -> None:
    door = make_door(audit=AuditFile(log, max_bytes=1000))
    for number in range(10):
        door.call(add(number))
    first, second = log.with_name("audit.jsonl.1"), log.with_name("audit.jsonl.2")
    if change == "an older file is missing":
        first.unlink()
    elif change == "an older file was changed":
        second.write_text(second.read_text().replace('"add"', '"adb"', 1))
    else:
        one, two = first.read_bytes(), second.read_bytes()
        first.write_bytes(two)
        second.write_bytes(one)

    assert any(problem in found for found in verify(log).problems), verify(log).problems


def test_a_writer_that_died_while_it_renamed_files_left_no_harm(make_door: MakeDoor, log: Path) -> None:
    for number in range(4):
        make_door(audit=AuditFile(log, max_bytes=1)).call(add(number))
    # it died before the log itself had its new name
    count = len(files(log)) - 1
    for number in reversed(range(1, count + 1)):
        log.with_name(f"audit.jsonl.{number}").rename(log.with_name(f"audit.jsonl.{number + 1}"))
    assert (verify(log).head.lines, verify(log).problems) == (8, ())

    make_door(audit=AuditFile(log, max_bytes=1)).call(add(4))
    assert (verify(log).head.lines, verify(log).problems) == (10, ())

    # it died before there was a new file
    log.unlink()
    count = verify(log.with_name("audit.jsonl.1")).head.lines
    make_door(audit=AuditFile(log, max_bytes=1)).call(add(5))
    assert (verify(log).head.lines, verify(log).problems) == (count + 2, ())


def test_with_fsync_the_log_is_the_same(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=AuditFile(log, fsync=True, max_bytes=1000))
    for number in range(4):
        door.call(add(number))
    door.close()
    assert (called(log), verify(log).problems) == (["0", "1", "2", "3"], ())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_seconds": 0}, "batch_seconds must be above 0"),
        ({"batch_seconds": 1000}, "batch_seconds must be above 0"),
        ({"max_bytes": 0}, "max_bytes must be at least 1"),
        ({"keep": 3}, "give max_bytes as well"),
        ({"keep": -1, "max_bytes": 10}, "keep must be at least 0"),
    ],
)
def test_refuses_settings_that_mean_nothing(options: dict[str, int], words: str) -> None:
    with pytest.raises(SetupError, match=words):
        AuditFile("audit.jsonl", **options)  # type: ignore[arg-type]


def test_refuses_what_is_not_a_log(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="audit takes a path"):
        ToolkitContext(tmp_path, SecurityPolicy(default="allow"), audit=17)  # type: ignore[arg-type]


def test_a_line_of_which_only_the_newline_is_missing_is_whole(make_door: MakeDoor, log: Path) -> None:
    make_door(audit=log).call(add(1))
    log.write_bytes(log.read_bytes()[:-1])

    make_door(audit=log).call(add(2))

    assert (verify(log).head.lines, verify(log).problems) == (4, ())
    assert not any("torn" in json.loads(line) for line in log.read_text().splitlines())


def test_the_logger_is_quiet_when_nothing_is_wrong(
    make_door: MakeDoor, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        door = make_door(audit=AuditFile(log, max_bytes=1000, keep=1))
        for number in range(10):
            door.call(add(number))
    assert not caplog.records


@pytest.mark.slow
def test_the_command_line_follows_a_log_through_its_files(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=AuditFile(log, max_bytes=1000, keep=1))
    for number in range(10):
        door.call(add(number))
    report = verify(log)

    def command(*words: str) -> str:
        done = run([sys.executable, "-m", "toolkit", "audit", *words], log.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = f"20 records, the chain is intact, in older files that are not there: {report.removed}"
    assert command("verify", log.name) == f"{log.name}: {said}\n"
    assert json.loads(command("verify", log.name, "--json"))["removed"] == report.removed
    assert command("head", log.name) == f"{report.head}\n"
    assert len(json.loads(command("show", log.name, "--json"))) == 20 - report.removed
