"""Building a ``QueryResult`` in the same way for every provider: its finish reason, and answers that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolkit.adapters.lossless import provider_metadata
from toolkit.wire.call import ToolCall
from toolkit.wire.query import FinishReason, QueryResult, Usage


def choose_finish_reason(
    reported: object, reasons: Mapping[str, FinishReason], calls: Sequence[ToolCall]
) -> FinishReason:
    """The reason for the one that was ``reported``. ``length`` and ``error`` win over ``tool_calls``; others are ``stop``."""
    return reasons.get(str(reported)) or ("tool_calls" if calls else "stop")


def error_result(provider: str, error: object, usage: Usage | None = None) -> QueryResult:
    """The result for an answer that is an error."""
    return QueryResult("", (), "error", usage or Usage(), {provider: {"error": error}})


def end_stream_early(so_far: QueryResult, provider: str, error: object) -> QueryResult:
    """The result of a stream that ended with ``error``, or was cut if that is None."""
    why = {"error": error} if error is not None else {"cut": True}
    kept = provider_metadata(so_far.metadata, provider)
    return replace(so_far, finish_reason="error", metadata={provider: {**kept, **why}})


def join_pieces(so_far: Any, more: Any) -> Any:
    """A streamed value: text and lists come in pieces, anything else comes whole."""
    if isinstance(so_far, str) and isinstance(more, str):
        return so_far + more
    return [*so_far, *more] if isinstance(so_far, list) and isinstance(more, list) else more
