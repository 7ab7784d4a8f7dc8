"""Several processes, killed processes, full disks: no output is lost that was kept, and no call fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.workspace import as_somebody_else
from tests.projects import REPOSITORY, run
from tests.runtime.cache.reading import files, is_unknown, kept, used, warnings, whole
from toolkit import FileOutputCache

HEAD = """
import json, os, resource, signal, sys
from toolkit import FileOutputCache
cache = FileOutputCache(sys.argv[1], **json.loads(sys.argv[2]))
"""


def command(code: str, folder: Path, *arguments: str, **options: object) -> list[str]:
    return [sys.executable, "-c", HEAD + code, str(folder), json.dumps(options), *arguments]


def start(code: str, folder: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        command(code, folder, *arguments, **options),
        env=environment,
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


PUT_MANY = """
sys.stdin.readline()
for turn in range(300):
    data = f"{sys.argv[3]} {turn}\\n" * (40_000 if turn % 100 == 7 else turn)
    print(cache.put(sys.argv[3], data, tool="t"))
"""


def refs_of(children: list[subprocess.Popen[str]]) -> list[list[str]]:
    """What they print, once all of them have started at the same time."""
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    printed = [child.communicate()[0].split() for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return printed


@pytest.mark.slow
def test_processes_share_a_directory(folder: Path, cache: FileOutputCache) -> None:
    refs = refs_of([start(PUT_MANY, folder, f"process {number}") for number in range(4)])

    for number, mine in enumerate(refs):
        session = f"process {number}"
        assert len(mine) == 300
        for turn, ref in enumerate(mine):
            expected = f"{session} {turn}\n" * (40_000 if turn % 100 == 7 else turn)
            assert whole(cache, session, ref) == expected.encode()
            assert is_unknown(cache, "process x", ref)


@pytest.mark.slow
def test_processes_share_a_quota(folder: Path) -> None:
    quota = 8 * 1024 * 1024
    refs = refs_of([start(PUT_MANY, folder, f"process {number}", quota_bytes=quota) for number in range(4)])

    cache = FileOutputCache(str(folder), quota_bytes=quota)
    for number, mine in enumerate(refs):
        assert "None" not in mine
        assert not is_unknown(cache, f"process {number}", mine[-1])
    assert used(folder) <= quota + 4 * quota // 64


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_was_kept(folder: Path, cache: FileOutputCache) -> None:
    child = start(
        """
while True:
    for size in (1, 1000, 300_000):
        print(cache.put("session", b"x" * size, tool="t"), size, flush=True)
""",
        folder,
    )
    assert child.stdout is not None
    printed = [child.stdout.readline().split() for _ in range(100)]
    child.kill()
    rest, _ = child.communicate()
    printed += [line.split() for line in rest.splitlines(keepends=True) if line.endswith("\n")]

    assert all(whole(cache, "session", ref) == b"x" * int(size) for ref, size in printed)
    assert kept(cache.put("session", "x", tool="t"))


@pytest.mark.slow
def test_what_a_killed_process_left_unfinished_is_swept(folder: Path) -> None:
    child = start(
        """
writer = cache.writer("session", tool="t")
writer.write(b"x" * 1_000_000)
print(cache.put("session", b"x", tool="t"), flush=True)
signal.pause()
""",
        folder,
    )
    assert child.stdout is not None
    ref = child.stdout.readline().strip()
    (unfinished,) = folder.glob("*.part")

    FileOutputCache(str(folder)).put("session", "a sweep", tool="t")
    assert unfinished.exists()
    child.kill()
    child.communicate()
    cache = FileOutputCache(str(folder))
    cache.put("session", "a sweep", tool="t")
    assert not unfinished.exists()
    assert whole(cache, "session", ref) == b"x"


@pytest.mark.slow
def test_a_forked_child_keeps_outputs_of_its_own(folder: Path, cache: FileOutputCache) -> None:
    code = """
writer = cache.writer("session", tool="t")
writer.write(b"w" * 300_000)
print(cache.put("session", b"before", tool="t"), flush=True)
child = os.fork()
if child == 0:
    print(cache.put("session", b"child", tool="t"), flush=True)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print(cache.put("session", b"after", tool="t"))
print(writer.finish())
"""
    refs = run(command(code, folder), folder.parent).stdout.split()

    assert [whole(cache, "session", ref) for ref in refs] == [b"before", b"child", b"after", b"w" * 300_000]


@pytest.mark.slow
def test_a_full_disk_costs_the_ref(folder: Path, cache: FileOutputCache) -> None:
    code = """
import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
print(cache.put("session", b"before", tool="t"))
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
for _ in range(5):
    print(cache.put("session", b"x" * 150_000, tool="small"))
