"""Spans of calls, in both flavours of a toolkit: what they say, what they leave out, and whose children they are."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import Field

from tests.runtime.conftest import Door, MakeDoor
from toolkit import Approve, SetupError, ToolCall, ToolContext, ToolkitError, Tracing, tool
from toolkit.stores import AuditFile

PROVIDER = TracerProvider()
EXPORTER = InMemorySpanExporter()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
TRACER = PROVIDER.get_tracer("the application")


@pytest.fixture(autouse=True)
def _forget_spans() -> None:
    EXPORTER.clear()


def spans() -> dict[str, ReadableSpan]:
    return {span.name: span for span in EXPORTER.get_finished_spans()}


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def is_child(inner: ReadableSpan, outer: ReadableSpan) -> bool:
    assert outer.context is not None
    return inner.parent is not None and inner.parent.span_id == outer.context.span_id


def work(name: str) -> None:
    with TRACER.start_as_current_span(name):
        pass


@tool
def sell(item: str, key: Annotated[str, Field(json_schema_extra={"x-secret": True})] = "none") -> dict[str, str]:
    "Sell something."
    work("inside sell")
    if item == "nothing":
        raise RuntimeError("the secret is swordfish")
    return {"sold": item}


@tool
async def sell_later(item: str) -> str:
    "Sell something."
    await asyncio.sleep(0)
    work("inside sell_later")
    return f"sold {item}"


@tool(permissions=["read"])
def resell(item: str, ctx: ToolContext) -> str:
    "Sell something through another tool."
    return str(sell.execute_raw(json.dumps({"item": item}), ctx).value)


TOOLS = [sell, sell_later, resell]


@pytest.fixture
def door(make_door: MakeDoor) -> Door:
    return make_door(packs=TOOLS, tracing=Tracing(PROVIDER), agent="seller", session_id="s-1")


def test_a_call_is_a_span_by_the_conventions(door: Door) -> None:
    result = door.call(ToolCall("call_1", "sell", {"item": "apple", "key": "swordfish"}))

    assert result.kind == "data"
    found = spans()["execute_tool sell"]
    assert found.kind is trace.SpanKind.INTERNAL and found.status.is_unset
    duration = facts(found).pop("toolkit.duration_ms")
    assert isinstance(duration, float)
    assert {key: value for key, value in facts(found).items() if key != "toolkit.duration_ms"} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "sell",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.agent.name": "seller",
        "gen_ai.conversation.id": "s-1",
        "toolkit.decision": "allow",
    }
    assert found.instrumentation_scope is not None and found.instrumentation_scope.name == "toolkit"


@pytest.mark.parametrize("name", ["sell", "sell_later"])
@pytest.mark.parametrize("options", [{}, {"deadline": 60}])
def test_what_a_handler_does_is_part_of_the_call_in_any_thread_or_task(
    door: Door, name: str, options: dict[str, Any]
) -> None:
    with TRACER.start_as_current_span("request") as request:
        (door.with_options(**options) if options else door).invoke(name, {"item": "apple"})
        assert trace.get_current_span() is request

    found = spans()
    assert is_child(found[f"inside {name}"], found[f"execute_tool {name}"])
    assert is_child(found[f"execute_tool {name}"], found["request"])


def test_calls_at_the_same_time_are_siblings(door: Door) -> None:
    with TRACER.start_as_current_span("request"):
        door.call_all([ToolCall(str(number), "sell_later", {"item": "apple"}) for number in range(5)])

    request = spans()["request"]
    calls = [span for span in EXPORTER.get_finished_spans() if span.name == "execute_tool sell_later"]
    assert [is_child(span, request) for span in calls] == [True] * 5
    assert sorted(facts(span)["gen_ai.tool.call.id"] for span in calls) == list("01234")


def test_a_call_within_a_call_is_its_child(door: Door) -> None:
    door.invoke("resell", {"item": "apple"})
    found = spans()
    assert is_child(found["execute_tool sell"], found["execute_tool resell"])


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("sell", {"item": "nothing"}, {"error.type": "INTERNAL", "toolkit.decision": "allow"}),
        ("sell", {"item": 7}, {"error.type": "INVALID_TOOL_ARGUMENTS"}),
        ("sel", {"item": "apple"}, {"error.type": "TOOL_NOT_FOUND"}),
        ("sell_later", {"item": "apple"}, {"error.type": "TOOL_NOT_ALLOWED", "toolkit.decision": "deny"}),
    ],
)
def test_a_failure_has_its_code_and_no_text(
    make_door: MakeDoor, name: str, arguments: Any, expected: dict[str, str]
) -> None:
    from toolkit import DynamicPolicy

    door = make_door(
        DynamicPolicy(default="allow", tools={"sell_later": "deny"}), packs=TOOLS, tracing=Tracing(PROVIDER)
    )
    with pytest.raises(ToolkitError):
        door.invoke(name, arguments)

    [found] = [span for span in EXPORTER.get_finished_spans() if span.name.startswith("execute_tool")]
    assert found.name == ("execute_tool" if name == "sel" else f"execute_tool {name}")
    wanted = {key: value for key, value in facts(found).items() if key.startswith(("error", "toolkit.dec"))}
    assert wanted == expected
    assert (found.status.status_code, found.status.description) == (trace.StatusCode.ERROR, None)
    assert found.events == () and "swordfish" not in found.to_json()


def test_an_approved_call_says_so(make_door: MakeDoor) -> None:
    from toolkit import DynamicPolicy

    policy = DynamicPolicy(default="deny", tools={"sell": "ask"})
    door = make_door(policy, packs=TOOLS, tracing=Tracing(PROVIDER), approver=lambda request: Approve())
    door.invoke("sell", {"item": "apple"})
    found = facts(spans()["execute_tool sell"])
    assert (found["toolkit.decision"], found["toolkit.approval"]) == ("ask", "approve")


def test_arguments_and_results_are_there_only_if_they_are_asked_for_and_without_secrets(make_door: MakeDoor) -> None:
    door = make_door(packs=TOOLS, tracing=Tracing(PROVIDER, content=True))
    door.invoke("sell", {"item": "apple", "key": "swordfish"})
    door.invoke("sell_later", {"item": "x" * 20_000})

    first, second = facts(spans()["execute_tool sell"]), facts(spans()["execute_tool sell_later"])
    assert json.loads(first["gen_ai.tool.call.arguments"]) == {"item": "apple", "key": None}
    assert json.loads(first["gen_ai.tool.call.result"]) == {"sold": "apple"}
    assert len(second["gen_ai.tool.call.arguments"]) == len(second["gen_ai.tool.call.result"]) == 10_001


@tool
def odd() -> Any:
    "Returns what JSON does not have."
    return {"made": Unwritable()}


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError("nobody writes this")


def test_a_result_that_cannot_be_written_is_left_out_of_the_trace(make_door: MakeDoor) -> None:
    door = make_door(packs=[odd], tracing=Tracing(PROVIDER, content=True), output_check="off")
    assert type(door.invoke("odd", {}).content["made"]) is Unwritable
    found = spans()["execute_tool odd"]
    assert found.status.is_unset and "gen_ai.tool.call.result" not in facts(found)


def test_the_audit_log_is_written_as_without_tracing(make_door: MakeDoor, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    door = make_door(packs=TOOLS, tracing=Tracing(PROVIDER), audit=audit)
    door.invoke("sell", {"item": "apple"})
    with pytest.raises(ToolkitError):
        door.invoke("sell", {"item": "nothing"})
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["event"], line.get("outcome")) for line in lines] == [
        ("start", None), ("end", "ok"), ("start", None), ("end", "INTERNAL"),
    ]  # fmt: skip
    assert len(EXPORTER.get_finished_spans()) == 4


def test_a_tool_of_another_origin_is_traced_too(tmp_path: Path) -> None:
    from toolkit import SecurityPolicy, ToolkitContext

    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), tracing=Tracing(PROVIDER, content=True))
    with ToolContext.standalone(context) as ctx:
        sell.execute_raw('{"item": "apple", "key": "swordfish"}', ctx)
    assert "swordfish" not in spans()["execute_tool sell"].to_json()


def test_mistakes_in_the_setting_are_setup_errors(make_door: MakeDoor) -> None:
    with pytest.raises(SetupError, match=r"tracing must be True, False or Tracing\(...\), not str"):
        make_door(tracing="yes")
    wrong: Any = "yes"
    with pytest.raises(SetupError, match="must be a TracerProvider, not str"):
        make_door(tracing=Tracing(wrong))


PROGRAM = """
import sys
{before}
from toolkit import SecurityPolicy, SetupError, ToolkitContext, create_agent_toolkit
context = lambda **more: ToolkitContext(".", SecurityPolicy(default="allow"), **more)
with create_agent_toolkit(context()) as toolkit:
    toolkit.invoke("done", {{"message": "x"}})
print([name for name in sys.modules if name.startswith(("opentelemetry", "toolkit.runtime.tracing"))])
try:
    create_agent_toolkit(context(tracing=True)).invoke("done", {{"message": "x"}})
    print("traced")
except SetupError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", "traced"),
        (
            "sys.modules['opentelemetry'] = None",
            "tracing needs the package 'opentelemetry-api': pip install 'typed-toolkit[otel]'",
        ),
    ],
)
def test_opentelemetry_is_imported_only_by_those_who_trace(before: str, expected: str, tmp_path: Path) -> None:
    program: Sequence[str] = [sys.executable, "-c", PROGRAM.format(before=before)]
    printed = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == ["['opentelemetry']" if before else "[]", expected]


def test_the_load_of_a_traced_toolkit_has_the_records_of_its_log(tmp_path: Path, make_door: MakeDoor) -> None:
    audit = AuditFile(tmp_path / "audit.jsonl", batch_seconds=60)
    door = make_door(packs=TOOLS, tracing=Tracing(PROVIDER), audit=audit)
    door.call(ToolCall("1", "sell", {"item": "pen"}))
    assert door.toolkit.load.unwritten == 2
