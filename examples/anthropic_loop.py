"""A complete agent loop with Anthropic: the model's answer, its calls, their results, the next request.

``main(anthropic.Anthropic(), Path("."))`` calls the real API; the SDK reads the key from the environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import (
    ChatMessage,
    QueryOptions,
    QueryResult,
    SecurityPolicy,
    TextMessage,
    Toolkit,
    ToolkitContext,
    ToolResultMessage,
    create_agent_toolkit,
)
from toolkit.adapters.anthropic import AnthropicDriver

if TYPE_CHECKING:
    from anthropic import Anthropic

MAX_TURNS = 20


def is_paused(result: QueryResult) -> bool:
    """A turn with tools that Anthropic runs may be paused; it continues when sent back unchanged."""
    metadata = result.metadata.get("anthropic")
    return isinstance(metadata, dict) and metadata.get("finish_reason") == "pause_turn"


def converse(driver: AnthropicDriver, toolkit: Toolkit, question: str) -> str:
    """Ask the model, run the tools it calls and return the results to it, until it answers."""
    conversation: list[ChatMessage] = [TextMessage("user", question)]
    options = QueryOptions(tools=toolkit.get_allowed_tools(), system="You answer questions about a project.")
    for _ in range(MAX_TURNS):
        result = driver.query(conversation, options)
        if result.finish_reason in ("error", "length"):
            # An answer that was cut off may contain incomplete calls, so none of them are run.
            raise RuntimeError(f"no complete answer: {result.metadata.get('error', result.finish_reason)}")
        conversation.append(result.message())
        if result.tool_calls:
            conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
        elif not is_paused(result):
            return result.content
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


def main(client: Anthropic, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = AnthropicDriver(client, model="claude-sonnet-5")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
