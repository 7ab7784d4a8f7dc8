"""OpenAI's chat completions, and the many servers that offer the same API.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["function"]["name"]
'add'
"""

from toolkit.adapters.openai_chat.codec import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_strict_calls,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.openai_chat.driver import AsyncOpenAIChatDriver, OpenAIChatDriver
from toolkit.adapters.openai_chat.stream import Accumulator

__all__ = [
    "Accumulator",
    "AsyncOpenAIChatDriver",
    "OpenAIChatDriver",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_strict_calls",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
]
