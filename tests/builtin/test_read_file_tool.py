from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import as_somebody_else, make, make_socket, toolkit_for
from tests.examples import tries
from toolkit import CancelSignal, InvalidArguments, SandboxViolation, ToolFailed, ToolkitError
from toolkit.generated import ReadFileArgs, Toolkit

NOTE = "… [line clipped: {} characters]"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


# What comes back


@pytest.mark.parametrize(
    ("data", "content", "lines"),
    [
        (b"", "", 0),
        (b"\n", "\n", 1),
        (b"one", "one", 1),
        (b"one\ntwo\n", "one\ntwo\n", 2),
        (b"one\n\ntwo", "one\n\ntwo", 3),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n", 2),
        (b"old\rmac\r", "old\rmac\r", 1),
        (b"\xef\xbb\xbfone\n", "one\n", 1),
        (b"\xef\xbb\xbf", "", 0),
        ("naïve \U0001f600\n".encode(), "naïve \U0001f600\n", 1),
        (b"latin \xe9\n", "latin \ufffd\n", 1),
        (b"cut \xf0\x9f\x98", "cut \ufffd", 1),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", 1),
        ("\ufeffone\ntwo".encode("utf-16-le"), "one\ntwo", 2),
        ("\ufeffone\n\U0001f600".encode("utf-16-be"), "one\n\U0001f600", 2),
        ("\ufeffone\ntwo\n".encode("utf-32-le"), "one\ntwo\n", 2),
        (b"\xff\xfe\0\0", "", 0),
        (b"\xff\xfea\x00\x0a", "a\ufffd", 1),
        (b"\xff\xfe\x00\xd8b\x00", "\ufffdb", 1),
    ],
)
def test_reads_a_whole_file(tmp_path: Path, toolkit: Toolkit, data: bytes, content: str, lines: int) -> None:
    (tmp_path / "a.txt").write_bytes(data)

    output = toolkit.tools.read_file(path="a.txt")

    assert (output.content, output.line_count, output.total_lines) == (content, lines, lines)
    assert (output.path, output.size, output.start_line) == ("a.txt", len(data), 1)
    assert (output.truncated, output.next_start_line, output.clipped_lines) == (False, None, [])
    assert output.sha256 == hashlib.sha256(data).hexdigest()
    assert output.mtime_ns == (tmp_path / "a.txt").stat().st_mtime_ns
    assert output.bom == data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    assert output.media_type is None


