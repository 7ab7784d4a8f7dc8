"""Lines of large files that were read before: found without reading from the start, and never stale."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builtin.workspace import Meanwhile
from toolkit import CancelSignal, SecurityPolicy, ToolFailed, ToolkitContext, create_agent_toolkit
from toolkit.builtin.files.whole_file import LinePositionStore
from toolkit.generated import Toolkit

MINUTE = 61 * 1_000_000_000
ROW = b"%07d" + b"." * 1016 + b"\n"
ROWS = 33 * 1024
"""More than 32 MiB of them: such a file is not read further than necessary."""


class Reads(CancelSignal):
    """Counts how often a call asks whether it was cancelled, which it does before every read."""

    count = 0

    @property
    def cancelled(self) -> bool:
        self.count += 1
        return False


def toolkit_at(folder: Path, clock: Callable[[], int]) -> Toolkit:
    overrides = {"line_positions": lambda: LinePositionStore(clock)}
    return create_agent_toolkit(ToolkitContext(folder, SecurityPolicy(default="allow"), overrides=overrides))


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Toolkit]:
    """A toolkit a minute from now, for which files that exist have not changed for long."""
    with toolkit_at(tmp_path, lambda: time.time_ns() + MINUTE) as toolkit:
        yield toolkit


def write_rows(file: Path, count: int = ROWS) -> bytes:
    data = b"".join(ROW % number for number in range(1, count + 1))
    file.write_bytes(data)
    return data


def reads_of(toolkit: Toolkit, line: int) -> int:
    """How many reads it takes to return this line of ``a.txt``, which says its own number."""
    signal = Reads()
    output = toolkit.with_options(signal=signal).tools.read_file(path="a.txt", start_line=line, max_lines=1)
    assert output.content == (ROW % line).decode()
    return signal.count


def test_late_lines_are_found_without_reading_from_the_start_again(tmp_path: Path, later: Toolkit) -> None:
    write_rows(tmp_path / "a.txt")

    first, same, earlier = (reads_of(later, line) for line in (30_000, 30_000, 12_345))

    assert first > 100
    assert same < 10
    assert earlier < 10


def test_a_file_that_was_changed_a_moment_ago_is_read_from_its_start(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.txt")

    with toolkit_at(tmp_path, time.time_ns) as toolkit:
        assert reads_of(toolkit, 30_000) == reads_of(toolkit, 30_000) > 100


@pytest.mark.slow
def test_slices_in_any_order_are_those_of_the_text(tmp_path: Path, later: Toolkit) -> None:
    chance = random.Random(1)
    lines = [f"{number} " + "é" * chance.choice((0, 1, 50, 1500)) + "\n" for number in range(1, 60_000)]
    lines.insert(20_000, "x" * 3_000_000 + "\n")
    text = "".join(lines)
    (tmp_path / "a.txt").write_text(text)

    for _ in range(60):
        start, many = chance.choice((chance.randrange(1, 60_002), 20_001)), chance.choice((1, 7, 300))
        output = later.tools.read_file(path="a.txt", start_line=start, max_lines=many, max_bytes=10_000_000)
        wanted = lines[start - 1 : start - 1 + many]
        is_end = start - 1 + many >= len(lines)
        if not output.clipped_lines:
            assert output.content == "".join(wanted)
        assert output.line_count == len(wanted)
        assert output.next_start_line == (None if is_end else start + many)
        assert output.total_lines == (len(lines) if is_end else None)
        assert output.sha256 == (hashlib.sha256(text.encode()).hexdigest() if is_end else None)


def test_a_file_that_changed_under_its_old_size_and_time_is_read_anew(tmp_path: Path, later: Toolkit) -> None:
    file = tmp_path / "a.txt"
    data = write_rows(file)
    before = file.stat()
    later.tools.read_file(path="a.txt", start_line=30_000, max_lines=1)

    with file.open("r+b") as opened:
        opened.write(b"\n" * 500)  # the same size, with 500 lines more
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    output = later.tools.read_file(path="a.txt", start_line=30_500, max_lines=1)

    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert output.content == (ROW % 30_000).decode()
    assert file.read_bytes()[500:] == data[500:]


def test_a_file_that_replaces_another_is_read_anew(tmp_path: Path, later: Toolkit) -> None:
    write_rows(tmp_path / "a.txt")
    later.tools.read_file(path="a.txt", start_line=30_000, max_lines=1)

    (tmp_path / "b.txt").write_bytes(b"\n" * 30_000 + b"other\n" + bytes(40_000_000))
    (tmp_path / "b.txt").replace(tmp_path / "a.txt")

    assert later.tools.read_file(path="a.txt", start_line=30_001, max_lines=1).content == "other\n"


def test_the_end_is_hashed_with_what_was_appended(tmp_path: Path, later: Toolkit) -> None:
    file = tmp_path / "a.txt"
    write_rows(file)
    later.tools.read_file(path="a.txt", start_line=33_000, max_lines=1)

    with file.open("ab") as opened:
        opened.write(b"last")
    output = later.tools.read_file(path="a.txt", start_line=ROWS)

    assert output.content == (ROW % ROWS).decode() + "last"
    assert output.total_lines == ROWS + 1
    assert output.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_with_a_byte_order_mark_is_converted_each_time(tmp_path: Path, later: Toolkit) -> None:
    text = "".join(f"{number:07}{'é' * 500}\n" for number in range(1, ROWS + 1))
    (tmp_path / "a.txt").write_bytes(text.encode("utf-16"))

    for line in (30_000, 30_000, 20_000):
        output = later.tools.read_file(path="a.txt", start_line=line, max_lines=1)
        assert output.content == f"{line:07}{'é' * 500}\n"
        assert output.bom


def test_a_large_file_that_is_emptied_before_it_is_read_is_empty(later: Toolkit, tmp_path: Path) -> None:
    file, contents = tmp_path / "a.txt", []
    for step in range(1, 6):
        file.write_bytes(b"")
        os.truncate(file, 33 * 1024**2)
        signal = Meanwhile(lambda: os.truncate(file, 0), step)
        with suppress(ToolFailed):  # nothing but zeros is not a text file
            contents.append(later.with_options(signal=signal).tools.read_file(path="a.txt").content)
    assert contents and set(contents) == {""}
