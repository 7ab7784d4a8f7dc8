"""Programs that make many calls at once get all their results."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit import Toolkit


@pytest.mark.parametrize(
    "calls",
    [
        "*[atools.todowrite(todos=[]) for _ in range(40)]",
        "*[atools.read_file(path='a.txt') for _ in range(40)]",
        "*[asyncio.to_thread(tools.todowrite, todos=[]) for _ in range(40)]",
        "*[asyncio.to_thread(tools.todowrite, todos=[]) for _ in range(20)], *[atools.todoread() for _ in range(20)]",
    ],
)
def test_more_calls_than_may_run_at_once(toolkit: Toolkit, calls: str) -> None:
    result = toolkit.run_program(f"import asyncio\nlen(await asyncio.gather({calls}))", checker="off")
    assert (result.value, result.errors, len(result.calls)) == (40, (), 40)


def test_large_arguments_and_large_results_at_the_same_time(toolkit: Toolkit, workspace: Path) -> None:
    """More than the pipes hold, in both directions: neither side waits for the other."""
    (workspace / "large.txt").write_text(f"{'x' * 1000}\n" * 200)
    source = (
        "import asyncio\n"
        "text = 'y' * 200_000\n"
        "found = await asyncio.gather(\n"
        "    *[atools.read_file(path='large.txt') for _ in range(20)],\n"
        "    *[atools.write_file(path=f'new-{n}.txt', content=text) for n in range(20)],\n"
        ")\n"
        "len(found)"
    )
    result = toolkit.run_program(source, checker="off")
    assert (result.value, result.errors) == (40, ())
    assert len(list(workspace.glob("new-*.txt"))) == 20
