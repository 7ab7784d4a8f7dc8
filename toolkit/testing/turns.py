"""The turns of a scripted model: what it answers, and what it must have been sent before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.wire.call import ToolCall
from toolkit.wire.query import FinishReason, QueryResult, Usage


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """One answer of the model, and texts that it must have been sent since its last one."""

    answer: QueryResult
    sees: tuple[str, ...] = ()


def call(name: str, /, **arguments: object) -> ToolCall:
    """A call of a tool. The script gives it an id: ``call_1``, ``call_2`` and so on.

    >>> call("read_file", path="a.txt").arguments
    {'path': 'a.txt'}

    For arguments that are not Python names, or an id of your own, write ``ToolCall(id, name, {...})``.
    """
    return ToolCall("", name, arguments)


def turn(
    *parts: str | ToolCall,
    sees: str | Sequence[str] = (),
    finish_reason: FinishReason | None = None,
    usage: Usage | None = None,
) -> ScriptedTurn:
    """A turn of texts and calls. ``sees`` names texts that the model must have been sent since its last turn.

    >>> turn("I look.", call("list"), sees="which files").answer.finish_reason
    'tool_calls'
    """
    calls = [part for part in parts if isinstance(part, ToolCall)]
    text = "".join(part for part in parts if isinstance(part, str))
    reason = finish_reason or ("tool_calls" if calls else "stop")
    expected = (sees,) if isinstance(sees, str) else tuple(sees)
    return ScriptedTurn(QueryResult(text, calls, reason, usage or Usage()), expected)


def refusal(text: str = "I cannot help with that.") -> ScriptedTurn:
    """A turn in which the model declines; ``run`` raises ``AnswerRefused``.

    >>> refusal().answer.finish_reason
    'refused'
    """
    return turn(text, finish_reason="refused")


def cut_off(*parts: str | ToolCall) -> ScriptedTurn:
    """A turn that ends at the token limit; ``run`` raises ``AnswerCutOff``. In a stream its last call is incomplete.

    >>> cut_off("The answer is").answer.finish_reason
    'length'
    """
    return turn(*parts, finish_reason="length")


def failure(error: Exception | str = "the provider is overloaded", *parts: str | ToolCall) -> ScriptedTurn:
    """A turn in which the provider fails, after ``parts`` if there are any; ``run`` raises ``AnswerFailed``.

    >>> failure(TimeoutError("no answer"), "The ans").answer.content
    'The ans'
    """
    made = turn(*parts, finish_reason="error").answer
    metadata = {"error": RuntimeError(error) if isinstance(error, str) else error}
    return ScriptedTurn(QueryResult(made.content, made.tool_calls, "error", made.usage, metadata))
