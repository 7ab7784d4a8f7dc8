"""Output that is too long to be returned: kept whole, in the order in which it came, without being held in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builtin.commands import WATCHDOG_MS, needs_a_sandbox, offline
from toolkit import Progress


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs_a_sandbox()


def test_what_was_cut_can_be_read_and_searched(tmp_path: Path) -> None:
    with offline(tmp_path) as toolkit:
        message = toolkit.invoke("exec_command", {"command": ["seq", "20000"], "max_output_bytes": 100})
        ref = message.output_ref
        assert ref is not None
        page = toolkit.tools.tool_output_cache(ref_id=ref, offset=12_345, limit=2)
        found = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="^1999[0-9]$", regex=True)

    assert page.content.split() == ["12345", "12345", "12346", "12346"]
    assert (page.total_lines, found.total) == (20_000, 10)
    head, _, rest = message.text().partition("\n[... 108794 bytes left out ...]\n")
    tail, note = rest.rsplit("\n", 1)
    assert (head.startswith("1\n2\n"), tail.endswith("\n19999\n20000")) == (True, True)
    assert note.startswith("[the full output has 108894 bytes in 20000 lines; ") and ref in note


def test_both_streams_are_kept_from_the_first_byte_in_the_order_they_came(tmp_path: Path) -> None:
    """Each line waits until the one before was heard; the cut comes in the middle."""
    lines = [f"{'out' if number % 3 else 'err'} {number} \x1b[1mé" for number in range(12)]
    (tmp_path / "lines.py").write_text(
        "import os\n"
        "os.mkfifo('gate')\n"
        f"for line in {lines!r}:\n"
        "    os.write(1 if line.startswith('out') else 2, line.encode() + b'\\r\\n')\n"
        "    open('gate').read()\n"
    )

    def answer(event: Progress) -> None:
        if event.data.get("text"):
            (tmp_path / "gate").write_text("go on")

    with offline(tmp_path, on_progress=answer) as toolkit:
        message = toolkit.invoke("exec_command", {"command": ["python3", "lines.py"], "max_output_bytes": 60})
        assert message.output_ref is not None
        kept = toolkit.tools.tool_output_cache(ref_id=message.output_ref).content

    assert message.content.stdout_truncated and message.content.stderr_truncated
    assert [row.partition("\t")[2] for row in kept.split("\n")] == [line.replace("\x1b", "\\x1b") for line in lines]


def test_nothing_is_kept_of_short_output_nor_of_a_call_that_failed(tmp_path: Path) -> None:
    state, workspace = tmp_path / "state", tmp_path / "ws"
    workspace.mkdir()

    def interrupt(event: Progress) -> None:
        if event.data.get("stream") == "stderr":
            raise KeyboardInterrupt

    with offline(workspace, state_dir=state, on_progress=interrupt) as toolkit:
        message = toolkit.invoke("bash", {"command": "seq 30", "max_output_bytes": 100})
        assert (message.output_ref, message.content.stdout_truncated) == (None, False)
        assert not state.exists()
        with pytest.raises(KeyboardInterrupt):
            toolkit.tools.bash(command="seq 1000000; echo now >&2; sleep 1000", timeout_ms=WATCHDOG_MS)
    assert sum(file.stat().st_size for file in state.rglob("*") if file.is_file()) < 10_000


def test_no_place_to_keep_it_costs_the_ref_and_not_the_result(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "ws").mkdir()
    with offline(tmp_path / "ws", state_dir=tmp_path / "file" / "state") as toolkit:
        message = toolkit.invoke("bash", {"command": "seq 20000", "max_output_bytes": 8})

    assert message.content.stdout == "1\n2\n[... 108886 bytes left out ...]\n…000\n"
    assert message.output_ref is None
    assert message.text().endswith("it could not be stored; the call has run, so repeat it only if that is harmless]")


# Prints the size of the text, the last line of what was kept, and the peak of memory in KiB; not that of getrusage, which
# goes on from the peak of whoever started the program.
MEASURED = """
import re, sys
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit

workspace, state, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=state)
with create_agent_toolkit(context) as toolkit:
    command = f"yes 0123456789abcde | head -c {size}"
    message = toolkit.invoke("bash", {"command": command, "timeout_ms": 600_000})
    page = toolkit.tools.tool_output_cache(ref_id=message.output_ref, offset=size // 16, limit=2000)
print(len(message.content.stdout), page.total_lines, page.content)
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def test_gigabytes_pass_without_being_held(tmp_path: Path, everything: bool) -> None:
    size = 2 << 30 if everything else 192 << 20
    (tmp_path / "ws").mkdir()
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "ws"), str(tmp_path / "state"), str(size)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    run = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert run.returncode == 0, run.stderr
    facts, peak = run.stdout.splitlines()
    assert int(peak) < 150 * 1024
    note = len(f"[... {size - (1 << 20)} bytes left out ...]\n")
    assert facts == f"{(1 << 20) + note} {size // 16} {size // 16:>6}\t0123456789abcde"
