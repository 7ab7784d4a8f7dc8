"""Gigabytes through the tools, one after the other, in a process whose memory stays small."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.builtin.commands import needs_a_sandbox
from tests.projects import run

LIMIT_KIB = 150 * 1024

# VmHWM is the peak of this very program; getrusage would count what the process was before exec as well.
PROGRAM = """
import json, re, sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
workspace, state, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=state)
with create_agent_toolkit(context) as toolkit:
    told = toolkit.invoke("exec_command", {
        "command": ["bash", "-c", f"seq 1 999999999 | head -c {size}"], "timeout_ms": 600000, "max_output_bytes": 1000})
    ref = told.output_ref
    made = toolkit.tools.exec_command(
        command=["bash", "-c", f"seq 1 999999999 | head -c {size} > big.txt"], timeout_ms=600000)
    page = toolkit.tools.tool_output_cache(ref_id=ref, offset=1)
    last = toolkit.tools.tool_output_cache(ref_id=ref, offset=page.total_lines - 2)
    found = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="^1234567$", regex=True)
    middle = toolkit.tools.read_file(path="big.txt", start_line=1_000_000, max_lines=3)
    searched = toolkit.tools.grep(pattern="^7654321$", path="big.txt", limit=1)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps({
    "kept": ref is not None, "cut": told.content.stdout_truncated, "text": len(told.text()), "exit": made.exit_code,
    "lines": page.total_lines, "last": last.content, "found": [match.line for match in found.matches],
    "middle": middle.content, "searched": [match.line for match in searched.matches], "peak": peak}))
"""


@pytest.mark.slow
def test_gigabytes_of_output_and_of_a_file(tmp_path: Path, everything: bool) -> None:
    """2 GB when everything is tested, else 128 MB; the same limit for both."""
    needs_a_sandbox()
    size = 2_000_000_000 if everything else 128_000_000
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    done = run([sys.executable, "-c", PROGRAM, str(workspace), str(tmp_path / "state"), str(size)], tmp_path)

    told = json.loads(done.stdout)
    assert (told["kept"], told["cut"], told["exit"]) == (True, True, 0)
    assert told["text"] < 4000
    assert (workspace / "big.txt").stat().st_size == size
    assert told["found"] == [1_234_567]
    assert told["searched"] == [7_654_321]
    assert told["middle"] == "1000000\n1000001\n1000002\n"
    assert f"{told['lines'] - 1}" in told["last"]
    assert told["peak"] < LIMIT_KIB
