"""Outputs go in and come out whole, for the session they belong to and for nobody else."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from tests.projects import run
from tests.runtime.cache.reading import files, is_unknown, kept, used, warnings, whole
from toolkit import ContentBlock, FileOutputCache
from toolkit.runtime.stores.outputs import STRETCH

LARGE = STRETCH + 1


# In and out


@pytest.mark.parametrize(
    ("data", "stored", "lines"),
    [
        (b"", b"", 0),
        (b"one", b"one", 1),
        (b"one\ntwo\n", b"one\ntwo\n", 2),
        ("naïve \U0001f600\n", "naïve \U0001f600\n".encode(), 1),
        ("half \ud800 character", b"half \\ud800 character", 1),
        (bytes(range(256)), bytes(range(256)), 2),
        (b"x" * STRETCH, b"x" * STRETCH, 1),
        (b"x\n" * STRETCH, b"x\n" * STRETCH, STRETCH),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_keeps_an_output_as_it_is(
    cache: FileOutputCache, folder: Path, data: bytes | str, stored: bytes, lines: int
) -> None:
    ref = kept(cache.put("session", data, tool="bash", media_type="text/plain"))

    with cache.open("session", ref) as output:
        assert b"".join(output.chunks()) == stored
        assert (output.size, output.total_lines) == (len(stored), lines)
        assert (output.tool, output.media_type) == ("bash", "text/plain")
        assert output.created == pytest.approx(files(folder)[0].stat().st_mtime, abs=60)


pieces = st.lists(st.binary(max_size=50) | st.just(b"x" * 100_000) | st.just(b"\n" * 70_000), max_size=8)


@tries(60)
@given(pieces=pieces)
@pytest.mark.slow
def test_what_comes_in_pieces_is_kept_whole(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    cache = FileOutputCache(str(tmp_path_factory.mktemp("outputs")))
    data = b"".join(pieces)

    with cache.writer("session", tool="bash") as writer:
        for piece in pieces:
            writer.write(piece)
        ref = kept(writer.finish())

    assert whole(cache, "session", ref) == data
    assert (writer.size, writer.lines) == (len(data), len(data.removesuffix(b"\n").split(b"\n")) if data else 0)
    with cache.open("session", ref) as output:
        assert (output.total_lines, output.media_type) == (writer.lines, None)
    cache.close()


def test_keeps_content_parts_whole(cache: FileOutputCache) -> None:
    picture = base64.b64encode(os.urandom(400_000)).decode()
    blocks = (
        ContentBlock("text", text="two\nlines"),
        ContentBlock("image", "image/png", data=picture),
        ContentBlock("document", url="https://example.org/a.pdf"),
        ContentBlock("audio", "audio/wav", file_id="file-1"),
        ContentBlock("text", text="\U0001f600"),
    )

    ref = kept(cache.put_blocks("session", blocks, tool="read_file"))

    with cache.open("session", ref) as output:
        assert output.blocks() == blocks
        assert [line.text for line in output.as_text().lines()] == ["two", "lines", "\U0001f600"]
    with cache.open("session", kept(cache.put("session", "text", tool="x"))) as output:
        assert output.blocks() == ()
        assert output.as_text() is output


@pytest.mark.slow
def test_outputs_outlive_the_process(folder: Path) -> None:
    code = f"""
