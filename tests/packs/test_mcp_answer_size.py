"""What is counted in a message before it is parsed is what a parser would make of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.packs.mcp import content as answer_size
from toolkit.packs.mcp.content import MAX_ITEMS, MAX_VALUES, find_excess

TEXTS = st.text(alphabet='a",[]{}\\ é\n', max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


def count(value: object) -> int:
    """The values inside of it, at all levels."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return sum(1 + count(one) for one in inner)


@given(JSON, st.sampled_from([None, 1]))
def test_values_are_counted_as_the_parser_counts_them(value: Any, indent: int | None) -> None:
    message = json.dumps({"id": 1, "padding": [value]}, indent=indent).encode()
    exact = count({"id": 1, "padding": [value]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_size, "MAX_ITEMS", 0)  # nothing is too short to be counted
        for limit, is_refused in ((exact, False), (exact - 1, True)):
            patch.setattr(answer_size, "MAX_VALUES", limit)
            assert (find_excess(message) is not None) == is_refused


def message(result: object, **dump: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, **dump).encode()


BLOCK = {"type": "text", "text": "a, [b], {c}"}
PARTS = "more than 10000 parts of content"
VALUES = "more than 500000 values"
TOO_MUCH = {
    "parts": (message({"content": [BLOCK] * (MAX_ITEMS + 1)}), PARTS),
    "parts, indented": (message({"content": [BLOCK] * (MAX_ITEMS + 1)}, indent=2), PARTS),
    "parts of lists": (message({"content": [[]] * (MAX_ITEMS + 1)}), PARTS),
    "the key escaped": (
        message({"content": [1] * (MAX_ITEMS + 1)}).replace(b'"content"', b'"c\\u006fntent"'),
        PARTS,
    ),
    "the same key twice": (b'{"result": {"content": [], "content": [' + b"1," * MAX_ITEMS + b"1]}}", PARTS),
    "numbers": (message({"structuredContent": {"n": [1] * MAX_VALUES}}), VALUES),
    "empty lists": (b"[" * 10_000 + b"[]," * MAX_VALUES, VALUES),
    "keys": (message({"structuredContent": {f"k{n}": 1 for n in range(MAX_VALUES)}}), VALUES),
    "parameters of a notification": (json.dumps({"method": "x", "params": [1] * MAX_VALUES}).encode(), VALUES),
}
ENOUGH = {
    "parts": message({"content": [BLOCK] * MAX_ITEMS}),
    "one long text": message({"content": [{"type": "text", "text": "[1, 2], {3}, " * 200_000}]}),
    "content of something else": message({"structuredContent": {"content": [1] * (MAX_ITEMS + 1)}}),
    "many rows": message({"structuredContent": {"rows": [[1, "a", None]] * 100_000}}),
    "a list of tools": message({"tools": [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(9000)]}),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_named(name: str) -> None:
    text, words = TOO_MUCH[name]
    excess = find_excess(text)
    assert excess is not None and excess.reason == "TOO_LARGE" and words in excess.message


@pytest.mark.parametrize("name", ENOUGH)
def test_what_is_large_and_allowed_is_read(name: str) -> None:
    assert find_excess(ENOUGH[name]) is None


READ = """
import re, sys
from toolkit.packs.mcp.stdio import parse_message
from mcp_types import jsonrpc_message_adapter

def peak():
    # Not `ru_maxrss`: that of a new program begins with what the process that started it had.
    with open("/proc/self/status") as file:
        return int(re.search("VmHWM:\\s*(\\d+) kB", file.read())[1])

line = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [' + b'{"type": "text", "text": "x"},' * 399_999 + b'{}]}}'
before = peak()
kept = parse_message(line) if sys.argv[1] == "guarded" else jsonrpc_message_adapter.validate_json(line)
print(type(kept).__name__, (peak() - before) >> 10)
"""


def test_400_000_parts_are_refused_before_they_are_objects() -> None:
    """The control is the parser alone."""

    def read(how: str) -> tuple[str, int]:
        shown = subprocess.run([sys.executable, "-c", READ, how], capture_output=True, check=True, text=True).stdout
        kind, mebibytes = shown.split()
        return kind, int(mebibytes)

    kind, grown = read("guarded")
    assert kind == "JSONRPCError" and grown < 50
    kind, grown = read("unguarded")
    assert kind == "JSONRPCResponse" and grown > 200
