"""What runs acme's own tools."""

from __future__ import annotations

import asyncio
import threading

from acme.generated import (
    AddInput,
    AddOutput,
    CountWordsInput,
    CountWordsOutput,
    FailInput,
    FailOutput,
    HoldInput,
    HoldOutput,
    ShoutInput,
    ShoutOutput,
)
from acme.tools import gates
from toolkit import ToolContext, ToolFailed


def add(args: AddInput, ctx: ToolContext) -> AddOutput:
    if args.note is None:
        return AddOutput(sum=args.a + args.b)
    return AddOutput(sum=args.a + args.b, note=args.note)


def count_words(args: CountWordsInput, ctx: ToolContext) -> CountWordsOutput:
    return CountWordsOutput(text=f"{len(args.text.split())} words")


def fail(args: FailInput, ctx: ToolContext) -> FailOutput:
    match args.how:
        case "expected":
            raise ToolFailed("CONFLICT", "somebody was faster", file="a.txt")
        case "unexpected":
            raise RuntimeError("password=hunter2")
        case "exit":
            raise SystemExit(3)
        case "outside":
            ctx.fs.open_file("../outside")
        case "no_file":
            ctx.fs.open_file("missing.txt")
        case "constructed":
            return FailOutput.model_construct(value="seven")
        case "not_json":
            return object()  # type: ignore[return-value]
        case "wrong_output":
            return {"value": "seven"}  # type: ignore[return-value]
    return FailOutput(value=1)


def hold(args: HoldInput, ctx: ToolContext) -> HoldOutput:
    gates.entered[args.key].set()
    try:
        if args.listen:
            while not gates.opened[args.key].wait(0.005):
                ctx.signal.check()
        else:
            gates.opened[args.key].wait()
    finally:
        gates.left[args.key].set()
    return HoldOutput(thread=threading.current_thread().name)


async def shout(args: ShoutInput, ctx: ToolContext) -> ShoutOutput:
    if args.key is not None:
        gates.entered[args.key].set()
        try:
            while not gates.opened[args.key].is_set():
                await asyncio.sleep(0.005)
        finally:
            gates.left[args.key].set()
    return ShoutOutput(text=" ".join([args.text.upper()] * args.times))