from toolkit import FileOutputCache
cache = FileOutputCache({str(folder)!r})
print(cache.put("session", "small", tool="a"))
print(cache.put("session", b"large" * 100_000, tool="b"))
"""
    small, large = run([sys.executable, "-c", code], folder.parent).stdout.split()

    cache = FileOutputCache(str(folder))
    assert whole(cache, "session", small) == b"small"
    assert whole(cache, "session", large) == b"large" * 100_000
    cache.close()
    assert whole(cache, "session", small) == b"small"


@pytest.mark.slow
def test_threads_share_a_cache(cache: FileOutputCache) -> None:
    refs: dict[str, bytes] = {}

    def work(number: int) -> None:
        for turn in range(100):
            data = b"%d %d\n" % (number, turn) * (50_000 if turn == 50 else turn)
            refs[kept(cache.put(f"session {number}", data, tool="t"))] = data

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(refs) == 800
    for ref, data in refs.items():
        owner = [number for number in range(8) if not is_unknown(cache, f"session {number}", ref)]
        assert [whole(cache, f"session {number}", ref) for number in owner] == [data]


def test_an_open_output_can_be_read_to_its_end_whatever_happens_to_its_file(
    cache: FileOutputCache, folder: Path
) -> None:
    ref = kept(cache.put("session", b"x\n" * LARGE, tool="t"))
    with cache.open("session", ref) as output:
        cache.close()
        shutil.rmtree(folder)
        assert sum(map(len, output.chunks())) == 2 * LARGE
        assert next(output.lines(LARGE)).text == "x"
    with pytest.raises(ValueError, match="this output was closed"):
        next(output.chunks())


# Writers


@pytest.mark.parametrize("size", [10, LARGE])
def test_a_discarded_output_leaves_nothing(cache: FileOutputCache, folder: Path, size: int) -> None:
    writer = cache.writer("session", tool="t")
    writer.write(b"x" * size)
    writer.discard()
    writer.write(b"more")

    assert writer.finish() is None
    assert writer.size == size + 4
    with cache.writer("session", tool="t") as left_open:
        left_open.write(b"x" * size)
    assert not folder.exists() or files(folder) == []


@pytest.mark.parametrize("size", [10, LARGE])
def test_an_output_is_finished_once(cache: FileOutputCache, size: int) -> None:
    writer = cache.writer("session", tool="t")
    writer.write(b"x" * size)
    ref = kept(writer.finish())
    writer.write(b"more")
    writer.discard()

    assert writer.finish() is None
    assert whole(cache, "session", ref) == b"x" * size


def test_an_output_that_nobody_finishes_is_swept_once_it_is_forgotten(cache: FileOutputCache, folder: Path) -> None:
    writer = cache.writer("session", tool="t")
    writer.write(b"x" * LARGE)
    (unfinished,) = files(folder)

    FileOutputCache(str(folder)).put("session", "a sweep", tool="t")
    assert unfinished.exists()
    del writer
    FileOutputCache(str(folder)).put("session", "a sweep", tool="t")
    assert not unfinished.exists()


# Refs


def test_refs_tell_nothing_and_never_come_twice(cache: FileOutputCache) -> None:
    refs = [kept(cache.put("session", "same", tool="t")) for _ in range(1000)]

    assert len({ref[:21] for ref in refs}) == 1000
    assert {len(ref) for ref in refs} == {32}


HOSTILE = {
    "nothing": "",
    "short": "1",
    "a number": "0" * 32,
    "a wildcard": "*" * 32,
    "a pattern": "[A-Za-z0-9_-]{32}",
    "the directory": ".",
    "its parent": "..",
    "a path up": "../../etc/passwd",
    "a path": "/etc/passwd",
    "a file of the cache": "key",
    "a path of the right length": "../../../../../../../etc/passwd1",
    "NUL": "\0" * 32,
    "digits of another script": "٣" * 32,
    "look-alikes": "а" * 32,
    "half a character": "\ud800" * 32,
    "very long": "A" * 1_000_000,
    "well formed": "b3V0cHV0cyBhcmUga2VwdCBhIHdoaWxl",
    "all ones": "_" * 32,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_ref_is_unknown(cache: FileOutputCache, what: str) -> None:
    assert is_unknown(cache, "session", HOSTILE[what])
    cache.put("session", "x", tool="t")
    assert is_unknown(cache, "session", HOSTILE[what])


def test_a_ref_is_honoured_to_the_letter(cache: FileOutputCache) -> None:
    ref = kept(cache.put("session", "x", tool="t"))
    wrong = [ref[:at] + ("A" if letter != "A" else "B") + ref[at + 1 :] for at, letter in enumerate(ref)]
    wrong += [ref + "\n", " " + ref, ref + "=", ref + "A", ref[:-1], ref.swapcase(), f"{ref}.part", f"./{ref}"]

    assert all(is_unknown(cache, "session", text) for text in wrong)
    assert whole(cache, "session", ref) == b"x"


@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ("alice", ["bob", "", "alic", "alice ", "Alice", "alice\0", "t"]),
        ("", ["x", " ", "\0"]),
        ("../../x", ["x", "../x"]),
        ("s" * 100_000, ["s" * 99_999]),
        ("half \ud800", ["half \ud801", "half ?"]),
    ],
    ids=lambda value: repr(value)[:20],
)
@pytest.mark.parametrize("size", [5, LARGE])
def test_a_ref_of_another_session_is_unknown(cache: FileOutputCache, mine: str, others: list[str], size: int) -> None:
    ref = kept(cache.put(mine, "x" * size, tool="t"))

    assert whole(cache, mine, ref) == b"x" * size
    assert all(is_unknown(cache, other, ref) for other in others)


def test_a_ref_of_another_cache_is_unknown(cache: FileOutputCache, folder: Path, tmp_path: Path) -> None:
    ref = kept(cache.put("session", "x", tool="t"))
    other = FileOutputCache(str(tmp_path / "other"))
    other.put("session", "x", tool="t")
    for file in files(folder):
        shutil.copy(file, tmp_path / "other" / file.name)

    assert is_unknown(other, "session", ref)


def test_an_output_that_holds_a_record_opens_nothing(cache: FileOutputCache, folder: Path) -> None:
    """Tools can be made to answer any bytes; a place in the middle of such an answer is no record."""
    ref = kept(cache.put("session", "x", tool="t"))
    (file,) = files(folder)
    record = file.read_bytes()
    place = len(record)
    second = kept(cache.put("session", record * 3, tool="t"))

    for text in (ref, second):
        token, at = base64.urlsafe_b64decode(text)[:21], 0
        while (at := file.read_bytes().find(record, at + 1)) >= 0:
            forged = base64.urlsafe_b64encode(token + at.to_bytes(3, "little")).decode()
            assert at > place
            assert is_unknown(cache, "session", forged)


# What is on the disk


def test_nobody_else_can_read_it_and_no_name_tells_anything(cache: FileOutputCache, folder: Path) -> None:
    before = os.umask(0)
    try:
        for size in (10, LARGE):
            cache.put("the session", b"x" * size, tool="the_tool")
        writer = cache.writer("the session", tool="the_tool")
        writer.write(b"x" * LARGE)
    finally:
        os.umask(before)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 4
    assert not [file for file in folder.iterdir() if "the" in file.name]
    assert not [file for file in folder.iterdir() if b"the session" in file.read_bytes()]
    writer.discard()


def test_a_directory_that_others_could_enter_is_closed(folder: Path, cache: FileOutputCache) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)

    assert cache.put("session", "x", tool="t")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_directory_of_somebody_else_is_not_used(
    folder: Path, cache: FileOutputCache, caplog: pytest.LogCaptureFixture
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    folder.mkdir()
    os.chown(folder, 65534, 65534)

    assert cache.put("session", "x", tool="t") is None
    assert warnings(caplog) == [
        "an output of 't' could not be stored: the directory of the output cache belongs to another user"
    ]
    assert list(folder.iterdir()) == []


def test_a_link_in_place_of_a_file_is_not_followed(cache: FileOutputCache, folder: Path, tmp_path: Path) -> None:
    ref = kept(cache.put("session", "x", tool="t"))
    (file,) = files(folder)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Exception, match="the output cache cannot be read: too many levels of symbolic links") as caught:
        cache.open("session", ref)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("size", [50, LARGE])
def test_what_is_not_all_there_is_unknown(cache: FileOutputCache, folder: Path, size: int) -> None:
    ref = kept(cache.put("session", b"x" * size, tool="t"))
    (file,) = files(folder)
    whole_size = file.stat().st_size
    for left in (whole_size - 1, whole_size // 2, 40, 0):
        os.truncate(file, left)
        assert is_unknown(cache, "session", ref)
    file.unlink()
    assert is_unknown(cache, "session", ref)


def test_a_damaged_key_costs_the_refs_made_with_it(folder: Path) -> None:
    before = FileOutputCache(str(folder))
    ref = kept(before.put("session", "x", tool="t"))
    (folder / "key").write_bytes(b"short")

    after = FileOutputCache(str(folder))
    assert is_unknown(after, "session", ref)
    assert whole(after, "session", kept(after.put("session", "y", tool="t"))) == b"y"


@pytest.mark.parametrize("size", [5, LARGE])
def test_goes_on_when_somebody_removes_the_directory(cache: FileOutputCache, folder: Path, size: int) -> None:
    gone = kept(cache.put("session", "x", tool="t"))
    shutil.rmtree(folder)

    ref = kept(cache.put("session", b"y" * size, tool="t"))
    assert whole(cache, "session", ref) == b"y" * size
    assert is_unknown(cache, "session", gone)


def test_names_no_tool_could_have_are_kept_as_far_as_they_fit(cache: FileOutputCache) -> None:
    ref = kept(cache.put("session", "x", tool="é" * 5000, media_type="\ud800"))

    with cache.open("session", ref) as output:
        assert (output.tool, output.media_type) == ("é" * 500, "\\ud800")


# Quota and age

QUOTA = 1024 * 1024


@pytest.mark.slow
def test_the_oldest_make_room_whatever_session_they_are_of(folder: Path) -> None:
    cache = FileOutputCache(str(folder), quota_bytes=QUOTA)
    refs = []
    for number in range(400):
        session = f"session {number % 7}"
        refs.append((session, kept(cache.put(session, b"%05d" % number * 2000, tool="t"))))
        assert used(folder) <= QUOTA

    known = [not is_unknown(cache, session, ref) for session, ref in refs]
    assert known == sorted(known)  # no newer one is gone while an older one is there
    assert known.count(True) >= 90
    assert used(folder) > QUOTA * 0.9


def test_large_outputs_make_room_for_each_other(folder: Path) -> None:
    cache = FileOutputCache(str(folder), quota_bytes=2 * QUOTA)
    refs = [kept(cache.put("session", b"x" * (QUOTA // 2), tool="t")) for _ in range(10)]

    assert [not is_unknown(cache, "session", ref) for ref in refs] == [False] * 7 + [True] * 3
    assert used(folder) <= 2 * QUOTA


def test_what_is_larger_than_the_quota_is_not_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = FileOutputCache(str(folder), quota_bytes=QUOTA)
    assert cache.put("session", b"x" * (QUOTA + 1), tool="small") is None
    with cache.writer("session", tool="bash") as writer:
        for _ in range(64):
            writer.write(b"x" * (QUOTA // 32 - 1) + b"\n")
        assert writer.finish() is None

    assert (writer.size, writer.lines) == (2 * QUOTA, 64)
    assert warnings(caplog) == [
        "an output of 'small' could not be stored: the quota of the output cache is used up",
        "an output of 'bash' could not be stored: the quota of the output cache is used up",
    ]
    assert used(folder) == 0
    assert cache.put("session", "x", tool="t")


def test_an_output_that_is_being_written_never_makes_room(folder: Path) -> None:
    cache = FileOutputCache(str(folder), quota_bytes=QUOTA)
    writer = cache.writer("session", tool="t")
    writer.write(b"x" * (QUOTA // 2))
    for _ in range(200):
        assert cache.put("session", b"y" * 10_000, tool="t")
    writer.write(b"x")

    assert whole(cache, "session", kept(writer.finish())) == b"x" * (QUOTA // 2 + 1)


@pytest.mark.parametrize("size", [5, LARGE])
def test_an_output_that_is_too_old_is_unknown_and_removed(folder: Path, size: int) -> None:
    patient = FileOutputCache(str(folder))
    hasty = FileOutputCache(str(folder), max_age_seconds=0)
    ref = kept(patient.put("session", b"x" * size, tool="t"))

    assert is_unknown(hasty, "session", ref)
    assert whole(patient, "session", ref) == b"x" * size
    patient.close()
    hasty.put("session", "a sweep", tool="t")
    assert is_unknown(patient, "session", ref)
    assert len(files(folder)) == 1


def test_processes_that_come_and_go_share_a_file(folder: Path) -> None:
    refs = []
    for number in range(20):
        cache = FileOutputCache(str(folder))
        refs.append((kept(cache.put("session", f"{number}", tool="t")), f"{number}".encode()))
        cache.close()

    assert len(files(folder)) == 1
    assert all(whole(cache, "session", ref) == data for ref, data in refs)


def test_a_file_is_not_added_to_for_ever(folder: Path) -> None:
    """Else an output in it would stay on the disk for as long as somebody adds to it."""
    cache = FileOutputCache(str(folder))
    cache.put("session", "x", tool="t")
    (file,) = files(folder)
    cache.close()
    two_days = 2 * 24 * 60 * 60 * 100
    file.rename(folder / f"{int(file.name, 16) - two_days:010x}")

    cache.put("session", "y", tool="t")
    assert len(files(folder)) == 2


def test_files_of_others_in_the_directory_are_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_bytes(b"x" * 2 * QUOTA)
    cache = FileOutputCache(str(folder), quota_bytes=QUOTA, max_age_seconds=0)

    assert cache.put("session", "x", tool="t")
    assert (folder / "notes.txt").exists()
