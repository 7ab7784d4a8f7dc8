"""The example of ``make run``: a wrong program, its correction, and the same job as single calls."""

from __future__ import annotations

from pathlib import Path

from examples.programs import ANSWER, CORRECTED, PROGRAM, open_toolkit, with_a_program, with_single_calls
from toolkit import ToolCall, ToolResult


def test_a_program_needs_fewer_turns_and_bytes_than_single_calls(tmp_path: Path) -> None:
    shown: list[tuple[ToolCall, ToolResult]] = []
    with open_toolkit(tmp_path) as toolkit:
        program = with_a_program(toolkit, lambda call, result: shown.append((call, result)))
        single = with_single_calls(toolkit, lambda call, result: None)
    assert (program.answer, program.turns) == (single.answer, 3) == (ANSWER, 3)
    assert single.turns == 4
    assert program.sent * 4 < single.sent
    (wrong, refused), (right, value), _ = shown
    assert (wrong.arguments["source"], right.arguments["source"]) == (PROGRAM, CORRECTED)
    assert 'line 5: ReadFileOutput has no attribute "text"; it has path, content' in str(refused.value)
    assert value.value == 'value: "Los Angeles"'
