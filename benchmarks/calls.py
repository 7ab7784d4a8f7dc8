"""One call of the tool ``add``, from name and arguments to the text for the model, compared with bare pydantic-core."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic import beta_tool
from pydantic import BaseModel

from benchmarks.measure import least_cpu, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "downstream"))

from acme.generated import AddInput, SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from toolkit import ToolCall

GIVEN = AddInput(a=2, b=3)
TEXT = '{"a": 2, "b": 3}'
LIMIT = "pydantic-core: validate_json, call, validate, to_json"


class PlainInput(BaseModel):
    a: int
    b: int


class PlainOutput(BaseModel):
    sum: int


def limit() -> bytes:
    args = PlainInput.__pydantic_validator__.validate_json(TEXT)
    output = PlainOutput.__pydantic_validator__.validate_python({"sum": args.a + args.b})
    return PlainOutput.__pydantic_serializer__.to_json(output)


@beta_tool
def add(a: int, b: int) -> str:
    """Add two integers.

    Args:
        a: first
        b: second
    """
    return json.dumps({"sum": a + b})


def report() -> str:
    with tempfile.TemporaryDirectory() as folder:
        context = ToolkitContext(folder, SecurityPolicy(default="allow"))
        with create_agent_toolkit(context) as toolkit:
            call = ToolCall("1", "add", {}, raw_arguments=TEXT)
            contenders: dict[str, Callable[[], object]] = {
                LIMIT: limit,
                "toolkit.execute_raw(name, text).text()": lambda: toolkit.execute_raw("add", TEXT).text(),
                "toolkit.call(ToolCall)": lambda: toolkit.call(call),
                "toolkit.invoke(name, dict)": lambda: toolkit.invoke("add", {"a": 2, "b": 3}),
                "toolkit.invoke(name, model)": lambda: toolkit.invoke("add", GIVEN),
                "toolkit.tools.add(a=, b=)": lambda: toolkit.tools.add(a=2, b=3),
                "pydantic: model_validate_json, model_dump_json": lambda: PlainOutput(
                    sum=PlainInput.model_validate_json(TEXT).a
                ).model_dump_json(),
                "anthropic beta_tool.call(dict)": lambda: add.call({"a": 2, "b": 3}),
            }
            best = least_cpu(contenders)
        best["AsyncToolkit.invoke(name, dict), awaited"] = asyncio.run(_async(context))
    return table("One call of `add`", best, LIMIT)


async def _async(context: Any) -> float:
    import time

    async with create_async_agent_toolkit(context) as toolkit:
        best = float("inf")
        for _ in range(15):
            start = time.process_time_ns()
            for _ in range(2000):
                await toolkit.invoke("add", {"a": 2, "b": 3})
            best = min(best, (time.process_time_ns() - start) / 2000)
    return best