@pytest.mark.parametrize(
    ("arguments", "content", "next_line"),
    [
        ({"start_line": 2, "max_lines": 1}, "two\n", 3),
        ({"start_line": 3}, "three", None),
        ({"max_lines": 3}, "one\ntwo\nthree", None),
        ({"max_lines": 2}, "one\ntwo\n", 3),
        ({"start_line": 4}, "", None),
        ({"start_line": 10**12}, "", None),
        ({"max_bytes": 8}, "one\ntwo\n", 3),
        ({"max_bytes": 7}, "one\n", 2),
        ({"max_bytes": 4}, "one\n", 2),
        ({"max_bytes": 13}, "one\ntwo\nthree", None),
    ],
)
def test_reads_a_slice_and_says_where_to_go_on(
    tmp_path: Path, toolkit: Toolkit, arguments: dict[str, int], content: str, next_line: int | None
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree")

    output = toolkit.tools.read_file(path="a.txt", **arguments)

    assert (output.content, output.next_start_line, output.total_lines) == (content, next_line, 3)
    assert output.truncated == (next_line is not None)
    assert output.line_count == len(content.splitlines())
    assert output.start_line == arguments.get("start_line", 1)


@pytest.mark.parametrize(
    ("letter", "count", "max_bytes", "shown", "has_note"),
    [
        ("x", 2000, 262144, 2000, False),
        ("x", 2001, 262144, 2000, True),
        ("é", 300_000, 262144, 2000, True),
        ("\U0001f600", 2001, 262144, 2000, True),
        ("x", 100, 50, 16, True),
        ("é", 100, 50, 8, True),
        ("x", 5000, 60, 25, True),
        ("é", 100, 7, 3, False),
        ("é", 100, 1, 0, False),
    ],
)
def test_clips_a_long_line_between_characters(
    tmp_path: Path, toolkit: Toolkit, letter: str, count: int, max_bytes: int, shown: int, has_note: bool
) -> None:
    (tmp_path / "a.txt").write_text(letter * count)

    output = toolkit.tools.read_file(path="a.txt", max_bytes=max_bytes)

    assert output.content == letter * shown + NOTE.format(count) * has_note
    assert len(output.content.encode()) <= max_bytes
    assert output.clipped_lines == ([] if shown == count else [1])
    assert output.truncated == (shown != count)
    assert (output.line_count, output.next_start_line, output.total_lines) == (1, None, 1)


def test_goes_on_behind_a_clipped_line(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_text("a\n" + "x" * 3000 + "\r\nb\n")

    output = toolkit.tools.read_file(path="a.txt")

    assert output.content == "a\n" + "x" * 2000 + NOTE.format(3001) + "\nb\n"
    assert (output.clipped_lines, output.line_count, output.truncated) == ([2], 3, True)
    assert output.next_start_line is None


def test_reads_characters_and_line_ends_that_straddle_chunks(tmp_path: Path, toolkit: Toolkit) -> None:
    rows = [f"{number:06}" + "é" * (number % 97) for number in range(20_000)]
    (tmp_path / "a.txt").write_text("\n".join(rows))

    assert (
        toolkit.tools.read_file(path="a.txt", start_line=9_990, max_lines=20).content.splitlines() == rows[9989:10009]
    )
    assert toolkit.tools.read_file(path="a.txt").total_lines == 20_000


text_files = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.sampled_from("\n\r\t"))


@tries(200)
@given(text=text_files, max_lines=st.integers(1, 4), max_bytes=st.integers(64, 90))
@pytest.mark.slow
def test_slices_joined_are_the_whole_file(text: str, max_lines: int, max_bytes: int) -> None:
    rows = [row[:12] for row in text.split("\n")]  # no line that max_bytes would clip
    text = "\n".join(rows).removeprefix("%PDF-")
    with tempfile.TemporaryDirectory() as folder, toolkit_for(Path(folder)) as toolkit:
        Path(folder, "a.txt").write_bytes(text.encode())
        joined, start = "", 1
        while True:
            output = toolkit.tools.read_file(path="a.txt", start_line=start, max_lines=max_lines, max_bytes=max_bytes)
            joined += output.content
            assert output.line_count <= max_lines
            assert len(output.content.encode()) <= max_bytes
            if output.next_start_line is None:
                break
            assert output.next_start_line == start + output.line_count > start
            start = output.next_start_line

    assert joined == text.removeprefix("\ufeff")


@tries(200)
@given(data=st.binary(max_size=300), max_bytes=st.integers(1, 300))
@pytest.mark.slow
def test_any_bytes_give_defined_text_or_a_failure(data: bytes, max_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder, toolkit_for(Path(folder)) as toolkit:
        Path(folder, "a").write_bytes(data)
        try:
            message = toolkit.invoke("read_file", {"path": "a", "max_bytes": max_bytes})
        except ToolFailed as error:
            assert error.reason == "BINARY_NOT_SUPPORTED"
            return

    assert message.content.sha256 == hashlib.sha256(data).hexdigest()
    assert len(message.content.content.encode()) <= max_bytes
    assert not set(message.text()) & set("\0\x1b\r\u202e")


# Media


@pytest.mark.parametrize(
    ("data", "block", "media_type"),
    [
        (PNG, "image", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image", "image/jpeg"),
        (b"GIF89a\x01\0\x01\0;", "image", "image/gif"),
        (b"RIFF\x04\0\0\0WEBPVP8 ", "image", "image/webp"),
        (b"%PDF-1.4\n%text only\n", "document", "application/pdf"),
        (b"RIFF\x04\0\0\0WAVEfmt ", "audio", "audio/wav"),
        (b"ID3\x04\0\0\0\0\0\0", "audio", "audio/mpeg"),
        (b"\xff\xfb\x90\x00\0\0", "audio", "audio/mpeg"),
        (b"OggS\0\x02", "audio", "audio/ogg"),
        (b"fLaC\0\0\0\x22", "audio", "audio/flac"),
    ],
)
def test_attaches_media_whatever_its_name(
    tmp_path: Path, toolkit: Toolkit, data: bytes, block: str, media_type: str
) -> None:
    (tmp_path / "notes.txt").write_bytes(data)

    message = toolkit.invoke("read_file", {"path": "notes.txt"})

    (attached,) = message.attachments
    assert (attached.type, attached.media_type, attached.filename) == (block, media_type, "notes.txt")
    assert base64.b64decode(attached.data or "") == data
    assert (message.content.content, message.content.line_count) == ("", 0)
    assert message.content.media_type == media_type
    assert message.content.sha256 == hashlib.sha256(data).hexdigest()
    assert message.text() == f"[attached: {media_type}, {len(data)} bytes]"


@pytest.mark.parametrize("text", ["GIF89a is a format", "ID3 tags", "RIFF....WAVE", "fLaC", "OggS", "ÿû", "PNG"])
def test_text_that_begins_like_media_is_text(tmp_path: Path, toolkit: Toolkit, text: str) -> None:
    (tmp_path / "a.png").write_text(text)

    message = toolkit.invoke("read_file", {"path": "a.png"})

    assert (message.content.content, message.attachments) == (text, ())


def test_attaches_no_more_than_ten_mebibytes(tmp_path: Path, toolkit: Toolkit) -> None:
    limit = 10 * 1024 * 1024
    (tmp_path / "fits.png").write_bytes(PNG + bytes(limit - len(PNG)))
    (tmp_path / "big.png").write_bytes(PNG + bytes(limit - len(PNG) + 1))

    assert toolkit.tools.read_file(path="fits.png").size == limit
    with pytest.raises(ToolFailed, match=r"'big.png' \(image/png\) has 10485761 bytes") as caught:
        toolkit.tools.read_file(path="big.png")
    assert caught.value.reason == "TOO_LARGE"


# What fails


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"MZ\x90\0\x03",
        b"text" * 2000 + b"\0",
        "utf-16 without a mark".encode("utf-16-le"),
        "\ufeffa\0b".encode("utf-16-le"),
        b"RIFF\x04\0\0\0AVI LIST",
        b"\xff\xff\xff\0",
    ],
)
def test_refuses_what_is_no_text(tmp_path: Path, toolkit: Toolkit, data: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(data)

    with pytest.raises(ToolFailed, match=r"'a.bin' is not a text file") as caught:
        toolkit.tools.read_file(path="a.bin")
    assert caught.value.reason == "BINARY_NOT_SUPPORTED"


def test_a_nul_behind_the_head_is_shown_escaped(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_bytes(b"x\n" * 4096 + b"\0\n")

    message = toolkit.invoke("read_file", {"path": "a.txt", "start_line": 4097})

    assert message.content.content == "\0\n"
    assert message.text() == "  4097\t\\x00\n[line 4097 of 4097]"


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("mian.py", "NOT_FOUND", "'mian.py' does not exist. Did you mean 'main.py'?"),
        ("scr/app.py", "NOT_FOUND", "'scr/app.py' does not exist. Did you mean 'src'?"),
        ("src/ap.py", "NOT_FOUND", "'src/ap.py' does not exist. Did you mean 'src/app.py'?"),
        ("nothing-like-it", "NOT_FOUND", "'nothing-like-it' does not exist"),
        ("dangling", "NOT_FOUND", "'dangling' does not exist"),
        ("src", "NOT_FILE", "'src' is a directory"),
        (".", "NOT_FILE", "'.' is a directory"),
        ("main.py/", "NOT_DIRECTORY", "'main.py' is not a directory, or is below something that is not a directory"),
        ("fifo", "NOT_FILE", "'fifo' is not a regular file"),
        ("socket", "NOT_FILE", "'socket' is not a regular file"),
        ("~", "NOT_FOUND", "'~' does not exist"),
        ("%2e%2e/x", "NOT_FOUND", "'%2e%2e/x' does not exist"),
    ],
)
def test_says_why_it_cannot_read(tmp_path: Path, toolkit: Toolkit, path: str, reason: str, words: str) -> None:
    make(tmp_path, "main.py", "src/app.py")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    make_socket(tmp_path / "socket")

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.read_file(path=path)

    assert (caught.value.reason, caught.value.message) == (reason, words)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": ""}, InvalidArguments),
        ({"path": "a\0b"}, InvalidArguments),
        ({"path": "x" * 300}, InvalidArguments),
        ({"path": "../secret"}, SandboxViolation),
        ({"path": "/etc/hostname"}, SandboxViolation),
        ({"path": "a.txt", "start_line": 0}, InvalidArguments),
        ({"path": "a.txt", "max_lines": 0}, InvalidArguments),
        ({"path": "a.txt", "max_lines": 5001}, InvalidArguments),
        ({"path": "a.txt", "max_bytes": 0}, InvalidArguments),
        ({"path": "a.txt", "max_bytes": 10485761}, InvalidArguments),
        ({"path": "a.txt", "start_line": "1"}, InvalidArguments),
        ({"path": "a.txt", "start_line": None}, InvalidArguments),
        ({"path": "a.txt", "lines": 1}, InvalidArguments),
        ({}, InvalidArguments),
    ],
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: ReadFileArgs, error: type[ToolkitError]
) -> None:
    (tmp_path / "a.txt").write_text("")

    with pytest.raises(error):
        toolkit.invoke("read_file", arguments)


