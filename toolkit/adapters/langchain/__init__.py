"""LangChain: its messages, as ``message_to_dict`` writes them or as objects, and its tools, both ways.

There is no driver: a LangChain chat model already is one.

>>> from toolkit import ToolDefinition
>>> encode_tools([ToolDefinition("add", "Add numbers.", {"type": "object"})])[0]["function"]["name"]
'add'
"""

from toolkit.adapters.langchain.codec import (
    as_langchain_messages,
    decode_choice,
    decode_messages,
    decode_response,
    decode_strict_calls,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.langchain.stream import Accumulator
from toolkit.adapters.langchain.tools import as_langchain_tools, from_langchain_tools

__all__ = [
    "Accumulator",
    "as_langchain_messages",
    "as_langchain_tools",
    "decode_choice",
    "decode_messages",
    "decode_response",
    "decode_strict_calls",
    "decode_tools",
    "encode_choice",
    "encode_messages",
    "encode_tools",
    "from_langchain_tools",
]
