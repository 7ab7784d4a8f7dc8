"""What the SDKs' own types say about the JSON that we write for their providers.

OpenAI and Anthropic describe requests as typed dicts, Google, Ollama and Cohere as pydantic models, AWS as a model of the
service that botocore reads, LangChain as its message classes. Each judge takes plain JSON, as it goes over the wire, and
returns what the types refuse. Types that let unknown keys pass are made to refuse them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, TypeAlias, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

Refusals: TypeAlias = list[str]
_Check: TypeAlias = Callable[[Any], Refusals]


def refusals(provider: str, part: str, written: Any) -> Refusals:
    """What the types of the provider's SDK refuse in one part of a request, or in the whole; nothing if they take it."""
    value = json.loads(json.dumps(written))
    return [*_judges(provider)[part](value), *(_documented(provider, value) if part == "messages" else ())]


@cache
def _judges(provider: str) -> dict[str, _Check]:
    return _MAKERS[provider]()


# -- pydantic -------------------------------------------------------------------------------------------------------------


def _by_type(type: Any, *, closed: bool = True) -> _Check:
    """Checks a value against a type; with ``closed``, also keys that it does not know."""
    adapter = TypeAdapter(type)
    adapter.rebuild(raise_errors=True)  # Google's models are built when they are first used
    validator = SchemaValidator(_exact(adapter.core_schema, closed))

    def check(value: Any) -> Refusals:
        try:
            validator.validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            return _tell(error)
        return []

    return check


def _each(check: _Check) -> _Check:
    """Checks each item of a list, so that a refusal says which one."""

    def check_all(values: Any) -> Refusals:
        return [f"[{at}] {told}" for at, value in enumerate(values) for told in check(value)]

    return check_all


def _exact(schema: Any, closed: bool) -> Any:
    """A pydantic schema that reads iterables at once (they would be read when somebody iterates) and refuses unknown keys."""
    if isinstance(schema, list | tuple):
        return [_exact(item, closed) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _exact(item, closed) for key, item in schema.items() if key not in ("metadata", "serialization")}
    kind = made.get("type")
    if kind == "generator":
        made["type"] = "list"
    if not closed:
        return made
    if kind in ("typed-dict", "model-fields"):
        made.pop("extras_schema", None)
        return {**made, "extra_behavior": "forbid"}
    if kind == "model":  # a class has a validator of its own, which would be used instead
        return {**made["schema"], **({"ref": made["ref"]} if "ref" in made else {})}
    return made


def _tell(error: ValidationError) -> Refusals:
    """The refusals of the branch that came furthest: unions refuse once for each branch."""
    found = error.errors(include_url=False, include_context=False)
    wrong_kind = {
        one["loc"][:-1] for one in found if one["type"] == "literal_error" and one["loc"][-1:] in (("type",), ("role",))
    }
    near = [one for one in found if not any(one["loc"][: len(place)] == place for place in wrong_kind)]
    deepest = sorted(near or found, key=lambda one: -len(one["loc"]))[:3]
    return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}: {str(one['input'])[:80]}" for one in deepest]


# -- what types do not say, and the providers' documents do -----------------------------------------------------------------

_LONGEST_ID: Final = {"openai_chat": ("tool_call_id", "id", 40), "openai_responses": ("call_id", "call_id", 64)}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_DATA_URL: Final = re.compile(r"data:[^,]*;base64,(.*)", re.DOTALL)
_PDF: Final = "data:application/pdf;base64,"


def _documented(provider: str, value: Any) -> Iterator[str]:
    """Limits of ids, names and types of files, and base64 that can be read."""
    if isinstance(value, list):
        for item in value:
            yield from _documented(provider, item)
    if not isinstance(value, dict):
        return
    of_result, of_call, longest = _LONGEST_ID.get(provider, ("", "", 0))
    is_call = (
        "function" in value or "custom" in value or str(value.get("type")).startswith(("function_call", "custom_tool"))
    )
    id = value.get(of_result) or (value.get(of_call) if is_call else None)
    if isinstance(id, str) and len(id) > longest:
        yield f"the id {id} has more than {longest} characters"
    if isinstance(value.get("file_data"), str) and not value.get("filename"):
        yield "a file has no name"
    if provider == "openai_chat" and not str(value.get("file_data", _PDF)).startswith(_PDF):
        yield f"a file that is no PDF: {value['file_data'][:40]}"
    for key, item in value.items():
        found = _DATA_URL.fullmatch(item) if isinstance(item, str) else None
        data = found[1] if found else item if key == "data" and value.get("type") == "base64" else None
        if isinstance(data, str) and not _BASE64.fullmatch(data):
            yield f"not base64: {data[:40]}"
        if key not in ("input", "arguments", "json", "args"):  # which belong to tools
            yield from _documented(provider, item)


# -- one provider after the other -------------------------------------------------------------------------------------------


def _openai_chat() -> dict[str, _Check]:
    from openai.types.chat import (
        ChatCompletionMessageParam,
        ChatCompletionToolChoiceOptionParam,
        ChatCompletionToolUnionParam,
        completion_create_params,
    )

    return {
        "request": _by_type(completion_create_params.CompletionCreateParamsNonStreaming),
        "messages": _each(_by_type(ChatCompletionMessageParam)),
        "tools": _each(_by_type(ChatCompletionToolUnionParam)),
        "choice": _by_type(ChatCompletionToolChoiceOptionParam),
    }


