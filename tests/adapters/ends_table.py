"""How answers end, as a section of ``docs/adapters.md``: made from the tables that the adapters use."""

from __future__ import annotations

from typing import Final

from toolkit.adapters import answers as finish_reasons
from toolkit.adapters.openai_responses.codec import CLIENT_RUN

_TABLES: Final[dict[str, finish_reasons.Reasons]] = {
    "OpenAI chat": finish_reasons.OPENAI_CHAT,
    "OpenAI Responses": finish_reasons.OPENAI_RESPONSES,
    "Anthropic": finish_reasons.ANTHROPIC,
    "Gemini, Vertex": finish_reasons.GEMINI,
    "Ollama": finish_reasons.OLLAMA,
    "Bedrock Converse": finish_reasons.BEDROCK,
    "Cohere v2": finish_reasons.COHERE,
}
_REASONS: Final = ("stop", "tool_calls", "length", "filtered", "refused", "paused", "needs_action", "error")

_HEAD: Final = """
## How an answer ends

`QueryResult.finish_reason` for each word that a provider reports; the word itself is in the metadata, as `finish_reason`. A
word that is not in the table is `stop`, or `tool_calls` if there are calls. LangChain passes on the words of the provider
behind it.

"""
_NOTES: Final = f"""
- Where several hold, the first of `error`, `length`, `filtered`, `refused`, `tool_calls`, `needs_action`, `paused`, `stop` is
  reported. A model that announces calls and makes none is `stop`.
- `refused` is also an answer of OpenAI with a refusal in it. `filtered` is also a prompt that Gemini blocked, and an error of
  OpenAI's content filter.
- `needs_action` is also an answer of Responses with an item that the client must act on:
  {", ".join(f"`{kind}`" for kind in CLIENT_RUN)}. `metadata["openai_responses"]["needs_action"]` has
  the items. Items that the server runs itself, or has answered, are not among them.
- A stream that was cut, or in which a value has the wrong JSON type, is `error`; what came is kept, and `metadata[...]["error"]`
  says which value it was. A call that was cut before the first byte of its arguments is refused when it is run, also at the
  token limit.
- Half characters (lone surrogates) are joined if both halves come, in answers and in what drivers send. A first half at the end
  of a text is dropped, any other becomes U+FFFD.

## Reasoning, token counts, events

- `QueryResult.reasoning` has what the provider shows of the model's reasoning; `is_hidden` where it shows that there was some
  and not what. What the provider needs back is in the metadata.
- Token counts mean the same everywhere: `input_tokens` includes what was read from a cache and written to one,
  `output_tokens` includes reasoning. Anthropic, Bedrock, Gemini and some servers with OpenAI's API count these apart; they are
  added. The provider's own counts are in the metadata, as `usage`.
- `Accumulator.feed_events(event)` returns events (`toolkit.wire.query`) where `feed` returns the text in them. A driver's
  `stream_query(...)` has both: `.events`, whose last is `AnswerEnded`, and `.stream`. They read the same request.
- `QueryResult.raw` is the SDK's response, or the list of its events for a stream.
- `driver.count_tokens(prompt, options)` of the drivers for Anthropic, Gemini and Responses asks the provider how many tokens the
  request has. Gemini's own API cannot count tools; Vertex can.
- Sources (`groundingMetadata`, `citationMetadata`, `annotations`, `citations`) and the state of a conversation in Responses
  (`id`, `conversation`, `previous_response_id`) are in the metadata.
"""


def section() -> str:
    rows = [["", *_TABLES], ["---"] * (len(_TABLES) + 1)]
    for reason in _REASONS:
        words = [[word for word, meaning in table.items() if meaning == reason] for table in _TABLES.values()]
        rows.append([f"`{reason}`", *("<br>".join(f"`{word}`" for word in found) or "–" for found in words)])
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + _NOTES
