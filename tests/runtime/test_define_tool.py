"""Tools made from functions: their definitions, arguments and results, for every way to run them."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolkit import (
    CancelSignal,
    ContentBlock,
    ContentOutput,
    DependencyKey,
    Depends,
    DynamicContext,
    DynamicPolicy,
    FunctionTool,
    Permissions,
    SetupError,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolkitContext,
    ToolResult,
    create_agent_toolkit,
    create_async_agent_toolkit,
    define_tool,
    tool,
)
from toolkit.runtime.functions import parameters_in
from toolkit.runtime.packs import CodeTool

Run = Callable[..., ToolResult]


def by_execute_raw(tool: CodeTool, text: str, context: DynamicContext) -> ToolResult:
    with ToolContext.standalone(context, call_id="1") as ctx:
        return tool.execute_raw(text, ctx)


def by_execute_raw_async(tool: CodeTool, text: str, context: DynamicContext) -> ToolResult:
    async def run() -> ToolResult:
        async with ToolContext.standalone(context, call_id="1") as ctx:
            return await tool.execute_raw_async(text, ctx)

    return asyncio.run(run())


def by_toolkit(tool: CodeTool, text: str, context: DynamicContext) -> ToolResult:
    with create_agent_toolkit(context, packs=[tool]) as toolkit:
        return toolkit.call(ToolCall("1", tool.name, {}, raw_arguments=text))


def by_async_toolkit(tool: CodeTool, text: str, context: DynamicContext) -> ToolResult:
    async def run() -> ToolResult:
        async with create_async_agent_toolkit(context, packs=[tool]) as toolkit:
            return await toolkit.call(ToolCall("1", tool.name, {}, raw_arguments=text))

    return asyncio.run(run())


@pytest.fixture(params=[by_execute_raw, by_execute_raw_async, by_toolkit, by_async_toolkit])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Every way to run a tool returns the same."""

    def run(tool: CodeTool, text: str = "{}", policy: DynamicPolicy | None = None, **options: Any) -> ToolResult:
        context = DynamicContext(tmp_path, policy or DynamicPolicy(default="allow"), **options)
        result: ToolResult = request.param(tool, text, context)
        assert (result.tool_call_id, result.name) == ("1", tool.name)
        return result

    return run


# -- what a model sends ------------------------------------------------------------------------------------------------


class Point(BaseModel):
    x: int
    label: str | None = None


@tool
def show(
    number: int,
    size: Literal["small", "large"] = "small",
    ratio: float = 0.5,
    maybe: int | None = None,
    points: list[Point] = [],  # noqa: B006
) -> str:
    """Show what came."""
    return f"{number!r} {size} {ratio!r} {maybe!r} {points}"


ACCEPTED: dict[str, str] = {
    '{"number": 7}': "7 small 0.5 None []",
    '{"number": 7.0}': "7 small 0.5 None []",
    '{"number": 7, "size": "large", "ratio": 1}': "7 large 1 None []",
    '{"number": 7, "maybe": null}': "7 small 0.5 None []",
    '{"number": 7, "maybe": 1}': "7 small 0.5 1 []",
    '{"number": 7, "points": [{"x": 1.0}]}': "7 small 0.5 None [Point(x=1, label=None)]",
}
REFUSED: dict[str, str] = {
    '{"number": "7"}': "INVALID_TOOL_ARGUMENTS: number: Input should be a valid integer",
    '{"number": true}': "INVALID_TOOL_ARGUMENTS: number: Input should be a valid integer",
    '{"number": 7.5}': "INVALID_TOOL_ARGUMENTS: number: Input should be a valid integer",
    '{"number": null}': "INVALID_TOOL_ARGUMENTS: number: Input should be a valid integer",
    '{"number": 7, "size": null}': "INVALID_TOOL_ARGUMENTS: size: Input should be 'small' or 'large'",
    '{"number": 7, "ratio": "1"}': "INVALID_TOOL_ARGUMENTS: ratio: Input should be a valid number",
    "{}": "INVALID_TOOL_ARGUMENTS: number: required argument is missing",
    '{"number": 7, "points": [{"x": "1"}]}': "INVALID_TOOL_ARGUMENTS: points.0.x: Input should be a valid integer",
    '{"number": 7, "points": [{"x": 1, "y": 2}]}': "INVALID_TOOL_ARGUMENTS: points.0.y: unknown property",
    '{"number": 7, "raito": 1}': "INVALID_TOOL_ARGUMENTS: raito: unknown argument. Did you mean 'ratio'?",
    '{"number": 7, "number": 8}': "INVALID_TOOL_ARGUMENTS: the arguments are not valid JSON: the key 'number' is duplicated",
    '{"number": NaN}': "INVALID_TOOL_ARGUMENTS: the arguments are not valid JSON: NaN is not a JSON number",
    '{"number": 7': "INVALID_TOOL_ARGUMENTS: the arguments are not valid JSON: Expecting ',' delimiter",
    '{"number": 7} {}': "INVALID_TOOL_ARGUMENTS: the arguments are not valid JSON: Extra data",
    "[7]": "INVALID_TOOL_ARGUMENTS_TYPE: the arguments of 'show' must be an object, not a list",
    "null": "INVALID_TOOL_ARGUMENTS_TYPE: the arguments of 'show' must be an object, not null",
}


