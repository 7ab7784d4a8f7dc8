"""Bedrock's Converse and ConverseStream. There is no driver: send with boto3 what ``boto3_messages`` returns.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["toolSpec"]["inputSchema"]
{'json': {'type': 'object'}}
"""

from toolkit.adapters.bedrock.codec import (
    boto3_messages,
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
from toolkit.adapters.bedrock.stream import Accumulator

__all__ = [
    "Accumulator",
    "boto3_messages",
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