def _openai_responses() -> dict[str, _Check]:
    from openai.types.responses import ResponseInputItemParam, ToolParam, response_create_params

    return {
        "request": _by_type(response_create_params.ResponseCreateParamsNonStreaming),
        "messages": _each(_by_type(ResponseInputItemParam)),
        "tools": _each(_by_type(ToolParam)),
        "choice": _by_type(response_create_params.ToolChoice),
    }


def _anthropic() -> dict[str, _Check]:
    from anthropic.types import MessageParam, ToolChoiceParam, ToolUnionParam, message_create_params
    from anthropic.types.beta import BetaMessageParam

    plain, beta = _by_type(MessageParam), _by_type(BetaMessageParam)

    def message(value: Any) -> Refusals:
        """What is new is only in the types of the beta at first; the driver sends it to the same address."""
        return plain(value) and beta(value)

    return {
        "request": _by_type(message_create_params.MessageCreateParamsNonStreaming),
        "messages": _each(message),
        "tools": _each(_by_type(ToolUnionParam)),
        "choice": _by_type(ToolChoiceParam),
    }


def _gemini() -> dict[str, _Check]:
    from google.genai import types

    # These refuse unknown keys themselves.
    return {
        "request": _by_type(types.GenerateContentConfig, closed=False),
        "messages": _each(_by_type(types.Content, closed=False)),
        "tools": _each(_by_type(types.Tool, closed=False)),
        "choice": _by_type(types.ToolConfig, closed=False),
    }


def _ollama() -> dict[str, _Check]:
    from ollama import Image, Message, Tool
    from ollama._types import ChatRequest

    message = _by_type(Message)

    def with_images(value: Any) -> Refusals:
        """The client makes an ``Image`` of each image, which takes what is not base64 for the name of a file."""
        try:
            for image in value.get("images", ()):
                Image(value=image).model_dump()
        except ValueError as error:
            return [str(error)]
        return message({key: item for key, item in value.items() if key != "images"})

    # The client leaves out what it does not know of a schema; docs/adapters.md says so.
    return {
        "request": _by_type(ChatRequest, closed=False),
        "messages": _each(with_images),
        "tools": _each(_by_type(Tool, closed=False)),
        "choice": _nothing,
    }


def _cohere() -> dict[str, _Check]:
    from cohere.types import ChatMessageV2, ToolV2
    from cohere.v2.types import V2ChatRequestToolChoice

    return {
        "messages": _each(_by_type(ChatMessageV2)),
        "tools": _each(_by_type(ToolV2)),
        "choice": _by_type(get_args(V2ChatRequestToolChoice)[0]),  # the words; beside them it takes anything
    }


def _langchain() -> dict[str, _Check]:
    from langchain_core.messages import messages_from_dict
    from langchain_core.messages.content import ContentBlock

    block = _by_type(ContentBlock)

    def check(value: Any) -> Refusals:
        try:
            messages_from_dict([value])
        except (ValueError, TypeError) as error:
            return [str(error)]
        content = value["data"]["content"]
        return [told for part in (content if isinstance(content, list) else ()) for told in block(part)]

    # A tool is any dict that one of the models takes, and so is a choice.
    return {"messages": _each(check), "tools": _by_type(list[dict[str, Any]]), "choice": _by_type(str | dict[str, Any])}


def _nothing(value: Any) -> Refusals:
    return [] if value is None else [f"there is no field for {value!r}"]


# -- botocore --------------------------------------------------------------------------------------------------------------


def _bedrock() -> dict[str, _Check]:
    import botocore.session  # type: ignore[import-untyped]
    from botocore.validate import ParamValidator  # type: ignore[import-untyped]

    from toolkit.adapters.bedrock import boto3_messages

    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    request = service.operation_model("Converse").input_shape.members
    tools = request["toolConfig"].members

    def against(shape: Any) -> _Check:
        def check(value: Any) -> Refusals:
            report = ParamValidator().validate(value, shape).generate_report()
            return [*report.splitlines(), *_beyond_botocore(shape, value, "")]

        return check

    def choice(value: Any) -> Refusals:
        return [] if value is None else against(tools["toolChoice"])(value)

    messages = against(request["messages"])
    return {
        "messages": lambda value: messages(boto3_messages(value)),
        "tools": against(tools["tools"]),
        "choice": choice,
    }


def _beyond_botocore(shape: Any, value: Any, place: str) -> Iterator[str]:
    """What the model of the service demands and botocore leaves to the service: words of an enum, lengths and patterns."""
    if shape.type_name == "structure" and isinstance(value, dict) and not shape.metadata.get("document"):
        for key, item in value.items():
            if key in shape.members:
                yield from _beyond_botocore(shape.members[key], item, f"{place}.{key}")
    elif shape.type_name == "list" and isinstance(value, list):
        for at, item in enumerate(value):
            yield from _beyond_botocore(shape.member, item, f"{place}[{at}]")
    elif isinstance(value, str):
        rules = shape.metadata
        if "enum" in rules and value not in rules["enum"]:
            yield f"{place}: {value!r} is not one of {rules['enum']}"
        if "pattern" in rules and not re.fullmatch(rules["pattern"], value):
            yield f"{place}: {value!r} does not match {rules['pattern']}"
        if not rules.get("min", 0) <= len(value) <= rules.get("max", len(value)):
            yield f"{place}: {len(value)} characters"


_MAKERS: Final[dict[str, Callable[[], dict[str, _Check]]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "langchain": _langchain,
}
