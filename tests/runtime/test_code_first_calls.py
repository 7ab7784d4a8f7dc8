"""Code-first tools in a toolkit: policy, permissions, approval, and how they join its catalog."""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import Field

from acme.functions import quote
from tests.runtime.conftest import Door, MakeDoor
from toolkit import (
    ApprovalRequest,
    Approve,
    CancelSignal,
    ContentBlock,
    Deny,
    DependencyKey,
    Depends,
    DynamicContext,
    DynamicPolicy,
    DynamicRule,
    Edit,
    JsonObject,
    Pack,
    Permissions,
    PolicyError,
    Preview,
    Progress,
    Respond,
    SetupError,
    ToolCall,
    ToolContext,
    ToolkitError,
    ToolMessage,
    ToolNotAllowed,
    ToolRegistry,
    define_tool,
    tool,
)

FilePath = Annotated[str, Field(json_schema_extra={"x-resource": "read-path"})]


@tool(permissions=["read"])
def first_line(path: FilePath, ctx: ToolContext) -> str:
    """Read the first line of a file."""
    with ctx.fs.open_file(path) as file:
        return file.read(100).decode().splitlines()[0]


ShellText = Annotated[str, Field(json_schema_extra={"x-resource": "shell"})]
Argv = Annotated[list[str], Field(json_schema_extra={"x-resource": "argv"})]


@tool
def run_both(first: ShellText, second: ShellText) -> str:
    """Run two texts."""
    return "ran"


@tool
def run_lists(first: Argv, second: Argv) -> str:
    """Run two programs."""
    return "ran"


@tool(permissions=Permissions(optional=("write",)))
def describe(ctx: ToolContext) -> list[str]:
    """Tell what is granted."""
    return sorted(ctx.granted)


@tool
def twice(number: int) -> int:
    """Double a number."""
    return 2 * number


def touched(args: Any, ctx: ToolContext) -> Preview:
    return Preview(writes=(f"{args.name}.txt",))


@tool(preview=touched)
def note(name: str) -> str:
    """Make a note."""
    return name


def value(door: Door, name: str, /, **arguments: object) -> object:
    return door.call(ToolCall("1", name, arguments)).value


# -- policy and permissions --------------------------------------------------------------------------------------------


def test_denied_before_arguments_are_looked_at(make_door: MakeDoor) -> None:
    door = make_door(DynamicPolicy(default="deny", tools={"describe": "allow"}), packs=[twice, describe])
    assert str(value(door, "twice", nonsense=1)).startswith(
        "TOOL_NOT_ALLOWED: 'twice' is not allowed: the policy's default is deny"
    )
    assert [definition.name for definition in door.get_allowed_tools()] == ["describe"]
    with pytest.raises(ToolNotAllowed):
        door.invoke("twice", JsonObject({"number": 1}))


def test_a_permission_that_is_not_granted(make_door: MakeDoor) -> None:
    door = make_door(packs=[first_line, describe], permissions=["execute"])
    assert value(door, "first_line", path="a") == (
        "TOOL_NOT_ALLOWED: 'first_line' needs the permission 'read', which this context does not grant"
    )
    assert value(door, "describe") == []
    assert value(make_door(packs=[describe]), "describe") == ["write"]


def test_unknown_names_in_policies_are_refused(make_door: MakeDoor) -> None:
    with pytest.raises(PolicyError, match=r"the policy names 'twcie', which is not a tool\. Did you mean 'twice'\?"):
        make_door(DynamicPolicy(tools={"twcie": "allow"}), packs=[twice])
    with pytest.raises(PolicyError, match="'twice'"):
        make_door(DynamicPolicy(tools={"twice": "allow"}), packs=[describe])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("ls", "ls", "ran"),
        ("ls # list", "ls", "ran"),
        ("ls # list", "rm x", "TOOL_NOT_ALLOWED"),
        ("ls '", "rm x #'", "TOOL_NOT_ALLOWED"),
        ('ls "', 'rm x #"', "TOOL_NOT_ALLOWED"),
        ("ls \\", "rm x", "TOOL_NOT_ALLOWED"),
        ("ls &&", "ls", "TOOL_NOT_ALLOWED"),
    ],
)
def test_two_texts_of_a_call_are_judged_as_two(make_door: MakeDoor, first: str, second: str, expected: str) -> None:
    door = make_door(DynamicPolicy(default="deny", rules=[DynamicRule("allow", command="ls *")]), packs=[run_both])
    assert str(value(door, "run_both", first=first, second=second)).startswith(expected)
    denying = DynamicPolicy(default="allow", rules=[DynamicRule("deny", command="rm")])
    door = make_door(denying, packs=[run_both])
    assert str(value(door, "run_both", first=first, second=second)).startswith(expected)


