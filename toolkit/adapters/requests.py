"""What adapters share of a request's parts around the messages: tools, the choice among them, names, cache breakpoints.

OpenAI's form of a tool, an object ``function`` inside ``{"type": "function"}``, is also what Ollama, Cohere and LangChain
take.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import takewhile
from re import Pattern
from typing import Any, Final, Literal, TypeAlias

from toolkit.adapters.lossless import keep_difference, provider_metadata, restore
from toolkit.adapters.values import JsonDict, plain, plain_list
from toolkit.wire.call import JsonObject, ToolCall
from toolkit.wire.definition import (
    AnyDefinition,
    NamedTool,
    NativeChoice,
    NativeTool,
    ToolCallers,
    ToolChoice,
    ToolDefinition,
    alias,
)
from toolkit.wire.query import CachePoint

_SHOWN: Final = 80


# -- lists of tools ------------------------------------------------------------------------------------------------------


def encode_definitions(
    definitions: Iterable[AnyDefinition], provider: str, encode: Callable[[ToolDefinition], JsonDict]
) -> list[JsonDict]:
    """A tool for each definition. Native tools of the provider go out unchanged; what only the metadata knows is put back."""
    return [
        own_native(definition, provider)
        if isinstance(definition, NativeTool)
        else restore(encode(definition), provider_metadata(definition.metadata, provider))
        for definition in definitions
    ]


def decode_definitions(
    tools: object,
    provider: str,
    decode: Callable[[JsonDict], ToolDefinition | None],
    encode: Callable[[ToolDefinition], JsonDict],
) -> list[AnyDefinition]:
    """A definition for each tool. One that ``decode`` returns None for is native to the provider."""
    definitions: list[AnyDefinition] = []
    for tool in plain_list(tools):
        made = decode(tool)
        if made is None:
            definitions.append(NativeTool(provider, JsonObject(tool)))
        else:
            definitions.append(keep_difference(made, provider, tool, encode(made)))
    return definitions


def own_native(native: NativeTool | NativeChoice, provider: str) -> Any:
    """What the provider itself wrote, or wants. A native of another provider is a ``ValueError``.

    >>> own_native(NativeChoice("anthropic", {"type": "any"}), "anthropic")
    {'type': 'any'}
    """
    if native.provider == provider:
        return dict(native.raw) if isinstance(native, NativeTool) else native.raw
    what, instead = (
        ("tool", f"leave it out, or use a native tool of {provider}")
        if isinstance(native, NativeTool)
        else ("tool choice", "use 'auto', 'none', 'required' or NamedTool")
    )
    shown = repr(native.raw)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    raise ValueError(f"the {what} {shown} belongs to {native.provider} and means nothing to {provider}; {instead}")


def wants_strict(definition: ToolDefinition, strict: bool | None) -> bool | None:
    """Whether strict mode is asked for: by the definition, else by ``strict``."""
    return definition.strict if definition.strict is not None else strict


# -- tools in OpenAI's form ----------------------------------------------------------------------------------------------


def encode_function(
    name: str, definition: ToolDefinition, parameters: JsonDict, strict: bool | None = None
) -> JsonDict:
    """A tool in OpenAI's form. ``strict`` is left out if None."""
    function: JsonDict = {"name": name, "description": definition.description, "parameters": parameters}
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


def decode_function(tool: JsonDict) -> ToolDefinition | None:
    """The definition in a tool in OpenAI's form; None if it is not one."""
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict) or "name" not in function:
        return None
    parameters = JsonObject(function.get("parameters") or {})
    return ToolDefinition(function["name"], function.get("description") or "", parameters)


def decode_strict_function(tool: JsonDict) -> ToolDefinition | None:
    """The same for providers that know strict mode."""
    made = decode_function(tool)
    return None if made is None else replace(made, strict=tool["function"].get("strict"))


# -- the choice of a tool ------------------------------------------------------------------------------------------------

ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ChoiceTable: TypeAlias = Mapping[ChoiceWord, object]
"""What a provider writes for each neutral word."""


def encode_tool_choice(choice: ToolChoice, provider: str, table: ChoiceTable, encode_name: Callable[[str], Any]) -> Any:
    """What the provider writes for ``choice``; ``encode_name`` encodes the choice of a single tool."""
    if isinstance(choice, NativeChoice):
        return own_native(choice, provider)
    return encode_name(choice.name) if isinstance(choice, NamedTool) else deepcopy(table[choice])


def decode_tool_choice(
    choice: object, provider: str, table: ChoiceTable, decode_name: Callable[[Any], str | None]
) -> ToolChoice:
    """The neutral choice; None is ``auto``. ``decode_name`` returns the name of a single tool, None for a native choice."""
    found = plain(choice)
    if found is None:
        return "auto"
    for word, written in table.items():
        if found == written:
            return word
    name = decode_name(found)
    return NativeChoice(provider, found) if name is None else NamedTool(name)


def function_choice(name: str) -> Any:
    """A single tool in OpenAI's form."""
    return {"type": "function", "function": {"name": name}}


def function_choice_name(found: Any) -> str | None:
    """The name of the tool in a choice in OpenAI's form; None if it is not one."""
    function = found.get("function") if isinstance(found, dict) else None
    if not isinstance(function, dict) or found != function_choice(function.get("name")):  # type: ignore[arg-type]
        return None
    name: str = function["name"]
    return name


