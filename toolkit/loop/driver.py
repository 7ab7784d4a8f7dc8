"""What a run needs from a model: the methods of the drivers in ``toolkit.adapters``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.wire import AsyncStreamResult, ChatMessage, QueryOptions, QueryResult, StreamResult


class Driver(Protocol):
    """Sends one request to a model and returns its answer; an error becomes ``finish_reason="error"``.

    ``OpenAIChatDriver`` is one, and so is any class with this method, such as a scripted model in a test. Traces show the
    attributes ``provider_name`` and ``model`` if it has them.
    """

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions, /) -> QueryResult: ...


class StreamingDriver(Driver, Protocol):
    """A ``Driver`` that can stream its answers, as ``stream_run`` needs."""

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions, /) -> StreamResult: ...


class AsyncDriver(Protocol):
    """The async ``Driver``, such as ``AsyncOpenAIChatDriver``."""

    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions, /) -> QueryResult: ...


class AsyncStreamingDriver(AsyncDriver, Protocol):
    """The async ``StreamingDriver``."""

    async def stream_query(
        self, prompt: str | Sequence[ChatMessage], options: QueryOptions, /
    ) -> AsyncStreamResult: ...


def check_driver(driver: object, method: str) -> None:
    """Refuses what is not a driver before the run starts."""
    if not callable(getattr(driver, method, None)):
        streams = " that streams" if callable(getattr(driver, "query", None)) else ""
        raise SetupError(
            f"{type(driver).__name__} is not a driver{streams}; the first argument is the driver of a model{streams}, "
            "such as AnthropicDriver(client, model=...), and the second is the toolkit"
        )
