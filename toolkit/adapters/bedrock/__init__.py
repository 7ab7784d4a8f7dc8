"""Bedrock's Converse and ConverseStream. No driver; for a call through boto3, ``blobs`` turns base64 into bytes.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["toolSpec"]["inputSchema"]
{'json': {'type': 'object'}}
"""

from toolkit.adapters.bedrock.decode import decode_choice, decode_messages, decode_response, decode_system, decode_tools
from toolkit.adapters.bedrock.encode import encode_choice, encode_messages, encode_tools, split_system
from toolkit.adapters.bedrock.stream import Accumulator

__all__ = [
    "Accumulator",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_system",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
    "split_system",
]
