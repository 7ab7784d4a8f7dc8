"""The cost of importing, in fresh processes, compared with ``pydantic.BaseModel``."""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks.measure import table

BASE = "pydantic, BaseModel imported"
FIRST_CALL = """
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
toolkit = create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow")))
toolkit.invoke("done", {"message": "x"})
"""
PROGRAMS = {
    "nothing (the interpreter)": "pass",
    BASE: "from pydantic import BaseModel",
    "import toolkit": "import toolkit",
    "import toolkit and the first call": FIRST_CALL,
    "import openai": "import openai",
}


def report(rounds: int = 5) -> str:
    best = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            best[name] = min(best[name], _cpu_ms(program))
    bare = best.pop("nothing (the interpreter)")
    return table(
        "Importing, without the interpreter's own start",
        {name: value - bare for name, value in best.items()},
        BASE,
        "ms",
    )


def _cpu_ms(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