def test_two_argument_lists_of_a_call_are_both_judged(make_door: MakeDoor) -> None:
    for policy in (
        DynamicPolicy(default="deny", rules=[DynamicRule("allow", command="ls *")]),
        DynamicPolicy(default="allow", rules=[DynamicRule("deny", command="rm")]),
    ):
        door = make_door(policy, packs=[run_lists])
        assert value(door, "run_lists", first=["ls", "$x"], second=["ls", "a b"]) == "ran"
        for one, other in ((["ls"], ["rm", "x"]), (["rm", "x"], ["ls"])):
            assert str(value(door, "run_lists", first=one, second=other)).startswith("TOOL_NOT_ALLOWED")


def test_rules_on_paths_judge_marked_parameters_and_previews(make_door: MakeDoor, tmp_path: Path) -> None:
    policy = DynamicPolicy(default="allow", rules=[DynamicRule("deny", path="secret*")])
    door = make_door(policy, packs=[first_line, note, twice])
    (tmp_path / "workspace" / "open.txt").write_text("hello\n")
    (tmp_path / "workspace" / "secret.txt").write_text("hidden\n")
    assert value(door, "first_line", path="open.txt") == "hello"
    assert str(value(door, "first_line", path="secret.txt")).startswith("TOOL_NOT_ALLOWED: ")
    assert str(value(door, "note", name="secret")).startswith("TOOL_NOT_ALLOWED: ")
    assert value(door, "note", name="open") == "open"
    with pytest.raises(PolicyError, match="'twice' declares no path"):
        make_door(DynamicPolicy(rules=[DynamicRule("deny", tools=["twice"], path="a")]), packs=[twice])


def test_paths_outside_the_workspace_are_refused(make_door: MakeDoor) -> None:
    assert str(value(make_door(packs=[first_line]), "first_line", path="../x")).startswith("SANDBOX_VIOLATION: ")


