"""Ollama's own ``/api/chat``. For its OpenAI API, use ``toolkit.adapters.openai_chat`` with Ollama's address.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["function"]["name"]
'add'
"""

from toolkit.adapters.ollama.codec import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.ollama.driver import AsyncOllamaDriver, OllamaDriver
from toolkit.adapters.ollama.stream import Accumulator

__all__ = [
    "Accumulator",
    "AsyncOllamaDriver",
    "OllamaDriver",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
]
