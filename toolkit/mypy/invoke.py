"""`tk.invoke(name, args)`: one tool is looked up in the table of signatures, instead of an overload for each."""

from __future__ import annotations

from collections.abc import Sequence

from mypy.erasetype import erase_type
from mypy.errorcodes import ARG_TYPE, CALL_OVERLOAD
from mypy.nodes import CallExpr, DictExpr, Expression, TypeInfo, Var
from mypy.plugin import MethodSigContext
from mypy.subtypes import is_subtype
from mypy.typeops import make_simplified_union
from mypy.types import (
    AnyType,
    CallableType,
    FunctionLike,
    Instance,
    LiteralType,
    ProperType,
    Type,
    TypedDictType,
    UnionType,
    get_proper_type,
)

from toolkit.mypy.checking import (
    Checker,
    Complaints,
    Inferred,
    anything,
    did_you_mean,
    literal_values,
    nearest,
    quoted,
    takes_anything,
    type_text,
    unpacks,
)

INVOKES = (
    "toolkit.runtime.surface.Invoke.__call__",
    "toolkit.runtime.surface.InvokeAsync.__call__",
)
_MESSAGE = "toolkit.runtime.output.ToolMessage"


def signature_of_call(ctx: MethodSigContext) -> FunctionLike:
    """The signature of the tool that a call names; mistakes are reported here, one line each."""
    table = _table(ctx.type)
    return ctx.default_signature if table is None else InvokeCall(ctx, table).signature()


class SignatureTable:
    """The signatures of one toolkit class."""

    def __init__(self, info: TypeInfo, tools: TypedDictType, dynamic: Instance) -> None:
        self.info = info
        self.tools = tools.items
        self.classes = (info.fullname, tools.fallback.type.fullname)
        self.json_object, self.any_message = map(get_proper_type, dynamic.args)

    def find(self, name: str) -> tuple[Type, Type] | None:
        """What a tool takes, and its output."""
        found = get_proper_type(self.tools.get(name))
        if not isinstance(found, Instance) or len(found.args) != 2:
            return None
        return found.args[0], found.args[1]


def _table(invoke: Type) -> SignatureTable | None:
    """The table that an `Invoke[...]` is about."""
    invoke = get_proper_type(invoke)
    holder = get_proper_type(invoke.args[0]) if isinstance(invoke, Instance) and invoke.args else None
    return _read_table(holder.type) if isinstance(holder, Instance) else None


def _read_table(info: TypeInfo) -> SignatureTable | None:
    tools, dynamic = (_declared(info, name) for name in ("tools", "known_at_run_time"))
    if not isinstance(tools, TypedDictType) or not isinstance(dynamic, Instance) or len(dynamic.args) != 2:
        return None
    return SignatureTable(info, tools, dynamic)


def _declared(info: TypeInfo, name: str) -> ProperType | None:
    symbol = info.names.get(name)
    return get_proper_type(symbol.node.type) if symbol is not None and isinstance(symbol.node, Var) else None


