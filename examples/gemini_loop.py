"""A whole agent loop over Gemini: the model's answer, its calls, their results, the next request.

``main(genai.Client(), Path("."))`` asks the real API; the key comes from the environment, as the SDK does it. With
``genai.Client(vertexai=True, ...)`` it asks Vertex.
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
from toolkit.adapters.gemini import GeminiDriver

if TYPE_CHECKING:
    from google import genai

MOST_TURNS = 20


def converse(driver: GeminiDriver, toolkit: Toolkit, question: str) -> str:
    """Ask, run what the model asks for, and tell it what came out, until it answers."""
    conversation: list[ChatMessage] = [TextMessage("user", question)]
    options = QueryOptions(tools=toolkit.get_allowed_tools(), system="You answer questions about a project.")
    for _ in range(MOST_TURNS):
        result = driver.query(conversation, options)
        if result.finish_reason in ("error", "length"):
            # Calls of an answer that was cut are not run: nobody knows what they would have been.
            raise RuntimeError(f"no whole answer: {result.metadata.get('error', result.finish_reason)}")
        if not result.tool_calls:
            return result.content
        # The message has the signatures of the model's thoughts, which the API wants back with the calls.
        conversation.append(result.message())
        conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


def main(client: genai.Client, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = GeminiDriver(client, model="gemini-3-flash")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
