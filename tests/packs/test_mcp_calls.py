"""Calls to an honest server: what comes back, typed, as text or as media, over both transports and under both toolkits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples import TWINS
from tests.packs.conftest import Doors, filled, servers_in
from tests.runtime.conftest import Door
from toolkit import ContentBlock, ContentOutput, JsonObject, Progress, ToolCall
from toolkit.errors import ToolFailed, ToolkitError, ToolNotAllowed

pytestmark = pytest.mark.xdist_group("mcp calls")


@pytest.fixture(params=["shop_", "web_"])
def prefix(request: pytest.FixtureRequest) -> str:
    """The same server over stdio and over HTTP."""
    name: str = request.param
    return name


@pytest.fixture(scope="module", params=TWINS)
def door(
    request: pytest.FixtureRequest, served: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """One toolkit for all calls of its flavour, so that its server is started once."""
    doors = Doors(served, request.param, filled(tmp_path_factory.mktemp("calls") / "workspace"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_TOKEN", "s3cret")
        yield doors()
    doors.close()


def test_structured_content_is_the_typed_output(door: Door, prefix: str) -> None:
    item = door.tool(f"{prefix}item", name="pen")
    assert (item.name, item.price, item.tags) == ("pen", 1.5, ["new"])
    assert door.invoke(f"{prefix}item", {"name": "pen"}).metadata == {}
    result = door.call(ToolCall("1", f"{prefix}item", JsonObject({"name": "pen", "price": 2})))
    assert result.value == {"name": "pen", "price": 2, "tags": ["new"]}


def test_a_wrapped_result_is_the_value_itself(door: Door, prefix: str) -> None:
    assert door.tool(f"{prefix}add", a=2).root == 3
    assert door.tool(f"{prefix}add", a=2, b=5).root == 7
    assert [item.name for item in door.tool(f"{prefix}items", count=3).root] == ["0", "1", "2"]
    assert door.tool(f"{prefix}items", count=0).root == []


def test_a_tool_without_a_schema_gives_text(door: Door, prefix: str) -> None:
    message = door.invoke(f"{prefix}greet", {"name": "Ann"})
    assert isinstance(message.content, ContentOutput)
    assert (message.content.text, message.text()) == ("Hello Ann", "Hello Ann")


def test_media_are_kept_in_order(door: Door, prefix: str) -> None:
    message = door.invoke(f"{prefix}media", {})
    assert message.content.text == message.text() == "before\nafter"
    assert message.content.blocks == (
        ContentBlock("image", "image/png", data="aW1hZ2U="),
        ContentBlock("audio", "audio/wav", data="YXVkaW8="),
        ContentBlock("document", "application/pdf", url="https://example.org/a.pdf"),
        ContentBlock("text", text="[resource shop://b] b: of the shop"),
        ContentBlock("text", text="[resource shop://c]\ninside"),
        ContentBlock("image", "image/gif", data="YmxvYg=="),
    )


def test_what_the_tool_says_went_wrong_is_the_error(door: Door, prefix: str) -> None:
    with pytest.raises(ToolFailed, match="the shelf is empty") as caught:
        door.tool(f"{prefix}fail", words="the shelf is empty")
    assert (caught.value.reason, caught.value.tool_name) == ("TOOL_ERROR", f"{prefix}fail")


def test_one_session_serves_all_calls_until_the_toolkit_is_closed(make_door: Doors, workspace: Path) -> None:
    door = make_door()
    assert servers_in(workspace) == []  # nothing is started before somebody calls
    calls = [ToolCall(str(number), "shop_count", JsonObject({})) for number in range(20)]
    counted = [result.value for result in door.call_all(calls)]
    assert sorted(counted) == list(range(1, 21))
    assert len(servers_in(workspace)) >= 1
    door.close()
    assert servers_in(workspace) == []
    with pytest.raises(ToolkitError, match="closed"):
        door.tool("shop_count")


def test_progress_is_told_while_the_call_runs(make_door: Doors, workspace: Path) -> None:
    heard: list[Progress] = []
    door = make_door(on_progress=heard.append)
    (workspace / "x.go").touch()
    assert door.tool("shop_work", steps=3, name="x").root == 3
    assert [(event.title, dict(event.data)) for event in heard] == [
        (f"step {step}", {"progress": step, "total": 3}) for step in (1, 2, 3)
    ]
    assert {event.tool_name for event in heard} == {"shop_work"}


def test_rules_judge_the_command_and_the_address(make_sync: Doors, served: ModuleType, workspace: Path) -> None:
    rules = [
        served.Rule("deny", tools=["shop_add"], command="python shop.py"),
        served.Rule("deny", tools=["web_add"], host="127.0.0.1"),
    ]
    door = make_sync(policy=served.SecurityPolicy(default="allow", rules=rules))
    for name in ("shop_add", "web_add"):
        with pytest.raises(ToolNotAllowed, match="not allowed"):
            door.tool(name, a=1)
    assert servers_in(workspace) == []


def test_permissions_that_are_missing_refuse_by_name(make_sync: Doors) -> None:
    door = make_sync(permissions={"read"})
    for name, missing in (("shop_add", "execute"), ("web_add", "network")):
        with pytest.raises(ToolNotAllowed, match=missing):
            door.tool(name, a="nonsense")
