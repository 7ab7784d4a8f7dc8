"""The program whose instructions are counted: ``python -m benchmarks.counted NAME CALLS [NAME CALLS ...]``.

For each pair it forks a process that makes that many calls, and prints the process id. What was set up before is the same in
each, so the difference between two processes is what the calls themselves cost.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from benchmarks.limit import LIMIT, PLAIN_LIMIT, make_limit, plain_limit
from benchmarks.parts.calls import make_ours

Repeat = Callable[[int], None]


def repeat(call: Callable[[], object]) -> Repeat:
    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    return run


def repeat_async(wait: Callable[[], Awaitable[object]]) -> Repeat:
    async def run(calls: int) -> None:
        for _ in range(calls):
            await wait()

    return lambda calls: asyncio.run(run(calls))


def main(words: list[str]) -> None:
    with ExitStack() as stack:
        ours = make_ours(stack)
        sync = {LIMIT: make_limit(), PLAIN_LIMIT: plain_limit, **ours.text, **ours.values}
        ways = {name: repeat(call) for name, call in sync.items()}
        ways |= {name: repeat_async(wait) for name, wait in (ours.text_async | ours.values_async).items()}
        for name, calls in zip(words[::2], map(int, words[1::2]), strict=True):
            if (child := os.fork()) == 0:
                ways[name](calls)
                os._exit(0)
            os.waitpid(child, 0)
            sys.stdout.write(f"{child}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
