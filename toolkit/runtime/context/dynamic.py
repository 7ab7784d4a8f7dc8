"""Policy and context for tools whose names are known only at run time, such as code-first tools.

The ``SecurityPolicy`` of a generated package accepts only its own tool names, so that a typo is a type error. These accept
any text; an unknown name is an error when the toolkit is built.
"""

from __future__ import annotations

from typing import TypeAlias

from toolkit.guard.policy.policy import SecurityPolicy
from toolkit.guard.policy.rule import Rule
from toolkit.runtime.context.toolkit_context import ToolkitContext

DynamicRule: TypeAlias = Rule[str]
DynamicPolicy: TypeAlias = SecurityPolicy[str]
DynamicContext: TypeAlias = ToolkitContext[str]
