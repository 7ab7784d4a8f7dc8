"""Dependencies of handlers: the same under both toolkits, for every kind of factory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest

from tests.runtime.conftest import MakeDoor
from toolkit import (
    CancelSignal,
    DependencyKey,
    Depends,
    Pack,
    SetupError,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolkitContext,
    ToolkitError,
    ToolTimeout,
)

events: list[str] = []
"""What the factories below did, in order; emptied before each test."""


@pytest.fixture(autouse=True)
def _forget() -> None:
    events.clear()


def plain() -> int:
    events.append("plain")
    return 10


async def later() -> int:
    await asyncio.sleep(0)
    events.append("later")
    return 10


def kept() -> Iterator[int]:
    events.append("open")
    try:
        yield 10
    except BaseException as error:
        events.append(f"saw {type(error).__name__}")
        raise
    finally:
        events.append("close")


async def kept_later() -> AsyncIterator[int]:
    await asyncio.sleep(0)
    events.append("open")
    try:
        yield 10
    except BaseException as error:
        events.append(f"saw {type(error).__name__}")
        raise
    finally:
        await asyncio.sleep(0)
        events.append("close")


def swallowing() -> Iterator[int]:
    try:
        yield 10
    except ToolFailed:
        events.append("swallowed")


def failing_at_its_end() -> Iterator[int]:
    yield 10
    events.append("fails")
    raise RuntimeError("could not commit")


async def failing_at_its_end_later() -> AsyncIterator[int]:
    yield 10
    events.append("fails")
    raise RuntimeError("could not commit")


class Made:
    """A class is a factory as well."""

    def __init__(self, start: Annotated[int, Depends(plain)]) -> None:
        self.start = start

    def __int__(self) -> int:
        return self.start


def from_another(inner: Annotated[int, Depends(kept)], missing: int = 0) -> Iterator[int]:
    events.append("outer open")
    yield inner + missing
    events.append("outer close")


async def from_another_later(inner: Annotated[int, Depends(kept_later)]) -> int:
    return inner


KEY = DependencyKey("number", plain)
RUN_KEY = DependencyKey("kept number", kept, lifetime="run")
ASYNC_RUN_KEY = DependencyKey("kept number", kept_later, lifetime="run")


def sync_handler(source: Any) -> Callable[..., Any]:
    def add(args: Any, ctx: ToolContext, base: Annotated[int, Depends(source)]) -> Any:
        events.append("run")
        return {"sum": args.a + int(base)}

    # Written out: the annotation is text here, and `source` is known only inside.
    add.__annotations__["base"] = Annotated[int, Depends(source)]
    return add


def async_handler(source: Any) -> Callable[..., Any]:
    async def add(args: Any, ctx: ToolContext, base: Any) -> Any:
        await asyncio.sleep(0)
        events.append("run")
        return {"sum": args.a + int(base)}

    add.__annotations__["base"] = Annotated[int, Depends(source)]
    return add


MAKERS = [pytest.param(sync_handler, id="sync handler"), pytest.param(async_handler, id="async handler")]


@pytest.mark.parametrize("handler", MAKERS)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(plain, ["plain", "run"], id="function"),
        pytest.param(later, ["later", "run"], id="async function"),
        pytest.param(kept, ["open", "run", "close"], id="generator"),
        pytest.param(kept_later, ["open", "run", "close"], id="async generator"),
        pytest.param(Made, ["plain", "run"], id="class"),
        pytest.param(KEY, ["plain", "run"], id="key"),
        pytest.param(
            from_another, ["open", "outer open", "run", "outer close", "close"], id="generator from generator"
        ),
        pytest.param(from_another_later, ["open", "run", "close"], id="async function from async generator"),
    ],
)
def test_makes_before_and_closes_after(
    make_door: MakeDoor, handler: Callable[..., Any], source: Any, expected: list[str]
) -> None:
    door = make_door(packs=[Pack({"add": handler(source)})])

    assert door.tool("add", a=1, b=0).sum == 11
    assert events == expected
    assert door.tool("add", a=2, b=0).sum == 12
    assert events == expected * 2, "made anew for every call"


@pytest.mark.parametrize("handler", MAKERS)
@pytest.mark.parametrize(
    ("override", "expected"),
    [
        pytest.param(lambda: 20, ["run"], id="function"),
        pytest.param(kept, ["open", "run", "close"], id="generator"),
        pytest.param(kept_later, ["open", "run", "close"], id="async generator"),
    ],
)
def test_an_override_takes_the_place_of_a_factory(
    make_door: MakeDoor, handler: Callable[..., Any], override: Any, expected: list[str]
) -> None:
    door = make_door(packs=[Pack({"add": handler(KEY)})], overrides={"number": override})

    assert door.tool("add", a=1, b=0).sum in (11, 21)
    assert events == expected


def test_a_factory_without_key_is_overridden_by_its_name(make_door: MakeDoor) -> None:
    door = make_door(packs=[Pack({"add": sync_handler(plain)})], overrides={f"{__name__}.plain": lambda: 30})

    assert door.tool("add", a=1, b=0).sum == 31


@pytest.mark.parametrize("handler", MAKERS)
@pytest.mark.parametrize("source", [RUN_KEY, ASYNC_RUN_KEY], ids=["generator", "async generator"])
def test_keeps_for_the_run_and_closes_with_the_toolkit(
    make_door: MakeDoor, handler: Callable[..., Any], source: Any
) -> None:
    door = make_door(packs=[Pack({"add": handler(source)})])

    door.tool("add", a=1, b=0)
    door.tool("add", a=1, b=0)

    assert events == ["open", "run", "run"]
    door.close()
    assert events == ["open", "run", "run", "close"]


def shared(base: Annotated[int, Depends(kept)], again: Annotated[int, Depends(kept)]) -> int:
    return base + again


def test_one_call_makes_one_value_for_all_who_need_it(make_door: MakeDoor) -> None:
    def add(
        args: Any, ctx: ToolContext, one: Annotated[int, Depends(kept)], two: Annotated[int, Depends(shared)]
    ) -> Any:
        return {"sum": one + two}

    assert make_door(packs=[Pack({"add": add})]).tool("add", a=1, b=0).sum == 30
    assert events == ["open", "close"]


@pytest.mark.parametrize("handler", MAKERS)
@pytest.mark.parametrize("source", [kept, kept_later])
def test_shows_a_generator_the_error_of_the_call(make_door: MakeDoor, handler: Callable[..., Any], source: Any) -> None:
    failing = _find_failing(handler(source))
    with pytest.raises(ToolFailed, match="no luck"):
        make_door(packs=[Pack({"add": failing})]).tool("add", a=1, b=0)

    assert events == ["open", "saw ToolFailed", "close"]


def _find_failing(handler: Callable[..., Any]) -> Callable[..., Any]:
    def add(args: Any, ctx: ToolContext, base: Any) -> Any:
        raise ToolFailed("IO", "no luck")

    async def add_later(args: Any, ctx: ToolContext, base: Any) -> Any:
        raise ToolFailed("IO", "no luck")

    chosen: Callable[..., Any] = add_later if asyncio.iscoroutinefunction(handler) else add
    chosen.__annotations__["base"] = handler.__annotations__["base"]
    return chosen


@pytest.mark.parametrize("options", [{}, {"deadline": 60}])
def test_a_plain_function_around_an_async_handler_closes_what_it_needs(
    make_door: MakeDoor, options: dict[str, Any]
) -> None:
    async def fail_later() -> Any:
        await asyncio.sleep(0)
        raise ToolFailed("CONFLICT", "late")

    def shout(args: Any, ctx: ToolContext, *, number: Annotated[int, Depends(kept)]) -> Any:
        return fail_later()

    door = make_door(packs=[Pack({"shout": shout})], **options)
    with pytest.raises(ToolFailed, match="late"):
        door.invoke("shout", {"text": "x"})
    assert events == ["open", "saw ToolFailed", "close"]


def test_a_generator_cannot_take_an_error_back(make_door: MakeDoor) -> None:
    with pytest.raises(ToolFailed, match="no luck"):
        make_door(packs=[Pack({"add": _find_failing(sync_handler(swallowing))})]).tool("add", a=1, b=0)

    assert events == ["swallowed"]


@pytest.mark.parametrize("source", [failing_at_its_end, failing_at_its_end_later])
def test_an_error_while_closing_fails_a_call_that_went_well_and_closes_the_rest(
    make_door: MakeDoor, source: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def add(args: Any, ctx: ToolContext, before: Annotated[int, Depends(kept)], base: Any) -> Any:
        return {"sum": 1}

    add.__annotations__["base"] = Annotated[int, Depends(source)]
    with pytest.raises(ToolkitError) as caught:
        make_door(packs=[Pack({"add": add})]).tool("add", a=1, b=0)

    assert caught.value.code == "INTERNAL"
    assert "commit" not in str(caught.value), "a model is not told what was in the way"
    assert "could not commit" in caplog.text
    assert events == ["open", "fails", "close"]


def test_an_error_while_closing_leaves_the_error_of_the_call(
    make_door: MakeDoor, caplog: pytest.LogCaptureFixture
) -> None:
    def stubborn() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise RuntimeError("could not roll back")

    with pytest.raises(ToolFailed, match="no luck"):
        make_door(packs=[Pack({"add": _find_failing(sync_handler(stubborn))})]).tool("add", a=1, b=0)

    assert "could not roll back" in caplog.text


@pytest.mark.parametrize("handler", MAKERS)
def test_a_factory_that_fails_closes_what_was_made_before(make_door: MakeDoor, handler: Callable[..., Any]) -> None:
    def broken(inner: Annotated[int, Depends(kept)]) -> int:
        raise ToolFailed("IO", "no database")

    with pytest.raises(ToolFailed, match="no database"):
        make_door(packs=[Pack({"add": handler(broken)})]).tool("add", a=1, b=0)

    assert events == ["open", "saw ToolFailed", "close"]


# Asked for by the handler itself


def test_a_handler_resolves_keys_by_itself(make_door: MakeDoor) -> None:
    generator = DependencyKey("generator", kept)

    def add(args: Any, ctx: ToolContext) -> Any:
        return {"sum": ctx.resolve(generator) + ctx.resolve(generator) + ctx.deps["number"]}

    async def shout(args: Any, ctx: ToolContext) -> Any:
        value = await ctx.resolve_async(DependencyKey("later", kept_later))
        both = await asyncio.gather(ctx.resolve_async(KEY), ctx.resolve_async(KEY))
        return {"text": f"{value} {both}"}

    door = make_door(packs=[Pack({"add": add, "shout": shout})], overrides={"number": lambda: 5})

    assert door.tool("add", a=1, b=0).sum == 25
    assert events == ["open", "close"]
    assert door.tool("shout", text="x").text == "10 [5, 5]"
    assert events == ["open", "close"] * 2


def test_dependencies_by_id_are_those_that_are_known(make_door: MakeDoor) -> None:
    seen: list[object] = []

    def add(args: Any, ctx: ToolContext, base: Annotated[int, Depends(KEY)]) -> Any:
        seen.extend([list(ctx.deps), ctx.deps["extra"], "nothing" in ctx.deps])
        return {"sum": base}

    door = make_door(packs=[Pack({"add": add})], overrides={"extra": lambda: "more"})

    door.tool("add", a=1, b=0)
    assert seen == [["extra", "number"], "more", False]


def test_a_sync_handler_is_told_how_to_get_at_an_async_key(
    make_door: MakeDoor, caplog: pytest.LogCaptureFixture
) -> None:
    def add(args: Any, ctx: ToolContext) -> Any:
        return {"sum": ctx.resolve(DependencyKey("later", later))}

    with pytest.raises(ToolkitError):
        make_door(packs=[Pack({"add": add})]).tool("add", a=1, b=0)
    assert "resolve_async" in caplog.text


def test_factories_are_given_contexts(make_door: MakeDoor) -> None:
    def whose(ctx: ToolContext) -> str:
        return ctx.tool_name

    def agent(context: ToolkitContext) -> str:
        return context.agent

    def shout(args: Any, ctx: ToolContext, tool: Any, name: Any) -> Any:
        return {"text": f"{tool} {name}"}

    shout.__annotations__ |= {
        "tool": Annotated[str, Depends(whose)],
        "name": Annotated[str, Depends(agent, lifetime="run")],
    }
    assert make_door(packs=[Pack({"shout": shout})], agent="helper").tool("shout", text="x").text == "shout helper"


# What is refused


def egg(hen: Any) -> Any:
    return hen


def hen(egg: Annotated[Any, Depends(egg)]) -> Any:
    return egg


egg.__annotations__["hen"] = Annotated[Any, Depends(hen)]


def unexplained(base: int) -> int:
    return base


def per_call(ctx: ToolContext) -> int:
    return 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param(hen, r"circular dependency: .*hen -> .*egg -> .*hen", id="circle"),
        pytest.param(unexplained, "parameter 'base' of .*unexplained has no value", id="unexplained parameter"),
        pytest.param(DependencyKey("x", per_call, lifetime="run"), "'ctx' needs the call's context", id="call in run"),
    ],
)
def test_refuses_what_cannot_be_injected_when_the_toolkit_is_built(
    make_door: MakeDoor, source: Any, words: str
) -> None:
    with pytest.raises(SetupError, match=words):
        make_door(packs=[Pack({"add": sync_handler(source)})])


def test_refuses_a_parameter_that_nobody_fills(make_door: MakeDoor) -> None:
    def add(args: Any, ctx: ToolContext, base: int) -> Any: ...

    with pytest.raises(SetupError, match=r"'base' of .* has no value"):
        make_door(packs=[Pack({"add": add})])


def test_refuses_an_override_that_makes_nothing(make_door: MakeDoor) -> None:
    with pytest.raises(SetupError, match="override of 'number' is of type int; pass a function"):
        make_door(overrides={"number": 3})


def test_refuses_two_keys_of_one_name(make_door: MakeDoor) -> None:
    other = DependencyKey("number", later)
    with pytest.raises(SetupError, match="two dependency keys are named 'number'"):
        make_door(packs=[Pack({"add": sync_handler(KEY), "shout": sync_handler(other)})])


def test_notices_a_circle_that_is_only_there_while_it_runs(
    make_door: MakeDoor, caplog: pytest.LogCaptureFixture
) -> None:
    def again(ctx: ToolContext) -> int:
        return ctx.resolve(snake)

    snake = DependencyKey("snake", again)
    with pytest.raises(ToolkitError):
        make_door(packs=[Pack({"add": sync_handler(snake)})]).tool("add", a=1, b=0)
    assert "circular dependency: snake -> snake" in caplog.text


# Under deadlines and in parallel


@pytest.mark.slow
def test_closes_when_the_abandoned_handler_ends_not_when_its_caller_leaves(make_door: MakeDoor) -> None:
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    def watched() -> Iterator[int]:
        yield 1
        events.append("closed after: " + ", ".join(events))
        left.set()

    def count_words(args: Any, ctx: ToolContext, base: Any) -> Any:
        entered.set()
        leave.wait(30)
        events.append("ended")
        return {"text": "1"}

    count_words.__annotations__["base"] = Annotated[int, Depends(watched)]
    door = make_door(packs=[Pack({"count-words": count_words})])
    deadline = 0.01
    while not entered.is_set():  # on a busy machine a deadline may pass before the handler begins
        with pytest.raises(ToolTimeout) as caught:
            door.with_options(deadline=deadline).invoke("count-words", {"text": "x"})
        deadline *= 2
    assert caught.value.details["abandoned"] is True
    events.append("caller left")
    leave.set()

    assert left.wait(30)
    assert events == ["caller left", "ended", "closed after: caller left, ended"]


def test_parallel_calls_share_what_is_kept_for_the_run(make_door: MakeDoor) -> None:
    together = threading.Barrier(2, timeout=30)
    made: list[int] = []

    def one() -> int:
        made.append(1)
        return len(made)

    def count(args: Any, ctx: ToolContext, number: Any) -> Any:
        together.wait()
        return {"thread": str(number)}

    count.__annotations__["number"] = Annotated[int, Depends(DependencyKey("one", one, lifetime="run"))]
    door = make_door(packs=[Pack({"hold": count})])
    results = door.call_all([ToolCall(str(n), "hold", {"key": "x"}) for n in range(2)])

    assert [result.value for result in results] == [{"thread": "1"}, {"thread": "1"}]
    assert made == [1]


def test_a_cancelled_call_closes_too(make_door: MakeDoor) -> None:
    signal = CancelSignal()

    def add(args: Any, ctx: ToolContext, base: Any) -> Any:
        signal.cancel()
        ctx.signal.check()

    add.__annotations__["base"] = Annotated[int, Depends(kept)]
    with pytest.raises(ToolkitError) as caught:
        make_door(packs=[Pack({"add": add})]).with_options(signal=signal).tool("add", a=1, b=0)
    assert caught.value.code == "TOOL_CANCELLED"
