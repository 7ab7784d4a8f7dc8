"""A complete agent loop with OpenAI's Responses API: the model's answer, its calls, their results, the next request.

``main(openai.OpenAI(), Path("."))`` calls the real API; the SDK reads the key from the environment.
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
from toolkit.adapters.openai_responses import OpenAIResponsesDriver

if TYPE_CHECKING:
    from openai import OpenAI

MAX_TURNS = 20


def converse(driver: OpenAIResponsesDriver, toolkit: Toolkit, question: str) -> str:
    """Ask the model, run the tools it calls and return the results to it, until it answers."""
    conversation: list[ChatMessage] = [TextMessage("user", question)]
    options = QueryOptions(tools=toolkit.get_allowed_tools(), system="You answer questions about a project.")
    for _ in range(MAX_TURNS):
        result = driver.query(conversation, options)
        if result.finish_reason in ("error", "length"):
            # An answer that was cut off may contain incomplete calls, so none of them are run.
            raise RuntimeError(f"no complete answer: {result.metadata.get('error', result.finish_reason)}")
        if not result.tool_calls:
            return result.content
        # The message includes the model's reasoning in its place; the API requires it back with the calls.
        conversation.append(result.message())
        conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


def main(client: OpenAI, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = OpenAIResponsesDriver(client, model="gpt-5-mini")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
