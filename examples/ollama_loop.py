"""A complete agent loop with Ollama: the model's answer, its calls, their results, the next request.

``main(ollama.Client(), Path("."))`` calls the server on this machine.
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

MAX_TURNS = 20


def converse(driver: OllamaDriver, toolkit: Toolkit, question: str) -> str:
    """Ask the model, run the tools it calls and return the results to it, until it answers."""
    conversation: list[ChatMessage] = [TextMessage("user", question)]
    options = QueryOptions(tools=toolkit.get_allowed_tools(), system="You answer questions about a project.")
    for _ in range(MAX_TURNS):
        result = driver.query(conversation, options)
        if result.finish_reason in ("error", "length"):
            # An answer that was cut off may contain incomplete calls, so none of them are run.
            raise RuntimeError(f"no complete answer: {result.metadata.get('error', result.finish_reason)}")
        conversation.append(result.message())
        if not result.tool_calls:
            return result.content
        # Ollama has no call ids: results must be in the order of the calls, as ``call_all`` returns them.
        conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


def main(client: Client, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = OllamaDriver(client, model="qwen3")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
