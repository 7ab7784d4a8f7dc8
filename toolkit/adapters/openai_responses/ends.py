"""How an answer of Responses ended: refusals, and items that wait for an action of the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.adapters.answers.finish_reasons import OPENAI_RESPONSES, choose_finish_reason, openai_error_reason
from toolkit.adapters.plain_json import JsonDict, plain_object, plain_objects
from toolkit.wire.call import ToolCall
from toolkit.wire.query import FinishReason

# Items that the client must act on, and the items that answer them.
CLIENT_RUN: Final = {
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}


def find_actions(items: Sequence[JsonDict]) -> list[JsonDict]:
    """The items that wait for an action of the client: those that the server neither runs nor has answered itself."""
    return [item for item in items if _is_for_client(item) and not _is_answered(item, items)]


def _is_for_client(item: JsonDict) -> bool:
    kind = item.get("type")
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        return plain_object(item.get("environment")).get("type") != "container_reference"
    return isinstance(kind, str) and kind in CLIENT_RUN


def _is_answered(item: JsonDict, items: Sequence[JsonDict]) -> bool:
    ids = [item[key] for key in ("call_id", "id") if item.get(key) is not None]
    answers = [one for one in items if one.get("type") == CLIENT_RUN[item["type"]]]
    return any(one.get(key) in ids for one in answers for key in ("call_id", "approval_request_id", "id"))


def has_refusal(item: JsonDict) -> bool:
    """Whether this is a message in which the model declines to answer."""
    content = item.get("content")
    parts = plain_objects(content) if item.get("type", "message") == "message" and isinstance(content, list) else []
    return any(part.get("type") == "refusal" for part in parts)


def reported_word(response: JsonDict) -> object:
    """The provider's own word for the end: why the response is incomplete, or else its status."""
    return plain_object(response.get("incomplete_details")).get("reason") or response.get("status")


def decode_finish_reason(
    response: JsonDict, items: Sequence[JsonDict], calls: Sequence[ToolCall], actions: Sequence[JsonDict]
) -> FinishReason:
    if response.get("error") or response.get("status") == "failed":
        return openai_error_reason(response.get("error"))
    word = reported_word(response)
    if not isinstance(word, str) or word not in OPENAI_RESPONSES:
        word = response.get("status")
    refused: FinishReason | None = "refused" if any(map(has_refusal, items)) else None
    waiting: FinishReason | None = "needs_action" if actions else None
    return choose_finish_reason(word, OPENAI_RESPONSES, calls, refused, waiting)
