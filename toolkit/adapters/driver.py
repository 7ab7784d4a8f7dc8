"""What all drivers share: sending one request, reading its answer or stream, and returning errors as results.

A provider's driver describes what differs in an ``Exchange``: how a request is built, which method of the SDK's client sends
it, and how the answer is decoded.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from typing_extensions import TypeVar

from toolkit.adapters.strict import StrictReceipt, StrictRules
from toolkit.adapters.strict.adapter import output_receipt
from toolkit.adapters.values import JsonDict, mend
from toolkit.errors import OutputError
from toolkit.wire.call import JsonObject, ToolCall
from toolkit.wire.definition import Output, OutputSchema
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import (
    AnswerEvent,
    AsyncStreamResult,
    CallCompleted,
    FinishReason,
    QueryOptions,
    QueryResult,
    StreamResult,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

Prompt: TypeAlias = str | Sequence[ChatMessage]
"""What a query starts with: a user's text, or messages."""
ModelT = TypeVar("ModelT", bound="BaseModel")
_DEFAULTS: Final = QueryOptions()


# -- one request and its answer ------------------------------------------------------------------------------------------


class GrowingAnswer(Protocol):
    """An answer that is put together from events: every adapter's ``Accumulator``."""

    def feed_events(self, event: object, /) -> list[AnswerEvent]: ...
    def result(self) -> QueryResult: ...


def _keep_result(result: QueryResult, options: QueryOptions) -> QueryResult:
    return result


def _keep_stream(stream: Any) -> Any:
    return stream


