"""A whole agent loop over OpenAI's chat completions: the model's answer, its calls, their results, the next request.

``main(openai.OpenAI(), Path("."))`` asks the real API; the key comes from the environment, as the SDK does it. With
``OpenAI(base_url=...)`` it asks any server that speaks the same language.
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
from toolkit.adapters.openai_chat import OpenAIChatDriver

if TYPE_CHECKING:
    from openai import OpenAI

MOST_TURNS = 20


def converse(driver: OpenAIChatDriver, toolkit: Toolkit, question: str) -> str:
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
        # The message has all the server wants to see again; other servers than OpenAI's may want its reasoning.
        conversation.append(result.message())
        conversation += [ToolResultMessage(one) for one in toolkit.call_all(result.tool_calls)]
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


def main(client: OpenAI, workspace: Path) -> str:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    driver = OpenAIChatDriver(client, model="gpt-5-mini")
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
        return converse(driver, toolkit, "Which version does this project have?")
