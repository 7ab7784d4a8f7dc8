"""``docs/adapters.md`` shows what the adapters do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.matrix import ADAPTERS, SHOWN, document, result_media, user_media
from tests.adapters.sdk_types import refusals
from tests.projects import REPOSITORY
from toolkit import TextMessage
from toolkit.testing.laws import BLOCKS

EXPORTED = {
    "Accumulator", "decode_choice", "decode_messages", "decode_response", "decode_tools", "encode_choice", "encode_messages",
    "encode_tools",
}  # fmt: skip


def test_the_document_is_what_the_adapters_do(pytestconfig: pytest.Config) -> None:
    file = REPOSITORY / "docs" / "adapters.md"
    if pytestconfig.getoption("--update-snapshots"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(document())
    assert file.read_text() == document(), (
        "run pytest tests/adapters/test_matrix.py --update-snapshots and read the diff"
    )


PLACES: dict[str, Callable[[list[Any]], Any]] = {
    "openai_chat": lambda parts: {"role": "tool", "tool_call_id": "c", "content": parts},
    "openai_responses": lambda parts: {"type": "function_call_output", "call_id": "c", "output": parts},
    "anthropic": lambda parts: {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": parts}],
    },
    "gemini": lambda parts: {
        "role": "user",
        "parts": [{"functionResponse": {"name": "f", "response": {}, "parts": parts}}],
    },
    "bedrock": lambda parts: {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": parts}}]},
    "cohere": lambda parts: {"role": "tool", "tool_call_id": "c", "content": parts},
    "langchain": lambda parts: {"type": "tool", "data": {"tool_call_id": "c", "content": parts}},
}
"""A result with parts in it, in each provider's form."""

ALSO_MOVED = {("gemini", "video"), ("gemini", "audio"), ("gemini", "audio by URL")}
"""What types take in results and documents do not: Gemini has media there only if their type is known and listed."""


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("module", PLACES)
def test_media_stay_in_the_result_if_the_types_take_them_there(module: str, name: str) -> None:
    adapter = next(one for one in ADAPTERS if one.module == module)
    [user] = adapter.encode_messages([TextMessage("user", [BLOCKS[name]])])
    parts = user["data"]["content"] if module == "langchain" else user["parts" if module == "gemini" else "content"]
    place = result_media(name)(adapter)
    if place in ("a note", "as text"):
        assert user_media(name)(adapter) == place, "a user's message would take it"
        return
    taken = refusals(module, "messages", [PLACES[module](parts)]) == [] and (module, name) not in ALSO_MOVED
    assert place == ("in the result" if taken else "in the next message")


def test_every_adapter_is_in_it_and_exports_the_same_names() -> None:
    folders = {file.parent.name for file in (REPOSITORY / "toolkit" / "adapters").glob("*/codec.py")}
    assert {adapter.module for adapter in ADAPTERS} == folders
    for adapter in ADAPTERS:
        assert set(adapter.__all__) >= EXPORTED, adapter.module
