"""Encodes the neutral format as the JSON of Anthropic's messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolkit.adapters.anthropic.content import PROVIDER as PROVIDER
from toolkit.adapters.anthropic.content import encode_part, takes
from toolkit.adapters.blocks.encode import BlockWriter, call_input, encode_content, encode_turns
from toolkit.adapters.callers import encode_callers
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.media.moved import move_media
from toolkit.adapters.plain_json import JsonDict, plain
from toolkit.adapters.provider_names import provider_name
from toolkit.adapters.requests import encode_definitions
from toolkit.adapters.result_value import result_blocks
from toolkit.adapters.strict.adapter import choose_strict, sent_parameters
from toolkit.adapters.strict.receipt import StrictReceipt
from toolkit.adapters.strict.rules import ANTHROPIC
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice
from toolkit.adapters.values import compact
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.output import OutputSchema
from toolkit.wire.result import ToolResult

PROGRAM: Final = "code_execution_"
"""How the words for programs in `allowed_callers` begin; the rest is the version of the tool that runs them."""
_NEWEST: Final = f"{PROGRAM}20260120"
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
CHOICES: Final[ChoiceTable] = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}


def encode_tools(
    definitions: Iterable[AnyDefinition], strict: bool | None = None, *, output: OutputSchema | None = None
) -> list[JsonDict]:
    """``strict`` asks for strict mode for definitions that do not say; native tools of this provider go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema outside the provider's subset, or beyond what a request may have, is sent as it
    is, without the flag.

    :param output: the structured output of the same request, which uses some of what a request may have.
    """
    listed = list(definitions)
    receipts = choose_strict(listed, strict, PROVIDER, ANTHROPIC, output)
    program = _find_version(listed)
    return encode_definitions(
        listed, PROVIDER, lambda one: encode_definition(one, strict, receipts.get(one.name), program)
    )


def _find_version(definitions: Sequence[AnyDefinition]) -> str:
    """The version of the tool that runs programs: the caller's own, if there is one."""
    types = [str(one.raw.get("type")) for one in definitions if isinstance(one, NativeTool)]
    return next((one for one in types if one.startswith(PROGRAM)), _NEWEST)


def encode_definition(
    definition: ToolDefinition,
    strict: bool | None = None,
    receipt: StrictReceipt | None = None,
    program: str = _NEWEST,
) -> JsonDict:
    """One tool, without what only its metadata knows."""
    parameters, is_strict = sent_parameters(definition, strict, receipt)
    made: JsonDict = {"name": sent_name(definition.name), "input_schema": {"type": "object", **parameters}}
    if definition.description:
        made["description"] = definition.description
    if definition.defer_loading:
        made["defer_loading"] = True
    made |= encode_callers(definition.callers, program)
    return made if is_strict is None else {**made, "strict": is_strict}


def encode_choice(choice: ToolChoice) -> Any:
    return encode_tool_choice(choice, PROVIDER, CHOICES, lambda name: {"type": "tool", "name": sent_name(name)})


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Results come first in the message right after their calls, all of one turn in one message.

    Media of a model's message follow in a message of a user. System texts stay where they are; ``split_system`` takes out
    those that belong in the field ``system``.
    """
    return encode_turns(WRITER, _place_media(messages))


def _place_media(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    return move_media(messages, PROVIDER, by_users=takes, in_results=takes)


def split_system(messages: Sequence[ChatMessage]) -> tuple[str | list[JsonDict] | None, list[ChatMessage]]:
    """What goes into the field ``system``, and the other messages.

    Only system texts at the front go there. One later in the conversation stays in its place, as newer models want it
    (older ones refuse it).
    """
    contents: list[str | list[JsonDict]] = []
    placed = list(_place_media(messages))
    for message in placed:
        if not isinstance(message, TextMessage) or message.role != "system":
            break
        contents.append(encode_content(WRITER, message.content, provider_metadata(message.metadata, PROVIDER)))
    rest = placed[len(contents) :]
    if len(contents) == 1:
        return contents[0], rest
    lists = [[_encode_text(content)] if isinstance(content, str) else content for content in contents]
    return [block for blocks in lists for block in blocks] or None, rest


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, _NAME)


def _sent_id(id: str) -> str:
    return provider_name(id, _ID)


def _encode_text(text: str) -> JsonDict:
    return {"type": "text", "text": text}


def _encode_call(call: ToolCall) -> JsonDict:
    return {"type": "tool_use", "id": call.id, "name": sent_name(call.name), "input": call_input(call)}


def _encode_result(result: ToolResult, kept: JsonDict) -> JsonDict:
    content: Any = result_blocks(result)
    if content is None:
        content = compact(plain(result.value)) if result.kind == "data" else str(result.value)
    made = {
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": encode_content(WRITER, content, kept),
    }
    return {**made, "is_error": True} if result.kind == "error" else made


WRITER: Final = BlockWriter(
    provider=PROVIDER,
    id=_sent_id,
    text=_encode_text,
    part=encode_part,
    call=_encode_call,
    result=_encode_result,
    about_text=frozenset({"citations"}),
    bare_text=True,
    alternating=False,
)
