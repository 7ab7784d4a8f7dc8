"""Encodes the neutral format as the JSON of Bedrock's Converse."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from toolkit.adapters.bedrock.content import encode_part, takes, takes_in_results
from toolkit.adapters.blocks.encode import BlockWriter, arrange_blocks, call_input, encode_turns
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.media.moved import move_media
from toolkit.adapters.plain_json import JsonDict, plain
from toolkit.adapters.provider_names import OPENAI_NAME, provider_name
from toolkit.adapters.requests import encode_definitions
from toolkit.adapters.result_value import result_blocks
from toolkit.adapters.strict.adapter import choose_strict, sent_parameters
from toolkit.adapters.strict.receipt import StrictReceipt
from toolkit.adapters.strict.rules import BEDROCK
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice
from toolkit.adapters.values import compact
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.result import ToolResult

PROVIDER: Final = "bedrock"
_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
CHOICES: Final[ChoiceTable] = {"auto": {"auto": {}}, "none": None, "required": {"any": {}}}


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """The list ``toolConfig.tools``. ``strict`` asks for strict mode for definitions that do not say; native tools of
    this provider (system tools, cache points) go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema outside the provider's subset, or beyond what a request may have, is sent as it
    is, without the flag.
    """
    listed = list(definitions)
    receipts = choose_strict(listed, strict, PROVIDER, BEDROCK)
    return encode_definitions(
        listed, PROVIDER, lambda definition: encode_definition(definition, strict, receipts.get(definition.name))
    )


def encode_definition(
    definition: ToolDefinition, strict: bool | None = None, receipt: StrictReceipt | None = None
) -> JsonDict:
    """One tool, without what only its metadata knows."""
    parameters, is_strict = sent_parameters(definition, strict, receipt)
    spec: JsonDict = {"name": sent_name(definition.name), "inputSchema": {"json": {"type": "object", **parameters}}}
    if definition.description:
        spec["description"] = definition.description
    return {"toolSpec": spec if is_strict is None else {**spec, "strict": is_strict}}


def encode_choice(choice: ToolChoice) -> Any:
    """``toolConfig.toolChoice``. Converse has no ``none``: then this returns None, and the request must have no tools."""
    return encode_tool_choice(choice, PROVIDER, CHOICES, lambda name: {"tool": {"name": sent_name(name)}})


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``, in which roles alternate. Results come first in the message right after their calls.

    Media that a result or a model's message cannot have follow in one of a user. Converse has no system role here;
    ``split_system`` takes them out for the field ``system``.
    """
    return _name_documents(encode_turns(WRITER, _place_media(messages)))


def _place_media(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    return move_media(messages, PROVIDER, by_users=takes, in_results=takes_in_results)


def split_system(messages: Sequence[ChatMessage]) -> tuple[list[JsonDict] | None, list[ChatMessage]]:
    """What goes into the field ``system``, which is all system texts wherever they are, and the other messages."""
    system: list[JsonDict] = []
    rest: list[ChatMessage] = []
    for message in _place_media(messages):
        if isinstance(message, TextMessage) and message.role == "system":
            system += arrange_blocks(WRITER, message.content, (), provider_metadata(message.metadata, PROVIDER))
        else:
            rest.append(message)
    return system or None, rest


def _name_documents(turns: list[JsonDict]) -> list[JsonDict]:
    """The messages with a name for each document; Converse wants a different one for each."""
    named = deepcopy(turns)  # parts of it may belong to somebody's metadata
    documents = [document for turn in named for document in _find_documents(turn.get("content"))]
    names = [document["name"] for document in documents if isinstance(document.get("name"), str)]
    taken, used = set(names), set[str]()
    for document in documents:
        name = document.get("name")
        if "name" not in document or (isinstance(name, str) and name in used):
            document["name"] = _free_name(name, taken)
            taken.add(document["name"])
        elif isinstance(name, str):
            used.add(name)
    return named


def _free_name(wanted: str | None, taken: set[str]) -> str:
    forms = (
        f"document {number}" if wanted is None else f"{wanted[:190]} ({number + 1})" for number in itertools.count(1)
    )
    return next(name for name in forms if name not in taken)


def _find_documents(blocks: object) -> Iterator[JsonDict]:
    for block in blocks if isinstance(blocks, list) else ():
        document, result = (block.get("document"), block.get("toolResult")) if isinstance(block, dict) else (None, None)
        if isinstance(document, dict):
            yield document
        if isinstance(result, dict):
            yield from _find_documents(result.get("content"))


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, OPENAI_NAME)


def _sent_id(id: str) -> str:
    return provider_name(id, _ID)


def _encode_text(text: str) -> JsonDict:
    return {"text": text}


def _encode_call(call: ToolCall) -> JsonDict:
    return {"toolUse": {"toolUseId": call.id, "name": sent_name(call.name), "input": call_input(call)}}


def _encode_result(result: ToolResult, kept: JsonDict) -> JsonDict:
    made: JsonDict = {"toolUseId": result.tool_call_id, "content": _encode_result_content(result, kept)}
    return {"toolResult": {**made, "status": "error"} if result.kind == "error" else made}


def _encode_result_content(result: ToolResult, kept: JsonDict) -> list[JsonDict]:
    if result.kind == "data":
        value = plain(result.value)
        # Models refuse JSON here that is not an object.
        return [{"json": value}] if isinstance(value, dict) else [_encode_text(compact(value))]
    blocks = result_blocks(result)
    return arrange_blocks(WRITER, str(result.value) if blocks is None else blocks, (), kept)


WRITER: Final = BlockWriter(
    provider=PROVIDER,
    id=_sent_id,
    text=_encode_text,
    part=encode_part,
    call=_encode_call,
    result=_encode_result,
    about_text=frozenset({"citationsContent"}),
    bare_text=False,
    alternating=True,
)
