"""Many modules by several processes: the same texts, the same mistakes."""

from __future__ import annotations

import os

import pytest

from tests.projects import tool
from toolkit.codegen.package.parallel import MIN_MODULES, RenderJob, render_all, workers_for
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.errors import GenerationError


@pytest.mark.slow
def test_the_same_texts_in_the_same_order_however_many_processes_share_the_work() -> None:
    jobs = [
        RenderJob(f"{n}.json", "X", f"Tool {n}.", flatten(tool("x")["inputSchema"], "XInput", "")[0], None)
        for n in range(40)
    ]
    assert list(render_all(jobs, workers=2)) == list(render_all(jobs, workers=1))


@pytest.mark.slow
def test_a_module_that_cannot_be_made_is_told_by_whichever_process() -> None:
    good = RenderJob("x.json", "X", "", Document("XInput", {"type": "object"}), None)
    bad = RenderJob("x.json", "X", "", Document("not a name", {"type": "object"}), None)
    with pytest.raises(GenerationError, match="did not return the expected classes"):
        list(render_all([good, bad, good], workers=2))


def test_only_much_work_is_shared() -> None:
    assert workers_for(MIN_MODULES - 1) == 1
    assert 1 <= workers_for(MIN_MODULES) <= (os.cpu_count() or 1)