def test_accepts_what_the_schema_accepts(run: Run) -> None:
    for text, shown in ACCEPTED.items():
        assert run(show, text) == ToolResult("1", "show", "text", shown), text


def test_refuses_what_the_schema_refuses(run: Run) -> None:
    for text, words in REFUSED.items():
        result = run(show, text)
        assert result.kind == "error", text
        assert str(result.value).startswith(words), text


def test_text_that_is_none_never_raises() -> None:
    with ToolContext.standalone() as ctx:
        for text in (None, 7, ["{}"]):
            result = show.execute_raw(text, ctx)  # type: ignore[arg-type]
            assert str(result.value).startswith("INVALID_TOOL_ARGUMENTS: the arguments must be JSON text"), text


def test_empty_text_is_a_call_without_arguments(run: Run) -> None:
    assert run(give_text, " ").value == "text"
    assert run(show, "").value == "INVALID_TOOL_ARGUMENTS: number: required argument is missing"


@tool
def awkward(
    schema: int, _hidden: int = 1, copy: int = 2, from_: Annotated[int, Field(alias="from")] = 3, *, args: int = 4
) -> list[int]:
    """Take parameters whose names mean something elsewhere."""
    return [schema, _hidden, copy, from_, args]


@tool
def positional(a: int, b: int = 2, /, c: int = 3) -> list[int]:
    return [a, b, c]


def test_parameters_may_have_any_name(run: Run) -> None:
    assert list(awkward.definition.parameters["properties"]) == ["schema", "_hidden", "copy", "from", "args"]  # type: ignore[call-overload]
    assert run(awkward, '{"schema": 5, "_hidden": 6, "from": 7, "args": 8}').value == [5, 6, 2, 7, 8]
    for spelled in ("from_", "schema_", "hidden_"):
        assert run(awkward, f'{{"schema": 5, "{spelled}": 6}}').kind == "error"


def test_positional_parameters_are_filled_in(run: Run) -> None:
    assert run(positional, '{"a": 1, "c": 5}').value == [1, 2, 5]


NOTHING: Any = object()


@tool
def with_odd_defaults(path: Path = Path("a"), mark: str = NOTHING, items: list[int] = [1]) -> bool:  # noqa: B006
    """Defaults are the function's own, whatever they are."""
    return path == Path("a") and mark is NOTHING and items == [1]


def test_defaults_are_the_functions_own(run: Run) -> None:
    assert run(with_odd_defaults).value is True
    assert with_odd_defaults.definition.parameters["properties"] == {
        "path": {"type": "string", "format": "path", "default": "a"},
        "mark": {"type": "string"},
        "items": {"type": "array", "items": {"type": "integer"}, "default": [1]},
    }


def test_coerce_repairs_what_models_get_wrong(run: Run) -> None:
    assert run(show, '{"number": "7", "size": null}', coerce=True).value == "7 small 0.5 None []"


# -- what a model is told ----------------------------------------------------------------------------------------------


class Database:
    def __init__(self) -> None:
        self.closed = False


def open_database() -> Iterator[Database]:
    database = Database()
    yield database
    database.closed = True


