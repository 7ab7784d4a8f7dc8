"""The path of one call: every entry point and every error code, under both toolkits."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from acme.generated import AddInput, AddOutput, Rule, SecurityPolicy
from tests.projects import Project, run, tool
from tests.runtime.conftest import Door, MakeDoor
from toolkit import InvalidArguments, ToolCall, ToolFailed, ToolkitError, ToolName, ToolNotFound
from toolkit.generated.catalog import CATALOG


def by_invoke(door: Door, name: str, arguments: Any) -> Any:
    return door.invoke(name, arguments)


def by_method(door: Door, name: str, arguments: Any) -> Any:
    return door.tool(name.replace("-", "_"), **arguments)


def by_raw(door: Door, name: str, arguments: Any) -> Any:
    return door.execute_raw(name, json.dumps(arguments))


WAYS = {"invoke": by_invoke, "tools.x": by_method, "execute_raw": by_raw}
RAISING = [pytest.param(way, id=name) for name, way in WAYS.items()]

Way = Callable[[Door, str, Any], Any]


def caught(door: Door, way: Way, name: str, arguments: Any) -> ToolkitError:
    with pytest.raises(ToolkitError) as failure:
        way(door, name, arguments)
    return failure.value


def test_message_has_role_name_and_the_handlers_value(door: Door) -> None:
    message = door.invoke("add", {"a": 2, "b": 3})
    assert (message.role, message.name, message.content) == ("function", "add", AddOutput(sum=5))


def test_every_way_in_gives_the_same_content(door: Door) -> None:
    expected = AddOutput(sum=5)
    assert door.invoke("add", {"a": 2, "b": 3}).content == expected
    assert door.invoke("add", AddInput(a=2, b=3)).content == expected
    assert door.tool("add", a=2, b=3) == expected
    assert door.execute_raw("add", '{"a": 2, "b": 3}').content == expected
    assert door.call(ToolCall("1", "add", {"a": 2, "b": 3})).value == {"sum": 5}
    assert door.call(ToolCall("1", "add", {}, raw_arguments='{"a": 2, "b": 3}')).value == {"sum": 5}


@pytest.mark.parametrize("way", RAISING[::2])
def test_unknown_name_names_the_nearest(door: Door, way: Way) -> None:
    error = caught(door, way, "shuot", {})
    assert (error.code, error.tool_name) == ("TOOL_NOT_FOUND", "shuot")
    assert "Did you mean 'shout'?" in error.message


@pytest.mark.parametrize("name", ["ADD", "add\0", "аdd", "add ", "generated.add", "__class__", "", 7, None, ["add"]])
def test_names_that_are_no_tools(door: Door, name: Any) -> None:
    with pytest.raises(ToolNotFound):
        door.invoke(name, {})


@pytest.mark.parametrize("way", RAISING)
def test_denied_name(make_door: MakeDoor, way: Way) -> None:
    error = caught(make_door(SecurityPolicy(default="deny")), way, "add", {"a": 1, "b": 2})
    assert (error.code, error.tool_name) == ("TOOL_NOT_ALLOWED", "add")
    assert "default is deny" in error.message


def test_arguments_that_are_no_object(door: Door) -> None:
    for arguments in (123, None, "text", ["a"], True, '{"a": 1, "b": 2}'):
        error = caught(door, by_invoke, "add", arguments)
        assert (error.code, error.tool_name) == ("INVALID_TOOL_ARGUMENTS_TYPE", "add"), arguments
    for text in ("123", "null", '"text"', "[1]", "true"):
        with pytest.raises(ToolkitError) as failure:
            door.execute_raw("add", text)
        assert (failure.value.code, failure.value.tool_name) == ("INVALID_TOOL_ARGUMENTS_TYPE", "add"), text


def test_three_codes_come_in_the_order_of_the_road(make_door: MakeDoor) -> None:
    door = make_door(SecurityPolicy(default="deny", tools={"shout": "allow"}))
    assert caught(door, by_invoke, "nothing", 123).code == "TOOL_NOT_FOUND"
    assert caught(door, by_invoke, "add", 123).code == "TOOL_NOT_ALLOWED"
    assert caught(door, by_invoke, "add", {"nonsense": 1}).code == "TOOL_NOT_ALLOWED"
    assert caught(door, by_invoke, "shout", 123).code == "INVALID_TOOL_ARGUMENTS_TYPE"
    assert caught(door, by_invoke, "shout", {"nonsense": 1}).code == "INVALID_TOOL_ARGUMENTS"


CODES: dict[str, tuple[str, dict[str, object]]] = {
    "TOOL_NOT_ALLOWED": ("hold", {"key": "x"}),
    "INVALID_TOOL_ARGUMENTS": ("add", {"a": "7", "b": 1}),
    "SANDBOX_VIOLATION": ("fail", {"how": "outside"}),
    "TOOL_FAILED": ("fail", {"how": "expected"}),
    "INTERNAL": ("fail", {"how": "unexpected"}),
}


@pytest.mark.parametrize("way", RAISING)
@pytest.mark.parametrize("code", CODES)
def test_each_code_is_reached_by_every_way_in(make_door: MakeDoor, way: Way, code: str) -> None:
    name, arguments = CODES[code]
    door = make_door(SecurityPolicy(default="allow", tools={"hold": "deny"}))
    error = caught(door, way, name, arguments)
    assert (error.code, error.tool_name) == (code, name)
    result = door.call(ToolCall("id-1", name, arguments))
    assert (result.tool_call_id, result.name, result.kind) == ("id-1", name, "error")
    assert str(result.value).startswith(f"{code}: ")


def test_call_reaches_the_codes_that_come_before_the_arguments(make_door: MakeDoor) -> None:
    door = make_door(SecurityPolicy(default="deny"))
    assert str(door.call(ToolCall("1", "nope", {})).value).startswith("TOOL_NOT_FOUND: ")
    broken = ToolCall("1", "add", {}, raw_arguments='{"a": 1, ')
    assert str(door.call(broken).value).startswith("TOOL_NOT_ALLOWED: ")
    assert str(make_door().call(broken).value).startswith("INVALID_TOOL_ARGUMENTS: ")
    listed = ToolCall("1", "add", {}, raw_arguments="[1]")
    assert str(make_door().call(listed).value).startswith("INVALID_TOOL_ARGUMENTS_TYPE: ")


def test_expected_failure_keeps_reason_and_details(door: Door) -> None:
    error = caught(door, by_invoke, "fail", {"how": "expected"})
    assert isinstance(error, ToolFailed)
    assert (error.reason, error.retriable) == ("CONFLICT", True)
    assert error.details == {"reason": "CONFLICT", "file": "a.txt"}
    assert str(error) == "TOOL_FAILED: CONFLICT: somebody was faster"


@pytest.mark.parametrize("how", ["unexpected", "exit"])
def test_unexpected_errors_show_an_id_and_log_the_cause(door: Door, how: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="toolkit"):
        error = caught(door, by_invoke, "fail", {"how": how})
    assert error.code == "INTERNAL"
    assert "hunter2" not in str(error)
    assert str(error.details["id"]) in error.message
    assert str(error.details["id"]) in caplog.text
    assert ("hunter2" in caplog.text) == (how == "unexpected")


def test_validators_errors_are_kept_without_inputs_and_urls(door: Door) -> None:
    error = caught(door, by_invoke, "add", {"a": "s3cret", "b": 1, "c": "s3cret"})
    assert isinstance(error, InvalidArguments)
    assert error.details == {
        "errors": [
            {"type": "int_type", "loc": ("a",), "msg": "Input should be a valid integer"},
            {"type": "extra_forbidden", "loc": ("c",), "msg": "Extra inputs are not permitted"},
        ],
        "error_count": 2,
    }
    assert "s3cret" not in f"{error} {error.details}"


def test_misspelt_argument_names_the_nearest(door: Door) -> None:
    assert (
        "nte: unknown argument. Did you mean 'note'?"
        in caught(door, by_invoke, "add", {"a": 1, "b": 2, "nte": "x"}).message
    )


@pytest.mark.slow
def test_errors_are_listed_up_to_fifty_and_counted(door: Door) -> None:
    error = caught(door, by_invoke, "add", {"a": 1, "b": 2} | {f"x{n}": n for n in range(100_000)})
    errors = error.details["errors"]
    assert isinstance(errors, list)
    assert (len(errors), error.details["error_count"]) == (50, 100_000)
    assert len(error.message) < 1_000


def test_tool_without_handler(make_door: MakeDoor) -> None:
    from acme.tools import ACME

    door = make_door(packs=[ACME.without("add")])
    error = caught(door, by_invoke, "add", {"a": 1, "b": 2})
    assert isinstance(error, ToolFailed)
    assert (error.reason, error.tool_name) == ("NO_HANDLER", "add")
    assert error.message == "no pack of this toolkit handles 'add'; bind a handler, and list its pack in 'packs'"
    assert caught(door, by_invoke, "add", {}).code == "INVALID_TOOL_ARGUMENTS"
    assert "add" not in [tool.name for tool in door.get_allowed_tools()]


@pytest.mark.parametrize("how", ["wrong_output", "constructed", "not_json"])
def test_outputs_are_checked(make_door: MakeDoor, how: str, caplog: pytest.LogCaptureFixture) -> None:
    error = caught(make_door(), by_invoke, "fail", {"how": how})
    assert isinstance(error, ToolFailed)
    assert (error.reason, error.tool_name) == ("INVALID_OUTPUT", "fail")
    with caplog.at_level(logging.WARNING, logger="toolkit"):
        warned = make_door(output_check="warn").invoke("fail", {"how": how})
    assert "does not match the tool's output schema" in caplog.text
    caplog.clear()
    unchecked = make_door(output_check="off").invoke("fail", {"how": how})
    assert not caplog.text
    assert type(warned.content) is type(unchecked.content)


def test_an_error_result_is_not_checked_against_the_output_schema(make_door: MakeDoor) -> None:
    result = make_door(output_check="enforce").call(ToolCall("1", "fail", {"how": "expected"}))
    assert result.value == "TOOL_FAILED: CONFLICT: somebody was faster"


def test_content_is_untouched_and_absent_fields_stay_absent(door: Door) -> None:
    plain = door.invoke("add", {"a": 1, "b": 2})
    noted = door.invoke("add", {"a": 1, "b": 2, "note": "x"})
    assert (plain.text(), noted.text()) == ('{"sum":3}', '{"sum":3,"note":"x"}')
    assert plain.to_result("1").value == {"sum": 3}


def test_tool_without_output_schema_answers_in_text(door: Door) -> None:
    message = door.invoke("count-words", {"text": "one two"})
    assert message.content.text == message.text() == "2 words"
    result = message.to_result("7")
    assert (result.kind, result.value) == ("text", "2 words")
    assert door.tool("count_words", text="one").text == "1 words"


def test_permissions_not_granted_refuse_by_name(make_door: MakeDoor) -> None:
    door = make_door(permissions=["read"])
    error = caught(door, by_invoke, "hold", 123)
    assert error.code == "TOOL_NOT_ALLOWED"
    assert "needs the permission 'execute'" in error.message
    assert "hold" not in [tool.name for tool in door.get_allowed_tools()]


def test_rules_deny_first_then_ask_then_allow_then_tools_then_default(make_door: MakeDoor) -> None:
    rules: list[Rule] = [
        Rule("allow", tools=["add", "shout", "fail"]),
        Rule("ask", tools=["shout"]),
        Rule("deny", permission="read", justification="no files today"),
        Rule("allow", tools=[]),
    ]
    for order in (rules, rules[::-1], rules[2:] + rules[:2]):
        door = make_door(SecurityPolicy(default="deny", tools={"count-words": "allow"}, rules=order))
        assert [tool.name for tool in door.get_allowed_tools()] == ["add", "count-words"]
        assert "no files today" in caught(door, by_invoke, "fail", {"how": "expected"}).message
        assert "no approver is configured" in caught(door, by_invoke, "shout", {"text": "x"}).message


def test_policy_naming_no_tool_is_refused_when_the_toolkit_is_built(make_door: MakeDoor) -> None:
    for policy in (SecurityPolicy(tools={"shuot": "deny"}), SecurityPolicy(rules=[Rule("deny", tools=["shuot"])])):  # type: ignore[dict-item, list-item]
        with pytest.raises(ValueError, match=r"the policy names 'shuot', which is not a tool\. Did you mean 'shout'\?"):
            make_door(policy)


def test_allowed_tools_are_definitions_in_catalog_order(door: Door) -> None:
    tools = door.get_allowed_tools()
    own = ["add", "count-words", "fail", "hold", "library_find", "library_lend-book", "maths_add", "maths_mean"]
    own += ["shapes_search", "shout", "quote", "greet-kindly", "past_quotes", "best_offer"]
    built_in = [name for name in get_args(ToolName) if not CATALOG.tools[name].must_be_named]
    assert [tool.name for tool in tools] == sorted([*built_in, *own])
    add = next(tool for tool in tools if tool.name == "add")
    assert add.description == "Add two whole numbers."
    assert add.parameters["required"] == ["a", "b"]


def test_read_file_gives_role_name_and_output(make_door: MakeDoor, tmp_path: Any) -> None:
    door = make_door()
    (tmp_path / "workspace" / "README.md").write_text("# Hello\n")
    message = door.invoke("read_file", {"path": "README.md"})
    assert (message.role, message.name, type(message.content).__name__) == ("function", "read_file", "ReadFileOutput")
    assert message.content.content == "# Hello\n"


@pytest.mark.slow
def test_a_name_that_providers_refuse_is_known_by_its_alias(tmp_path: Path) -> None:
    folder = Project(tmp_path, [tool("math.factorial")])
    folder.generate()
    code = """
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import Pack, ToolCall
from toolkit.wire.definition import alias
pack = Pack({"math.factorial": lambda args, ctx: {"rows": [], "total": 0}})
policy = SecurityPolicy(default="deny", tools={"math.factorial": "allow"})
with create_agent_toolkit(ToolkitContext(".", policy), packs=[pack]) as toolkit:
    for name in ("math.factorial", alias("math.factorial"), "math_factorial"):
        result = toolkit.call(ToolCall("1", name, {"query": "x"}))
        print(result.name, result.kind)
