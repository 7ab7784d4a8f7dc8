"""Drivers whose SDK can count the tokens of a request without sending it to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from toolkit.adapters.driver import AsyncBaseDriver, BaseDriver, Exchange, Prompt
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.query import QueryOptions

_DEFAULTS: Final = QueryOptions()


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
