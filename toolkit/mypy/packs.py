"""Names of tools outside calls: in `bind(...)`, in policies and contexts, and in what is read from a message's content.

`bind(...)`: a handler that is missing, misspelt, or does not fit its tool.
"""

from __future__ import annotations

from collections.abc import Sequence

from mypy.checker import TypeChecker
from mypy.errorcodes import ARG_TYPE, CALL_ARG, DICT_ITEM, LIST_ITEM, UNION_ATTR, ErrorCode
from mypy.nodes import (
    ARG_NAMED,
    CallExpr,
    Context,
    DictExpr,
    Expression,
    ListExpr,
    MemberExpr,
    Node,
    StrExpr,
    TupleExpr,
)
from mypy.options import Options
from mypy.plugin import AttributeContext, CheckerPluginInterface, FunctionSigContext
from mypy.subtypes import find_member
from mypy.traverser import NameAndMemberCollector
from mypy.types import CallableType, FunctionLike, Instance, ProperType, Type, UnionType, get_proper_type

from toolkit.mypy.checking import (
    Checker,
    anything,
    did_you_mean,
    given_arguments,
    listed,
    literal_values,
    nearest,
    quoted,
    takes_anything,
    type_text,
    unpacks,
)
from toolkit.mypy.packages import CONTEXT, explain_mixture, find_owner, package_of, short_name

_PACK = "toolkit.runtime.packs.Pack"


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


# ----------------------------------------------------------------------------------------------------------------------
# `message.content.<attribute>` of a message whose tool is not known: one line, not one for each tool that lacks it.

CONTENT = "toolkit.runtime.output.ToolMessage.content"


class ContentHook:
    """Called for each message of a union in turn. The first one decides for all, so that a thousand tools stay cheap."""

    def __init__(self) -> None:
        self._refused: tuple[Context, Type] | None = None

    def __call__(self, ctx: AttributeContext) -> Type:
        if not isinstance(ctx.type, UnionType) or not isinstance(ctx.context, MemberExpr):
            return ctx.default_attr_type
        first = get_proper_type(ctx.type.items[0])
        if isinstance(first, Instance) and first.args[-1:] == (ctx.default_attr_type,):
            self._refused = (ctx.context, ctx.type) if _refuses(ctx.type, ctx.context, ctx.api) else None
        if self._refused is None or self._refused[0] is not ctx.context or self._refused[1] is not ctx.type:
            return ctx.default_attr_type
        return anything()


def _refuses(messages: UnionType, content: MemberExpr, api: CheckerPluginInterface) -> bool:
    """Whether an attribute is read that not every output has; then it is reported here."""
    assert isinstance(api, TypeChecker)
    read = _find_read(api, content)
    if read is None:
        return False
    having: list[str] = []
    lacking = False
    for message in map(get_proper_type, messages.items):
        output = get_proper_type(message.args[1]) if isinstance(message, Instance) and len(message.args) == 2 else None
        if not isinstance(message, Instance) or not isinstance(output, Instance) or output.type.fallback_to_any:
            return False  # not a union of messages
        if output.type.get(read.name) is None:
            lacking = True
        else:
            having += literal_values(message.args[0]) or ()
    if lacking:
        attribute, names = quoted(read.name), listed(list(map(quoted, having)), "and")
        some = f"Not every tool's output has {attribute}, only that of {names}: compare .name first"
        Checker(api).fail(some if having else f"No tool's output has {attribute}", read, UNION_ATTR)
    return lacking


def _find_read(checker: TypeChecker, content: MemberExpr) -> MemberExpr | None:
    """The expression that reads an attribute of this one."""
    collected = NameAndMemberCollector()
    scope: Node = checker.scope.top_level_function() or checker.tree
    scope.accept(collected)
    return next((read for read in collected.member_exprs if read.expr is content), None)


# ----------------------------------------------------------------------------------------------------------------------
# `SecurityPolicy`, `Rule` and `ToolkitContext`: names of tools, without printing all names there are.

_POLICY = "toolkit.guard.policy.policy.SecurityPolicy"
_RULE = "toolkit.guard.policy.rule.Rule"
CLASSES = (_POLICY, _RULE, CONTEXT)
_OF_THE_PACKAGE = {"policy": "a SecurityPolicy", "rules": "Rules"}


