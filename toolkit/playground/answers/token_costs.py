"""What it costs to tell a model about the tools: the size of the definitions, as each provider's adapter writes them.

No tokenizer is used: providers do not publish all of theirs. Tokens are estimated as a quarter of the bytes, which the page
says. Sizes are exact, so comparisons between tools and forms hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from toolkit.errors import SetupError
from toolkit.wire.definition import ToolDefinition

BYTES_PER_TOKEN: Final = 4
Encode: TypeAlias = Callable[[Sequence[ToolDefinition]], Any]


def measure_tools(definitions: Sequence[ToolDefinition], signatures: str) -> dict[str, Any]:
    """Bytes and estimated tokens for each provider, and for the tools as Python signatures; then of each tool alone."""
    encoders = _encoders()
    forms = [_measure(name, encode, definitions) for name, encode in encoders.items()]
    size = len(signatures.encode("utf-8", "surrogatepass"))
    forms.append({"name": "Python signatures (text)", "bytes": size, "tokens": _estimate(size), "problem": None})
    reference, encode = next(iter(encoders.items()))
    tools = [{**_measure(reference, encode, [one]), "name": one.name} for one in definitions]
    return {
        "count": len(definitions),
        "bytesPerToken": BYTES_PER_TOKEN,
        "forms": forms,
        "reference": reference,
        "tools": sorted(tools, key=lambda tool: -int(tool["bytes"] or 0)),
    }


def _measure(name: str, encode: Encode, definitions: Sequence[ToolDefinition]) -> dict[str, Any]:
    try:
        made = encode(definitions)
    except (SetupError, ValueError) as error:  # a provider cannot be told about one of the tools
        return {"name": name, "bytes": None, "tokens": None, "problem": str(error)}
    size = len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    return {"name": name, "bytes": size, "tokens": _estimate(size), "problem": None}


def _estimate(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _encoders() -> dict[str, Encode]:
    from toolkit.adapters.anthropic import encode as anthropic
    from toolkit.adapters.bedrock import encode as bedrock
    from toolkit.adapters.cohere import encode as cohere
    from toolkit.adapters.gemini import encode as gemini
    from toolkit.adapters.ollama import encode as ollama
    from toolkit.adapters.openai_chat import encode as openai_chat
    from toolkit.adapters.openai_responses import encode as openai_responses

    return {
        "OpenAI Chat Completions": openai_chat.encode_tools,
        "OpenAI Responses": openai_responses.encode_tools,
        "Anthropic Messages": anthropic.encode_tools,
        "Gemini": gemini.encode_tools,
        "Bedrock Converse": bedrock.encode_tools,
        "Cohere": cohere.encode_tools,
        "Ollama": ollama.encode_tools,
    }
