"""Names of two generated packages in one call: what to import, and from where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy.errorcodes import ARG_TYPE
from mypy.nodes import (
    AssignmentStmt,
    Block,
    CallExpr,
    Decorator,
    FuncDef,
    IfStmt,
    NameExpr,
    OverloadedFuncDef,
    Statement,
    TypeAlias,
)
from mypy.plugin import ClassDefContext, FunctionSigContext
from mypy.types import FunctionLike, Instance, NoneType, Type, TypeAliasType, UnionType, get_proper_type

from toolkit.mypy.checking import Checker, literal_values, takes_anything, unpacks

CONTEXT: Final = "toolkit.runtime.context.ToolkitContext"
_NAMES: Final = ".names.ToolName"


def signature_of_create(ctx: FunctionSigContext) -> FunctionLike:
    """`create_agent_toolkit(context)`: a context of another package would be two lists of all tools."""
    signature, call, checker = ctx.default_signature, ctx.context, Checker(ctx.api)
    if unpacks(call) or not isinstance(call, CallExpr) or not call.args or not signature.arg_types:
        return signature
    wanted = next((kind for kind in _members(signature.arg_types[0]) if kind.type.fullname == CONTEXT), None)
    value = ctx.args[0][0] if ctx.args[0] else None
    if wanted is None or value is None or checker.fits(value, signature.arg_types[0]):
        return signature
    given = get_proper_type(checker.infer(value, signature.arg_types[0]).type)
    called = str(signature.name).partition(" of ")[0]
    mistake = explain_mixture("ToolkitContext", given, called, wanted)
    plain = f"{called} takes a ToolkitContext, not {short_name(given)}"
    checker.fail(mistake or plain, value, ARG_TYPE)
    return takes_anything(signature)


def explain_mixture(what: str, given: Type, where: str, wanted: Type) -> str | None:
    """The line for a ``what`` of one generated package where that of another is wanted; None if it is something else.

    What has all the tools of the other is meant: a package of one's own includes others, not the other way round.
    """
    theirs, ours = package_of(given), package_of(wanted)
    if short_name(given) != what or theirs is None or ours is None or theirs == ours:
        return None
    has_more = _names_of(given) > _names_of(wanted)
    name, package = (where, theirs) if has_more else (what, ours)
    return f"The {what} is of {theirs}, but {where} is of {ours}: import {name} from {package}"


def find_owner(checker: Checker, tool: str) -> str | None:
    """A generated package that the checked file imports from, and that has a tool of this name."""
    for module in checker.imported_modules():
        names = checker.find(f"{module}{_NAMES}")
        if isinstance(names, TypeAlias):
            checker.depend_on([names.fullname])
            if tool in (literal_values(names.target) or ()):
                return module
    return None


def package_of(kind: Type) -> str | None:
    """The package whose tools a policy, a rule or a context names, as people import from it."""
    proper = get_proper_type(kind)
    names = proper.args[0] if isinstance(proper, Instance) and len(proper.args) == 1 else None
    alias = names.alias if isinstance(names, TypeAliasType) else None
    if alias is None or not alias.fullname.endswith(_NAMES):
        return None
    package = alias.fullname.removesuffix(_NAMES)
    return "toolkit" if package == "toolkit.generated" else package


def short_name(kind: Type) -> str:
    """The name of a class without its type arguments, which may be all the tools of another package."""
    proper = get_proper_type(kind)
    return proper.type.name if isinstance(proper, Instance) else "None" if isinstance(proper, NoneType) else "this"


def _names_of(kind: Type) -> set[str]:
    proper = get_proper_type(kind)
    return set(literal_values(proper.args[0]) or ()) if isinstance(proper, Instance) else set()


def _members(kind: Type) -> list[Instance]:
    proper = get_proper_type(kind)
    items = proper.items if isinstance(proper, UnionType) else [proper]
    return [item for item in map(get_proper_type, items) if isinstance(item, Instance)]


# ----------------------------------------------------------------------------------------------------------------------
# Toolkit classes: the overloads of `invoke` are dropped before mypy reads them, for one that is looked up by signature.

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
