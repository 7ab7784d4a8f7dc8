"""Building a ``QueryResult`` in the same way for every provider: token counts, and answers that failed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.query import FinishReason, QueryResult, Usage


def error_result(
    provider: str,
    error: object,
    usage: Usage | None = None,
    reason: FinishReason = "error",
    kept: JsonDict | None = None,
) -> QueryResult:
    """The result for an answer that is an error; ``reason`` is ``filtered`` if a safety filter caused it."""
    return QueryResult("", (), reason, usage or Usage(), {provider: {"error": error, **(kept or {})}})


def end_stream_early(so_far: QueryResult, provider: str, error: object) -> QueryResult:
    """The result of a stream that ended with ``error``, or was cut if that is None."""
    why = {"error": error} if error is not None else {"cut": True}
    kept = provider_metadata(so_far.metadata, provider)
    return replace(so_far, finish_reason="error", metadata={provider: {**kept, **why}})


def join_pieces(so_far: Any, more: Any) -> Any:
    """A streamed value: text and lists come in pieces, anything else comes whole."""
    if isinstance(so_far, str):
        return so_far + more if isinstance(more, str) else so_far
    return [*so_far, *more] if isinstance(so_far, list) and isinstance(more, list) else more


def count(value: object) -> int | None:
    """A number of tokens, if it is one."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value if type(value) is int else None


def add_counts(*values: object) -> int | None:
    """The sum of numbers of tokens; None if none of them is known."""
    known = [found for value in values if (found := count(value)) is not None]
    return sum(known) if known else None


def keep_usage(usage: object) -> JsonDict:
    """What is kept of the provider's own token counts, which may have more details than ``Usage``."""
    return {"usage": usage} if isinstance(usage, dict) and usage else {}