DATABASE = DependencyKey("database", open_database)
handed_out: list[Database] = []


@tool(permissions=["read"], title="Find rows")
def find(
    query: Annotated[str, Field(description="What to look for.", json_schema_extra={"x-resource": "read-path"})],
    database: Annotated[Database, Depends(DATABASE)],
    ctx: ToolContext,
    settings: ToolkitContext,
    limit: Annotated[int, Field(ge=1)] = 10,
    again: ToolContext | None = None,
    same_settings: ToolkitContext | None = None,
) -> list[str]:
    """Find rows in the database.

    It is small.

    :param limit: How many
        at most.
    :returns: the rows.

    >>> find("x")
    """
    assert not database.closed
    assert again is ctx
    assert same_settings is settings
    handed_out.append(database)
    ctx.metadata(title=f"found {query}", limit=limit)
    return [query, settings.agent, type(ctx).__name__]


def test_injected_parameters_never_show_and_texts_come_from_the_function() -> None:
    assert find.definition.name == "find"
    assert find.definition.description == "Find rows in the database.\n\nIt is small."
    assert find.definition.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "What to look for.", "x-resource": "read-path"},
            "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "How many at most."},
        },
    }
    assert find.permissions == Permissions(required=("read",))
    assert (find.name, find.title, find.owner) == ("find", "Find rows", f"{__name__}.find")


def test_injected_parameters_are_given_and_given_back(run: Run) -> None:
    result = run(find, '{"query": "x"}', agent="tester")
    assert result.value == ["x", "tester", "ToolContext"]
    assert handed_out[-1].closed
    for hidden in ("database", "ctx", "settings", "again"):
        assert run(find, f'{{"query": "x", "{hidden}": 1}}').value == (
            f"INVALID_TOOL_ARGUMENTS: {hidden}: unknown argument; 'find' takes query, limit"
        )


async def open_slowly() -> AsyncIterator[Database]:
    database = Database()
    await asyncio.sleep(0)
    yield database
    database.closed = True


@tool
def uses_async(database: Annotated[Database, Depends(open_slowly)]) -> bool:
    handed_out.append(database)
    return database.closed


def test_an_async_dependency_of_a_sync_function(run: Run) -> None:
    assert run(uses_async).value is False
    assert handed_out[-1].closed


def test_dependencies_are_overridden_on_the_context(run: Run) -> None:
    mine = Database()
    run(find, '{"query": "x"}', overrides={"database": lambda: mine})
    assert handed_out[-1] is mine


class Search(BaseModel):
    """What to look for."""

    query: str
    limit: int = 10


def search(args: Search, ctx: ToolContext) -> str:
    return f"{args.query} {args.limit} {ctx.tool_name}"


searching = define_tool(search, name="search", description="Search.", input=Search)


def test_with_input_the_first_parameter_takes_it_all(run: Run) -> None:
    assert searching.definition.parameters == {
        "description": "What to look for.",
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
    }
    assert run(searching, '{"query": "x", "limit": 2.0}').value == "x 2 search"
    assert run(searching, '{"query": "x", "more": 1}').kind == "error"
    with ToolContext.standalone() as ctx:
        assert searching(Search(query="y"), ctx) == "y 10 standalone"


def test_a_definition_can_be_changed_by_whoever_gets_it() -> None:
    find.definition.parameters.clear()
    assert find.definition.parameters["type"] == "object"


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def step(self, by: int = 1) -> int:
        """Count on."""
        self.count += by
        return self.count

    def __call__(self, to: int) -> int:
        """Count up to a number."""
        self.count = to
        return self.count


def scaled(factor: int, number: int) -> int:
    """Multiply by a number."""
    return factor * number


def test_methods_objects_and_partials_are_functions_too(run: Run) -> None:
    counter = Counter()
    step = define_tool(counter.step)
    assert (step.name, step.description, run(step, '{"by": 2}').value, counter.count) == ("step", "Count on.", 2, 2)
    assert run(define_tool(counter, name="count_to"), '{"to": 9}').value == 9
    double = define_tool(functools.partial(scaled, 2), name="double")
    assert (double.description, run(double, '{"number": 4}').value) == ("Multiply by a number.", 8)
    again = define_tool(step, name="again")
    assert (again.name, run(again).value) == ("again", 10)


