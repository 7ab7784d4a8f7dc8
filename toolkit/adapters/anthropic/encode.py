"""The neutral format into the JSON of Anthropic's messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.anthropic.content import encode_part
from toolkit.adapters.argument_text import compact
from toolkit.adapters.blocks.encode import BlockWriter, encode_turns, said
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict, plain
from toolkit.adapters.provider_names import provider_name
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "anthropic"
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """``strict`` asks for strict mode where a definition does not say; native tools of this provider go out unchanged."""
    return [_tool(definition, strict) for definition in definitions]


def _tool(definition: AnyDefinition, strict: bool | None) -> JsonDict:
    if isinstance(definition, NativeTool):
        return dict(definition.raw)
    made: JsonDict = {
        "name": provider_name(definition.name, _NAME),
        "input_schema": {"type": "object", **definition.parameters},
    }
    if definition.description:
        made["description"] = definition.description
    wanted = definition.strict if definition.strict is not None else strict
    if wanted is not None:
        made["strict"] = wanted
    whole: JsonDict = restored(made, own(definition.metadata, PROVIDER).get("residue"))
    return whole


def encode_choice(choice: ToolChoice) -> Any:
    if isinstance(choice, NamedTool):
        return {"type": "tool", "name": provider_name(choice.name, _NAME)}
    return choice.raw if isinstance(choice, NativeChoice) else {"type": _CHOICES[choice]}


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Results come first in the message right after their calls, all of one turn in one message.

    System texts stay where they are; ``split_system`` takes out those that belong into the field ``system``.
    """
    return encode_turns(WRITER, messages)


def split_system(messages: Sequence[ChatMessage]) -> tuple[str | list[JsonDict] | None, list[ChatMessage]]:
    """What goes into the field ``system``, and the other messages.

    Only what stands at the front belongs there. A system text later in the conversation stays in its place, as newer
    models want it (older ones refuse it).
    """
    contents: list[str | list[JsonDict]] = []
    for message in messages:
        if not isinstance(message, TextMessage) or message.role != "system":
            break
        contents.append(said(WRITER, message.content, own(message.metadata, PROVIDER)))
    rest = list(messages[len(contents) :])
    if len(contents) == 1:
        return contents[0], rest
    blocks = [[_text(content)] if isinstance(content, str) else content for content in contents]
    return [block for of_one in blocks for block in of_one] or None, rest


def _id(id: str) -> str:
    return provider_name(id, _ID)


def _text(text: str) -> JsonDict:
    return {"type": "text", "text": text}


def _call(call: ToolCall) -> JsonDict:
    # Arguments that never were JSON go back in the wrapping Anthropic asks for: input has to be an object.
    broken = call.unread_text is not None and not call.arguments and call.unread_text.strip() != "{}"
    return {
        "type": "tool_use",
        "id": call.id,
        "name": provider_name(call.name, _NAME),
        "input": {"INVALID_JSON": call.raw_arguments} if broken else call.arguments,
    }


def _result(result: ToolResult, kept: JsonDict) -> JsonDict:
    made: JsonDict = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    if result.kind == "multimodal" and isinstance(result.value, Sequence):
        made["content"] = said(WRITER, result.value, kept)
    else:
        text = compact(plain(result.value)) if result.kind == "data" else str(result.value)
        made["content"] = said(WRITER, text, kept)
    return {**made, "is_error": True} if result.kind == "error" else made


WRITER: Final = BlockWriter(
    provider=PROVIDER,
    id=_id,
    text=_text,
    part=encode_part,
    call=_call,
    result=_result,
    about_text=frozenset({"citations"}),
    bare_text=True,
    alternating=False,
)
