"""How cost grows: that of a call with its arguments, its output and how many run at once; that of a run with its turns."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

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
from toolkit import Pack, RunLimits, ToolCall, ToolContext, run
from toolkit.adapters.anthropic import AnthropicDriver
from toolkit.adapters.gemini import GeminiDriver
from toolkit.adapters.ollama import OllamaDriver
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.adapters.openai_responses import OpenAIResponsesDriver

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
        yield _by_turns(context, 100 if full else 5, rounds)


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


class Client:
    """In place of an SDK's client: any of its methods calls a tool ``turns`` times, then answers with a text."""

    vertexai = False

    def __init__(self, turns: int, turn: Callable[[str], object], end: object) -> None:
        self._turns = turns
        self._turn = turn
        self._end = end
        self._asked = 0

    def __getattr__(self, name: str) -> Client:
        return self

    def __call__(self, **request: object) -> object:
        self._asked += 1
        return self._end if self._asked > self._turns else self._turn(f"call_{self._asked}")


def _chat(id: str) -> object:
    function = {"name": "shout", "arguments": '{"text": "x"}'}
    message = {"content": "One moment\u2026", "tool_calls": [{"id": id, "type": "function", "function": function}]}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}


def _responses(id: str) -> object:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment\u2026"}]}
    call = {"type": "function_call", "call_id": id, "name": "shout", "arguments": '{"text": "x"}'}
    return {"status": "completed", "output": [message, call]}


def _anthropic(id: str) -> object:
    call = {"type": "tool_use", "id": id, "name": "shout", "input": {"text": "x"}}
    return {"content": [{"type": "text", "text": "One moment\u2026"}, call], "stop_reason": "tool_use"}


def _gemini(id: str) -> object:
    call = {"functionCall": {"id": id, "name": "shout", "args": {"text": "x"}}}
    return {"candidates": [{"content": {"parts": [{"text": "One moment\u2026"}, call]}, "finishReason": "STOP"}]}


def _ollama(id: str) -> object:
    call = {"function": {"name": "shout", "arguments": {"text": "x"}}}
    return {"message": {"content": "One moment\u2026", "tool_calls": [call]}, "done_reason": "stop"}


# By provider: the driver, how a turn that calls a tool is written, and an answer that is a text.
MODELS: Final[dict[str, tuple[Callable[..., Any], Callable[[str], object], object]]] = {
    "OpenAI chat": (OpenAIChatDriver, _chat, {"choices": [{"message": {"content": "so"}, "finish_reason": "stop"}]}),
    "OpenAI Responses": (OpenAIResponsesDriver, _responses, {"status": "completed", "output": []}),
    "Anthropic": (
        AnthropicDriver,
        _anthropic,
        {"content": [{"type": "text", "text": "so"}], "stop_reason": "end_turn"},
    ),
    "Gemini": (GeminiDriver, _gemini, {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}),
    "Ollama": (OllamaDriver, _ollama, {"message": {"content": "so"}, "done_reason": "stop"}),
}


def _by_turns(context: ToolkitContext, turns: int, rounds: int) -> Table:
    """CPU time of a whole run with one call a turn, without what the SDK's client does."""

    def handler(args: ShoutInput, ctx: ToolContext) -> ShoutOutput:
        return ShoutOutput(text=args.text)

    rows: list[Row] = []
    with create_agent_toolkit(context, packs=[Pack({"shout": handler})]) as tk:

        def converse(name: str, turns: int) -> None:
            make_driver, turn, end = MODELS[name]
            driver = make_driver(Client(turns, turn, end), model="gemini-3-pro")
            run(driver, tk, "Shout.", limits=RunLimits(turns=None))

        for name in MODELS:
            lengths = {str(count): partial(converse, name, count) for count in (turns, 2 * turns)}
            short, long = least_cpu(lengths, rounds=rounds).values()
            rows.append(Row(name, long / 1000 / (2 * turns), "us a turn", long / (2 * short), f"twice {turns} turns"))
    return Table("turns", f"Growth by the turns of a run: {2 * turns} turns", tuple(rows))
