"""One call of the tool ``add``, from name and arguments to the text for the model, beside the peers and pydantic-core."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from acme.generated import (
    AcmeToolkit,
    AddInput,
    Rule,
    SecurityPolicy,
    ToolkitContext,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from acme.tools import handlers
from benchmarks.limit import LIMIT, PLAIN_LIMIT, TEXT, by_hand, make_limit, plain_limit, unchecked
from benchmarks.peers import Peers, find_peers
from benchmarks.results import Row, Table, compared
from benchmarks.timing import ROUNDS, least_cpu_async
from toolkit import HandlerParts, Pack, ToolCall, ToolContext
from toolkit.guard import Preview
from toolkit.runtime.toolkit import core_of
from toolkit.stores import AuditFile

AUDIT_LINE: Final = b"{" + b" " * 300 + b"}\n"
CALLS_IN_A_BATCH: Final = 250
ANSWER: Final = {"sum": 5}

RAW: Final = "execute_raw(name, text).text()"
RAW_ASYNC: Final = "await execute_raw(name, text), .text()"
CALL: Final = "call(ToolCall).value"
AUDIT: Final = f"{RAW}, audit log on"
BATCHED: Final = f"{RAW}, audit log in batches"
WRITTEN: Final = f"{RAW}, audit log in batches, with their writing"
RULES: Final = f"{RAW}, ten rules for every tool"
JUDGED: Final = f"{RAW}, ten rules on what it touches"
MORE_FOR_AUDIT: Final = "an audit log, in addition"
MORE_FOR_BATCHED: Final = "an audit log in batches, in addition"
MORE_FOR_WRITTEN: Final = "an audit log in batches with their writing, in addition"
WRITES: Final = "os.write of two lines, as the audit log writes at each call"
MORE_FOR_RULES: Final = "ten rules for every tool, in addition"
MORE_FOR_JUDGED: Final = "ten rules on what the tool touches, in addition"

INVOKE_DICT: Final = "invoke(name, dict)"
INVOKE_MODEL: Final = "invoke(name, model)"
METHOD: Final = "tools.add(a=, b=)"
INVOKE_ASYNC: Final = "await invoke(name, dict)"
TEXT_WAYS: Final = (RAW, CALL, RAW_ASYNC, AUDIT, BATCHED, WRITTEN, RULES, JUDGED)
VALUE_WAYS: Final = (INVOKE_DICT, INVOKE_MODEL, METHOD, INVOKE_ASYNC)

Call = Callable[[], object]
CallAsync = Callable[[], Awaitable[object]]


def preview(args: AddInput, ctx: ToolContext) -> Preview:
    """What a rule judges. It costs little itself, so that the rules are measured."""
    return Preview(url="https://service.example.net/add")


def rules_for_every_tool() -> list[Rule]:
    """Rules as projects have them. They cover every tool; for a tool that touches nothing they are decided once."""
    paths = (".git/**", "**/.env", "**/*.pem", "secrets/**")
    commands = ("rm -rf", "git push", "sudo")
    hosts = ("*.internal.example", "metadata.example", "*.example.org")
    return [
        *(Rule("deny", path=path) for path in paths),
        *(Rule("deny", command=command) for command in commands),
        *(Rule("deny", host=host) for host in hosts),
    ]


def rules_for_the_tool() -> list[Rule]:
    """Rules that only a call decides: on the host that it would ask."""
    return [Rule("deny", tools=["add"], host=f"*.example-{number}.org") for number in range(10)]


def write_two_lines(file: int) -> None:
    os.write(file, AUDIT_LINE)
    os.write(file, AUDIT_LINE)


class Ours(NamedTuple):
    """Our ways to call the tool: those that end in a text, those that end in a Python value."""

    text: dict[str, Call]
    values: dict[str, Call]
    text_async: dict[str, CallAsync]
    values_async: dict[str, CallAsync]


def make_ours(stack: ExitStack) -> Ours:
    """Toolkits in a folder of their own; the stack closes them."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "workspace").mkdir()
    allow = SecurityPolicy(default="allow")

    def toolkit(policy: SecurityPolicy, *packs: Pack, audit: Path | AuditFile | None = None) -> AcmeToolkit:
        context = ToolkitContext(folder / "workspace", policy, audit=audit)
        made = create_agent_toolkit(context, packs=packs) if packs else create_agent_toolkit(context)
        return stack.enter_context(made)

    plain, audited = toolkit(allow), toolkit(allow, audit=folder / "audit.jsonl")
    batched = toolkit(allow, audit=AuditFile(folder / "batched.jsonl", batch_seconds=0.05))
    ruled = toolkit(SecurityPolicy(default="allow", rules=rules_for_every_tool()))
    touching = Pack({"add": HandlerParts(handlers.add, preview=preview)})
    judged = toolkit(SecurityPolicy(default="allow", rules=rules_for_the_tool()), touching)
    awaited = create_async_agent_toolkit(ToolkitContext(folder / "workspace", allow))
    given = AddInput(a=2, b=3)
    calls = count(1)

    def written() -> str:
        """As the thread of the log does it, which may not get its turn in a round."""
        if next(calls) % CALLS_IN_A_BATCH == 0:
            core_of(batched).audit.flush()  # type: ignore[union-attr]
        return batched.execute_raw("add", TEXT).text()

    def call() -> str:
        value = plain.call(ToolCall("1", "add", {}, raw_arguments=TEXT)).value
        return value if isinstance(value, str) else json.dumps(value)

    async def raw_async() -> object:
        return (await awaited.execute_raw("add", TEXT)).text()

    return Ours(
        {
            RAW: lambda: plain.execute_raw("add", TEXT).text(),
            CALL: call,
            AUDIT: lambda: audited.execute_raw("add", TEXT).text(),
            BATCHED: lambda: batched.execute_raw("add", TEXT).text(),
            WRITTEN: written,
            RULES: lambda: ruled.execute_raw("add", TEXT).text(),
            JUDGED: lambda: judged.execute_raw("add", TEXT).text(),
        },
        {
            INVOKE_DICT: lambda: plain.invoke("add", {"a": 2, "b": 3}),
            INVOKE_MODEL: lambda: plain.invoke("add", given),
            METHOD: lambda: plain.tools.add(a=2, b=3),
        },
        {RAW_ASYNC: raw_async},
        {INVOKE_ASYNC: lambda: awaited.invoke("add", {"a": 2, "b": 3})},
    )


