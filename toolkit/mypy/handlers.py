"""`bind(...)`: a handler that is missing, misspelt, or does not fit its tool."""

from __future__ import annotations

from mypy.errorcodes import ARG_TYPE, CALL_ARG
from mypy.nodes import ARG_NAMED, CallExpr
from mypy.options import Options
from mypy.plugin import FunctionSigContext
from mypy.subtypes import find_member
from mypy.types import CallableType, FunctionLike, Instance, ProperType, Type, UnionType, get_proper_type

from toolkit.mypy.checking import Checker, takes_anything, unpacks
from toolkit.mypy.keywords import given_arguments
from toolkit.mypy.wording import did_you_mean, listed, nearest, quoted, type_text

_PACK = "toolkit.runtime.catalog.pack.Pack"


def signature_of_bind(ctx: FunctionSigContext) -> FunctionLike:
    signature, call, checker = ctx.default_signature, ctx.context, Checker(ctx.api)
    pack = get_proper_type(signature.ret_type)
    if not isinstance(pack, Instance) or pack.type.fullname != _PACK or set(signature.arg_kinds) - {ARG_NAMED}:
        return signature
    if unpacks(call) or not isinstance(call, CallExpr) or None in call.arg_names:
        return signature
    wrong = 0
    known = [name for name in signature.arg_names if name is not None]
    missing = [name for name in known if name not in call.arg_names]
    for value, name in zip(call.args, call.arg_names, strict=True):
        if name is not None and name not in known:
            wrong += 1
            meant = nearest(name, missing)
            hint = did_you_mean(name, missing)
            checker.fail(f"This package has no tool {quoted(name)} to bind a handler to{hint}", value, CALL_ARG)
            missing = [other for other in missing if other != meant]
    if missing:
        wrong += 1
        names = listed(list(map(quoted, missing)), "and")
        checker.fail(f"bind needs a handler for {names}: write {missing[0]}=...", call, CALL_ARG)
    for given in given_arguments(call, signature):
        if not checker.fits(given.value, given.wanted):
            found = checker.infer(given.value, given.wanted)
            wrong += 1
            wanted_text, given_text = (_text(kind, checker.options) for kind in (given.wanted, found.type))
            checker.fail(
                f"The handler of {quoted(given.name)} must be {wanted_text}, not {given_text}", given.value, ARG_TYPE
            )
    return takes_anything(signature) if wrong else signature


def _text(kind: Type, options: Options) -> str:
    """``(AddInput, ToolContext) -> AddOutput``, with ``async`` where it is."""
    proper = get_proper_type(kind)
    if isinstance(proper, Instance):
        called = get_proper_type(find_member("__call__", proper, proper))
        proper = called if isinstance(called, CallableType) else proper
    if not isinstance(proper, CallableType):
        return type_text(proper, options)
    answer, is_async = _awaited(get_proper_type(proper.ret_type))
    takes = [
        type_text(arg, options) for arg, k in zip(proper.arg_types, proper.arg_kinds, strict=True) if not k.is_star()
    ]
    return f"{'async ' * is_async}({', '.join(takes)}) -> {type_text(answer, options)}"


def _awaited(answer: ProperType) -> tuple[Type, bool]:
    """What a handler returns in the end, and whether it is awaited. A handler may do either: ``T | Awaitable[T]``."""
    if isinstance(answer, UnionType):
        plain = [item for item in answer.items if not _is_awaitable(item)]
        return (plain[0], False) if len(plain) == 1 else (answer, False)
    if isinstance(answer, Instance) and _is_awaitable(answer) and answer.args:
        return answer.args[-1], True
    return answer, False


def _is_awaitable(kind: Type) -> bool:
    proper = get_proper_type(kind)
    return isinstance(proper, Instance) and proper.type.fullname in ("typing.Awaitable", "typing.Coroutine")
