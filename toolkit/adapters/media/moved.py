"""Moves media to where a provider takes them.

Most providers take images and files in a user's message, but only text in the result of a tool or in a model's message. There
the message keeps a note, and the media follow in a user's message: after a model's message, or after all results of its
calls, because nothing may come between these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.media.blocks import describe
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.result_value import result_blocks
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage

Takes: TypeAlias = Callable[[ContentBlock], bool]
"""Whether a provider takes this block of media in some place."""

IN_PLACE: Final[JsonDict] = {"media_in_place": True}
"""What a decoder stores for a message whose media came in a place where they would be moved away: that server takes them."""
_LEAD: Final = "[Attached automatically: media from the messages above, which could not be sent there]"


def never(block: ContentBlock) -> bool:
    """For a place that takes only text."""
    return False


def move_media(
    messages: Iterable[ChatMessage],
    provider: str,
    *,
    by_users: Takes,
    in_results: Takes,
    by_models: Takes = never,
    leave_in_place: bool = True,
) -> Iterator[ChatMessage]:
    """The messages, with media that do not go where they are moved into a user's message.

    Media that the provider takes nowhere stay where they are.

    :param by_users: which media a user's message may have.
    :param in_results: which media a tool's result may have.
    :param by_models: which media a message of the model may have; a system text may have none.
    :param leave_in_place: whether media stay in messages that came from this provider with media in them.
    """
    moved: list[ContentBlock] = []
    for message in messages:
        if moved and not isinstance(message, ToolResultMessage):
            yield _attachments(moved)
            moved = []
        in_place = leave_in_place and IN_PLACE.items() <= provider_metadata(message.metadata, provider).items()
        if isinstance(message, AssistantToolCallMessage) or in_place or (blocks := _movable(message)) is None:
            yield message
            continue
        allowed = _choose(message, in_results, by_models)
        here, away = _split(blocks, _source(message), allowed, by_users)
        yield _with_blocks(message, here) if away else message
        moved += away
    if moved:
        yield _attachments(moved)


def _choose(message: TextMessage | ToolResultMessage, in_results: Takes, by_models: Takes) -> Takes:
    if isinstance(message, ToolResultMessage):
        return in_results
    return by_models if message.role == "assistant" else never


def _movable(message: TextMessage | ToolResultMessage) -> Sequence[ContentBlock] | None:
    """The blocks of a message that could have media in the wrong place."""
    if isinstance(message, ToolResultMessage):
        return result_blocks(message.result)
    return None if message.role == "user" or isinstance(message.content, str) else message.content


def _split(
    blocks: Sequence[ContentBlock], source: str, allowed: Takes, by_users: Takes
) -> tuple[list[ContentBlock], list[ContentBlock]]:
    """The blocks that stay, with notes for the others; and those, each after a line that says where it comes from."""
    here: list[ContentBlock] = []
    away: list[ContentBlock] = []
    for block in blocks:
        if block.text is not None or allowed(block) or not by_users(block):
            here.append(block)
            continue
        here.append(ContentBlock("text", text=f"[{describe(block)}: attached in the next user message]"))
        away += [ContentBlock("text", text=f"[{describe(block)}, {source}]"), block]
    return here, away


def _source(message: TextMessage | ToolResultMessage) -> str:
    if isinstance(message, ToolResultMessage):
        return f"from the result of {message.result.name or 'a tool'} ({message.result.tool_call_id})"
    return f"from the {message.role}"


def _with_blocks(message: TextMessage | ToolResultMessage, blocks: list[ContentBlock]) -> ChatMessage:
    """The message with other blocks; one text if only texts are left, which every server takes."""
    texts = [block.text for block in blocks if block.text is not None]
    text = "\n".join(texts) if len(texts) == len(blocks) else None
    if isinstance(message, TextMessage):
        return replace(message, content=blocks if text is None else text)
    result = message.result
    made = replace(result, value=tuple(blocks)) if text is None else replace(result, kind="text", value=text)
    return replace(message, result=made)


def _attachments(moved: list[ContentBlock]) -> TextMessage:
    return TextMessage("user", [ContentBlock("text", text=_LEAD), *moved])
