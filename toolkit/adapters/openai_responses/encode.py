"""Encodes the neutral format as the items of Responses.

An assistant's turn is several items there: reasoning, text, calls, and what the server ran itself. The neutral message has
the text and the calls. Its metadata has a ``layout`` with an entry for each item, in order:

==================  ==============================================
``{"native": ...}``  an item the neutral form has no field for
``{"text": ...}``    a message item
``{"call": id}``     the call with this id
==================  ==============================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toolkit.adapters.callers import encode_callers
from toolkit.adapters.lossless import provider_metadata, restore
from toolkit.adapters.media.moved import move_media
from toolkit.adapters.openai_responses.content import PROVIDER as PROVIDER
from toolkit.adapters.openai_responses.content import content_text, encode_parts, is_text, takes
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import OPENAI_NAME, provider_id, provider_name
from toolkit.adapters.requests import encode_definitions
from toolkit.adapters.result_value import result_blocks, result_text
from toolkit.adapters.strict.openai import parameters_to_send
from toolkit.adapters.text_tools import custom_input, is_custom, text_tools
from toolkit.adapters.tool_choice import ChoiceTable, encode_tool_choice
from toolkit.adapters.values import arguments_text
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.result import ToolResult

_LONGEST_ID: Final = 64
PROGRAM: Final = "programmatic"
"""The word for programs in `allowed_callers`."""
CHOICES: Final[ChoiceTable] = {"auto": "auto", "none": "none", "required": "required"}


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """``strict`` asks for strict mode for definitions that do not say; native tools of this provider go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema that strict mode cannot express is sent as it is, without strict mode.
    """
    return encode_definitions(definitions, PROVIDER, lambda definition: encode_definition(definition, strict))


def encode_definition(definition: ToolDefinition, strict: bool | None = None) -> JsonDict:
    """One tool, without what only its metadata knows."""
    made: JsonDict = {"name": sent_name(definition.name), "description": definition.description}
    if definition.text_argument is not None:
        made = {"type": "custom", **made}
    else:
        parameters, is_strict = parameters_to_send(definition, strict, PROVIDER)
        # Responses takes a missing value for true.
        made = {"type": "function", **made, "parameters": parameters, "strict": bool(is_strict)}
    made |= {"defer_loading": True} if definition.defer_loading else {}
    return made | encode_callers(definition.callers, PROGRAM)


def encode_choice(choice: ToolChoice, definitions: Iterable[AnyDefinition] = ()) -> Any:
    """``definitions`` are the tools of the request: one that takes text is chosen in another form."""
    texts = text_tools(definitions)
    return encode_tool_choice(
        choice,
        PROVIDER,
        CHOICES,
        lambda name: {"type": "custom" if name in texts else "function", "name": sent_name(name)},
    )


def _sent_id(id: str) -> str:
    return provider_id(id, _LONGEST_ID)


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The input list. Items that only the server has (``previous_response_id``) are not in it.

    Media of a model's message follow in a message of a user. Ids of other providers are shortened if they are too long,
    those of calls and results alike.
    """
    calls: dict[str, JsonDict] = {}
    ids: dict[str, str] = {}
    items: list[JsonDict] = []
    for message in move_media(messages, PROVIDER, by_users=takes, in_results=takes):
        made = _encode_message(message, provider_metadata(message.metadata, PROVIDER), calls)
        if isinstance(message, AssistantToolCallMessage):
            ids |= {call.id: encode_call(call)["call_id"] for call in message.tool_calls if len(call.id) > _LONGEST_ID}
        elif isinstance(message, ToolResultMessage) and message.result.tool_call_id in ids:
            made = [{**item, "call_id": ids[message.result.tool_call_id]} for item in made]
        items += made
    return items


def _encode_message(message: ChatMessage, kept: JsonDict, calls: dict[str, JsonDict]) -> list[JsonDict]:
    if isinstance(message, AssistantToolCallMessage):
        calls.update((call.id, encode_call(call)) for call in message.tool_calls)
        return _encode_turn(message.content, message.tool_calls, kept.get("layout") or [])
    if isinstance(message, TextMessage):
        if "layout" in kept:
            return _encode_turn(_message_text(message), (), kept["layout"])
        return [restore(encode_text(message), kept)]
    return [restore(encode_result(message.result, kept, calls), kept)]


def _message_text(message: TextMessage) -> str:
    return message.content if isinstance(message.content, str) else content_text(encode_parts(message.content, {}))


def encode_text(message: TextMessage) -> JsonDict:
    """A message item, without the difference stored in the metadata. A model's message that was not made here is one text:
    parts of a model's text would need an id and a status.
    """
    if isinstance(message.content, str) or message.role == "assistant":
        return {"role": message.role, "content": _message_text(message)}
    return {
        "role": message.role,
        "content": encode_parts(message.content, provider_metadata(message.metadata, PROVIDER)),
    }


def encode_result(result: ToolResult, kept: JsonDict, calls: Mapping[str, JsonDict]) -> JsonDict:
    """The item of a result, without the difference stored in the metadata. ``calls`` has the items of earlier calls by id."""
    call = calls.get(result.tool_call_id, {})
    kind = "custom_tool_call_output" if call.get("type") == "custom_tool_call" else "function_call_output"
    blocks = result_blocks(result)
    output = result_text(result) if blocks is None else encode_parts(blocks, kept)
    made: JsonDict = {"type": kind, "call_id": result.tool_call_id, "output": output}
    caller = call.get("caller")
    # The result of a call that a program made goes to that program.
    return {**made, "caller": caller} if isinstance(caller, dict) and caller.get("type") == "program" else made


def encode_call(call: ToolCall) -> JsonDict:
    if is_custom(call, PROVIDER):
        made: JsonDict = {"type": "custom_tool_call", "call_id": _sent_id(call.id), "name": call.name}
        made |= custom_input(call, PROVIDER)
    else:
        name = sent_name(call.name)
        made = {"type": "function_call", "call_id": _sent_id(call.id), "name": name, "arguments": arguments_text(call)}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


def _encode_turn(content: str, tool_calls: Sequence[ToolCall], layout: Sequence[JsonDict]) -> list[JsonDict]:
    """The items of a turn in their original order. A changed text takes the place of the first text."""
    said = [entry["text"] for entry in layout if "text" in entry]
    is_same_text = "".join(content_text(item.get("content")) for item in said) == content
    calls = list(tool_calls)
    items: list[JsonDict] = []
    text = "" if is_same_text else content
    for entry in layout:
        if "native" in entry:
            items.append(entry["native"])
        elif "text" in entry:
            items += [entry["text"]] if is_same_text else _replace_text(entry["text"], text)
            text = ""
        else:
            called = next((call for call in calls if call.id == entry["call"]), None)
            if called is not None:
                calls.remove(called)
                items.append(encode_call(called))
    new_text = [{"role": "assistant", "content": text}] if text else []
    return [*items, *new_text, *map(encode_call, calls)]


def _replace_text(item: JsonDict, text: str) -> list[JsonDict]:
    """A message item with another text. Its other parts stay; an item without any content is left out."""
    parts = item.get("content")
    if not isinstance(parts, list):
        return [{**item, "content": text}] if text else []
    rest = [part for part in parts if not is_text(part)]
    shape = next((part for part in parts if is_text(part)), {"type": "output_text"})
    # Annotations refer to positions in the old text.
    annotations: JsonDict = {"annotations": []} if "annotations" in shape else {}
    content = [*([{"type": shape["type"], "text": text, **annotations}] if text else []), *rest]
    return [{**item, "content": content}] if content else []
