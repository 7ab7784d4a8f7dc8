"""A whole agent loop over Anthropic: the model's answer, its calls, their results, the next request.

``main(anthropic.Anthropic(), Path("."))`` asks the real API; the key comes from the environment, as the SDK does it.
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

MOST_TURNS = 20


def is_paused(result: QueryResult) -> bool:
    """A turn with tools Anthropic runs itself may be paused; sent back as it is, it goes on."""
    told = result.metadata.get("anthropic")
    return isinstance(told, dict) and told.get("finish_reason") == "pause_turn"


def converse(driver: AnthropicDriver, toolkit: Toolkit, question: str) -> str:
    """Ask, run what the model asks for, and tell it what came out, until it answers."""
    conversation: list[ChatMessage] = [TextMessage("user", question)]
    options = QueryOptions(tools=toolkit.get_allowed_tools(), system="You answer questions about a project.")
    for _ in range(MOST_TURNS):
        result = driver.query(conversation, options)
        if result.finish_reason in ("error", "length"):
            # Calls of an answer that was cut are not run: nobody knows what they would have been.
            raise RuntimeError(f"no whole answer: {result.metadata.get('error', result.finish_reason)}")
        conversation.append(result.message())
        if result.tool_calls:
            conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
        elif not is_paused(result):
            return result.content
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


def main(client: Anthropic, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = AnthropicDriver(client, model="claude-sonnet-5")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
