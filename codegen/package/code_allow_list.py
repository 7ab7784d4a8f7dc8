"""The check after datamodel-code-generator: a model module may hold classes, aliases and literals, and nothing that runs.

Even if a spec gets past the keyword table, it cannot put code into the module: a syntax node that is not in these lists stops
generation.
"""

from __future__ import annotations

import ast
from typing import Final

from toolkit.codegen.package.formats import RICH
from toolkit.errors import GenerationError

_IMPORTS: Final[dict[str, frozenset[str]]] = {
    "typing": frozenset({"TYPE_CHECKING", "Annotated", "Any", "ClassVar", "Literal", "Optional", "TypeAlias", "Union"}),
    "typing_extensions": frozenset({"NotRequired", "TypeAliasType", "TypedDict"}),
    "pydantic": frozenset({"Field"}),
    "toolkit.generated_support": frozenset(
        {
            "ContentOutput",
            "DeclaredBySome",
            "Exact",
            "Omissible",
            "ToolModel",
            "ToolRootModel",
            "own_type",
            *RICH.values(),
        }
    ),
}
_BASES: Final = frozenset({"ToolModel", "ToolRootModel", "ContentOutput", "TypedDict"})
_CALLS: Final = frozenset({"Exact", "Field", "TypeAliasType", "TypedDict"})
_METHODS: Final = frozenset({"model_rebuild", "model_validate"})
_LITERALS: Final = frozenset({ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Load})
_TYPE_NODES: Final = _LITERALS | {ast.Name, ast.Subscript, ast.BinOp, ast.BitOr, ast.Call, ast.keyword}


def check_module(source: str, path: str) -> ast.Module:
    """The parsed module, if it holds only what a model module may hold; else ``GenerationError``."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise GenerationError(f"{path}: the generated module is not valid Python: {error}") from None
    for statement in module.body:
        if not _is_allowed(statement):
            raise GenerationError(
                f"{path}: the generated module contains a statement that models do not need (line {statement.lineno}:"
                f" {type(statement).__name__}), so the spec is refused"
            )
    return module


def _is_allowed(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = _IMPORTS.get(node.module or "", frozenset())
        return node.level == 0 and all(alias.name in names and alias.asname is None for alias in node.names)
    if isinstance(node, ast.ClassDef):
        return _is_allowed_class(node)
    if isinstance(node, ast.If):
        # What holds itself is written once for checkers and once for pydantic.
        is_for_checkers = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return is_for_checkers and all(map(_is_alias, (*node.body, *node.orelse)))
    return _is_alias(node) or _is_text(node) or isinstance(node, ast.Expr) and _is_method_call(node.value)


def _is_alias(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return _is_type(node.annotation) and node.value is not None and _is_type(node.value)
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Call) and _is_type(node.value)
    return False


def _is_allowed_class(node: ast.ClassDef) -> bool:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    named = all(isinstance(base, ast.Name) and base.id in _BASES for base in bases)
    plain = not node.decorator_list and all(isinstance(word.value, ast.Constant) for word in node.keywords)
    return named and plain and all(map(_is_type, node.bases)) and all(map(_is_allowed_member, node.body))


def _is_allowed_member(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        value = node.value
        return _is_type(node.annotation) and (value is None or _is_default(value) or _is_extra_type(node))
    return isinstance(node, ast.Pass) or _is_text(node)


def _is_extra_type(node: ast.AnnAssign) -> bool:
    """The type of additional properties, which checkers must not see as an argument."""
    return ast.unparse(node.target) == "__pydantic_extra__" and ast.unparse(node.value or node) == "Field(init=False)"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_literal(node: ast.expr) -> bool:
    return all(type(part) in _LITERALS for part in _list_parts(node))


def _is_default(node: ast.expr) -> bool:
    """A literal, a model made from one, or a list or map of these."""
    if isinstance(node, ast.List):
        return all(map(_is_default, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and _is_literal(key) for key in node.keys) and all(map(_is_default, node.values))
    return _is_literal(node) or _is_method_call(node)


def _is_type(node: ast.expr) -> bool:
    for part in _list_parts(node):
        if type(part) not in _TYPE_NODES:
            return False
        if isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and part.func.id in _CALLS):
            return False
    return True


def _list_parts(node: ast.expr) -> list[ast.AST]:
    """The node and all nodes below it, as ``ast.walk`` finds them in twice the time."""
    parts: list[ast.AST] = [node]
    for part in parts:
        for name in part._fields:
            value = getattr(part, name, None)
            if isinstance(value, list):
                parts += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                parts.append(value)
    return parts


def _is_method_call(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _METHODS
        and isinstance(node.func.value, ast.Name)
        and not node.keywords
        and all(map(_is_literal, node.args))
    )
