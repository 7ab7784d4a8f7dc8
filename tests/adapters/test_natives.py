"""A tool or a choice that only one provider has goes to that provider, and to no other."""

from __future__ import annotations

import re

import pytest
from openai import OpenAI

from tests.adapters.matrix import ADAPTERS, Adapter
from toolkit import JsonObject, NativeChoice, NativeTool, QueryOptions
from toolkit.adapters import openai_chat, openai_responses
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.testing.laws import QUESTION, TOOLS

PROVIDERS = [adapter.module for adapter in ADAPTERS if adapter.module != "langchain"]


@pytest.fixture(params=[one for one in ADAPTERS if one.module != "langchain"], ids=lambda adapter: adapter.module)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    found: Adapter = request.param
    return found


@pytest.mark.parametrize("owner", PROVIDERS)
def test_tools(adapter: Adapter, owner: str) -> None:
    native = NativeTool(owner, JsonObject({"type": "web_search"}))
    if owner == adapter.module:
        assert {"type": "web_search"} in adapter.encode_tools([native, TOOLS["tool"]])
        return
    told = (
        f"the tool {{'type': 'web_search'}} belongs to {owner} and means nothing to {adapter.module}; "
        f"leave it out, or use a native tool of {adapter.module}"
    )
    with pytest.raises(ValueError, match=re.escape(told)):
        adapter.encode_tools([TOOLS["tool"], native])


@pytest.mark.parametrize("owner", PROVIDERS)
def test_choices(adapter: Adapter, owner: str) -> None:
    native = NativeChoice(owner, {"type": "web_search", "more": "x" * 100})
    if owner == adapter.module:
        assert adapter.encode_choice(native) == native.raw
        return
    with pytest.raises(ValueError, match=f"belongs to {owner} and means nothing to {adapter.module}; use 'auto'"):
        adapter.encode_choice(native)


def test_langchain_leaves_it_to_the_model_behind_it() -> None:
    [langchain] = [one for one in ADAPTERS if one.module == "langchain"]
    raw = JsonObject({"type": "web_search_20250305", "name": "web_search"})
    assert langchain.encode_tools([NativeTool("anthropic", raw)]) == [raw]
    assert langchain.encode_choice(NativeChoice("anthropic", {"type": "any"})) == {"type": "any"}


def test_a_driver_returns_it_as_an_error() -> None:
    options = QueryOptions(tools=[NativeTool("anthropic", JsonObject({"type": "x"}))])
    result = OpenAIChatDriver(OpenAI(api_key="none", base_url="http://127.0.0.1:9"), model="m").query("hi", options)
    assert result.finish_reason == "error"
    assert "belongs to anthropic" in str(result.metadata["error"])


def test_what_only_the_other_api_of_openai_knows_stays_out_of_a_conversation() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    said = {
        "type": "message",
        "role": "assistant",
        "id": "m",
        "status": "completed",
        "content": [{"type": "output_text", "text": "so", "annotations": []}],
    }
    messages = openai_responses.decode_messages([search, said])
    assert openai_responses.encode_messages(messages) == [search, said]
    assert openai_chat.encode_messages([QUESTION, *messages])[1:] == [{"role": "assistant", "content": "so"}]
