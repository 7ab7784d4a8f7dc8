"""What each setting of a query becomes in a provider's request: a table of ``docs/adapters.md``.

The requests are those that the SDKs' real clients send, recorded by the loopback server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.adapters.clients import PROVIDERS, Provider
from tests.adapters.loopback import Answer, serve
from toolkit import ContentBlock, JsonObject, QueryOptions, TextMessage, ToolDefinition
from toolkit.wire import OutputSchema

IGNORED: Final = "–"
TOOL: Final = ToolDefinition("f", "Do it.", JsonObject({"type": "object", "properties": {}}))
PICTURE: Final = ContentBlock("image", "image/png", data="aW1n")
PLAIN: Final = QueryOptions(tools=[TOOL], system="s")


@dataclass(frozen=True)
class Setting:
    """A row: the setting as a caller writes it, and a query without it and with it."""

    name: str
    options: QueryOptions
    prompt: Any = "hi"
    plain_prompt: Any = "hi"


SCHEMA: Final = OutputSchema(
    "N", JsonObject({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
)
SETTINGS: Final = [
    Setting("`strict=True`", replace(PLAIN, strict=True)),
    Setting("`parallel_calls=False`", replace(PLAIN, parallel_calls=False)),
    Setting('`reasoning="high"`', replace(PLAIN, reasoning="high")),
    Setting('`reasoning="none"`', replace(PLAIN, reasoning="none")),
    Setting("`reasoning=2048`", replace(PLAIN, reasoning=2048)),
    Setting('`cache_after=["tools"]`', replace(PLAIN, cache_after=["tools"])),
    Setting('`cache_after=["system"]`', replace(PLAIN, cache_after=["system"])),
    Setting('`cache_after=["messages"]`', replace(PLAIN, cache_after=["messages"])),
    Setting('`ContentBlock(detail="low")`', PLAIN, [TextMessage("user", [replace(PICTURE, detail="low")])], [TextMessage("user", [PICTURE])]),
    Setting("`output=OutputSchema(...)`", replace(PLAIN, output=SCHEMA)),
    Setting("`ToolDefinition(defer_loading=True)`", replace(PLAIN, tools=[replace(TOOL, defer_loading=True)])),
    Setting('`ToolDefinition(callers="both")`', replace(PLAIN, tools=[replace(TOOL, callers="both")])),
    Setting('`ToolDefinition(text_argument="source")`', replace(PLAIN, tools=[replace(TOOL, text_argument="source")])),
]  # fmt: skip


def bodies(provider: Provider, *queries: tuple[Any, QueryOptions]) -> list[Any]:
    """What the SDK's client sends for each query."""
    with serve(*(Answer(provider.text("ok")) for _ in queries)) as server, provider.open(server.url) as driver:
        for prompt, options in queries:
            result = driver.query(prompt, options)
            assert result.finish_reason == "stop", result.metadata
        return [request.body for request in server.requests]


def cell(provider: Provider, setting: Setting) -> str:
    """What the setting adds to the request, or changes in it."""
    plain, sent = bodies(provider, (setting.plain_prompt, PLAIN), (setting.prompt, setting.options))
    changed = difference(plain, sent)
    return IGNORED if changed is None else f"`{json.dumps(changed, ensure_ascii=False, separators=(',', ':'))}`"


def difference(plain: Any, sent: Any) -> Any:
    """The part of ``sent`` that is not in ``plain``, inside the keys around it; None if nothing is."""
    if isinstance(plain, dict) and isinstance(sent, dict):
        found = {key: value if key not in plain else difference(plain[key], value) for key, value in sent.items()}
        return {key: value for key, value in found.items() if key not in plain or value is not None} or None
    if isinstance(plain, list) and isinstance(sent, list) and len(plain) == len(sent):
        items = [one for one in map(difference, plain, sent) if one is not None]
        return items or None
    return None if plain == sent else sent


HEAD: Final = """
## Settings of a query

What each setting adds to the request that the SDK's client sends, next to a query with the system text `s` and one tool
without parameters. The rule is the same for all: a setting that asks for care or thrift is ignored by a provider that does
not have it ("–"), so that the same options serve every driver; what changes the meaning of an answer (`tool_choice`,
`output`, and `timeout` for Ollama, whose client takes it when it is created) is refused where it cannot be had: the result
has `finish_reason="error"`. `extra` goes into the request as it is, and wins.

"""
NOTES: Final = """
- `reasoning` is an effort or a number of tokens. Anthropic's effort comes with adaptive thinking, which older models do not
  have: give those a number. A provider with fewer efforts takes the nearest; Gemini before 3 gets a budget instead. Without `max_tokens`, Anthropic's driver
  asks for its default and the budget together.
- Whether `QueryResult.reasoning` has a text is up to the provider. Some show a summary only if `extra` asks for it; it
  replaces the whole key, so it repeats the effort: `{"reasoning": {"effort": "high", "summary": "auto"}}` for Responses,
  `{"thinking_config": {"thinking_level": "HIGH", "include_thoughts": True}}` for Gemini,
  `{"thinking": {"type": "adaptive", "display": "summarized"}}` for Anthropic, whose effort is another key.
- `cache_after`: at most three breakpoints, of which OpenAI's need a model of late 2026. OpenAI and Gemini also cache by
  themselves. With `cache_after=["system"]`, the system text goes to Responses as a message: its `instructions` take no
  breakpoint.
- `output` is what `driver.query_output(prompt, Model)` sends; it returns `Output(value, result)` and raises `OutputError`,
  with the answer, if the answer is not a value of the model. OpenAI's and Anthropic's schemas go through strict mode. One that
  OpenAI cannot enforce is sent without strict mode, one that Anthropic cannot enforce is refused.
- `defer_loading`: the driver adds the provider's own search for tools, unless the options have one as a `NativeTool`.
- `callers`: programs that the model writes and the provider runs may call the tool. The driver adds the provider's tool that
  runs them, unless the options have one. A call of a program and its result keep their caller, and Anthropic's driver
  sends the results to the container in which the program waits.
- `text_argument`: the model writes this argument as plain text, without JSON around it, and cannot give others. The driver
  turns the text back into the argument.
- Strict mode: Anthropic and Bedrock get a schema within their documented subset, as OpenAI does, and LangChain's models get
  OpenAI's. A schema outside of it is sent as it is, without the flag; `toolkit lint --target` says which and why. A request
  to Anthropic has at most 20 strict tools; these and its `output` together have at most 24 optional properties and 16
  unions. If there are more, properties with a default are asked for instead of optional, and the first tools get strict
  mode. `choose_strict` of `toolkit.adapters.strict` tells which do. An `output` that is too large by itself is refused.
"""


def document() -> str:
    head = ["", *(provider.title for provider in PROVIDERS.values())]
    rows = [[setting.name, *(cell(provider, setting) for provider in PROVIDERS.values())] for setting in SETTINGS]
    lines = [head, ["---"] * len(head), *rows]
    return HEAD + "".join(f"| {' | '.join(one.replace('|', '¦') for one in line)} |\n" for line in lines) + NOTES
