"""Anthropic's messages.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["input_schema"]
{'type': 'object'}
"""

from toolkit.adapters.anthropic.codec import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_strict_calls,
    decode_system,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
    split_system,
)
from toolkit.adapters.anthropic.driver import AnthropicDriver, AsyncAnthropicDriver
from toolkit.adapters.anthropic.stream import Accumulator

__all__ = [
    "Accumulator",
    "AnthropicDriver",
    "AsyncAnthropicDriver",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_strict_calls",
    "decode_system",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
    "split_system",
]