def test_a_tool_is_still_the_function() -> None:
    assert show(1, maybe=2) == "1 small 0.5 2 []"
    assert show.__doc__ == "Show what came."
    assert repr(show) == f"<tool 'show': {__name__}.show>"


# -- what it gives back ------------------------------------------------------------------------------------------------


@dataclass
class Pair:
    left: int
    right: list[Point]


class Row(TypedDict):
    a: int


@tool
def tell(what: str) -> Any:
    """Give something back, without saying what."""
    return RESULTS[what][0]


@tool
def give_text() -> str:
    return "text"


@tool
async def give_model() -> Point:
    return Point(x=1)


@tool
def give_dataclass() -> Pair:
    return Pair(1, [Point(x=2, label="b")])


@tool
def give_row() -> Row:
    return {"a": 1}


@tool
def give_number() -> float | None:
    return 1.5


@tool
def give_nothing() -> None:
    pass


@tool
def give_blocks() -> list[ContentBlock | str]:
    return ["see", PICTURE]


@tool
def give_picture(ctx: ToolContext) -> ContentBlock:
    ctx.attach(ContentBlock("text", text="more"))
    return PICTURE


@tool
def give_output() -> ContentOutput:
    return ContentOutput(text="see", blocks=(PICTURE,))


@tool(text=lambda pair: f"left {pair.left}")
def give_worded() -> Pair:
    return Pair(3, [])


PICTURE = ContentBlock("image", "image/png", data="aGk=")
SEE = ContentBlock("text", text="see")
GIVEN: dict[FunctionTool[..., Any], tuple[str, object]] = {
    give_text: ("text", "text"),
    give_model: ("data", {"x": 1, "label": None}),
    give_dataclass: ("data", {"left": 1, "right": [{"x": 2, "label": "b"}]}),
    give_row: ("data", {"a": 1}),
    give_number: ("data", 1.5),
    give_nothing: ("text", "(no output)"),
    give_blocks: ("multimodal", (SEE, PICTURE)),
    give_picture: ("multimodal", (PICTURE, ContentBlock("text", text="more"))),
    give_output: ("multimodal", (SEE, PICTURE)),
    give_worded: ("text", "left 3"),
}
RESULTS: dict[str, tuple[object, str, object]] = {
    "text": ("text", "text", "text"),
    "number": (1, "data", 1),
    "list": ([1, "a", None], "data", [1, "a", None]),
    "model": (Point(x=1), "data", {"x": 1, "label": None}),
    "dataclass": (Pair(1, []), "data", {"left": 1, "right": []}),
    "nothing": (None, "text", "(no output)"),
    "picture": (PICTURE, "multimodal", (PICTURE,)),
}


@pytest.mark.sample
@pytest.mark.parametrize("tool", GIVEN, ids=lambda tool: tool.name)
def test_results_have_the_kind_that_fits(run: Run, tool: FunctionTool[..., Any]) -> None:
    result = run(tool)
    assert (result.kind, result.value) == GIVEN[tool]


@pytest.mark.sample
@pytest.mark.parametrize("what", RESULTS)
def test_results_without_a_type_have_the_kind_of_their_value(run: Run, what: str) -> None:
    result = run(tell, f'{{"what": "{what}"}}')
    assert (result.kind, result.value) == RESULTS[what][1:]


def test_content_is_what_the_function_gave(tmp_path: Path) -> None:
    with create_agent_toolkit(
        DynamicContext(tmp_path, DynamicPolicy(default="allow")), packs=[give_dataclass, give_text]
    ) as toolkit:
        message = toolkit.execute_raw("give_dataclass", "{}")
        assert message.content == Pair(1, [Point(x=2, label="b")])  # type: ignore[comparison-overlap]
        assert message.text() == '{"left":1,"right":[{"x":2,"label":"b"}]}'
        assert toolkit.execute_raw("give_text", "{}").text() == "text"


@tool
def wrong_type() -> int:
    return "7"  # type: ignore[return-value]


@tool
def wrong_inside() -> Point:
    return Point.model_construct(x="seven")


@tool
def wrong_flag() -> int:
    return True


@tool
def not_json() -> Any:
    return object()


