"""Names of two generated packages in one call: what to import, and from where."""

from __future__ import annotations

from typing import Final

from mypy.errorcodes import ARG_TYPE
from mypy.nodes import CallExpr, TypeAlias
from mypy.plugin import FunctionSigContext
from mypy.types import FunctionLike, Instance, NoneType, Type, TypeAliasType, UnionType, get_proper_type

from toolkit.mypy.checking import Checker, takes_anything, unpacks
from toolkit.mypy.wording import literal_values

CONTEXT: Final = "toolkit.runtime.context.toolkit_context.ToolkitContext"
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
