"""What the prelude of a program declares: the attributes of its classes, and the parameters of its tools."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache

_TOOLS = "_Tools"
_INPUTS = "_Inputs"


@dataclass(frozen=True, slots=True)
class PreludeFacts:
    """Names for the way out of a mistake."""

    classes: dict[str, list[str]] = field(default_factory=dict)
    """The attributes of each class, in their order."""
    tools: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each tool, by its Python name: the parameters with their types."""
    inputs: list[str] = field(default_factory=list)


@lru_cache(maxsize=64)
def read_prelude(prelude: str) -> PreludeFacts:
    """Read what ``checker_text`` wrote."""
    facts = PreludeFacts()
    for node in ast.parse(prelude).body:
        if not isinstance(node, ast.ClassDef):
            continue
        if node.name == _TOOLS:
            facts.tools.update(
                {tool.name: _parameters(tool) for tool in node.body if isinstance(tool, ast.FunctionDef)}
            )
        fields = [
            member.target.id
            for member in node.body
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name)
        ]
        if node.name == _INPUTS:
            facts.inputs.extend(fields)
        facts.classes[node.name] = fields
    return facts


def _parameters(tool: ast.FunctionDef) -> dict[str, str]:
    """Types as a program would write them: without the modules that the prelude writes before them."""
    return {
        one.arg: ast.unparse(_WithoutModules().visit(one.annotation)) if one.annotation else "Any"
        for one in tool.args.kwonlyargs
    }


class _WithoutModules(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Name(node.attr)