"""
    assert run([sys.executable, "-c", code], tmp_path).stdout.split("\n")[:3] == [
        "math.factorial data",
        "math.factorial data",
        "math_factorial error",
    ]


def test_an_unknown_name_of_any_length_is_an_error_of_a_few_words(make_door: MakeDoor) -> None:
    with pytest.raises(ToolNotFound) as caught:
        make_door().invoke("x" * 1_000_000, {})
    assert caught.value.tool_name == "x" * 100 + "…"
    assert len(caught.value.message) < 200 and caught.value.details == {}


WRONG_IN_MANY_PLACES: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "unknown arguments": ("add", {f"k{n}": n for n in range(100_000)}, 100_000, "k0: unknown argument"),
    "some unknown arguments": (
        "add",
        {"a": 1, "b": 2, **{f"k{n}": n for n in range(900)}},
        900,
        "k0: unknown argument",
    ),
    "wrong items": ("maths_mean", {"numbers": ["x"] * 100_000}, 100_000, "numbers.0: Input should be a valid number"),
    "long names": ("add", {"n" * 1_000_000: 1, "\x1b[31m" * 1000: 2}, 4, "a: required argument is missing"),
}


@pytest.mark.parametrize("coerce", [False, True])
@pytest.mark.parametrize("case", WRONG_IN_MANY_PLACES)
def test_arguments_that_are_wrong_in_many_places_are_one_short_error(
    make_door: MakeDoor, case: str, coerce: bool
) -> None:
    tool, arguments, count, words = WRONG_IN_MANY_PLACES[case]
    with pytest.raises(InvalidArguments) as caught:
        make_door(coerce=coerce).invoke(tool, arguments)
    errors: Any = caught.value.details["errors"]
    assert caught.value.details["error_count"] == count
    assert len(errors) == min(count, 50) and set(errors[0]) <= {"type", "loc", "msg", "ctx"}
    assert caught.value.message.startswith(words)
    assert len(caught.value.message) < 2000 and len(repr(errors)) < 20_000
    assert "\x1b" not in caught.value.message
