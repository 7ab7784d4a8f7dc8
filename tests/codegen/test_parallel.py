"""Many modules by several processes: the same texts, the same mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY, tool
from toolkit.codegen.package.models import RenderJob
from toolkit.codegen.package.plan import MIN_MODULES, render_all, workers_for
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.errors import GenerationError


@pytest.mark.slow
def test_the_same_texts_in_the_same_order_however_many_processes_share_the_work() -> None:
    jobs = [
        RenderJob(f"{n}.json", f"X{n}", f"Tool {n}.", flatten(tool("x")["inputSchema"], f"X{n}Input")[0], None)
        for n in range(40)
    ]
    assert list(render_all(jobs, workers=2)) == list(render_all(jobs, workers=1))


@pytest.mark.slow
def test_a_module_that_cannot_be_made_is_told_by_whichever_process() -> None:
    good = RenderJob("x.json", "X", "", Document("XInput", {"type": "object"}), None)
    bad = RenderJob("x.json", "X", "", Document("not a name", {"type": "object"}), None)
    with pytest.raises(GenerationError, match="did not return the expected classes"):
        list(render_all([good, bad, good], workers=2))


PROGRAM = """
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from toolkit.codegen.package.models import RenderJob
from toolkit.codegen.package.plan import render_all
from toolkit.codegen.schema.document import Document

if __name__ == "__main__":
    if THREAD:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    jobs = [RenderJob("x.json", f"X{n}", "", Document(f"X{n}Input", {"type": "object"}), None) for n in range(20)]
    print(len(list(render_all(jobs, workers=2))), flush=True)
    if CONTROL:
        ProcessPoolExecutor(1, mp_context=get_context("spawn")).submit(int).result()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("thread", "control"), [(False, False), (True, False), (True, True)])
def test_nothing_of_the_current_directory_is_imported_by_the_processes(
    tmp_path: Path, thread: bool, control: bool
) -> None:
    """A tool wrote it there; the same processes without our care do import it. With a second thread, none is forked."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/multiprocessing.py").write_text("open('../marker', 'w').close()\n")
    script = tmp_path / "script.py"
    script.write_text(f"THREAD = {thread}\nCONTROL = {control}\n{PROGRAM}")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path / "ws", env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.stdout == "20\n", done.stderr
    assert (tmp_path / "marker").exists() == control


def test_only_much_work_is_shared() -> None:
    assert workers_for(MIN_MODULES - 1) == 1
    assert 1 <= workers_for(MIN_MODULES) <= (os.cpu_count() or 1)
