"""An unexpected error of a handler: programmers get it as the cause, models only an id."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import pickle
import traceback
import weakref
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Door, MakeDoor
from toolkit import ApprovalRequest, InternalError, Preview, ToolCall, ToolContext, ToolFailed, tool

SECRET = "the password is swordfish"


class Resource:
    """Something a handler holds."""


HELD: list[weakref.ref[Resource]] = []


def fail() -> None:
    held = Resource()
    HELD.append(weakref.ref(held))
    raise KeyError(SECRET)


@tool
def broken() -> str:
    "Fail."
    fail()
    return ""


@tool
async def broken_async() -> str:
    "Fail."
    await asyncio.sleep(0)
    fail()
    return ""


@tool
def refused() -> str:
    "Fail as expected, because of something else."
    try:
        fail()
    except KeyError:
        raise ToolFailed("NOT_FOUND", "no such order") from None
    return ""


def broken_preview(args: Any, ctx: ToolContext) -> Preview:
    fail()
    return Preview()


@tool(preview=broken_preview)
def with_broken_preview() -> str:
    "Never run."
    return ""


TOOLS = [broken, broken_async, refused, with_broken_preview]


@pytest.fixture
def door(make_door: MakeDoor) -> Door:
    return make_door(packs=TOOLS)


@pytest.mark.parametrize("name", ["broken", "broken_async"])
@pytest.mark.parametrize("options", [{}, {"deadline": 60}])
def test_the_cause_is_what_the_handler_raised_with_its_traceback(
    door: Door, name: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InternalError) as caught:
        (door.with_options(**options) if options else door).invoke(name, {})

    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)][-1] == "fail"
    printed = "".join(traceback.format_exception(caught.value))
    assert "in fail" in printed and printed.count("direct cause") == 1


def test_a_preview_that_fails_is_a_cause_as_well(make_door: MakeDoor) -> None:
    def approver(request: ApprovalRequest) -> Any:
        raise AssertionError("nobody is asked")

    from acme.generated import SecurityPolicy
    from toolkit import DynamicRule

    policy = SecurityPolicy(default="allow", rules=[DynamicRule("deny", tools=["with_broken_preview"], path="x")])  # type: ignore[list-item]
    door = make_door(policy, packs=TOOLS, approver=approver)
    with pytest.raises(InternalError) as caught:
        door.invoke("with_broken_preview", {})
    assert isinstance(caught.value.__cause__, KeyError)


def test_models_get_the_id_and_nothing_else(make_door: MakeDoor, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    door = make_door(packs=TOOLS, audit=audit)

    result = door.call(ToolCall("1", "broken", {}))

    assert result.kind == "error" and result.value.startswith("INTERNAL: the tool failed unexpectedly; the cause is in")
    assert "KeyError" not in repr(result) and SECRET not in repr(result) + audit.read_text()
    with pytest.raises(InternalError) as caught:
        door.invoke("broken", {})
    assert SECRET not in str(caught.value) + repr(caught.value) + json.dumps(caught.value.details)


def test_an_expected_failure_keeps_the_cause_that_its_handler_gave_it(door: Door) -> None:
    with pytest.raises(ToolFailed) as caught:
        door.invoke("refused", {})
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_a_pickled_error_leaves_its_cause_behind(door: Door) -> None:
    with pytest.raises(InternalError) as caught:
        door.invoke("broken", {})

    copied = pickle.loads(pickle.dumps(caught.value))

    assert (copied.message, copied.details, copied.__cause__) == (caught.value.message, caught.value.details, None)


@pytest.mark.parametrize("audited", [False, True])
def test_the_frames_of_a_failed_call_live_as_long_as_its_error(
    make_door: MakeDoor, tmp_path: Path, audited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    door = make_door(packs=TOOLS, audit=tmp_path / "audit.jsonl" if audited else None, output_check="enforce")
    HELD.clear()
    # Without another thread, which would end its own frames a moment later.
    name = "broken" if door.loop is None else "broken_async"
    with caplog.at_level(logging.CRITICAL, "toolkit"):  # pytest holds what is logged
        try:
            door.invoke(name, {})
        except InternalError:
            assert HELD[0]() is not None
    gc.collect()
    assert HELD[0]() is None
