"""Calls about which nothing is left to decide run without a detour, and are checked as every other call is."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import ValidationError

from acme.generated import (
    AddInput,
    AddOutput,
    LibraryLendBookInput,
    LibraryLendBookOutput,
    ShapesSearchOutput,
)
from tests.runtime.conftest import Door, MakeDoor
from toolkit import (
    Depends,
    DynamicContext,
    DynamicPolicy,
    Pack,
    Progress,
    ToolCall,
    ToolContext,
    ToolkitError,
    create_agent_toolkit,
    tool,
)
from toolkit.runtime.arguments import Reader
from toolkit.schema.models import Omissible, ToolModel

# -- outputs -----------------------------------------------------------------------------------------------------------


def made_without_validation() -> AddOutput:
    return AddOutput.model_construct(sum="five")


def changed_later() -> AddOutput:
    output = AddOutput(sum=5)
    object.__setattr__(output, "sum", "five")
    return output


def changed_in_its_dict() -> AddOutput:
    output = AddOutput(sum=5)
    output.__dict__["sum"] = True
    return output


def copied_with_a_change() -> AddOutput:
    return AddOutput(sum=5).model_copy(update={"sum": None})


def copied_with_an_unknown_field() -> AddOutput:
    return AddOutput(sum=5).model_copy(update={"total": 5})


def without_a_required_field() -> AddOutput:
    output = AddOutput(sum=5)
    output.model_fields_set.discard("sum")
    return output


def null_where_the_schema_forbids_it() -> AddOutput:
    output = AddOutput(sum=5)
    output.model_fields_set.add("note")
    return output


def absent_field_changed_past_pydantic() -> AddOutput:
    output = AddOutput(sum=5)
    object.__setattr__(output, "note", 7)
    return output


def not_utf8() -> AddOutput:
    return AddOutput.model_construct(sum=5, note="\ud800")


WRONG = [
    absent_field_changed_past_pydantic,
    made_without_validation,
    changed_later,
    changed_in_its_dict,
    copied_with_a_change,
    copied_with_an_unknown_field,
    without_a_required_field,
    not_utf8,
    null_where_the_schema_forbids_it,
]


@pytest.mark.parametrize("make", WRONG)
def test_a_wrong_output_is_refused(make_door: MakeDoor, make: Callable[[], AddOutput]) -> None:
    def handler(args: AddInput, ctx: ToolContext) -> AddOutput:
        return make()

    door = make_door(packs=[Pack({"add": handler})])
    for _ in range(2):  # the first call prepares the tool
        with pytest.raises(ToolkitError, match="INVALID_OUTPUT") as failure:
            door.invoke("add", {"a": 1, "b": 2})
        assert failure.value.tool_name == "add"


def test_what_was_added_to_a_list_is_checked(make_door: MakeDoor) -> None:
    def handler(args: Any, ctx: ToolContext) -> ShapesSearchOutput:
        output = ShapesSearchOutput(names=["a"], area=1.0)
        output.names.append(7)  # type: ignore[arg-type]
        return output

    door = make_door(packs=[Pack({"shapes_search": handler})])
    with pytest.raises(ToolkitError, match=r"INVALID_OUTPUT.*names\.1"):
        door.invoke("shapes_search", {"type": "circle"})


class Open(ToolModel):
    """More properties are allowed, and one is optional but not null."""

    count: int
    note: Omissible[str] = None


def test_an_optional_field_beside_an_extra_property_is_absent_and_not_null() -> None:
    Reader(Open).check(Open.model_validate({"count": 1, "more": 2}))


class Said(ToolModel, extra="forbid"):
    text: str
    is_loud: bool
    times: int = 1


@pytest.mark.parametrize(
    "change", [{"text": "\ud800"}, {"text": b"a"}, {"text": None}, {"is_loud": 1}, {"is_loud": None}, {"times": "2"}]
)
def test_an_instance_that_was_changed_past_pydantic_is_refused(change: dict[str, object]) -> None:
    reader = Reader(Said)
    for right in (
        Said(text="plain", is_loud=False),
        Said(text="Käse", is_loud=True),
        Said(text="a", is_loud=True, times=2),
    ):
        reader.check(right)
        assert reader.from_instance(right) == right
    wrong = Said(text="plain", is_loud=False, times=2)
    vars(wrong).update(change)
    with pytest.raises(ValidationError):
        reader.check(wrong)
    with pytest.raises(ValidationError):
        reader.from_instance(wrong)


def test_a_default_that_was_changed_past_pydantic_does_not_reach_a_handler() -> None:
    reader = Reader(Said)
    changed = Said(text="a", is_loud=True)
    vars(changed)["times"] = "2"
    assert reader.from_instance(changed) == Said(text="a", is_loud=True) == reader.revalidate(changed)


def test_a_default_that_its_own_schema_refuses_is_no_wrong_output() -> None:
    class Strange(ToolModel, extra="forbid"):
        count: int
        word: str = 7  # type: ignore[assignment]

    strange = Strange(count=1)
    reader = Reader(Strange)
    reader.check(strange)
    assert reader.revalidate(strange) == strange


class Loud(AddOutput):
    """An output of a class of its own: its own fields are part of the answer where the schema allows more."""


def test_an_instance_of_a_subclass_is_the_content(make_door: MakeDoor) -> None:
    door = make_door(packs=[Pack({"add": lambda args, ctx: Loud(sum=args.a + args.b)})])
    message = door.invoke("add", {"a": 1, "b": 2})
    assert type(message.content) is Loud
    assert message.text() == '{"sum":3}'


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_an_invalid_instance_is_refused(make_door: MakeDoor) -> None:
    door = make_door()
    for _ in range(2):
        with pytest.raises(ToolkitError, match="a: Input should be a valid integer"):
            door.invoke("add", AddInput.model_construct(a="one", b=2))


class Word(str):
    pass


def without_its_optional_field() -> AddInput:
    given = AddInput(a=2, b=3)
    del given.__dict__["note"]
    return given


UNUSUAL: dict[str, tuple[Callable[[], AddInput], list[object]]] = {
    "a number without a fraction": (lambda: AddInput.model_construct(a=2.0, b=3), [2, 3, None]),
    "a class below str": (lambda: AddInput.model_construct(a=2, b=3, note=Word("x")), [2, 3, "x"]),
    "an attribute that is gone": (without_its_optional_field, [2, 3, None]),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_a_handler_gets_what_validation_makes_of_an_instance(make_door: MakeDoor, what: str) -> None:
    def handler(args: AddInput, ctx: ToolContext) -> AddOutput:
        seen.append([args.a, args.b, args.note])
        return AddOutput(sum=5)

    make, expected = UNUSUAL[what]
    seen: list[list[object]] = []
    door = make_door(packs=[Pack({"add": handler})])
    for _ in range(2):  # the first call prepares the tool
        door.invoke("add", make())
    assert seen == [expected, expected]
    assert [list(map(type, one)) for one in seen] == [list(map(type, expected))] * 2


def test_a_handler_cannot_change_what_its_caller_holds(make_door: MakeDoor) -> None:
    def handler(args: LibraryLendBookInput, ctx: ToolContext) -> LibraryLendBookOutput:
        seen.append(args)
        return LibraryLendBookOutput(text="lent")

    seen: list[LibraryLendBookInput] = []
    door = make_door(packs=[Pack({"library_lend-book": handler})])
    given = LibraryLendBookInput.model_validate({"id": 7, "reader": {"name": "Ann"}})
    for _ in range(2):
        door.invoke("library_lend-book", given)
    assert seen == [given, given]
    assert all(args is not given for args in seen)


TEXTS = {
    "colons in text": '{"a": 2, "b": 3, "note": "at 12:30: http://x"}',
    "escaped quotation marks before colons": '{"a": 2, "b": 3, "note": "\\": \\":"}',
    "white space before colons": '{"a" : 2, "b"\t:\n3}',
    "NaN in text": '{"a": 2, "b": 3, "note": "NaN or Infinity"}',
    "a number without a fraction": '{"a": 2.0, "b": 3e0}',
}


@pytest.mark.parametrize("what", TEXTS)
def test_text_is_read_as_json(door: Door, what: str) -> None:
    for _ in range(2):
        assert door.execute_raw("add", TEXTS[what]).content == AddOutput(
            sum=5, note=json.loads(TEXTS[what]).get("note")
        )


TWICE = {
    "at once": '{"a": 2, "a": 3, "b": 3}',
    "with white space before one colon": '{"a":2,"a" :3,"b":3}',
    "with white space before every colon": '{"a" :2,"a" :3,"b" :3}',
    "and a colon in a text": '{"a": 2, "b": 3, "note": "x:y", "note": "z"}',
    "spelled in another way": '{"a": 2, "\\u0061": 3, "b": 3}',
}


@pytest.mark.parametrize("how", TWICE)
def test_a_key_that_is_there_twice_is_refused(door: Door, how: str) -> None:
    door.invoke("add", {"a": 1, "b": 1})
    with pytest.raises(ToolkitError, match="is duplicated"):
        door.execute_raw("add", TWICE[how])
    result = door.call(ToolCall("1", "add", {}, raw_arguments=TWICE[how]))
    assert result.kind == "error"
    assert "is duplicated" in str(result.value)


@pytest.mark.parametrize("value", ["NaN", "-Infinity", '{"x": 1, "x": 2}', "[1e400, NaN]"])
def test_what_is_not_json_is_not_read_at_once_in_an_extra_property(value: str) -> None:
    reader = Reader(Open)
    assert reader.from_text('{"count": 1, "more": 2}') == Open.model_validate({"count": 1, "more": 2})
    read: object = None
    with suppress(ValidationError):
        read = reader.from_text(f'{{"count": 1, "more": {value}}}')
    assert read is None


def test_an_instance_is_copied() -> None:
    reader = Reader(Open)
    for given in (Open(count=1), Open.model_validate({"count": 1, "more": [1]})):
        copied = reader.from_instance(given)
        assert copied == given and copied is not given


# -- results -----------------------------------------------------------------------------------------------------------


def test_a_result_holds_data_and_the_typed_output(door: Door) -> None:
    for _ in range(2):
        result = door.call(ToolCall("7", "add", {}, raw_arguments='{"a": 2, "b": 3}'))
        assert (result.tool_call_id, result.kind, result.value, result.output_ref) == ("7", "data", {"sum": 5}, None)
        assert result.output == AddOutput(sum=5)


def test_the_call_id_reaches_the_handler(make_door: MakeDoor) -> None:
    def handler(args: AddInput, ctx: ToolContext) -> AddOutput:
        return AddOutput(sum=len(ctx.call_id or ""), note=ctx.tool_name)

    door = make_door(packs=[Pack({"add": handler})])
    for _ in range(2):
        assert door.call(ToolCall("12345", "add", {"a": 1, "b": 1})).value == {"sum": 5, "note": "add"}
        assert door.invoke("add", {"a": 1, "b": 1}).content.sum == 0


def test_a_closed_toolkit_runs_nothing_more(make_door: MakeDoor) -> None:
    door = make_door()
    door.invoke("add", {"a": 1, "b": 1})
    door.close()
    with pytest.raises(ToolkitError, match="TOOL_CANCELLED: this toolkit has been closed"):
        door.invoke("add", {"a": 1, "b": 1})


@pytest.mark.parametrize("blocking", [False, True])
def test_parallel_calls_of_tools_that_do_not_block_need_no_threads(make_door: MakeDoor, blocking: bool) -> None:
    second_began = threading.Event()

    @tool(parallel=True, blocking=blocking)
    def where(number: int) -> str:
        """The thread that runs the call."""
        if number == 1:
            second_began.set()
        elif blocking and not is_first:
            assert second_began.wait(60)  # whoever runs this call does not run that one
        return f"{number} in {threading.current_thread().name}"

    door = make_door(packs=[where.as_pack()])
    calls = [ToolCall(str(number), "where", {"number": number}) for number in range(3)]
    is_first = True
    door.call(calls[0])  # prepares the tool
    is_first = False
    here = [f"{number} in {threading.current_thread().name}" for number in range(3)]
    assert ([result.value for result in door.call_all(calls)] == here) is not blocking


@pytest.mark.parametrize("waits_for", ["another call", "a dependency", "a listener"])
def test_parallel_calls_that_wait_in_a_handler_that_does_not_block_run_at_once(tmp_path: Path, waits_for: str) -> None:
    both = threading.Barrier(2, timeout=20)

    async def meet() -> int:
        await asyncio.to_thread(both.wait)
        return 1

    @tool(parallel=True, blocking=False, name="meet")
    async def awaiting(ctx: ToolContext) -> int:
        """Meet the other call."""
        return await meet()

    @tool(parallel=True, blocking=False, name="meet")
    def needing(met: Annotated[int, Depends(meet)]) -> int:
        """Let a dependency meet the other call."""
        return met

    @tool(parallel=True, blocking=False, name="meet")
    def telling(ctx: ToolContext) -> int:
        """Let a listener meet the other call."""
        ctx.progress(title="here")
        return 1

    def listen(event: Progress) -> None:
        both.wait()

    packs: dict[str, Pack] = {
        "another call": awaiting.as_pack(),
        "a dependency": needing.as_pack(),
        "a listener": telling.as_pack(),
    }
    listener = listen if waits_for == "a listener" else None
    context = DynamicContext(tmp_path, DynamicPolicy(default="allow"), on_progress=listener)
    calls = [ToolCall(str(number), "meet", {}) for number in range(2)]
    with create_agent_toolkit(context, packs=[packs[waits_for]]) as toolkit:
        toolkit._core.resolve("meet")  # what is known of the tool decides
        results = toolkit.call_all(calls)
    assert not both.broken
    assert [result.value for result in results] == [1, 1]
