"""Makes mutants of a module: one small change each, of its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_REMOVED: Final = (ast.Expr, ast.Raise, ast.Assign, ast.AugAssign, ast.Return, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """A changed module."""

    line: int
    change: str
    text: str


@dataclass(frozen=True)
class Place:
    """Where a module can be changed, and which of the changes there."""

    node: int
    change: int


def places(source: str) -> list[Place]:
    """Every place and change of a module."""
    tree = ast.parse(source)
    skipped = _not_mutated(tree)
    nodes = ((index, node) for index, node in enumerate(ast.walk(tree)) if id(node) not in skipped)
    return [Place(index, number) for index, node in nodes for number, _ in enumerate(_changes(node))]


def mutate(source: str, place: Place) -> Mutant:
    tree = ast.parse(source)
    target: Any = next(node for index, node in enumerate(ast.walk(tree)) if index == place.node)
    before, line = ast.unparse(target), getattr(target, "lineno", 0)
    after = list(_changes(target))[place.change](target)
    shown = f"{before.splitlines()[0]} -> {after.splitlines()[0]}"
    return Mutant(line, shown, ast.unparse(ast.fix_missing_locations(tree)))


def _not_mutated(tree: ast.Module) -> set[int]:
    """Annotations, docstrings, ``TYPE_CHECKING`` blocks and what a module only names: no test can or need notice them."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every = [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]
            parts += [one.annotation for one in every] + [node.returns, *node.decorator_list]
        elif isinstance(node, ast.AnnAssign):
            parts.append(node.annotation)
        elif (
            isinstance(node, ast.If)
            and "TYPE_CHECKING" in ast.unparse(node.test)
            or isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            or isinstance(node, ast.JoinedStr)
        ):
            parts.append(node)
        for part in parts:
            found |= {id(one) for one in ast.walk(part)} if part is not None else set()
    return found


def _changes(node: ast.AST) -> Iterator[Any]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield _flip_comparison
    if isinstance(node, ast.BoolOp):
        yield _swap_and_or
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _drop_not
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield _add_one
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield _negate
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _negate_test
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            for place, statement in enumerate(block):
                is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if isinstance(statement, _REMOVED) and not is_text and not isinstance(node, ast.Module | ast.ClassDef):
                    yield _removal(field, place)


def _flip_comparison(node: ast.Compare) -> str:
    node.ops[0] = _COMPARISONS[type(node.ops[0])]()
    return ast.unparse(node)


def _swap_and_or(node: ast.BoolOp) -> str:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return ast.unparse(node)


def _drop_not(node: ast.UnaryOp) -> str:
    operand = ast.unparse(node.operand)
    node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    return operand


def _add_one(node: ast.Constant) -> str:
    assert isinstance(node.value, int)
    node.value += 1
    return repr(node.value)


def _negate(node: ast.Constant) -> str:
    node.value = not node.value
    return repr(node.value)


def _negate_test(node: ast.If | ast.While | ast.IfExp) -> str:
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return f"with `not ({ast.unparse(node.test.operand)})`"


def _removal(field: str, place: int) -> Any:
    def remove(node: ast.AST) -> str:
        block = getattr(node, field)
        removed = ast.unparse(block[place]).splitlines()[0]
        block[place] = ast.Pass()
        return f"without `{removed}` (line {getattr(node, 'lineno', 0)} on)"

    return remove
