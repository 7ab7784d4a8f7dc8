"""The neutral format into the JSON of Bedrock's Converse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.bedrock.content import encode_part
from toolkit.adapters.blocks.encode import BlockWriter, arranged, encode_turns
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict, plain
from toolkit.adapters.provider_names import provider_name
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "bedrock"
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_CHOICES: Final = {"auto": "auto", "required": "any"}


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """The list ``toolConfig.tools``. ``strict`` asks for strict mode where a definition does not say; native tools of
    this provider (system tools, cache points) go out unchanged."""
    return [_tool(definition, strict) for definition in definitions]


def _tool(definition: AnyDefinition, strict: bool | None) -> JsonDict:
    if isinstance(definition, NativeTool):
        return dict(definition.raw)
    spec: JsonDict = {
        "name": provider_name(definition.name, _NAME),
        "inputSchema": {"json": {"type": "object", **definition.parameters}},
    }
    if definition.description:
        spec["description"] = definition.description
    wanted = definition.strict if definition.strict is not None else strict
    if wanted is not None:
        spec["strict"] = wanted
    made: JsonDict = restored({"toolSpec": spec}, own(definition.metadata, PROVIDER).get("residue"))
    return made


def encode_choice(choice: ToolChoice) -> Any:
    """``toolConfig.toolChoice``. Converse cannot say ``none``: that is None here, and the request then has no tools."""
    if isinstance(choice, NamedTool):
        return {"tool": {"name": provider_name(choice.name, _NAME)}}
    if isinstance(choice, NativeChoice):
        return choice.raw
    return None if choice == "none" else {_CHOICES[choice]: {}}


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``, in which roles alternate. Results come first in the message right after their calls.

    Converse has no system role here; ``split_system`` takes system texts out for the field ``system``.
    """
    turns = encode_turns(WRITER, messages)
    _name_documents(turns)
    return turns


def split_system(messages: Sequence[ChatMessage]) -> tuple[list[JsonDict] | None, list[ChatMessage]]:
    """What goes into the field ``system``: all system texts, wherever they stand. And the other messages."""
    system: list[JsonDict] = []
    rest: list[ChatMessage] = []
    for message in messages:
        if isinstance(message, TextMessage) and message.role == "system":
            system += arranged(WRITER, message.content, (), own(message.metadata, PROVIDER))
        else:
            rest.append(message)
    return system or None, rest


def _name_documents(turns: list[JsonDict]) -> None:
    """Each document needs a name, no two the same."""
    documents = [document for turn in turns for document in _documents(turn.get("content", ()))]
    taken = {document.get("name") for document in documents}
    number = 0
    for document in documents:
        if "name" not in document:
            number += 1
            while f"document {number}" in taken:
                number += 1
            document["name"] = f"document {number}"


def _documents(blocks: Iterable[JsonDict]) -> Iterator[JsonDict]:
    for block in blocks:
        document, result = block.get("document"), block.get("toolResult")
        if isinstance(document, dict):
            yield document
        if isinstance(result, dict):
            yield from _documents(result.get("content") or ())


def _id(id: str) -> str:
    return provider_name(id, _ID)


def _text(text: str) -> JsonDict:
    return {"text": text}


def _call(call: ToolCall) -> JsonDict:
    # Arguments that never were JSON go back wrapped: input has to be an object.
    broken = call.unread_text is not None and not call.arguments and call.unread_text.strip() != "{}"
    return {
        "toolUse": {
            "toolUseId": call.id,
            "name": provider_name(call.name, _NAME),
            "input": {"INVALID_JSON": call.raw_arguments} if broken else call.arguments,
        }
    }


def _result(result: ToolResult, kept: JsonDict) -> JsonDict:
    made: JsonDict = {"toolUseId": result.tool_call_id, "content": _content(result, kept)}
    return {"toolResult": {**made, "status": "error"} if result.kind == "error" else made}


def _content(result: ToolResult, kept: JsonDict) -> list[JsonDict]:
    if result.kind == "multimodal" and isinstance(result.value, Sequence):
        return arranged(WRITER, result.value, (), kept)
    if result.kind == "data":
        value = plain(result.value)
        # Models refuse JSON here that is no object.
        return [{"json": value}] if isinstance(value, dict) else [_text(compact(value))]
    return arranged(WRITER, str(result.value), (), kept)


WRITER: Final = BlockWriter(
    provider=PROVIDER,
    id=_id,
    text=_text,
    part=encode_part,
    call=_call,
    result=_result,
    about_text=frozenset({"citationsContent"}),
    bare_text=False,
    alternating=True,
)
