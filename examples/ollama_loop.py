"""A whole agent loop over Ollama: the model's answer, its calls, their results, the next request.

``main(ollama.Client(), Path("."))`` asks the server on this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import (
    ChatMessage,
    QueryOptions,
    SecurityPolicy,
    TextMessage,
    Toolkit,
    ToolkitContext,
    ToolResultMessage,
    create_agent_toolkit,
)
from toolkit.adapters.ollama import OllamaDriver

if TYPE_CHECKING:
    from ollama import Client

MOST_TURNS = 20


def converse(driver: OllamaDriver, toolkit: Toolkit, question: str) -> str:
    """Ask, run what the model asks for, and tell it what came out, until it answers."""
    conversation: list[ChatMessage] = [TextMessage("user", question)]
    options = QueryOptions(tools=toolkit.get_allowed_tools(), system="You answer questions about a project.")
    for _ in range(MOST_TURNS):
        result = driver.query(conversation, options)
        if result.finish_reason in ("error", "length"):
            # Calls of an answer that was cut are not run: nobody knows what they would have been.
            raise RuntimeError(f"no whole answer: {result.metadata.get('error', result.finish_reason)}")
        conversation.append(result.message())
        if not result.tool_calls:
            return result.content
        # Ollama has no ids: results go back in the order of the calls, which is the order they come in here.
        conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


def main(client: Client, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = OllamaDriver(client, model="qwen3")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