def _always_error(error: Exception) -> FinishReason:
    return "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How to query one provider over its SDK's client.

    ``build_request`` returns keyword arguments for ``send`` and ``send_streaming``, the client's methods; those of an async
    client are awaited. ``manage`` wraps a stream that does not close itself in a context manager that does. ``finish`` may
    change a result before it is returned. ``error_reason`` tells the errors of a safety filter from others. ``output_rules``
    are the rules with which ``build_request`` rewrites the schema of a structured output, if it does. ``history`` is the key
    of a request that holds the conversation, as ``encode_history`` returned it. ``provider_name`` (OpenTelemetry's name for
    it) and ``model`` are for traces.
    """

    build_request: Callable[[Prompt, QueryOptions], JsonDict]
    send: Callable[..., Any]
    send_streaming: Callable[..., Any]
    decode: Callable[[object], QueryResult]
    accumulator: Callable[[], GrowingAnswer]
    manage: Callable[[Any], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]] = _keep_stream
    finish: Callable[[QueryResult, QueryOptions], QueryResult] = _keep_result
    error_reason: Callable[[Exception], FinishReason] = _always_error
    output_rules: StrictRules | None = None
    history: str = "messages"
    provider_name: str = ""
    model: str = ""

    def request(self, prompt: Prompt, options: QueryOptions) -> JsonDict:
        """The request to send. A lone surrogate in it, wherever it came from, could not be sent."""
        request = self.build_request(prompt, options)
        is_mended = self.history not in options.extra
        return {key: value if is_mended and key == self.history else mend(value) for key, value in request.items()}

    def decode_answer(self, answer: object, options: QueryOptions) -> QueryResult:
        return replace(self.finish(self.decode(answer), options), raw=answer)

    def fail(self, so_far: QueryResult, error: Exception) -> QueryResult:
        """The result of a query that failed: what came until then, and the exception under ``error``."""
        return replace(so_far, finish_reason=self.error_reason(error), metadata={**so_far.metadata, "error": error})


class _StreamedQuery:
    """The answer of one streamed query: what came so far, and how it ends."""

    def __init__(self, exchange: Exchange, options: QueryOptions) -> None:
        self._exchange: Final = exchange
        self.provider_name: Final = exchange.provider_name
        self.model: Final = exchange.model
        self._options: Final = options
        self._answer: Final = exchange.accumulator()
        self._raw: Final[list[object]] = []
        self.error: Exception | None = None

    def feed(self, event: object) -> Iterator[AnswerEvent]:
        self._raw.append(event)
        for one in self._answer.feed_events(event):
            yield CallCompleted(self._finish_call(one)) if isinstance(one, CallCompleted) else one

    def _finish_call(self, event: CallCompleted) -> ToolCall:
        [call] = self._exchange.finish(QueryResult("", [event.call]), self._options).tool_calls
        return call

    def result(self) -> QueryResult:
        whole = replace(self._exchange.finish(self._answer.result(), self._options), raw=self._raw)
        return whole if self.error is None else self._exchange.fail(whole, self.error)


# -- drivers -------------------------------------------------------------------------------------------------------------


class BaseDriver:
    """A driver over a sync client. An error becomes ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self.provider_name: Final = exchange.provider_name
        self.model: Final = exchange.model

    def query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Sends one request and returns its answer."""
        exchange = self._exchange
        try:
            answer = exchange.send(**exchange.request(prompt, options))
            return exchange.decode_answer(answer, options)
        except Exception as error:
            return exchange.fail(QueryResult(""), error)

    def query_output(self, prompt: Prompt, model: type[ModelT], options: QueryOptions = _DEFAULTS) -> Output[ModelT]:
        """Sends one request whose answer is a value of ``model``; raises ``OutputError``, with the answer, if it is none."""
        result = self.query(prompt, replace(options, output=output_schema(model)))
        return read_output(result, model, self._exchange.output_rules)

    def stream_query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> StreamResult:
        """Sends one request and returns its answer as it comes.

        The request is sent when the first text or event is read; closing ``stream`` closes the connection.
        """
        exchange = self._exchange
        query = _StreamedQuery(exchange, options)

        def read_events() -> Iterator[AnswerEvent]:
            try:
                managed: Any = exchange.manage(exchange.send_streaming(**exchange.request(prompt, options)))
                with managed as events:
                    for event in events:
                        yield from query.feed(event)
            except Exception as error:
                query.error = error

        return StreamResult(read_events(), query.result)


class AsyncBaseDriver:
    """A driver over an async client. An error becomes ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self.provider_name: Final = exchange.provider_name
        self.model: Final = exchange.model

    async def query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Sends one request and returns its answer."""
        exchange = self._exchange
        try:
            answer = await exchange.send(**exchange.request(prompt, options))
            return exchange.decode_answer(answer, options)
        except Exception as error:
            return exchange.fail(QueryResult(""), error)

    async def query_output(
        self, prompt: Prompt, model: type[ModelT], options: QueryOptions = _DEFAULTS
    ) -> Output[ModelT]:
        """Sends one request whose answer is a value of ``model``; raises ``OutputError``, with the answer, if it is none."""
        result = await self.query(prompt, replace(options, output=output_schema(model)))
        return read_output(result, model, self._exchange.output_rules)

    async def stream_query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> AsyncStreamResult:
        """Sends one request and returns its answer as it comes.

        The request is sent when the first text or event is read; closing ``stream`` closes the connection.
        """
        exchange = self._exchange
        query = _StreamedQuery(exchange, options)

        async def read_events() -> AsyncIterator[AnswerEvent]:
            try:
                managed: Any = exchange.manage(await exchange.send_streaming(**exchange.request(prompt, options)))
                async with managed as events:
                    async for event in events:
                        for one in query.feed(event):
                            yield one
            except Exception as error:
                query.error = error

        return AsyncStreamResult(read_events(), query.result)


# -- drivers whose SDK can count the tokens of a request without sending it to the model ---------------------------------


@dataclass(frozen=True, slots=True)
class Counting:
    """How to count: the client's method, which part of a request it takes, and where the number is in its answer."""

    send: Callable[..., Any]
    select: Callable[[JsonDict], JsonDict]
    key: str

    def read(self, answer: Any) -> int:
        return int(getattr(answer, self.key))


