"""How the cost of a call grows: with the size of its arguments, with the size of its output, with how many run at once."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

from pydantic import BaseModel

from acme.generated import (
    AcmeToolkit,
    SecurityPolicy,
    ShoutInput,
    ShoutOutput,
    ToolkitContext,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from benchmarks.results import Row, Table, by_curve, compared
from benchmarks.timing import least_cpu, least_cpu_async
from toolkit import ToolCall, ToolContext
from toolkit.handlers import Pack

SIZES: Final = (10, 1_000, 10_000, 100_000, 1_000_000)
COUNTS: Final = (1, 10, 100, 1000)
LIMIT: Final = "pydantic-core, the same models"
RAW: Final = "execute_raw(name, text).text()"
SYNC: Final = "call_all"
BETWEEN_THREADS: Final = 1.0
"""What waking threads costs depends on what the processors do otherwise: twice as much in some runs."""
ASYNC: Final = "await call_all, async handler"


class Given(BaseModel):
    text: str
    times: int = 1


class Said(BaseModel):
    text: str


def measure(*, full: bool) -> Iterator[Table]:
    sizes, counts, rounds = (SIZES, COUNTS, 10) if full else (SIZES[:2], COUNTS[:2], 1)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        context = ToolkitContext(folder, SecurityPolicy(default="allow"))
        yield _by_arguments(context, sizes, rounds)
        yield _by_outputs(context, sizes, rounds)
        yield asyncio.run(_at_once(context, counts, rounds))


def _by_arguments(context: ToolkitContext, sizes: tuple[int, ...], rounds: int) -> Table:
    def handler(args: ShoutInput, ctx: ToolContext) -> ShoutOutput:
        return ShoutOutput(text=str(len(args.text)))

    rows: tuple[Row, ...] = ()
    with create_agent_toolkit(context, packs=[Pack({"shout": handler})]) as toolkit:
        for size in sizes:
            text = json.dumps({"text": "some text " * (size // 10)})
            limit = _limit(text, lambda given: str(len(given.text)))
            contenders: dict[str, Callable[[], object]] = {LIMIT: limit, RAW: partial(_raw, toolkit, text)}
            rows += compared(least_cpu(contenders, rounds=rounds), LIMIT, "ns", at=size)
    return Table("arguments", "Growth by the size of the arguments", by_curve(rows), axis="characters")


def _by_outputs(context: ToolkitContext, sizes: tuple[int, ...], rounds: int) -> Table:
    rows: tuple[Row, ...] = ()
    for size in sizes:
        said = "some text " * (size // 10)

        def handler(args: ShoutInput, ctx: ToolContext, said: str = said) -> ShoutOutput:
            return ShoutOutput(text=said)

        with create_agent_toolkit(context, packs=[Pack({"shout": handler})]) as toolkit:
            text = '{"text": "x"}'
            limit = _limit(text, partial(_say, said))
            contenders: dict[str, Callable[[], object]] = {LIMIT: limit, RAW: partial(_raw, toolkit, text)}
            rows += compared(least_cpu(contenders, rounds=rounds), LIMIT, "ns", at=size)
    notes = ("We also keep outputs above 50 KiB in the output cache and cut their text; the limit does neither.",)
    return Table("outputs", "Growth by the size of the output", by_curve(rows), axis="characters", notes=notes)


def _raw(toolkit: AcmeToolkit, text: str) -> object:
    return toolkit.execute_raw("shout", text).text()


def _say(said: str, given: Given) -> str:
    return said


def _limit(text: str, run: Callable[[Given], str]) -> Callable[[], object]:
    validate = Given.__pydantic_validator__.validate_json
    check = Said.__pydantic_validator__.validate_python
    to_json = Said.__pydantic_serializer__.to_json
    return lambda: to_json(check({"text": run(validate(text))})).decode()


async def _at_once(context: ToolkitContext, counts: tuple[int, ...], rounds: int) -> Table:
    """CPU time of one call among those that are given together; the base is a call that is alone."""

    def handler(args: ShoutInput, ctx: ToolContext) -> ShoutOutput:
        return ShoutOutput(text=args.text)

    async def handler_async(args: ShoutInput, ctx: ToolContext) -> ShoutOutput:
        return ShoutOutput(text=args.text)

    rows: list[Row] = []
    alone: dict[str, float] = {}
    with create_agent_toolkit(context, packs=[Pack({"shout": handler})]) as toolkit:
        async with create_async_agent_toolkit(context, packs=[Pack({"shout": handler_async})]) as awaited:
            for count in counts:
                calls = [ToolCall(str(number), "shout", {"text": "x"}) for number in range(count)]
                best = await least_cpu_async(
                    {SYNC: partial(toolkit.call_all, calls)},
                    {ASYNC: partial(awaited.call_all, calls)},
                    rounds=rounds,
                )
                for name, value in best.items():
                    each = value / count
                    ratio = each / alone.setdefault(name, each)
                    tolerance = BETWEEN_THREADS if name == SYNC else None
                    rows.append(Row(name, each, "ns a call", ratio, "one call alone", count, tolerance=tolerance))
    return Table("at once", "Growth by the number of calls at once", by_curve(rows), axis="calls")