ANSWERS: dict[str, tuple[Any, object]] = {
    "approve": (Approve(), 8),
    "deny": (Deny("not now"), "TOOL_NOT_ALLOWED: 'twice' was not approved: not now"),
    "edit": (Edit({"number": 5}), 10),
    "edit into nonsense": (Edit({"number": "5"}), "INVALID_TOOL_ARGUMENTS: number: Input should be a valid integer"),
    "respond": (Respond(7), 7),
    "respond with nonsense": (
        Respond("7"),
        "TOOL_FAILED: INVALID_OUTPUT: the answer of the approver does not match the tool's output schema: the answer: Input should be a valid integer",
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_somebody_is_asked(make_door: MakeDoor, answer: str) -> None:
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Any:
        asked.append(request)
        return ANSWERS[answer][0]

    door = make_door(DynamicPolicy(tools={"twice": "ask"}), packs=[twice], approver=approver)
    assert value(door, "twice", number=4) == ANSWERS[answer][1]
    assert [(request.tool_name, request.arguments.model_dump()) for request in asked] == [("twice", {"number": 4})]


def test_calls_are_audited_also_those_made_by_tools_and_with_contexts(make_door: MakeDoor, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    outer = by(lambda ctx: twice.execute_raw('{"number": 1}', ctx).value)
    assert value(make_door(packs=[outer], audit=log), "outer") == 2
    with ToolContext.standalone(
        DynamicContext(tmp_path / "workspace", DynamicPolicy(default="allow"), audit=log)
    ) as ctx:
        twice.execute_raw('{"number": "1"}', ctx)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["event"], line["tool"], line.get("outcome")) for line in lines] == [
        ("start", "outer", None),
        ("start", "twice", None),
        ("end", "twice", "ok"),
        ("end", "outer", "ok"),
        ("end", "twice", "INVALID_TOOL_ARGUMENTS"),
    ]


LONG = "".join(f"line {number}\n" for number in range(20_000))
PICTURE = ContentBlock("image", "image/png", data="aGk=")


@tool
def long_text() -> str:
    return LONG


@tool
def long_data() -> list[str]:
    return LONG.splitlines()


@tool
def long_blocks() -> list[ContentBlock | str]:
    return [LONG, PICTURE]


@pytest.mark.parametrize(("tool", "kind"), [(long_text, "text"), (long_data, "text"), (long_blocks, "multimodal")])
def test_long_answers_are_kept_and_cut(make_door: MakeDoor, tmp_path: Path, tool: Any, kind: str) -> None:
    door = make_door(packs=[tool, "toolkit.builtin:BUILTIN"], state_dir=tmp_path / "state")
    result = door.call(ToolCall("1", tool.name, {}))
    assert (result.kind, result.output_ref is not None) == (kind, True)
    words = result.value if kind == "text" else result.value[0].text
    assert len(str(words)) < len(LONG) / 2
    assert kind == "text" or result.value[1:] == (PICTURE,)
    found = door.tool("tool_output_cache_grep", ref_id=result.output_ref, pattern="line 19999")
    assert "line 19999" in found.matches[0].text


# -- joining -----------------------------------------------------------------------------------------------------------


def test_code_first_tools_join_the_catalog_in_the_order_of_names(make_door: MakeDoor) -> None:
    registry = ToolRegistry()
    registry.register(twice)
    door = make_door(
        packs=["toolkit.builtin:BUILTIN", "acme.tools:ACME", registry, Pack(tools=[note, describe]).without("describe")]
    )
    names = [definition.name for definition in door.get_allowed_tools()]
    assert names == sorted(names) and {"twice", "note"} <= set(names)
    assert "read_file" in names and "add" in names and "describe" not in names
    message = door.invoke("twice", {"number": 2.0})
    assert isinstance(message, ToolMessage)
    assert (message.role, message.name, message.content, message.text()) == ("function", "twice", 4, "4")
    assert door.execute_raw("twice", '{"number": 3}').content == 6
    assert str(value(door, "describe")).startswith("TOOL_NOT_FOUND: ")
    results = door.call_all([ToolCall("1", "twice", {"number": 1}), ToolCall("2", "add", {"a": 1, "b": 2})])
    assert [result.value for result in results] == [2, {"sum": 3}]


def test_a_toolkit_has_the_tools_registered_when_it_was_built(make_door: MakeDoor) -> None:
    registry = ToolRegistry()
    registry.register(twice)
    door = make_door(packs=[registry])
    registry.unregister("twice")
    registry.register(note)
    assert value(door, "twice", number=1) == 2
    assert str(value(door, "note", name="x")).startswith("TOOL_NOT_FOUND: ")


def other_twice(number: int) -> int:
    return number


CLASHES: dict[str, tuple[Any, str]] = {
    "with a spec": (
        [define_tool(other_twice, name="add")],
        rf"two tools are named 'add': one of acme\.generated \(from acme/tools/add\.yaml\) and {__name__}\.other_twice; "
        "rename the function with name=",
    ),
    "with a built-in": (
        [define_tool(other_twice, name="read_file")],
        r"one of toolkit\.generated \(from toolkit/builtin/files/read_file\.yaml\)",
    ),
    "with one another": (
        [twice, define_tool(other_twice, name="twice")],
        rf"two packs handle 'twice': {__name__}\.twice and {__name__}\.other_twice; drop one with `without`",
    ),
    "with another of the same function": (
        [quote, define_tool(quote, name="quote", permissions=["read"])],
        "two packs handle 'quote'",
    ),
    "with what the generator read": (
        [define_tool(other_twice, name="quote")],
        r"one of acme\.generated \(from acme\.functions\)",
    ),
    "no list": (twice, r"write packs=\[...\]"),
    "a bare function": ([other_twice], "function is not a pack: give packs, registries or tools"),
    "no module": (["acme.nothing:*"], "cannot be loaded: No module named 'acme.nothing'"),
    "a module without tools": (["acme.tools.gates:*"], "'acme.tools.gates' has no tools"),
    "something else of a module": (["acme.functions:Currency"], "is not a pack of handlers"),
}


@pytest.mark.parametrize("clash", CLASHES)
def test_what_cannot_join_is_refused_naming_both_owners(make_door: MakeDoor, clash: str) -> None:
    packs, words = CLASHES[clash]
    with pytest.raises(SetupError, match=words):
        make_door(packs=packs)


def test_the_same_tool_may_come_by_two_packs(make_door: MakeDoor) -> None:
    door = make_door(packs=[twice, Pack(tools=[twice]), "acme.functions:*", "acme.functions:quote"])
    assert value(door, "twice", number=1) == 2
    assert value(door, "quote", lines=[]) == {"total": 0, "currency": "EUR", "missing": []}


def test_the_tools_of_a_module_are_its_public_names(make_door: MakeDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("some_tools")
    vars(module).update(twice=twice, same=twice, _hidden=note, other=7)
    monkeypatch.setitem(sys.modules, "some_tools", module)
    offered = make_door(packs=["some_tools:*"]).get_allowed_tools()
    assert [definition.name for definition in offered] == ["twice"]
    vars(module)["__all__"] = ["_hidden"]
    offered = make_door(packs=["some_tools:*"]).get_allowed_tools()
    assert [definition.name for definition in offered] == ["note"]


def missing_database(name: str) -> object:
    raise NotImplementedError


def test_what_could_never_be_injected_is_refused_when_the_toolkit_is_built(make_door: MakeDoor) -> None:
    def needs(database: Annotated[object, Depends(missing_database)]) -> int:
        return 1

    with pytest.raises(SetupError, match=r"the parameter 'name' of .*missing_database has no value"):
        make_door(packs=[define_tool(needs)])


# -- what the generator read -------------------------------------------------------------------------------------------


def test_a_generated_function_tool_gives_the_functions_own_value(door: Door) -> None:
    from acme.functions import Offer, Quote

    past = door.invoke("past_quotes", {"currency": "USD"})
    assert past.content == [
        Quote(total=2, currency="USD"),
        Quote(total=3, currency="USD", missing=["fig"]),
    ]
    assert pickle.loads(pickle.dumps(past.content)) == past.content
    assert value(door, "past_quotes", currency="USD") == json.loads(past.text())
    assert door.tool("best_offer", items=["pear"]) == Offer("pear", 1)
    assert door.tool("best_offer", items=[]) is None
    assert value(door, "best_offer", items=[]) == "(no output)"
    assert type(door.tool("quote", lines=[])) is Quote


def test_what_the_caller_changes_meanwhile_is_not_what_was_approved(make_door: MakeDoor) -> None:
    @tool
    def save(data: dict[str, Any]) -> str:
        """Save an object."""
        return json.dumps(data)

    given = {"data": {"names": ["a"]}}

    def approver(request: ApprovalRequest) -> Approve:
        given["data"]["names"].append("b")
        return Approve()

    door = make_door(DynamicPolicy(tools={"save": "ask"}), packs=[save], approver=approver)
    assert door.invoke("save", given).content == '{"names": ["a"]}'


def test_an_approver_answers_with_the_functions_own_value(make_door: MakeDoor) -> None:
    from acme.functions import Quote

    policy = DynamicPolicy(default="allow", tools={"quote": "ask"})
    answers = iter([{"total": 1, "currency": "EUR"}, {"total": "1", "currency": "EUR"}])
    door = make_door(policy, approver=lambda request: Respond(next(answers)))
    assert door.tool("quote", lines=[]) == Quote(total=1, currency="EUR")
    assert str(value(door, "quote", lines=[])).startswith("TOOL_FAILED: INVALID_OUTPUT: ")


def test_the_wire_form_of_a_model_becomes_the_model(make_door: MakeDoor) -> None:
    from acme.functions import Quote

    def quotes() -> list[Quote]:
        return [{"total": 1, "currency": "EUR"}]  # type: ignore[list-item]

    door = make_door(packs=[define_tool(quotes)])
    assert door.invoke("quotes", JsonObject({})).content == [Quote(total=1, currency="EUR")]


def test_a_generated_function_tool_gives_its_generated_output(door: Door) -> None:
    from acme.generated import GreetKindlyOutput, QuoteInput, QuoteOutput

    message = door.invoke("quote", {"lines": [{"item": "apple", "count": 2.0}, {"item": "fig"}]})
    assert message.content == QuoteOutput(total=4, currency="EUR", missing=["fig"])
    assert message.title == "2 lines"
    typed = QuoteInput.model_validate({"lines": [{"item": "pear"}], "currency": "USD"})
    assert door.invoke("quote", typed).content == QuoteOutput(total=3, currency="USD", missing=[])
    assert door.tool("quote", lines=[]) == QuoteOutput(total=0, currency="EUR", missing=[])
    assert door.tool("greet_kindly", name="Ann", times=2) == GreetKindlyOutput(text="hello Ann hello Ann")
    assert value(door, "greet-kindly", name="Ann") == "hello Ann"
    assert str(value(door, "quote", lines=[{"item": ""}])).startswith("INVALID_TOOL_ARGUMENTS: lines.0.item: ")
    assert str(value(door, "quote", lines=[], prices={})).startswith("INVALID_TOOL_ARGUMENTS: prices: ")


def test_a_generated_function_tool_without_its_pack_has_no_handler(make_door: MakeDoor) -> None:
    assert str(value(make_door(packs=["acme.tools:ACME"]), "quote", lines=[])).startswith("TOOL_FAILED: NO_HANDLER: ")


def test_dependencies_of_a_generated_function_tool_are_overridden(make_door: MakeDoor) -> None:
    door = make_door(overrides={"acme.functions.price_list": lambda: {"apple": 10}})
    assert door.tool("quote", lines=[{"item": "apple"}]).total == 10


# -- tools that run tools ----------------------------------------------------------------------------------------------


def by(run: Callable[[ToolContext], object]) -> Any:
    """A tool that may read and does something with its context."""

    def outer(ctx: ToolContext) -> Any:
        return run(ctx)

    return define_tool(outer, permissions=["read"])


def test_a_tool_run_by_another_has_no_more_than_that_one(make_door: MakeDoor, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("hello\n")
    assert (
        value(make_door(packs=[by(lambda ctx: first_line.execute_raw('{"path": "a.txt"}', ctx).value)]), "outer")
        == "hello"
    )
    assert value(make_door(packs=[by(lambda ctx: describe.execute_raw("{}", ctx).value)]), "outer") == []
    writes = define_tool(lambda: 1, name="writes", permissions=["write"])
    refused = value(make_door(packs=[by(lambda ctx: writes.execute_raw("{}", ctx).value), writes]), "outer")
    assert refused == "TOOL_NOT_ALLOWED: 'writes' needs the permission 'write', which this context does not grant"


def test_the_policy_judges_a_tool_run_by_another(make_door: MakeDoor) -> None:
    policy = DynamicPolicy(default="deny", tools={"outer": "allow"})
    refused = value(make_door(policy, packs=[by(lambda ctx: twice.execute_raw('{"number": 1}', ctx).value)]), "outer")
    assert str(refused).startswith("TOOL_NOT_ALLOWED: 'twice' is not allowed: ")


def test_a_tool_run_by_another_ends_with_it(make_door: MakeDoor) -> None:
    signal, ended = CancelSignal(), threading.Event()
    results: list[object] = []

    def outer(ctx: ToolContext) -> None:
        signal.cancel("enough")
        results.append(twice.execute_raw('{"number": 1}', ctx).value)
        ended.set()
        ctx.signal.check()

    door = make_door(packs=[define_tool(outer)]).with_options(signal=signal)
    assert value(door, "outer") == "TOOL_CANCELLED: enough"
    ended.wait()
    assert results == ["TOOL_CANCELLED: enough"]


def test_an_async_tool_runs_another_in_its_loop(make_door: MakeDoor) -> None:
    async def inner() -> str:
        await asyncio.sleep(0)
        return "inner"

    async def outer(ctx: ToolContext) -> object:
        return (await define_tool(inner).execute_raw_async("{}", ctx)).value

    assert value(make_door(packs=[define_tool(outer)]), "outer") == "inner"


# -- contexts of one's own ---------------------------------------------------------------------------------------------


@tool
def chatty(ctx: ToolContext) -> str:
    """Tell a lot."""
    ctx.progress(title="working")
    ctx.metadata(title="first", a=1)
    ctx.metadata(title="last", b=2)
    return "done"


def test_a_standalone_context_collects_what_tools_tell(tmp_path: Path) -> None:
    heard: list[Progress] = []
    messages: list[ToolMessage[Any, Any]] = []
    context = DynamicContext(
        tmp_path, DynamicPolicy(default="allow"), on_progress=heard.append, on_result=messages.append, session_id="s"
    )
    with ToolContext.standalone(context, call_id="7") as ctx:
        assert chatty.execute_raw("{}", ctx).tool_call_id == "7"
        assert (ctx.title, ctx.collected, ctx.session_id, ctx.attachments) == ("last", {"a": 1, "b": 2}, "s", ())
        assert [event.title for event in heard] == ["working", "first", "last"]
        assert [message.name for message in messages] == ["chatty"]
        chatty(ctx)
        assert len(heard) == 6
    assert chatty.execute_raw("{}", ctx).value == "TOOL_CANCELLED: this toolkit has been closed"
    ctx.close()


def test_a_standalone_context_has_what_its_context_grants(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    with ToolContext.standalone(tmp_path) as ctx:
        assert first_line("a.txt", ctx) == "hello"
    with ToolContext.standalone(DynamicContext(tmp_path, DynamicPolicy(default="allow"), permissions=[])) as ctx:
        assert ctx.granted == frozenset()
        with pytest.raises(SetupError, match="does not declare the permission"):
            first_line("a.txt", ctx)
        assert str(first_line.execute_raw('{"path": "a.txt"}', ctx).value).startswith("TOOL_NOT_ALLOWED: ")


def test_deny_rules_on_paths_hold_for_plain_calls_with_a_standalone_context(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hidden\n")
    policy = DynamicPolicy(default="allow", rules=[DynamicRule("deny", path="secret*")])
    with ToolContext.standalone(DynamicContext(tmp_path, policy)) as ctx, pytest.raises(ToolkitError):
        first_line("secret.txt", ctx)


def test_the_policy_of_a_standalone_context_holds(tmp_path: Path) -> None:
    policy = DynamicPolicy(default="deny", tools={"twice": "allow"})
    with ToolContext.standalone(DynamicContext(tmp_path, policy), packs=[twice]) as ctx:
        assert twice.execute_raw('{"number": 2}', ctx).value == 4
        assert str(note.execute_raw('{"name": "a"}', ctx).value).startswith("TOOL_NOT_ALLOWED: ")
    with pytest.raises(PolicyError, match="'twice', which is not a tool"):
        ToolContext.standalone(DynamicContext(tmp_path, policy))


def test_what_a_standalone_context_made_is_given_back(tmp_path: Path) -> None:
    closed: list[str] = []

    def for_the_call() -> Any:
        yield "call"
        closed.append("call")

    async def for_the_run() -> Any:
        yield "run"
        closed.append("run")

    call, run = DependencyKey[str]("call", for_the_call), DependencyKey[str]("run", for_the_run, lifetime="run")

    async def use() -> None:
        async with ToolContext.standalone(tmp_path) as ctx:
            assert (ctx.resolve(call), await ctx.resolve_async(run)) == ("call", "run")
            assert closed == []

    asyncio.run(use())
    assert closed == ["call", "run"]
