"""One loop: how it goes on, how it ends, what it raises, and how it is continued."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from acme.generated import SecurityPolicy
from tests.loop.conftest import Loop, MakeLoop
from tests.loop.scripted import add, calls, done, says, values
from toolkit import (
    ActionNeeded,
    AnswerCutOff,
    AnswerFailed,
    AnswerFiltered,
    AnswerRefused,
    Approve,
    AssistantToolCallMessage,
    ChatMessage,
    Conversation,
    Deny,
    NamedTool,
    QueryOptions,
    QueryResult,
    RunError,
    SetupError,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
    Usage,
    run,
    run_async,
    validate_history,
)
from toolkit.testing import AsyncScriptedModel, ScriptedModel
from toolkit.wire import FinishReason, JsonObject, from_json, to_json

# -- how it goes on and ends ---------------------------------------------------------------------------------------------


def test_it_runs_the_calls_of_each_turn_until_the_model_stops(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2), add("2", 3, 4), text="let me see"), calls(ToolCall("3", "nope", {})), says("7"))
    conversation = loop.run("What is 3 + 4?", options=QueryOptions(system="Be short."))

    assert (conversation.answer, conversation.ended_by, conversation.turns) == ("7", "stop", 3)
    question, asked, *results, _, failed, _ = conversation.messages
    assert question == TextMessage("user", "What is 3 + 4?")
    assert isinstance(asked, AssistantToolCallMessage) and asked.content == "let me see"
    assert [one.result for one in results if isinstance(one, ToolResultMessage)] == [
        ToolResult("1", "add", "data", {"sum": 3}),
        ToolResult("2", "add", "data", {"sum": 7}),
    ]
    assert isinstance(failed, ToolResultMessage) and str(failed.result.value).startswith("TOOL_NOT_FOUND: ")
    first, second, third = loop.driver.requests
    assert [len(request.messages) for request in (first, second, third)] == [1, 4, 6]
    assert third.messages == conversation.messages[:-1]
    assert {tool.name for tool in first.options.tools} == {tool.name for tool in loop.toolkit.get_allowed_tools()}
    assert first.options.system == "Be short."


def test_it_ends_when_done_is_called(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2), done("All is added.")))
    conversation = loop.run("Add.")
    assert (conversation.answer, conversation.ended_by) == ("All is added.", "done")
    assert validate_history(conversation.messages) == []


def test_a_call_of_done_that_is_refused_ends_nothing(make_loop: MakeLoop) -> None:
    loop = make_loop(SecurityPolicy(default="allow", tools={"done": "deny"}))
    loop.script(calls(done("x")), says("then not"))
    assert loop.run("Add.").answer == "then not"


def test_an_answer_without_text_is_an_empty_answer_and_not_an_earlier_text(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2), text="let me see"), says(""))
    assert loop.run("Add.").answer == ""


def test_a_paused_turn_goes_on(loop: Loop) -> None:
    native = {"anthropic": {"layout": [{"native": {"type": "server_tool_use", "id": "s1"}}]}}
    loop.script(QueryResult("", (), "paused", metadata=native), says("found"))
    conversation = loop.run("Search.")
    assert conversation.answer == "found"
    assert loop.driver.requests[1].messages == [TextMessage("user", "Search."), TextMessage("assistant", "", native)]


def test_ids_that_a_server_sends_in_every_turn_are_made_distinct(loop: Loop) -> None:
    loop.script(calls(add("call_0", 1, 2)), calls(add("call_0", 3, 4)), says("ok"))
    conversation = loop.run("Add.")
    assert values(conversation) == [{"sum": 3}, {"sum": 7}]
    assert validate_history(conversation.messages) == []
    assert validate_history(loop.driver.requests[2].messages) == []


def test_old_outputs_are_replaced_where_they_take_too_much_of_the_window(make_loop: MakeLoop, tmp_path: Any) -> None:
    (tmp_path / "big.txt").write_text(("word " * 18 + "\n") * 480)
    loop = make_loop()
    reads = [calls(ToolCall(str(number), "read_file", {"path": "big.txt"})) for number in range(4)]
    loop.script(*reads, says("ok"))
    whole = loop.run("Read.", window=1_000)
    sent = loop.driver.requests[-1].messages
    cut = [one for one in sent if isinstance(one, ToolResultMessage) and "omitted here" in str(one.result.value)]
    assert cut and len(sent) == len(whole.messages) - 1
    assert not any("tokens, omitted here" in str(value) for value in values(whole))


# -- what is sent --------------------------------------------------------------------------------------------------------


def test_tools_of_the_options_replace_those_of_the_toolkit(loop: Loop) -> None:
    only = ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))
    loop.script(says("ok"))
    loop.run("Add.", options=QueryOptions(tools=[only]))
    assert loop.driver.requests[0].options.tools == [only]


def test_a_named_tool_is_required_once(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2)), says("ok"))
    loop.run("Add.", options=QueryOptions(tool_choice=NamedTool("add")))
    assert [request.options.tool_choice for request in loop.driver.requests] == [NamedTool("add"), "auto"]


def test_messages_in_the_options_are_refused(loop: Loop) -> None:
    loop.script(says("ok"))
    with pytest.raises(SetupError, match=r"give them as the prompt"):
        loop.run("Add.", options=QueryOptions(messages=[TextMessage("user", "x")]))


def test_a_driver_of_the_other_flavour_is_refused(loop: Loop) -> None:
    loop.driver = (ScriptedModel if loop.is_async else AsyncScriptedModel)(says("ok"))
    with pytest.raises(SetupError, match=r"ScriptedModel is not an? a?sync driver; use run"):
        loop.run("Add.")


def test_a_toolkit_of_the_other_flavour_is_refused(loop: Loop) -> None:
    def run_other() -> None:
        if loop.is_async:
            run(ScriptedModel(says("ok")), loop.toolkit, "Add.")
        else:
            asyncio.run(run_async(AsyncScriptedModel(says("ok")), loop.toolkit, "Add."))

    with pytest.raises(SetupError, match=rf"{type(loop.toolkit).__name__} is not an? a?sync toolkit; use run"):
        run_other()


@pytest.mark.parametrize("wrong", ["claude-sonnet-5", None])
def test_what_is_not_a_driver_is_refused(loop: Loop, wrong: Any) -> None:
    loop.driver = wrong
    with pytest.raises(SetupError) as failure:
        loop.run("Add.")
    assert str(failure.value) == (
        f"{type(wrong).__name__} is not a driver; the first argument is the driver of a model, "
        "such as AnthropicDriver(client, model=...), and the second is the toolkit"
    )


def test_a_driver_and_a_toolkit_that_changed_places_are_refused(loop: Loop) -> None:
    toolkit: Any = loop.toolkit
    driver: Any = (AsyncScriptedModel if loop.is_async else ScriptedModel)(says("ok"))
    with pytest.raises(SetupError, match="Toolkit is not a driver; the first argument is the driver of a model"):
        asyncio.run(run_async(toolkit, driver, "Add.")) if loop.is_async else run(toolkit, driver, "Add.")


# -- answers that are no answers -----------------------------------------------------------------------------------------

ENDS: dict[FinishReason, tuple[type[RunError], str]] = {
    "error": (AnswerFailed, "the provider reported an error: TimeoutError: no luck"),
    "refused": (AnswerRefused, "the model declined to answer: I would rather not."),
    "filtered": (AnswerFiltered, "the provider's filter blocked"),
    "length": (AnswerCutOff, "cut at the token limit; set a higher max_tokens"),
}


@pytest.mark.parametrize("reason", ENDS)
def test_an_answer_that_cannot_be_used_raises_with_the_conversation_so_far(loop: Loop, reason: FinishReason) -> None:
    kind, text = ENDS[reason]
    metadata = {"error": TimeoutError("no luck")} if reason == "error" else {}
    bad = QueryResult("I would rather not.", [add("2", 5, 6)], reason, Usage(7, 8), metadata)
    loop.script(replace(calls(add("1", 1, 2)), usage=Usage(10, 1)), bad)
    with pytest.raises(kind, match=text) as failure:
        loop.run("Add.")

    error = failure.value
    assert error.result == bad
    assert (error.__cause__ is metadata.get("error")) if reason == "error" else error.__cause__ is None
    assert values(error.conversation) == [{"sum": 3}], "the calls of an answer that was cut are not run"
    assert (error.conversation.turns, error.conversation.usage) == (2, Usage(17, 9))
    assert error.conversation.answer == ""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.conversation) == (kind, str(error), error.conversation)

    loop.script(says("3"))
    assert loop.run(error.conversation).answer == "3"
    assert loop.driver.requests[0].messages == error.conversation.messages


def test_the_error_of_a_response_is_in_the_message(loop: Loop) -> None:
    loop.script(QueryResult("", (), "error", metadata={"openai_responses": {"error": {"message": "overloaded"}}}))
    with pytest.raises(AnswerFailed, match="overloaded"):
        loop.run("Add.")


NEEDS_ACTION = QueryResult("", (), "needs_action", metadata={"openai_responses": {"layout": [{"native": {"type": "mcp_approval_request", "id": "r1"}}]}})  # fmt: skip
APPROVED: list[ChatMessage] = [TextMessage("user", "", {"openai_responses": {"layout": [{"native": {"type": "mcp_approval_response"}}]}})]  # fmt: skip


def test_what_a_provider_waits_for_is_asked_for(loop: Loop) -> None:
    asked: list[QueryResult] = []

    def approve(result: QueryResult) -> list[ChatMessage]:
        asked.append(result)
        return APPROVED

    loop.script(NEEDS_ACTION, says("ok"))
    assert loop.run("Go.", on_action=approve).answer == "ok"
    assert asked == [NEEDS_ACTION]
    assert loop.driver.requests[1].messages == [TextMessage("user", "Go."), NEEDS_ACTION.message(), *APPROVED]


@pytest.mark.parametrize("hooks", [{}, {"on_action": lambda result: ()}])
def test_without_what_the_provider_waits_for_the_run_ends(loop: Loop, hooks: dict[str, Any]) -> None:
    loop.script(NEEDS_ACTION)
    with pytest.raises(ActionNeeded, match="give on_action") as failure:
        loop.run("Go.", **hooks)
    loop.script(says("ok"))
    assert loop.run(failure.value.conversation.add(*APPROVED)).answer == "ok"
    assert loop.driver.requests[0].messages[1:] == [NEEDS_ACTION.message(), *APPROVED]


WAITING_ITEM = {"type": "mcp_approval_request", "id": "r1"}
CALLS_AND_ACTION = QueryResult("", [add("1", 1, 2)], "tool_calls", metadata={"openai_responses": {"needs_action": [WAITING_ITEM], "layout": [{"call": 0}, {"native": WAITING_ITEM}]}})  # fmt: skip


def test_what_a_provider_waits_for_next_to_calls_follows_their_results(loop: Loop) -> None:
    asked: list[QueryResult] = []

    def approve(result: QueryResult) -> list[ChatMessage]:
        asked.append(result)
        return APPROVED

    loop.script(CALLS_AND_ACTION, says("ok"))
    assert loop.run("Go.", on_action=approve).answer == "ok"
    assert asked == [CALLS_AND_ACTION]
    result = ToolResultMessage(ToolResult("1", "add", "data", {"sum": 3}))
    assert loop.driver.requests[1].messages[1:] == [CALLS_AND_ACTION.message(), result, *APPROVED]


def test_a_run_that_goes_on_asks_for_what_the_provider_still_waits_for(loop: Loop) -> None:
    saved: list[str] = []
    loop.script(CALLS_AND_ACTION)
    with pytest.raises(ActionNeeded) as failure:
        loop.run("Go.", save=lambda conversation: saved.append(json.dumps(conversation.to_json())))
    assert values(failure.value.conversation) == [{"sum": 3}]
    assert len(saved) == 2, "the answer, and the result of its call"

    for text in saved:
        before = Conversation.from_json(json.loads(text))
        with pytest.raises(ActionNeeded, match="give on_action"):
            loop.run(before)
        loop.script(says("ok"))
        whole = loop.run(before, on_action=lambda result: APPROVED)
        assert (whole.answer, values(whole)) == ("ok", [{"sum": 3}])
        assert loop.driver.requests[0].messages[-1:] == APPROVED
    loop.script(says("ok"))
    assert loop.run(failure.value.conversation.add(*APPROVED)).answer == "ok", "it has been told"


# -- approvals and hooks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "start"), [(Approve(), "{'sum': 3}"), (Deny("not today"), "TOOL_NOT_ALLOWED: ")])
def test_the_approver_of_the_toolkit_is_asked(make_loop: MakeLoop, answer: Any, start: str) -> None:
    loop = make_loop(SecurityPolicy(default="allow", tools={"add": "ask"}), approver=lambda request: answer)
    loop.script(calls(add("1", 1, 2)), says("ok"))
    [value] = values(loop.run("Add."))
    assert str(value).startswith(start)


def test_hooks_see_every_call_and_may_answer_it(loop: Loop) -> None:
    seen: list[str] = []

    def before(call: ToolCall) -> ToolResult | None:
        seen.append(f"before {call.id}")
        return ToolResult("?", "?", "text", "from a cache") if call.id == "2" else None

    def after(call: ToolCall, result: ToolResult) -> ToolResult | None:
        seen.append(f"after {call.id}: {result.value}")
        return replace(result, kind="text", value="hidden") if call.id == "3" else None

    loop.script(calls(add("1", 1, 2), add("2", 3, 4), add("3", 5, 6)), says("ok"))
    conversation = loop.run("Add.", before_call=before, after_call=after)
    assert values(conversation) == [{"sum": 3}, "from a cache", "hidden"]
    assert seen == ["before 1", "before 2", "before 3", "after 1: {'sum': 3}", "after 2: from a cache", "after 3: {'sum': 11}"]  # fmt: skip
    assert validate_history(conversation.messages) == []


# -- usage, storing and continuing ---------------------------------------------------------------------------------------


def test_usage_is_the_sum_of_all_answers(loop: Loop) -> None:
    used = Usage(10, 2, 4), Usage(20, 3, None, 1)
    loop.script(replace(calls(add("1", 1, 2)), usage=used[0]), replace(says("3"), usage=used[1]))
    assert loop.run("Add.").usage == Usage(30, 5, 4, 1)


def test_a_run_goes_on_from_the_json_of_each_of_its_steps(loop: Loop) -> None:
    saved: list[str] = []
    script = [calls(add("1", 1, 2)), calls(add("2", 3, 4)), says("10")]
    loop.script(*script)
    whole = loop.run("Add.", save=lambda conversation: saved.append(json.dumps(conversation.to_json())))
    assert len(saved) == 5

    for at, text in enumerate(saved):
        loop.script(*script[(at // 2) + 1 :])
        again = loop.run(Conversation.from_json(json.loads(text)))
        assert again == whole
        assert loop.driver.turns_left == 0


def test_a_conversation_that_has_ended_stays_as_it_is_until_something_is_said(loop: Loop) -> None:
    loop.script(says("hello"))
    first = loop.run("hi")
    loop.script(says("fine"))
    assert loop.run(first) is first
    second = loop.run(first.add("How are you?"))
    assert (second.answer, second.turns) == ("fine", 2)
    assert [one.content for one in second.messages if isinstance(one, TextMessage)] == ["hi", "hello", "How are you?", "fine"]  # fmt: skip


def test_calls_that_a_user_talks_over_are_not_run(loop: Loop) -> None:
    waiting = Conversation([TextMessage("user", "Add."), AssistantToolCallMessage("", [add("1", 1, 2)])])
    loop.script(says("ok"))
    [value] = values(loop.run(waiting.add("Stop.")))
    assert str(value).startswith("TOOL_CANCELLED: ")


def test_only_a_conversation_is_read_as_one() -> None:
    conversation = Conversation([TextMessage("user", "hi")], usage=Usage(1, 2), turns=1)
    assert from_json(json.loads(json.dumps(to_json(conversation)))) == conversation
    with pytest.raises(ValueError, match="this is the JSON of a TextMessage, not of a conversation"):
        Conversation.from_json(to_json(TextMessage("user", "hi")))