async def check_answers(texts: Mapping[str, Call], awaited: Mapping[str, CallAsync]) -> None:
    """Who is fast because the answer is wrong is not measured."""
    answers = {name: call() for name, call in texts.items()} | {name: await wait() for name, wait in awaited.items()}
    for name, answer in answers.items():
        text = answer.decode() if isinstance(answer, bytes) else str(answer)
        try:
            value = json.loads(text)
        except ValueError:
            value = ast.literal_eval(text)  # some peers show the model what Python prints
        if value != ANSWER:
            raise AssertionError(f"{name} answers {text}")


def measure(*, full: bool) -> Iterator[Table]:
    with ExitStack() as stack:
        yield from asyncio.run(_measure(make_ours(stack), rounds=ROUNDS if full else 1))


async def _measure(ours: Ours, rounds: int) -> list[Table]:
    async with AsyncExitStack() as stack:
        peers = await find_peers(stack)
        bare: dict[str, Call] = {LIMIT: make_limit(), "pydantic's methods, written by hand": by_hand}
        bare["json.loads, call, json.dumps: nothing is checked"] = unchecked
        asked: dict[str, Call] = {name: partial(call, "add", TEXT) for name, call in peers.sync.items()}
        asked_async: dict[str, CallAsync] = {name: partial(call, "add", TEXT) for name, call in peers.awaited.items()}
        texts = {**bare, **ours.text, **asked}
        awaited = {**ours.text_async, **asked_async}
        await check_answers(texts, awaited)
        values: dict[str, Call] = {PLAIN_LIMIT: plain_limit, **ours.values}
        with tempfile.TemporaryFile() as file:
            values[WRITES] = partial(write_two_lines, file.fileno())
            best = await least_cpu_async({**texts, **values}, {**awaited, **ours.values_async}, rounds=rounds)
    return [_text_table(best, {*texts, *awaited}, {*bare, *asked, *asked_async}, peers), _values_table(best, ours)]


def _text_table(best: Mapping[str, float], names: set[str], others: set[str], peers: Peers) -> Table:
    mine = {name: best[name] for name in sorted(names, key=best.__getitem__)}
    rows = compared(mine, LIMIT, "ns", others=others)
    more = {
        MORE_FOR_AUDIT: AUDIT,
        MORE_FOR_BATCHED: BATCHED,
        MORE_FOR_WRITTEN: WRITTEN,
        MORE_FOR_RULES: RULES,
        MORE_FOR_JUDGED: JUDGED,
    }
    rows += tuple(Row(name, (best[way] - best[RAW]) / best[LIMIT], "x limit") for name, way in more.items())
    rows += (Row(WRITES, best[WRITES] / best[LIMIT], "x limit", ours=False),)
    title = "One call of `add`: from its name and a JSON text to the text for the model"
    return Table("text", title, rows, notes=tuple(peers.missing))


def _values_table(best: Mapping[str, float], ours: Ours) -> Table:
    names = [PLAIN_LIMIT, *ours.values, *ours.values_async]
    rows = compared({name: best[name] for name in names}, PLAIN_LIMIT, "ns")
    return Table("values", "One call of `add`: from Python values to a typed result", rows)