class CountingDriver(BaseDriver):
    """A driver over a sync client that can count tokens."""

    def __init__(self, exchange: Exchange, counting: Counting) -> None:
        super().__init__(exchange)
        self._counting: Final = counting

    def count_tokens(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> int:
        """The number of input tokens that ``query`` with the same arguments would send. An error of the SDK is raised."""
        request = self._counting.select(self._exchange.request(prompt, options))
        return self._counting.read(self._counting.send(**request))


class AsyncCountingDriver(AsyncBaseDriver):
    """A driver over an async client that can count tokens."""

    def __init__(self, exchange: Exchange, counting: Counting) -> None:
        super().__init__(exchange)
        self._counting: Final = counting

    async def count_tokens(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> int:
        """The number of input tokens that ``query`` with the same arguments would send. An error of the SDK is raised."""
        request = self._counting.select(self._exchange.request(prompt, options))
        return self._counting.read(await self._counting.send(**request))


def select_keys(request: JsonDict, keys: frozenset[str]) -> JsonDict:
    """The part of a request that a counting method takes."""
    return {key: value for key, value in request.items() if key in keys}


# -- building requests ---------------------------------------------------------------------------------------------------


def join_messages(prompt: Prompt, options: QueryOptions) -> list[ChatMessage]:
    """The conversation: the prompt and the messages after it."""
    first: Sequence[ChatMessage] = [TextMessage("user", prompt)] if isinstance(prompt, str) else prompt
    return [*first, *options.messages]


def join_messages_with_system(prompt: Prompt, options: QueryOptions) -> list[ChatMessage]:
    """The conversation with the system text of the options in front."""
    system = [TextMessage("system", options.system)] if options.system is not None else []
    return [*system, *join_messages(prompt, options)]


def without_none(**fields: Any) -> JsonDict:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


# -- answers that are values of a pydantic model -------------------------------------------------------------------------

# Providers want an object at the root; the value of any other model is this property of one.
_WRAPPER: Final = "value"
_DEFINITIONS: Final = "$defs"
_MAX_ERRORS: Final = 3
_WHY: Final[dict[FinishReason, str]] = {
    "length": "the answer was cut at the token limit: raise 'max_tokens'",
    "tool_calls": "the model called tools instead of answering: run the calls, and ask again with their results",
    "refused": "the model declined to answer",
    "filtered": "the provider's safety filter blocked the request or the answer",
    "paused": "the provider paused the turn: send the conversation again as it is",
    "needs_action": "the provider waits for an approval, or for an action of one of its own tools",
}


def output_schema(model: type[BaseModel]) -> OutputSchema:
    """The schema to ask for values of a model with."""
    schema = model.model_json_schema()
    if not _is_wrapped(model):
        return OutputSchema(model.__name__, JsonObject(schema))
    definitions = {_DEFINITIONS: schema.pop(_DEFINITIONS)} if _DEFINITIONS in schema else {}
    made = {"type": "object", "properties": {_WRAPPER: schema}, "required": [_WRAPPER], "additionalProperties": False}
    return OutputSchema(model.__name__, JsonObject({**made, **definitions}))


def _is_wrapped(model: type[BaseModel]) -> bool:
    from pydantic import RootModel

    return issubclass(model, RootModel)


def enforced_schema(output: OutputSchema, rules: StrictRules, provider: str) -> JsonDict:
    """The schema for a provider that takes none but strict ones; raises ValueError for one that it cannot enforce."""
    receipt = output_receipt(output, rules)
    if not receipt.is_strict:
        places = "; ".join(f"{pointer or 'the schema'}: {why}" for pointer, why in receipt.problems[:_MAX_ERRORS])
        raise ValueError(f"{provider} cannot enforce the schema of {output.name!r}: {places}; change the model there")
    return receipt.schema


def read_output(result: QueryResult, model: type[ModelT], rules: StrictRules | None) -> Output[ModelT]:
    """The value in an answer; raises ``OutputError`` if there is none."""
    from pydantic import ValidationError

    if result.finish_reason != "stop":
        error = result.metadata.get("error")
        why = _WHY.get(result.finish_reason, f"the query failed: {error}")
        raise OutputError(why, result) from (error if isinstance(error, BaseException) else None)
    try:
        answer: Any = json.loads(result.content)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"the answer is not JSON: {error}", result) from error
    receipt = StrictReceipt({}) if rules is None else output_receipt(output_schema(model), rules)
    if isinstance(answer, dict):
        answer = receipt.decode(answer)
        answer = answer.get(_WRAPPER, answer) if _is_wrapped(model) else answer
    try:
        return Output(model.model_validate_json(json.dumps(answer)), result)
    except ValidationError as error:
        found = [f"{'/'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}" for one in error.errors()]
        more = f"; and {len(found) - _MAX_ERRORS} more" if len(found) > _MAX_ERRORS else ""
        what = "; ".join(found[:_MAX_ERRORS])
        raise OutputError(f"the answer does not fit {model.__name__}: {what}{more}", result) from error
