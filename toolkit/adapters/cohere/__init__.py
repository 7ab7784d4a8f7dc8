"""Cohere's chat, version 2. There is no driver: send what is encoded here with Cohere's client.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["function"]["name"]
'add'
"""

from toolkit.adapters.cohere.codec import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.cohere.stream import Accumulator

__all__ = [
    "Accumulator",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
]
