"""Calls with keywords: `toolkit.tools.<name>(...)`, the input models, `bind(...)` and the policy's classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mypy.errorcodes import ARG_TYPE, CALL_ARG
from mypy.nodes import CallExpr, Expression, TypeInfo, Var
from mypy.plugin import FunctionSigContext, MethodSigContext
from mypy.types import CallableType, FunctionLike, Instance, Type, get_proper_type

from toolkit.mypy.arguments import Complaints
from toolkit.mypy.checking import Checker, takes_anything, unpacks
from toolkit.mypy.wording import quoted

_CALL_TOOL = ("toolkit.runtime.sync.CallTool", "toolkit.runtime.async_.CallToolAsync")


class GivenArgument(NamedTuple):
    """One argument of a call, and the type that the signature wants for it."""

    name: str
    value: Expression
    wanted: Type


def has_tools_as_methods(info: TypeInfo) -> bool:
    """Whether a class is a generated class of tools: its methods call a toolkit."""
    symbol = info.names.get("_call")
    kind = get_proper_type(symbol.node.type) if symbol is not None and isinstance(symbol.node, Var) else None
    return isinstance(kind, Instance) and kind.type.fullname in _CALL_TOOL


def signature_of_method(ctx: MethodSigContext) -> FunctionLike:
    """`toolkit.tools.read_file(path="x")`."""
    return _check(ctx, str(ctx.default_signature.name).partition(" of ")[0])


def signature_of_model(ctx: FunctionSigContext) -> FunctionLike:
    """`ReadFileInput(path="x")`."""
    made = get_proper_type(ctx.default_signature.ret_type)
    return _check(ctx, made.type.name) if isinstance(made, Instance) else ctx.default_signature


def _check(ctx: MethodSigContext | FunctionSigContext, called: str) -> CallableType:
    signature, call, checker = ctx.default_signature, ctx.context, Checker(ctx.api)
    if unpacks(call) or not isinstance(call, CallExpr) or any(k.is_star() for k in signature.arg_kinds):
        return signature
    complaints = Complaints(checker, called)
    positional = [value for value, name in zip(call.args, call.arg_names, strict=True) if name is None]
    if positional:
        first = next((name for name in signature.arg_names if name is not None), "")
        write = f"{called}({first}=...)" if first else f"{called}()"
        complaints.report(f"{quoted(called)} takes its arguments by keyword: write {write}", positional[0], CALL_ARG)
        return takes_anything(signature)
    complaints.about_keys(
        {name: value for value, name in zip(call.args, call.arg_names, strict=True) if name is not None},
        [name for name in signature.arg_names if name is not None],
        [name for name, k in zip(signature.arg_names, signature.arg_kinds, strict=True) if name and k.is_required()],
        call,
        CALL_ARG,
    )
    for given in given_arguments(call, signature):
        complaints.about_value(given.value, given.wanted, given.name, ARG_TYPE)
    return takes_anything(signature) if complaints.count else signature


def given_arguments(call: CallExpr, signature: CallableType) -> Iterator[GivenArgument]:
    """The arguments that are passed by a keyword that the signature has."""
    wanted = dict(zip(signature.arg_names, signature.arg_types, strict=True))
    for value, name in zip(call.args, call.arg_names, strict=True):
        if name is not None and name in wanted:
            yield GivenArgument(name, value, wanted[name])
