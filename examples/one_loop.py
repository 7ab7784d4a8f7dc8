"""One agent for every provider: only the driver differs.

``python -m examples.one_loop anthropic`` asks a question about the current directory. It calls the real API; the SDK reads
the key from the environment. ``examples/agent.py`` runs the same loop with a scripted model, offline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from toolkit import Driver, QueryOptions, RunError, RunLimits, SecurityPolicy, ToolkitContext, create_agent_toolkit, run


def ask(driver: Driver, workspace: Path, question: str) -> str:
    """Lets a model answer a question with what it finds in the workspace."""
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow", "list": "allow", "tree": "allow"})
    with create_agent_toolkit(ToolkitContext(workspace=workspace, policy=policy)) as tk:
        conversation = run(
            driver,
            tk,
            question,
            options=QueryOptions(system="You answer questions about a project."),
            limits=RunLimits(turns=20),
        )
    return conversation.answer


def openai_chat() -> Driver:
    """With ``OpenAI(base_url=...)`` this is any server that has the same API."""
    from openai import OpenAI

    from toolkit.adapters.openai_chat import OpenAIChatDriver

    return OpenAIChatDriver(OpenAI(), model="gpt-5-mini")


def openai_responses() -> Driver:
    from openai import OpenAI

    from toolkit.adapters.openai_responses import OpenAIResponsesDriver

    return OpenAIResponsesDriver(OpenAI(), model="gpt-5-mini")


def anthropic() -> Driver:
    from anthropic import Anthropic

    from toolkit.adapters.anthropic import AnthropicDriver

    return AnthropicDriver(Anthropic(), model="claude-sonnet-5")


def gemini() -> Driver:
    """With ``genai.Client(vertexai=True, ...)`` this is Vertex AI."""
    from google import genai

    from toolkit.adapters.gemini import GeminiDriver

    return GeminiDriver(genai.Client(), model="gemini-3-flash")


def ollama() -> Driver:
    from ollama import Client

    from toolkit.adapters.ollama import OllamaDriver

    return OllamaDriver(Client(), model="qwen3")


DRIVERS: dict[str, Callable[[], Driver]] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in DRIVERS:
        print(f"usage: python -m examples.one_loop {'|'.join(DRIVERS)}", file=sys.stderr)
        return 2
    try:
        print(ask(DRIVERS[sys.argv[1]](), Path("."), "Which version does this project have?"))
    except RunError as error:
        # Its conversation can be stored and run again.
        print(f"no answer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
