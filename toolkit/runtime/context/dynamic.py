"""Policy and context for tools whose names only run time knows: code-first tools that join a toolkit when it is built.

The ``SecurityPolicy`` of a generated package takes the names it was generated with, so that a misspelt one is a type error.
These take any text; a name that no tool has is an error when the toolkit is built.
"""

from __future__ import annotations

from typing import TypeAlias

from toolkit.guard.policy.policy import SecurityPolicy
from toolkit.guard.policy.rule import Rule
from toolkit.runtime.context.toolkit_context import ToolkitContext

DynamicRule: TypeAlias = Rule[str]
DynamicPolicy: TypeAlias = SecurityPolicy[str]
DynamicContext: TypeAlias = ToolkitContext[str]
