"""Gemini, and the same models on Vertex.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["functionDeclarations"][0]["name"]
'add'
"""

from toolkit.adapters.gemini.codec import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
    split_system,
)
from toolkit.adapters.gemini.driver import AsyncGeminiDriver, GeminiDriver
from toolkit.adapters.gemini.stream import Accumulator

__all__ = [
    "Accumulator",
    "AsyncGeminiDriver",
    "GeminiDriver",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
    "split_system",
]