def test_reads_through_a_link_that_stays_inside(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_text("here\n")
    (tmp_path / "inside").symlink_to("a.txt")
    (tmp_path / "outside").symlink_to(tmp_path.parent)

    assert toolkit.tools.read_file(path="inside").content == "here\n"
    assert toolkit.tools.read_file(path=f"{tmp_path}/a.txt").path == "a.txt"
    with pytest.raises(SandboxViolation):
        toolkit.tools.read_file(path="outside/x")


# The text a model reads


@pytest.mark.parametrize(
    ("data", "arguments", "text"),
    [
        ("", {}, "[empty file]"),
        ("\ufeff", {}, "[empty file]"),
        ("one\n", {"start_line": 9}, "[no line 9: the file has 1 line]"),
        ("one\ntwo", {"start_line": 3}, "[no line 3: the file has 2 lines]"),
        ("one\n", {}, "     1\tone"),
        ("one\n\ntwo", {}, "     1\tone\n     2\t\n     3\ttwo"),
        ("\n", {}, "     1\t"),
        ("1\n2\n3\n", {"max_lines": 2}, "     1\t1\n     2\t2\n[lines 1-2 of 3; continue with start_line=3]"),
        ("1\n2\n3\n", {"start_line": 2}, "     2\t2\n     3\t3\n[lines 2-3 of 3]"),
        ("1\n2\n3\n", {"start_line": 2, "max_lines": 1}, "     2\t2\n[line 2 of 3; continue with start_line=3]"),
        ("a\tb\r\n", {}, "     1\ta\tb\\r"),
        ("\x1b[31mred\x07", {}, "     1\t\\x1b[31mred\\x07"),
        ("user\u202etxt.exe", {}, "     1\tuser\\u202etxt.exe"),
        ("a\u2028b\x85c\x0cd", {}, "     1\ta\\u2028b\\x85c\\x0cd"),
        ("tag\U000e0041", {}, "     1\ttag\\U000e0041"),
        (
            "\u0645\u06cc\u200c\u062f naïve 日本 👩\u200d💻\xa0",
            {},
            "     1\t\u0645\u06cc\u200c\u062f naïve 日本 👩\u200d💻\xa0",
        ),
        ("back\\slash", {}, "     1\tback\\slash"),
        ("ab\n" + "x" * 80, {"start_line": 2, "max_bytes": 2}, "     2\txx\n[line 2 of 2; 1 long line clipped]"),
    ],
)
def test_shows_numbered_lines(
    tmp_path: Path, toolkit: Toolkit, data: str, arguments: dict[str, int], text: str
) -> None:
    (tmp_path / "a.txt").write_bytes(data.encode())

    given: ReadFileArgs = {"path": "a.txt", **arguments}  # type: ignore[typeddict-item]
    assert toolkit.invoke("read_file", given).text() == text


def test_shows_what_was_clipped(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_text(("x" * 2001 + "\n") * 3)

    rows = toolkit.invoke("read_file", {"path": "a.txt", "max_lines": 2}).text().split("\n")

    assert rows[0].endswith("x… [line clipped: 2001 characters]")
    assert rows[-1] == "[lines 1-2 of 3; 2 long lines clipped; continue with start_line=3]"


def test_a_page_of_text_costs_little_more_than_its_content(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_text("a line of source code\n" * 5120)

    message = toolkit.invoke("read_file", {"path": "a.txt"})

    assert message.text().endswith(
        "\n  2000\ta line of source code\n[lines 1-2000 of 5120; continue with start_line=2001]"
    )
    assert len(message.text().encode()) <= len(message.content.content.encode()) + 2000 * 7 + 64


# Large files


LARGE = 32 * 1024 * 1024


def test_counts_and_hashes_a_file_of_up_to_32_mebibytes_to_its_end(tmp_path: Path, toolkit: Toolkit) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.write(b"first\n" + b"x" * 10_000)
        file.truncate(LARGE)

    output = toolkit.tools.read_file(path="a.txt", max_lines=1)

    assert (output.content, output.total_lines, output.next_start_line) == ("first\n", 2, 2)
    assert output.sha256 == hashlib.sha256((tmp_path / "a.txt").read_bytes()).hexdigest()


def test_counts_and_hashes_a_larger_file_only_when_the_slice_reaches_its_end(tmp_path: Path, toolkit: Toolkit) -> None:
    row = b"x" * 1023 + b"\n"
    data = row * (LARGE // 1024 + 1)
    (tmp_path / "a.txt").write_bytes(data)
    total = len(data) // 1024

    early = toolkit.tools.read_file(path="a.txt", max_lines=2)
    late = toolkit.tools.read_file(path="a.txt", start_line=total - 1)
    past = toolkit.tools.read_file(path="a.txt", start_line=total + 5)

    assert (early.total_lines, early.sha256, early.next_start_line) == (None, None, 3)
    assert (late.content, late.total_lines, late.next_start_line) == ((row * 2).decode(), total, None)
    assert late.sha256 == past.sha256 == hashlib.sha256(data).hexdigest()
    assert (past.content, past.total_lines) == ("", total)
    early_text = toolkit.invoke("read_file", {"path": "a.txt", "max_lines": 2}).text()
    assert early_text.endswith("\n[lines 1-2; continue with start_line=3]")


# Prints by how many KiB a read makes the peak of memory grow, and what was read.
MEASURED = """
import re, sys
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit

def peak():  # not that of getrusage, which goes on from the peak of whoever started the program
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

toolkit = create_agent_toolkit(ToolkitContext(workspace=sys.argv[1], policy=SecurityPolicy(default="allow")))
toolkit.tools.read_file(path="small.txt", start_line=int(sys.argv[2]))
before = peak()
output = toolkit.tools.read_file(path="big.txt", start_line=int(sys.argv[2]))
print(peak() - before)
print(output.clipped_lines, output.next_start_line, output.total_lines, output.content[-60:].partition(" ")[2])
"""


def measured(root: Path, start_line: int) -> tuple[int, str]:
    (root / "small.txt").write_text("first\nsecond\n")
    command = [sys.executable, "-c", MEASURED, str(root), str(start_line)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    growth, facts = run.stdout.splitlines()
    return int(growth), facts


@pytest.mark.parametrize("start_line", [1, 2])
@pytest.mark.slow
def test_a_slice_of_a_sparse_file_of_64_gibibytes_stops(tmp_path: Path, start_line: int) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.write(b"first\n" + b"x" * 10_000)
        try:
            file.truncate(64 * 1024**3)
        except OSError as error:
            pytest.skip(f"no sparse file of that size here: {error.strerror}")

    growth, facts = measured(tmp_path, start_line)

    assert growth < 16 * 1024
    assert re.fullmatch(r"\[2\] 3 None \[line clipped: over 33\d{6} characters\]", facts)


@pytest.mark.slow
def test_a_line_of_50_megabytes_is_never_held(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"first\n" + "é".encode() * 25_000_000 + b"\nlast\n")

    growth, facts = measured(tmp_path, 2)

    assert growth < 16 * 1024
    assert facts.startswith("[2] 3 None [line clipped: over ")
    with toolkit_for(tmp_path) as toolkit:
        assert toolkit.tools.read_file(path="big.txt", start_line=3).content == "last\n"


@pytest.mark.slow
def test_only_a_line_too_long_to_be_shown_is_left_open(tmp_path: Path, toolkit: Toolkit) -> None:
    rows = b"x" * (LARGE - 300_000) + b"\n" + b"%01000d\n" % 7 * 1000 + b"y" * 1_000_000 + b"\nend"
    (tmp_path / "a.txt").write_bytes(rows)

    output = toolkit.tools.read_file(path="a.txt", max_bytes=10_000_000)

    assert output.content.splitlines()[1:1001] == ["0" * 999 + "7"] * 1000
    assert (output.clipped_lines, output.next_start_line, output.total_lines) == ([1, 1002], 1003, None)
    assert toolkit.tools.read_file(path="a.txt", start_line=1003).content == "end"


class Writing(CancelSignal):
    """Appends to a file whenever a call asks whether it was cancelled, which it does before every read."""

    path: Path

    @property
    def cancelled(self) -> bool:
        with self.path.open("ab") as file:
            file.write(b"0123456\n" * 65_536)
        return False


def test_a_file_that_grows_faster_than_it_is_read_has_an_end(tmp_path: Path, toolkit: Toolkit) -> None:
    signal = Writing()
    signal.path = tmp_path / "a.txt"

    output = toolkit.with_options(signal=signal).tools.read_file(path="a.txt", max_lines=1)

    assert output.size < signal.path.stat().st_size
    assert output.total_lines == output.size // 8
    assert output.sha256 == hashlib.sha256(signal.path.read_bytes()[: output.size]).hexdigest()


def test_a_file_without_permission_fails_without_a_host_path(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_text("secret")
    (tmp_path / "a.txt").chmod(0)

    with as_somebody_else(tmp_path), pytest.raises(ToolFailed) as caught:
        toolkit.tools.read_file(path="a.txt")

    assert str(caught.value) == "TOOL_FAILED: PERMISSION_DENIED: 'a.txt' cannot be accessed: permission denied"


# What a model reads


def test_what_a_model_reads(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots) -> None:
    make(tmp_path, "src/app.py", data=b'"""An app."""\n\nprint("hi")\n')
    make(tmp_path, "long.txt", data=b"".join(b"line %d\n" % number for number in range(1, 31)))
    make(tmp_path, "empty.txt")

    snapshots.check("read_file/reads", toolkit.invoke("read_file", {"path": "src/app.py"}).text(), budget=80)
    page = toolkit.invoke("read_file", {"path": "long.txt", "start_line": 5, "max_lines": 2})
    snapshots.check("read_file/reads_a_part", page.text(), budget=160)
    snapshots.check("read_file/reads_nothing", toolkit.invoke("read_file", {"path": "empty.txt"}).text(), budget=60)
    with pytest.raises(ToolFailed) as missing:
        toolkit.tools.read_file(path="src/ap.py")
    snapshots.check("read_file/names_what_is_near", str(missing.value), budget=120)


def test_what_a_model_reads_of_done(toolkit: Toolkit, snapshots: Snapshots) -> None:
    snapshots.check("done/says", toolkit.invoke("done", {"message": "All is well."}).text(), budget=20)


def test_several_threads_read_the_right_files(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(f"file {number}\n" * 50)
    wrong = []
    with toolkit_for(tmp_path) as toolkit:

        def work() -> None:
            for number in [*range(8)] * 20:
                if toolkit.tools.read_file(path=f"{number}.txt").content != f"file {number}\n" * 50:
                    wrong.append(number)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
            assert not thread.is_alive()
    assert wrong == []
