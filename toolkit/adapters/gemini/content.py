"""Parts of a content: text, media, calls and results, both ways."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.gemini.key_case import respelled
from toolkit.adapters.lossless import own, restored
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_object
from toolkit.adapters.provider_names import MADE_ID, provider_name
from toolkit.wire.call import ToolCall
from toolkit.wire.content import BlockType, ContentBlock
from toolkit.wire.result import ToolResult

PROVIDER: Final = "gemini"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")


def sent_name(name: str) -> str:
    return provider_name(name, _NAME)


def _sent_id(id: str) -> JsonDict:
    return {} if id.startswith(MADE_ID) else {"id": id}


def call_part(call: ToolCall, *, signed: bool = True, spelling: object = None) -> JsonDict:
    """``signed``: whether the signature of the model that made the call may go back to it."""
    kept = own(call.metadata, PROVIDER)
    made: JsonDict = {"functionCall": {**_sent_id(call.id), "name": sent_name(call.name), "args": call.arguments}}
    if "signature" in kept:
        made["thoughtSignature"] = kept["signature"]
    whole: JsonDict = restored(respelled(made, spelling), kept.get("residue"))
    return whole if signed else unsigned(whole)


def is_signed(part: JsonDict) -> bool:
    return "thoughtSignature" in part or "thought_signature" in part


def unsigned(part: JsonDict) -> JsonDict:
    return {key: value for key, value in part.items() if key not in ("thoughtSignature", "thought_signature")}


def call_of(part: JsonDict, made_id: str) -> ToolCall:
    raw = part["functionCall"]
    arguments = raw.get("args")
    kept = {"signature": part["thoughtSignature"]} if "thoughtSignature" in part else {}
    metadata: dict[str, object] | None = {PROVIDER: kept} if kept else None
    return ToolCall(
        raw.get("id") or made_id, raw.get("name") or "", arguments if isinstance(arguments, dict) else {}, metadata
    )


def result_part(result: ToolResult) -> JsonDict:
    """A result without what only its message's metadata knows of."""
    response, media = _response(result)
    made: JsonDict = {**_sent_id(result.tool_call_id), "name": sent_name(result.name), "response": response}
    if media:
        made["parts"] = [media_part(block) for block in media]
    return {"functionResponse": made}


def _response(result: ToolResult) -> tuple[JsonDict, list[ContentBlock]]:
    value = result.value
    if result.kind == "error":
        return {"error": value}, []
    if result.kind == "multimodal" and isinstance(value, Sequence):
        texts = [block.text for block in value if block.text is not None]
        return ({"output": "\n".join(texts)} if texts else {}), [block for block in value if block.text is None]
    if result.kind == "data" and isinstance(value, dict):
        return value, []
    return {"output": value}, []


def result_of(part: JsonDict, id: str) -> ToolResult:
    raw = part["functionResponse"]
    response, name = raw.get("response") or {}, raw.get("name") or ""
    media = [block for block in map(media_of, map(plain_object, plain_list(raw.get("parts")))) if block is not None]
    if not isinstance(response, dict):
        return ToolResult(id, name, "data", response)
    if media:
        told = response.get("output") if list(response) == ["output"] else compact(response) if response else None
        lead = [ContentBlock("text", text=told)] if isinstance(told, str) else []
        return ToolResult(id, name, "multimodal", (*lead, *media))
    if list(response) == ["output"] and isinstance(response["output"], str):
        return ToolResult(id, name, "text", response["output"])
    if list(response) == ["error"] and isinstance(response["error"], str):
        return ToolResult(id, name, "error", response["error"])
    if list(response) == ["output"] and not isinstance(response["output"], dict):
        return ToolResult(id, name, "data", response["output"])
    return ToolResult(id, name, "data", response)


def media_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"text": block.text}
    if block.data is not None:
        return {"inlineData": {"mimeType": block.media_type or "application/octet-stream", "data": block.data}}
    file: JsonDict = {"fileUri": block.url if block.url is not None else block.file_id}
    return {"fileData": {**file, "mimeType": block.media_type} if block.media_type is not None else file}


def media_of(part: JsonDict) -> ContentBlock | None:
    """The block of a part that is text or media, else None. A thought is neither."""
    if isinstance(part.get("text"), str) and not part.get("thought"):
        return ContentBlock("text", text=part["text"])
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        return ContentBlock(_kind(inline.get("mimeType")), inline.get("mimeType"), data=inline["data"])
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return ContentBlock(_kind(file.get("mimeType")), file.get("mimeType"), url=file["fileUri"])
    return None


def _kind(media_type: object) -> BlockType:
    family = str(media_type or "").partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"