print(cache.put("session", b"x" * 1_000_000, tool="large"))
writer = cache.writer("session", tool="pieces")
for _ in range(10):
    writer.write(b"y\\n" * 50_000)
print(writer.finish(), writer.size, writer.lines)
print(cache.put("session", b"after", tool="t"))
"""
    printed = run(command(code, folder), folder.parent).stdout.splitlines()

    lost = "an output of '{}' could not be stored: File too large"
    first, *small = printed[:4]
    assert [whole(cache, "session", ref) for ref in (first, *small)] == [b"before"] + [b"x" * 150_000] * 3
    assert printed[4:-1] == [
        *[lost.format("small"), "None"] * 2,
        *[lost.format("large"), "None"],
        *[lost.format("pieces"), "None 1000000 500000"],
    ]
    assert whole(cache, "session", printed[-1]) == b"after"
    assert list(folder.glob("*.part")) == []


def mounted(folder: Path, size: int) -> None:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no file system can be mounted here")


def test_a_disk_without_space_costs_the_ref(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mounted(tmp_path / "disk", 1024 * 1024)
    try:
        cache = FileOutputCache(str(tmp_path / "disk" / "outputs"))
        refs = [cache.put("session", b"x" * 100_000, tool="t") for _ in range(15)]
        assert cache.put("session", b"x" * 300_000, tool="t") is None

        known = [ref for ref in refs if ref is not None]
        assert 8 <= len(known) <= 10
        assert all(whole(cache, "session", ref) == b"x" * 100_000 for ref in known)
        assert set(warnings(caplog)) == {"an output of 't' could not be stored: No space left on device"}
        assert list((tmp_path / "disk" / "outputs").glob("*.part")) == []
        cache.close()
    finally:
        subprocess.run(["umount", str(tmp_path / "disk")], check=True)


def test_a_directory_that_cannot_be_made_costs_the_ref(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = FileOutputCache(str(tmp_path / "closed" / "outputs"))
    (tmp_path / "closed").mkdir(mode=0o755)
    (tmp_path / "file").touch()
    below_a_file = FileOutputCache(str(tmp_path / "file" / "outputs"))

    with as_somebody_else(tmp_path):
        assert cache.put("session", "x", tool="t") is None
        assert cache.put("session", b"x" * 300_000, tool="t") is None
    assert below_a_file.put("session", "x", tool="t") is None
    assert is_unknown(below_a_file, "session", "A" * 32)

    denied, none = (
        "an output of 't' could not be stored: Permission denied",
        "an output of 't' could not be stored: Not a directory",
    )
    assert warnings(caplog) == [denied, denied, none]


LARGE = """
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit

size = int(sys.argv[3])
writer = cache.writer("session", tool="bash")
block = b"".join(b"%07d the quick brown fox jumps over the lazy dog\\n" % number for number in range(1_000))
while writer.size < size:
    writer.write(block)
writer.write(b"a needle at the very end\\n")
ref = writer.finish()
context = ToolkitContext(
    sys.argv[4], SecurityPolicy(default="allow"), session_id="session", overrides={"output_cache": lambda: cache}
)
with create_agent_toolkit(context) as toolkit:
    page = toolkit.tools.tool_output_cache(ref_id=ref, offset=writer.lines - 1)
    found = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="n[e]+dle at", regex=True, before=1)
    counted = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="0000500 ", max_matches=1)
facts = {
    "lines": writer.lines,
    "page": page.content,
    "total": page.total_lines,
    "found": [found.total, found.matches[0].line, found.matches[0].before],
    "counted": counted.total,
    # Of this program alone: what getrusage says begins with the peak of whoever started it.
    "peak": next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")),
}
print(json.dumps(facts))
"""


@pytest.mark.slow
def test_gigabytes_stream_in_and_out(folder: Path, tmp_path: Path, everything: bool) -> None:
    """The same memory whatever the size: 200 MB, or 2 GB when everything is tested."""
    size = 2_000_000_000 if everything else 200_000_000
    (tmp_path / "workspace").mkdir()

    done = run(command(LARGE, folder, str(size), str(tmp_path / "workspace")), tmp_path)
    facts: dict[str, Any] = json.loads(done.stdout)

    blocks = -(-size // 52_000)
    lines = blocks * 1000 + 1
    assert (facts["lines"], facts["total"]) == (lines, lines)
    last = "0000999 the quick brown fox jumps over the lazy dog"
    assert facts["page"] == f"{lines - 1:>6}\t{last}\n{lines:>6}\ta needle at the very end"
    assert facts["found"] == [1, lines, [last]]
    assert facts["counted"] == blocks
    assert facts["peak"] < 150 * 1024
    assert [file.stat().st_size > size for file in files(folder)] == [True]