def signature_of_policy(ctx: FunctionSigContext) -> FunctionLike:
    """The signature, in which what was checked here takes anything."""
    made = get_proper_type(ctx.default_signature.ret_type)
    if unpacks(ctx.context) or not isinstance(made, Instance) or len(made.args) != 1:
        return ctx.default_signature
    names = literal_values(made.args[0])
    if names is None:  # a policy of any names
        return ctx.default_signature
    return PolicyCall(ctx, made, frozenset(names)).signature()


class PolicyCall:
    """One call of a class that knows the names of a package's tools."""

    def __init__(self, ctx: FunctionSigContext, made: Instance, names: frozenset[str]) -> None:
        self._ctx = ctx
        self._made = made
        self._called = made.type.name
        self._names = names
        self._checker = Checker(ctx.api)

    def signature(self) -> CallableType:
        signature = self._ctx.default_signature
        kinds = list(signature.arg_types)
        for index, (name, values) in enumerate(zip(signature.arg_names, self._ctx.args, strict=True)):
            if name is not None and len(values) == 1 and self._has_checked(name, values[0], kinds[index]):
                kinds[index] = anything()
        return signature.copy_modified(arg_types=kinds)

    def _has_checked(self, name: str, value: Expression, wanted: Type) -> bool:
        """Whether an argument has been checked here, so that mypy need not compare it with all names again."""
        if name == "tools" and isinstance(value, DictExpr):
            keys = [key for key, _ in value.items]
            decision = _decision(wanted)
            return (
                decision is not None and self._check_names(keys, DICT_ITEM) and self._check_decisions(value, decision)
            )
        if name == "tools" and isinstance(value, ListExpr | TupleExpr):
            return self._check_names(value.items, LIST_ITEM)
        return not self._checker.fits(value, wanted) and self._refuse(name, value, wanted)

    def _check_names(self, names: Sequence[Expression | None], code: ErrorCode) -> bool:
        """Reports tools that do not exist. False if not all names are written here."""
        written = [name for name in names if isinstance(name, StrExpr)]
        if len(written) < len(names):
            return False
        for name in written:
            if name.value not in self._names:
                self._checker.fail(self._unknown(name.value), name, code)
        return True

    def _unknown(self, name: str) -> str:
        """What to say about a name that the package of this class does not have."""
        package = package_of(self._made)
        owner = find_owner(self._checker, name)
        if package is not None and owner is not None:
            return f"No tool of {package} is called {quoted(name)}: import {self._called} from {owner}, which has it"
        hint = did_you_mean(name, self._names)
        if package == "toolkit" and not hint:
            hint = f"; for a tool of your own, import {self._called} from your generated package"
        return f"No tool is called {quoted(name)}{hint}"

    def _check_decisions(self, tools: DictExpr, decision: Type) -> bool:
        for name, value in tools.items:
            if isinstance(name, StrExpr) and not self._checker.fits(value, decision):
                mistake = self._choice(value, decision)
                self._checker.fail(f"The decision for {quoted(name.value)} {mistake}", value, DICT_ITEM)
        return True

    def _refuse(self, name: str, value: Expression, wanted: Type) -> bool:
        """Reports an argument that has choices, or whose type would name every tool. Leaves the rest to mypy."""
        found = self._checker.infer(value, wanted)
        if not found.clean:
            return False
        if literal_values(wanted):
            mistake = self._choice(value, wanted)
        elif name in _OF_THE_PACKAGE:
            mixture = explain_mixture("SecurityPolicy", found.type, self._called, self._made)
            if mixture is not None:
                self._checker.fail(mixture, value, ARG_TYPE)
                return True
            mistake = f"must be {_OF_THE_PACKAGE[name]} of the same package, not {short_name(found.type)}"
        else:
            return False
        self._checker.fail(f"Argument {quoted(name)} of {self._called} {mistake}", value, ARG_TYPE)
        return True

    def _choice(self, value: Expression, wanted: Type) -> str:
        options = self._checker.options
        given, hint = type_text(self._checker.infer(value).type, options), ""
        if isinstance(value, StrExpr):
            given, hint = quoted(value.value), did_you_mean(value.value, literal_values(wanted) or ())
        return f"must be {type_text(wanted, options)}, not {given}{hint}"


def _decision(wanted: Type) -> Type | None:
    """The decisions in ``Mapping[names, decision] | None``."""
    proper = get_proper_type(wanted)
    for kind in map(get_proper_type, proper.items if isinstance(proper, UnionType) else [proper]):
        if isinstance(kind, Instance) and len(kind.args) == 2:
            return kind.args[1]
    return None