@tool
def not_finite() -> dict[str, float]:
    return {"a": float("nan")}


@tool
def other_model() -> Point:
    return Search(query="x")  # type: ignore[return-value]


@pytest.mark.sample
@pytest.mark.parametrize(
    "tool", [wrong_type, wrong_inside, wrong_flag, not_json, not_finite, other_model], ids=lambda tool: tool.name
)
def test_what_the_annotation_does_not_say_is_no_output(run: Run, tool: FunctionTool[..., Any]) -> None:
    assert str(run(tool).value).startswith("TOOL_FAILED: INVALID_OUTPUT: ")


def test_the_error_says_which_field_of_a_class_is_wrong_without_its_value(run: Run) -> None:
    text = str(run(wrong_inside).value)
    assert text.endswith("the tool's output schema: the answer: the field 'x' should be int, not str")


def test_outputs_are_not_looked_at_when_that_is_asked_for(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run(wrong_type, output_check="off") == ToolResult("1", "wrong_type", "text", "7")
    with caplog.at_level(logging.WARNING, "toolkit"):
        assert run(wrong_type, output_check="warn").value == "7"
    assert "the output of the tool does not match the tool's output schema" in caplog.text


@tool
def as_on_the_wire() -> Point:
    return {"x": 1.0}  # type: ignore[return-value]


def test_a_result_as_it_is_on_the_wire_becomes_the_type(run: Run) -> None:
    assert run(as_on_the_wire).value == {"x": 1, "label": None}


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@tool(permissions=["read"])
def fail(how: str, ctx: ToolContext) -> str:
    """End badly."""
    if how == "expected":
        raise ToolFailed("CONFLICT", "somebody was faster")
    if how == "exit":
        raise SystemExit(3)
    if how == "outside":
        ctx.fs.open_file("../outside")
    if how == "process":
        ctx.process  # noqa: B018
    raise RuntimeError("password=hunter2")


@tool
async def fail_later() -> str:
    await asyncio.sleep(0)
    raise RuntimeError("password=hunter2")


FAILURES = {
    "expected": "TOOL_FAILED: CONFLICT: somebody was faster",
    "exit": "INTERNAL: ",
    "outside": "SANDBOX_VIOLATION: ",
    "process": "INTERNAL: ",
    "unexpected": "INTERNAL: the tool failed unexpectedly; the cause is in the log under ",
}


@pytest.mark.sample
@pytest.mark.parametrize("how", FAILURES)
def test_what_a_function_raises_becomes_an_error(run: Run, how: str) -> None:
    result = run(fail, f'{{"how": "{how}"}}')
    assert result.kind == "error"
    assert str(result.value).startswith(FAILURES[how])
    assert "hunter2" not in str(result.value)


def test_an_async_function_that_raises(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert str(run(fail_later).value).startswith("INTERNAL: ")
    assert "hunter2" in caplog.text


def test_a_signal_ends_calls_made_with_a_context(tmp_path: Path) -> None:
    signal = CancelSignal()

    @tool
    def cancels(ctx: ToolContext) -> str:
        signal.cancel("enough")
        ctx.signal.check()
        return "not reached"

    with ToolContext.standalone(tmp_path, signal=signal) as ctx:
        assert cancels.execute_raw("{}", ctx).value == "TOOL_CANCELLED: enough"
        assert give_text.execute_raw("{}", ctx).value == "TOOL_CANCELLED: enough"


@pytest.mark.slow
def test_a_deadline_is_that_of_each_call(run: Run) -> None:
    @tool
    def waits(ctx: ToolContext) -> str:
        while True:
            ctx.signal.check()

    assert str(run(waits, deadline=0.05).value).startswith("TOOL_TIMEOUT: ")


def untyped(a) -> int:  # type: ignore[no-untyped-def]
    return 1


def variadic(*numbers: int) -> int:
    return 1


def generator() -> Iterator[int]:
    yield 1


def with_field(a: int = Field(default=1)) -> int:
    return a


def foreign(a: Database) -> int:
    return 1


def foreign_result() -> Database:
    return Database()


def int_keys(a: dict[int, int]) -> int:
    return 1


def two_models(a: Search, b: int) -> int:
    return 1


def odd_resource(a: Annotated[str, Field(json_schema_extra={"x-resource": "everything"})]) -> int:
    return 1


def unknown_name(a: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return 1


DEFINITIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "no type": (lambda: define_tool(untyped).definition, r"the parameter 'a' of .*\.untyped has no type"),
    "self": (lambda: define_tool(Counter.step).definition, r"'self'.*define_tool\(instance.method\)"),
    "variadic": (lambda: define_tool(variadic).definition, r"'numbers' .* takes any number of arguments"),
    "generator": (lambda: define_tool(generator).definition, "is a generator"),
    "a Field as default": (
        lambda: define_tool(with_field).definition,
        r"write Annotated\[..., Field\(...\)\] = default",
    ),
    "foreign type": (
        lambda: define_tool(foreign).definition,
        r"the parameter 'a' of .*\.foreign cannot be read from JSON",
    ),
    "keys that are no text": (lambda: define_tool(int_keys).definition, "'a' .* the keys of a dict must be strings"),
    "foreign result": (
        lambda: define_tool(foreign_result).output,
        "cannot be written as JSON: .*return a pydantic model",
    ),
    "two models": (
        lambda: define_tool(two_models, input=Search).definition,
        "it needs one parameter for the input, not 'a', 'b'",
    ),
    "odd resource": (lambda: define_tool(odd_resource).definition, "'x-resource' must be one of read-path"),
    "unknown name": (lambda: define_tool(unknown_name).definition, "'a' .* cannot be read at run time: name 'Nowhere'"),
    "no name": (lambda: define_tool(lambda: 1), "has no name: set one"),
    "wrong name": (lambda: define_tool(show, name="../show"), "'../show' is not a tool name"),
    "wrong permission": (lambda: define_tool(show, permissions=["fly"]), "'fly' is not a permission"),  # type: ignore[list-item]
    "permissions as a text": (lambda: define_tool(show, permissions="read"), r"write \['read'\]"),  # type: ignore[arg-type]
    "required and optional": (
        lambda: define_tool(show, permissions=Permissions(("read",), ("read",))),
        "both required and optional",
    ),
    "no function": (lambda: tool(7), "a tool is made from a function, not from int"),  # type: ignore[call-overload]
    "nothing at all": (lambda: define_tool(name="x"), "needs either `execute` or `factory`"),  # type: ignore[call-overload]
    "both": (lambda: define_tool(show, name="x", factory=lambda: show), "needs either `execute` or `factory`"),  # type: ignore[call-overload]
    "a factory that is described": (
        lambda: define_tool(name="x", factory=lambda: show, description="x"),  # type: ignore[call-overload]
        "give only `name` and `permissions`",
    ),
}


@pytest.mark.parametrize("what", DEFINITIONS)
def test_what_can_be_no_tool_is_refused_with_its_reason(what: str) -> None:
    define, words = DEFINITIONS[what]
    with pytest.raises(SetupError, match=words):
        define()


SECTIONS_AFTER = """Look something up.

    Args:
        key: What to look for.

    Returns:
        key: Not a parameter, but a part of the result.
        limit: Neither.
"""


def test_what_stands_below_the_next_section_is_no_parameter() -> None:
    assert parameters_in(SECTIONS_AFTER) == {"key": "What to look for."}
    assert parameters_in("Look.\n\nArgs:\n    a: One.\nb: Two.\n    c: Three.\n") == {"a": "One."}


def test_a_plain_function_that_returns_something_to_await_has_its_result_as_output() -> None:
    async def count(text: str) -> list[int]:
        return [len(text)]

    def later(text: str) -> Awaitable[list[int]]:
        """Count the characters."""
        return count(text)

    def as_coroutine(text: str) -> Coroutine[str, bytes, list[int]]:
        """Count the characters."""
        return count(text)

    for function in (later, as_coroutine):
        made = define_tool(function)
        assert made.output.schema is not None
        assert made.output.schema == {"type": "array", "items": {"type": "integer"}}


def test_a_function_without_a_result_says_so_in_a_generated_output() -> None:
    def forget(text: str) -> None:
        """Do nothing."""

    output = define_tool(forget).output
    assert output.as_generated(None) == {"text": "(no output)"}
