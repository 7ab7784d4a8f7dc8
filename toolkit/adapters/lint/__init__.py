"""What each provider refuses, loses or moves of a tool's definition, known without a request.

>>> from toolkit import ToolDefinition
>>> [remark.effect for remark in lint_for("openai", ToolDefinition("math.add", "Add.", {"type": "object"}))]
['renamed']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

from toolkit.adapters.lint.anthropic import lint_anthropic
from toolkit.adapters.lint.gemini import lint_gemini
from toolkit.adapters.lint.ollama import lint_ollama
from toolkit.adapters.lint.openai import lint_openai
from toolkit.adapters.lint.remark import Effect, Remark
from toolkit.wire.definition import ToolDefinition

__all__ = ["TARGETS", "Effect", "Remark", "Target", "lint_for"]

Target: TypeAlias = Literal["openai", "anthropic", "gemini", "ollama"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)

_LINTS: Final[dict[Target, Callable[[ToolDefinition], list[Remark]]]] = {
    "openai": lint_openai,
    "anthropic": lint_anthropic,
    "gemini": lint_gemini,
    "ollama": lint_ollama,
}


def lint_for(target: Target, definition: ToolDefinition) -> list[Remark]:
    """The remarks on one definition, each once, in the order of its schema."""
    return list(dict.fromkeys(_LINTS[target](definition)))