# -- who may call a tool -------------------------------------------------------------------------------------------------
#
# Anthropic and OpenAI write a list with a word for the model and one for programs.

_DIRECT: Final = "direct"


def encode_callers(callers: ToolCallers, program: str) -> JsonDict:
    """The key of a definition; nothing for a tool that only the model calls, which is what providers assume.

    >>> encode_callers("both", "programmatic")
    {'allowed_callers': ['direct', 'programmatic']}
    """
    if callers == "model":
        return {}
    return {"allowed_callers": [program] if callers == "programs" else [_DIRECT, program]}


def decode_callers(tool: JsonDict, program: str) -> ToolCallers:
    """Who may call a tool; ``program`` is how the provider's words for programs begin."""
    if find_program(tool, program) is None:
        return "model"
    return "both" if _DIRECT in tool["allowed_callers"] else "programs"


def find_program(tool: JsonDict, program: str) -> str | None:
    """The provider's word for the programs that may call a tool; None if none may."""
    words = tool.get("allowed_callers")
    found = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
    return next((word for word in found if word.startswith(program)), None)


# -- OpenAI's custom tools, whose one argument the model writes as plain text instead of JSON ----------------------------

CUSTOM: Final = {"type": "custom"}
"""What the metadata of a call says if the tool is a custom one."""
_ARGUMENT: Final = "argument"


def text_tools(definitions: Iterable[AnyDefinition]) -> dict[str, str]:
    """The argument that is written as text, by the names of the tools that have one."""
    tools = [one for one in definitions if isinstance(one, ToolDefinition)]
    return {one.name: one.text_argument for one in tools if one.text_argument is not None}


def is_custom(call: ToolCall, provider: str) -> bool:
    """Whether this is the call of a custom tool."""
    return provider_metadata(call.metadata, provider).get("type") == CUSTOM["type"]


def custom_input(call: ToolCall, provider: str) -> JsonDict:
    """The text of such a call, under the provider's own key."""
    argument = provider_metadata(call.metadata, provider).get(_ARGUMENT)
    return call.arguments if argument is None else {"input": str(call.arguments.get(argument, ""))}


def name_argument(call: ToolCall, argument: str | None, provider: str) -> ToolCall:
    """The call of a custom tool with its text under the name that the tool's definition has for it."""
    if argument is None or not is_custom(call, provider) or "input" not in call.arguments:
        return call
    kept = {**provider_metadata(call.metadata, provider), _ARGUMENT: argument}
    return ToolCall(call.id, call.name, {argument: call.arguments["input"]}, {**call.metadata, provider: kept})


# -- names and ids that a provider accepts -------------------------------------------------------------------------------

OPENAI_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What OpenAI accepts as the name of a tool, and those who follow it."""
_DIGEST: Final = 12
MADE_ID: Final = "made-"
"""The prefix of ids given to calls that came without one; such an id is never sent."""


def provider_name(name: str, accepted: Pattern[str]) -> str:
    """The name itself if the provider accepts it, else its alias, which the toolkit resolves.

    >>> provider_name("read_file", OPENAI_NAME), provider_name("math.factorial", OPENAI_NAME)
    ('read_file', 'math_factorial-2f2114b7')
    """
    return name if accepted.fullmatch(name) else alias(name)


def provider_id(id: str, longest: int) -> str:
    """The id of a call, shortened if the provider's limit demands it; the same for a call and its result.

    >>> provider_id("call_1", 40), provider_id("call_" + "0123456789" * 9, 40)
    ('call_1', 'call_0123456789012345678901-829500c93043')
    """
    if len(id) <= longest:
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{id[: longest - _DIGEST - 1]}-{digest}"


# -- breakpoints of OpenAI's prompt cache --------------------------------------------------------------------------------
#
# Tools come before all messages there, so a breakpoint after the system text has them in the cache as well.

_KEY: Final = "prompt_cache_breakpoint"
_MARK: Final = {"mode": "explicit"}
# Parts of what is sent, of both APIs; what a model wrote takes no breakpoint.
_PARTS: Final = frozenset(
    {"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"}
)  # fmt: skip


def mark_ends(
    messages: list[JsonDict], points: Sequence[CachePoint], mark: Callable[[JsonDict], JsonDict]
) -> list[JsonDict]:
    """The messages with the end of the leading system texts and the end of the last message marked, as far as wanted."""
    ends = {len(messages)} if "messages" in points else set[int]()
    if "system" in points:
        ends.add(sum(1 for _ in takewhile(lambda message: message.get("role") == "system", messages)))
    marked = list(messages) if ends else messages
    for end in ends - {0}:
        marked[end - 1] = mark(marked[end - 1])
    return marked


def with_breakpoint(message: JsonDict, key: str, text_type: str) -> JsonDict:
    """The message with a breakpoint at its last part; ``text_type`` is the type of a part that is text."""
    content: Any = message.get(key)
    parts = [{"type": text_type, "text": content}] if isinstance(content, str) and content else content
    if not isinstance(parts, list) or not parts or parts[-1].get("type") not in _PARTS:
        return message
    return {**message, key: [*parts[:-1], {_KEY: dict(_MARK), **parts[-1]}]}
