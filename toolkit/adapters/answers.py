"""Building a ``QueryResult`` in the same way for every provider: token counts, failures, and why an answer ended.

The tables hold every word that a provider is known to report, and the finish reason it means. A word that is not in its
provider's table means ``stop``, or ``tool_calls`` if there are calls. The tests compare the tables with the types of the
SDKs, so that a new word is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.values import JsonDict
from toolkit.wire.call import ToolCall
from toolkit.wire.query import FinishReason, QueryResult, Usage

Reasons: TypeAlias = Mapping[str, FinishReason]
# The first that holds is reported.
_PRECEDENCE: Final[tuple[FinishReason, ...]] = (
    "error", "length", "filtered", "refused", "tool_calls", "needs_action", "paused", "stop",
)  # fmt: skip


# -- results -------------------------------------------------------------------------------------------------------------


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


def choose_finish_reason(
    reported: object, reasons: Reasons, calls: Sequence[ToolCall], *others: FinishReason | None
) -> FinishReason:
    """The reason for the word that was ``reported``, unless one of ``others`` or the calls themselves come first.

    >>> choose_finish_reason("stop", OPENAI_CHAT, [], "refused")
    'refused'
    """
    word = reasons.get(reported, "stop") if isinstance(reported, str) else "stop"
    # A model that announces calls and makes none waits for nothing.
    from_word: FinishReason = "stop" if word == "tool_calls" else word
    holding = {from_word, *others, "tool_calls" if calls else None}
    return next(reason for reason in _PRECEDENCE if reason in holding)


def openai_error_reason(error: object) -> FinishReason:
    """``filtered`` for the error of OpenAI's safety filter, else ``error``.

    >>> openai_error_reason({"code": "content_filter"})
    'filtered'
    """
    code = error.get("code") if isinstance(error, dict) else None
    return OPENAI_ERRORS.get(code, "error") if isinstance(code, str) else "error"


def join_pieces(so_far: Any, more: Any) -> Any:
    """A streamed value: text and lists come in pieces, anything else comes whole."""
    if isinstance(so_far, str):
        return so_far + more if isinstance(more, str) else so_far
    return [*so_far, *more] if isinstance(so_far, list) and isinstance(more, list) else more


# -- token counts --------------------------------------------------------------------------------------------------------


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


# -- tables of reasons ---------------------------------------------------------------------------------------------------


def _words(reason: FinishReason, *words: str) -> dict[str, FinishReason]:
    return dict.fromkeys(words, reason)


OPENAI_CHAT: Final[Reasons] = {
    **_words("stop", "stop", "eos", "end_turn"),
    **_words("tool_calls", "tool_calls", "function_call"),
    **_words("length", "length", "model_length", "max_tokens", "model_context_window_exceeded"),
    **_words("filtered", "content_filter", "sensitive"),
    # Of other servers with the same API.
    **_words("error", "error", "abort", "insufficient_system_resource", "network_error", "malformed_function_call"),
}
"""The word in ``finish_reason``."""
OPENAI_RESPONSES: Final[Reasons] = {
    **_words("stop", "completed"),
    **_words("error", "failed", "cancelled"),
    # A response that runs in the background: the client must fetch it again.
    **_words("needs_action", "queued", "in_progress"),
    **_words("length", "incomplete", "max_output_tokens", "max_messages"),
    **_words("filtered", "content_filter"),
    # Another response, with what the user said meanwhile, goes on from here.
    **_words("paused", "steered"),
}
"""The reason in ``incomplete_details``, or else the word in ``status``."""
OPENAI_ERRORS: Final[Reasons] = {
    **_words(
        "filtered",
        "content_filter", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation",
    ),
    **_words(
        "error",
        "server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch", "vector_store_timeout",
        "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large",
        "image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large",
        "unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    ),
}  # fmt: skip
"""The ``code`` of an error. All others are errors."""
ANTHROPIC: Final[Reasons] = {
    **_words("stop", "end_turn", "stop_sequence"),
    **_words("tool_calls", "tool_use"),
    **_words("length", "max_tokens", "model_context_window_exceeded"),
    **_words("refused", "refusal"),
    **_words("paused", "pause_turn", "compaction"),
}
"""The word in ``stop_reason``."""
GEMINI: Final[Reasons] = {
    **_words("stop", "STOP", "FINISH_REASON_UNSPECIFIED"),
    # After CONTINUATION, another request with the token in the metadata goes on; the SDK sends it by itself.
    **_words("length", "MAX_TOKENS", "CONTINUATION"),
    **_words(
        "filtered",
        "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ),
    # What the model wrote could not be read, or it gave up.
    **_words(
        "error",
        "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS", "LANGUAGE",
        "NO_IMAGE", "IMAGE_OTHER", "OTHER",
    ),
}  # fmt: skip
"""The word in ``finishReason``."""
GEMINI_BLOCKS: Final[Reasons] = _words(
    "filtered",
    "BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR",
    "JAILBREAK",
)  # fmt: skip
"""The word in ``promptFeedback.blockReason``: the request was not answered at all."""
OLLAMA: Final[Reasons] = {**_words("stop", "stop", "load", "unload"), **_words("length", "length")}
"""The word in ``done_reason``."""
BEDROCK: Final[Reasons] = {
    **_words("stop", "end_turn", "stop_sequence"),
    **_words("tool_calls", "tool_use"),
    **_words("length", "max_tokens", "model_context_window_exceeded"),
    **_words("filtered", "guardrail_intervened", "content_filtered"),
    **_words("error", "malformed_model_output", "malformed_tool_use"),
    # Words of Anthropic's models.
    **_words("refused", "refusal"),
    **_words("paused", "pause_turn"),
}
"""The word in ``stopReason``."""
COHERE: Final[Reasons] = {
    **_words("stop", "COMPLETE", "STOP_SEQUENCE"),
    **_words("tool_calls", "TOOL_CALL"),
    **_words("length", "MAX_TOKENS"),
    **_words("error", "ERROR", "TIMEOUT", "ERROR_LIMIT", "USER_CANCEL"),
    **_words("filtered", "ERROR_TOXIC"),
}
"""The word in ``finish_reason``."""
LANGCHAIN: Final[Reasons] = {
    word.lower(): reason
    for table in (OPENAI_RESPONSES, OLLAMA, COHERE, GEMINI, BEDROCK, ANTHROPIC, OPENAI_CHAT)
    for word, reason in table.items()
}
"""The words of all providers that LangChain's integrations pass on, in small letters."""
