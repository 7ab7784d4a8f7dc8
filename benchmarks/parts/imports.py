"""The cost of importing, in fresh processes, compared with ``pydantic.BaseModel`` and with the peers."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.peers import QUIET
from benchmarks.results import Table, compared
from benchmarks.timing import python_cpu_ms

INTERPRETER: Final = "nothing (the interpreter)"
BASE: Final = "pydantic, BaseModel imported"
FIRST_CALL: Final = "import toolkit and the first call of a built-in tool"
PROGRAMS: Final = {
    INTERPRETER: "pass",
    BASE: "from pydantic import BaseModel",
    "pydantic, one model built": "from pydantic import BaseModel\nclass Model(BaseModel):\n    a: int\n",
    "import toolkit": "import toolkit",
    FIRST_CALL: """
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
toolkit = create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow")))
toolkit.invoke("done", {"message": "x"})
""",
}
PEERS: Final = {
    "openai": "import openai",
    "anthropic": "from anthropic import beta_tool",
    "openai-agents": "from agents import function_tool",
    "pydantic-ai": "from pydantic_ai.toolsets import FunctionToolset",
    "langchain-core": "from langchain_core.tools import tool",
    "fastmcp": "from fastmcp import FastMCP",
}


def measure(*, full: bool) -> Iterator[Table]:
    os.environ.update(QUIET)
    there = {name: code for name, code in PEERS.items() if importlib.util.find_spec(code.split()[1].partition(".")[0])}
    best = dict.fromkeys([*PROGRAMS, *there], float("inf"))
    with TemporaryDirectory() as compiled:
        # Everybody's modules are compiled before the round that counts: an editable installation would not be, where the
        # environment forbids it, and users import what is.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for attempt in range(7 if full else 2):
            # The peers take a second or more each: fewer rounds tell as much.
            for name, program in {**PROGRAMS, **(there if attempt < 4 else {})}.items():
                taken = python_cpu_ms(program, environment)
                best[name] = min(best[name], taken if attempt else float("inf"))
    bare = best.pop(INTERPRETER)
    rows = compared(
        {name: value - bare for name, value in best.items()}, BASE, "ms", others=[*there, "pydantic, one model built"]
    )
    notes = tuple(f"{name} is not installed" for name in PEERS if name not in there)
    yield Table("import", "Importing, without the interpreter's own start", rows, notes=notes)