class InvokeCall:
    """One call of `invoke`."""

    def __init__(self, ctx: MethodSigContext, table: SignatureTable) -> None:
        self._ctx = ctx
        self._table = table
        self._signature = ctx.default_signature
        self._checker = Checker(ctx.api)
        self._checker.depend_on(table.classes)

    def signature(self) -> CallableType:
        names, arguments = self._ctx.args
        if unpacks(self._ctx.context):
            return self._unpacked(names)
        assert isinstance(self._ctx.context, CallExpr)
        if len(names) != 1 or len(arguments) != 1 or len(self._ctx.context.args) != 2:
            return self._refuse_count(names[0] if names else None)
        name = self._checker.infer(names[0]).type
        if isinstance(name, AnyType):
            return self._by_any(name, names[0], arguments[0])
        literals = literal_values(name)
        return (
            self._by_literal(literals, name, arguments[0]) if literals else self._by_text(name, names[0], arguments[0])
        )

    def _unpacked(self, names: Sequence[Expression]) -> CallableType:
        """``*args`` or ``**kwargs``: mypy knows what is inside them, and compares it with one signature."""
        literals = literal_values(self._checker.infer(names[0]).type) if names else None
        found = self._table.find(literals[0]) if literals and len(literals) == 1 else None
        if literals is None or found is None:
            return self._known_at_run_time()
        return self._precise(found[0], [self._message(literals[0], found[1])])

    # -- a name that is known only at run time -------------------------------------------------------------------------

    def _by_text(self, name: ProperType, place: Expression, arguments: Expression) -> CallableType:
        text, wanted = self._signature.arg_types[0], self._table.json_object
        if not is_subtype(name, text):
            given = type_text(name, self._checker.options)
            self._checker.fail(f"The name of a tool must be str, not {given}", place, ARG_TYPE)
            return takes_anything(self._signature, anything())
        if not self._checker.fits(arguments, wanted):
            found = self._checker.infer(arguments)
            way_out = "JsonObject({...})" if isinstance(arguments, DictExpr) else "JsonObject(...)"
            self._checker.fail(
                "The name of the tool is known only at run time, so its arguments must be a JsonObject,"
                f" not {type_text(found.type, self._checker.options)}: write {way_out}",
                arguments,
                ARG_TYPE,
            )
            return takes_anything(self._signature, anything())
        return self._known_at_run_time()

    def _by_any(self, name: AnyType, place: Expression, arguments: Expression) -> CallableType:
        """A name of type ``Any`` may be that of each tool that takes the arguments, as for the overloads."""
        plain = self._checker.infer(arguments)
        if isinstance(plain.type, AnyType):
            return self._signature
        found = [(each, self._table.find(each)) for each in self._table.tools]
        answers = [
            self._answers(each, tool[1], plain)
            for each, tool in found
            if tool is not None and self._accepts(plain, arguments, tool[0])
        ]
        if not answers or is_subtype(plain.type, self._table.json_object):
            return self._by_text(name, place, arguments)
        if len(answers) == 1:
            return self._precise(anything(), answers[0])
        return self._signature.copy_modified(ret_type=erase_type(self._wrap(answers[0][0])))

    def _known_at_run_time(self) -> CallableType:
        kinds = [self._signature.arg_types[0], self._table.json_object]
        return self._signature.copy_modified(arg_types=kinds, ret_type=self._wrap(self._table.any_message))

    # -- a literal name, or several --------------------------------------------------------------------------------------

    def _by_literal(self, names: Sequence[str], name: ProperType, arguments: Expression) -> CallableType:
        plain = self._checker.infer(arguments)
        found = [self._table.find(each) for each in names]
        is_any = isinstance(plain.type, AnyType)
        vouched = not is_any and is_subtype(plain.type, self._table.json_object)
        if vouched or is_any and None in found:  # the caller answers for them, also for a tool that joins at run time
            return self._by_text(name, arguments, arguments)
        answers = self._refuse_names(names) if None in found else []
        wrong = None in found
        for each, tool in zip(names, found, strict=True):
            if tool is None:
                continue
            wanted, output = tool
            answers += self._answers(each, output, plain)
            if not self._accepts(plain, arguments, wanted):
                wrong = True
                self._depend_on_models(wanted)
                if self._refuse_arguments(each, arguments, wanted, plain):
                    continue
                if len(names) == 1:  # nothing of ours to say about them, so mypy itself says it
                    return self._precise(_without_models(wanted), answers)
        if wrong:
            return takes_anything(
                self._signature, self._wrap(make_simplified_union(answers)) if answers else anything()
            )
        [first, *others] = found
        is_compared = not others and first is not None and self._checker.fits(arguments, first[0])
        return self._precise(first[0] if first is not None and is_compared else anything(), answers)

    def _precise(self, wanted: Type, answers: Sequence[Type]) -> CallableType:
        answer = self._wrap(make_simplified_union(list(answers)))
        return self._signature.copy_modified(arg_types=[self._signature.arg_types[0], wanted], ret_type=answer)

    def _accepts(self, plain: Inferred, arguments: Expression, wanted: Type) -> bool:
        if self._checker.fits(arguments, wanted):
            return True
        # Part of a union may be the caller's JsonObject.
        allowed = make_simplified_union([wanted, self._table.json_object])
        return isinstance(plain.type, UnionType) and is_subtype(plain.type, allowed)

    def _answers(self, name: str, output: Type, plain: Inferred) -> list[Type]:
        """The message of a tool, and any message if part of a union of arguments is the caller's JsonObject."""
        parts = plain.type.items if isinstance(plain.type, UnionType) else []
        vouched = [part for part in parts if is_subtype(part, self._table.json_object)]
        return [self._message(name, output), *([self._table.any_message] if vouched else [])]

    def _message(self, name: str, output: Type) -> Type:
        text = get_proper_type(self._signature.arg_types[0])
        assert isinstance(text, Instance)
        return self._checker.named(_MESSAGE, [LiteralType(name, text), output])

    def _wrap(self, answer: Type) -> Type:
        """What the call itself returns: the message, or a coroutine of it."""
        plain = get_proper_type(self._signature.ret_type)
        return plain.copy_modified(args=[*plain.args[:-1], answer]) if isinstance(plain, Instance) else answer

    def _depend_on_models(self, wanted: Type) -> None:
        proper = get_proper_type(wanted)
        for item in map(get_proper_type, proper.items if isinstance(proper, UnionType) else [proper]):
            info = (
                item.fallback.type
                if isinstance(item, TypedDictType)
                else item.type
                if isinstance(item, Instance)
                else None
            )
            self._checker.depend_on([] if info is None else [info.fullname])

    # -- what is wrong ---------------------------------------------------------------------------------------------------

    def _refuse_count(self, name: Expression | None) -> CallableType:
        names = None if name is None else literal_values(self._checker.infer(name).type)
        example = f"invoke({quoted(names[0])}, {{...}})" if names else "invoke(name, args)"
        message = f"invoke takes the name of a tool and its arguments: write {example}"
        self._checker.fail(message, self._ctx.context, CALL_OVERLOAD)
        return takes_anything(self._signature, anything())

    def _refuse_names(self, names: Sequence[str]) -> list[Type]:
        """Reports names that do not exist; returns what the tools that were probably meant return."""
        answers = []
        for name in names:
            if name in self._table.tools:
                continue
            if self._is_outside_the_profile(name):
                message = f"The profile of this toolkit has no tool {quoted(name)}"
                self._checker.fail(message, self._ctx.args[0][0], ARG_TYPE)
                continue
            meant = nearest(name, self._table.tools)
            tool = None if meant is None else self._table.find(meant)
            hint = did_you_mean(name, self._table.tools) or "; if it joins at run time, pass JsonObject(...)"
            self._checker.fail(f"No tool is called {quoted(name)}{hint}", self._ctx.args[0][0], ARG_TYPE)
            if meant is not None and tool is not None:
                answers.append(self._message(meant, tool[1]))
        return answers

    def _is_outside_the_profile(self, name: str) -> bool:
        """Whether another toolkit of the same package has a tool, so that this one is of a profile."""
        others = filter(None, map(_read_table, self._checker.classes_beside(self._table.info)))
        having = next((table for table in others if name in table.tools), None)
        self._checker.depend_on(having.classes if having is not None else ())
        return having is not None

    def _refuse_arguments(self, name: str, arguments: Expression, wanted: Type, plain: Inferred) -> bool:
        """Reports why the arguments do not fit, if we can say more about it than mypy."""
        proper = get_proper_type(wanted)
        kinds = list(map(get_proper_type, proper.items if isinstance(proper, UnionType) else [proper]))
        shape = next((kind for kind in kinds if isinstance(kind, TypedDictType)), None)
        model = next((kind.type.name for kind in kinds if isinstance(kind, Instance)), "its model")
        complaints = Complaints(self._checker, name)
        if isinstance(arguments, DictExpr) and shape is not None:
            complaints.about_object(arguments, shape, "", ARG_TYPE)
            return complaints.count > 0
        given = type_text(plain.type, self._checker.options)
        if _is_dict(plain.type) and shape is not None:
            args = shape.fallback.type.name
            message = (
                f"{quoted(name)} cannot be checked with a {given}: write the dict in the call, annotate the variable"
                f" as {args}, or pass {model}.model_validate(...)"
            )
        else:
            message = f"{quoted(name)} takes a dict or {model}, not {given}"
        complaints.report(message, arguments, ARG_TYPE)
        return True


def _without_models(wanted: Type) -> Type:
    """Only the TypedDict: with one alternative, mypy says what is wrong inside a dict."""
    proper = get_proper_type(wanted)
    items = (
        [item for item in proper.items if isinstance(get_proper_type(item), TypedDictType)]
        if isinstance(proper, UnionType)
        else []
    )
    return items[0] if len(items) == 1 else wanted


def _is_dict(kind: Type) -> bool:
    return isinstance(kind, Instance) and any(base.fullname == "typing.Mapping" for base in kind.type.mro)
