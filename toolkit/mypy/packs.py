"""`SecurityPolicy`, `Rule` and `ToolkitContext`: names of tools, without printing all names there are."""

from __future__ import annotations

from collections.abc import Sequence

from mypy.errorcodes import ARG_TYPE, DICT_ITEM, LIST_ITEM, ErrorCode
from mypy.nodes import DictExpr, Expression, ListExpr, StrExpr, TupleExpr
from mypy.plugin import FunctionSigContext
from mypy.types import CallableType, FunctionLike, Instance, Type, UnionType, get_proper_type

from toolkit.mypy.checking import Checker, anything, unpacks
from toolkit.mypy.packages import CONTEXT, explain_mixture, find_owner, package_of, short_name
from toolkit.mypy.wording import did_you_mean, literal_values, quoted, type_text

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
