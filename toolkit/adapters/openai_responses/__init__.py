"""OpenAI's Responses, and servers that offer the same API.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["name"]
'add'
"""

from toolkit.adapters.openai_responses.codec import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_strict_calls,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.openai_responses.driver import AsyncOpenAIResponsesDriver, OpenAIResponsesDriver
from toolkit.adapters.openai_responses.stream import Accumulator

__all__ = [
    "Accumulator",
    "AsyncOpenAIResponsesDriver",
    "OpenAIResponsesDriver",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_strict_calls",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
]
