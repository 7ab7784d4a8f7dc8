"""Toolkit classes: the overloads of `invoke` are dropped before mypy reads them, for one that is looked up by signature."""

from __future__ import annotations

from collections.abc import Iterator

from mypy.nodes import AssignmentStmt, Block, Decorator, FuncDef, IfStmt, NameExpr, OverloadedFuncDef, Statement
from mypy.plugin import ClassDefContext

RUNNERS = ("toolkit.runtime.sync.Runner", "toolkit.runtime.async_.AsyncRunner")
BY_SIGNATURE = "_invoke_by_signature"


def replace_overloads(ctx: ClassDefContext) -> None:
    """Called when the bases of a class are known and its body has not been read."""
    if not any(base.type.fullname in RUNNERS for base in ctx.cls.info.bases):
        return
    blocks = list(_blocks(ctx.cls.defs))
    marks = [name for block in blocks for name in map(_declared, block.body) if name is not None]
    if not marks:  # a package of an older form, or a class that somebody wrote
        return
    for block in blocks:
        block.body = [statement for statement in block.body if not _defines_invoke(statement)]
    for name in marks:
        name.name = "invoke"


def _blocks(block: Block) -> Iterator[Block]:
    """A block and the blocks of the conditions in it."""
    yield block
    for statement in block.body:
        if isinstance(statement, IfStmt):
            for inner in statement.body:
                yield from _blocks(inner)


def _declared(statement: Statement) -> NameExpr | None:
    if isinstance(statement, AssignmentStmt):
        [target, *_] = statement.lvalues
        if isinstance(target, NameExpr) and target.name == BY_SIGNATURE:
            return target
    return None


def _defines_invoke(statement: Statement) -> bool:
    return isinstance(statement, OverloadedFuncDef | FuncDef | Decorator) and statement.name == "invoke"
