"""What every check of the plugin uses: mypy's opinion of an expression, wording, and the arguments of a call."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mypy.checker import TypeChecker
from mypy.errorcodes import ARG_TYPE, CALL_ARG, ErrorCode
from mypy.messages import format_type_bare
from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    CallExpr,
    Context,
    DictExpr,
    Expression,
    ImportFrom,
    IntExpr,
    ListExpr,
    StrExpr,
    SymbolNode,
    TypeInfo,
    UnaryExpr,
    Var,
)
from mypy.options import Options
from mypy.plugin import CheckerPluginInterface, FunctionSigContext, MethodSigContext
from mypy.server.trigger import make_trigger
from mypy.subtypes import is_subtype
from mypy.typeops import make_simplified_union
from mypy.types import (
    AnyType,
    CallableType,
    FunctionLike,
    Instance,
    LiteralType,
    NoneType,
    ProperType,
    Type,
    TypedDictType,
    TypeOfAny,
    UnionType,
    get_proper_type,
)


class Inferred(NamedTuple):
    """The type of an expression in some context, and whether mypy would report a mistake inside it."""

    type: ProperType
    clean: bool


class Checker:
    """The checker of the module that contains a call."""

    def __init__(self, api: CheckerPluginInterface) -> None:
        assert isinstance(api, TypeChecker)
        self._checker = api
        self.options = api.options

    def infer(self, expression: Expression, wanted: Type | None = None) -> Inferred:
        """The type of an expression where ``wanted`` is expected. mypy keeps it, so asking again costs little."""
        with self._checker.msg.filter_errors() as errors, self._checker.local_type_map:
            found = self._checker.get_expression_type(expression, wanted)
        return Inferred(get_proper_type(found), not errors.has_new_errors())

    def fits(self, expression: Expression, wanted: Type) -> bool:
        """Whether an expression is what is wanted. A mistake inside it does not matter here: mypy itself reports it."""
        found = self.infer(expression, wanted)
        clean = found.clean or not isinstance(expression, DictExpr | ListExpr)  # these take the type that is wanted
        return clean and is_subtype(found.type, wanted, options=self.options)

    def fail(self, message: str, place: Context, code: ErrorCode) -> None:
        self._checker.fail(message, place, code=code)

    def depend_on(self, classes: Iterable[str]) -> None:
        """Has the current function or module checked again when one of these classes changes.

        mypy finds most of this by itself in the types of expressions. A tool that does not exist, or arguments that do not
        fit, leave no type behind.
        """
        target = self._checker.tscope.current_target()
        for name in classes:
            self._checker.tree.plugin_deps.setdefault(make_trigger(name), set()).add(target)
            self._checker.module_refs.add(name.rpartition(".")[0])

    def classes_beside(self, info: TypeInfo) -> list[TypeInfo]:
        """All classes of the module that defines a class."""
        nodes = [symbol.node for symbol in self._checker.modules[info.module_name].names.values()]
        return [node for node in nodes if isinstance(node, TypeInfo)]

    def imported_modules(self) -> list[str]:
        """The modules that the checked file names in ``from ... import``."""
        return [statement.id for statement in self._checker.tree.imports if isinstance(statement, ImportFrom)]

    def find(self, fullname: str) -> SymbolNode | None:
        """What a loaded module has under a name."""
        module, _, name = fullname.rpartition(".")
        file = self._checker.modules.get(module)
        symbol = None if file is None else file.names.get(name)
        return None if symbol is None else symbol.node

    def named(self, fullname: str, arguments: Sequence[Type]) -> ProperType:
        """A class of ours with its type arguments. Its module is loaded, because generated code imports it."""
        module, _, name = fullname.rpartition(".")
        info = self._checker.modules[module].names[name].node
        assert isinstance(info, TypeInfo)
        return Instance(info, list(arguments))


def anything() -> AnyType:
    """The type of what was already reported."""
    return AnyType(TypeOfAny.from_error)


def takes_anything(signature: CallableType, answer: Type | None = None) -> CallableType:
    """A signature under which mypy adds nothing to what was already reported."""
    return signature.copy_modified(
        arg_types=[anything(), anything()],
        arg_kinds=[ARG_STAR, ARG_STAR2],
        arg_names=[None, None],
        ret_type=signature.ret_type if answer is None else answer,
        variables=(),
    )


def unpacks(call: Context) -> bool:
    """Whether a call has ``*args`` or ``**kwargs``, so that it is not known what it passes."""
    return not isinstance(call, CallExpr) or any(kind.is_star() for kind in call.arg_kinds)


# ----------------------------------------------------------------------------------------------------------------------
# How mistakes are worded: nearest names, lists, types.

_LISTED = 8


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    # The comparison is quadratic, so the length of the name is limited.
    close = difflib.get_close_matches(name[:200], list(candidates), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``; did you mean "read_file"?`` for a near miss, else nothing; to be appended."""
    close = nearest(name, candidates)
    return "" if close is None else f"; did you mean {quoted(close)}?"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


def listed(names: Sequence[str], last: str) -> str:
    """``a, b or c``; long lists are cut."""
    if len(names) > _LISTED:
        return f"{', '.join(names[:_LISTED])}, … ({len(names)} in all)"
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def literal_values(kind: Type) -> list[str] | None:
    """The texts of a Literal, or of a union of them (None may be among them); else nothing."""
    proper = get_proper_type(kind)
    if isinstance(proper, Instance) and proper.last_known_value is not None:
        proper = proper.last_known_value
    if isinstance(proper, LiteralType):
        is_text = proper.fallback.type.fullname == "builtins.str" and isinstance(proper.value, str)
        return [str(proper.value)] if is_text else None
    if not isinstance(proper, UnionType):
        return None
    found = []
    for item in proper.items:
        if isinstance(get_proper_type(item), NoneType):
            continue
        values = literal_values(item)
        if values is None:
            return None
        found += values
    return found


def type_text(kind: Type, options: Options) -> str:
    """A type as a person writes it: the choices of a Literal, no markers of ours."""
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        kept = [item for item in proper.items if not _is_omit(item)]
        kind = make_simplified_union(kept) if len(kept) < len(proper.items) else kind
        proper = get_proper_type(kind)
    values = literal_values(proper)
    if values and isinstance(proper, LiteralType | UnionType):
        none = isinstance(proper, UnionType) and any(isinstance(get_proper_type(i), NoneType) for i in proper.items)
        return listed([*map(quoted, values), *(["None"] if none else [])], "or")
    return format_type_bare(kind, options)


def _is_omit(kind: Type) -> bool:
    proper = get_proper_type(kind)
    return isinstance(proper, Instance) and proper.type.fullname == "toolkit.runtime.surface.Omit"


# ----------------------------------------------------------------------------------------------------------------------
# What is wrong with the arguments of a tool: a key or a value, with its place inside nested objects and lists.

_LISTS = ("builtins.list", "typing.Sequence", "typing.Iterable", "typing.Collection")


class Complaints:
    """Reports mistakes in the arguments of one tool, and counts them."""

    def __init__(self, checker: Checker, tool: str) -> None:
        self._checker = checker
        self._tool = quoted(tool)
        self.count = 0

    def report(self, message: str, place: Context, code: ErrorCode) -> None:
        self._checker.fail(message, place, code)
        self.count += 1

    def about_keys(
        self,
        given: dict[str, Context],
        known: Iterable[str],
        required: Iterable[str],
        call: Context,
        code: ErrorCode,
        at: str = "",
    ) -> None:
        """Reports unknown and missing keys. A misspelt key counts as given, so that one typo is one line."""
        known, missing = list(known), [key for key in required if key not in given]
        for key, place in given.items():
            if key in known:
                continue
            meant = nearest(key, [name for name in known if name not in given])
            if meant is None:
                takes = [quoted(at + name) for name in sorted(known)]
                hint = f"; it takes {listed(takes, 'and')}" if takes else "; it takes none"
            else:
                hint = f"; did you mean {quoted(at + meant)}?"
                missing = [name for name in missing if name != meant]
            self.report(f"{self._tool} has no argument {quoted(at + key)}{hint}", place, code)
        if missing:
            names = listed([quoted(at + name) for name in missing], "and")
            self.report(f"{self._tool} needs the argument{'s' * (len(missing) > 1)} {names}", call, code)

    def about_value(self, value: Expression, wanted: Type, at: str, code: ErrorCode) -> None:
        """Reports why a value does not fit, as deep inside as it can be told."""
        if self._checker.fits(value, wanted):
            return
        before = self.count
        objects = [kind for kind in _alternatives(wanted) if isinstance(kind, TypedDictType)]
        if isinstance(value, DictExpr) and len(objects) == 1:
            self.about_object(value, objects[0], f"{at}.", code)
        items = [kind.args[0] for kind in _alternatives(wanted) if isinstance(kind, Instance) and _is_list(kind)]
        if isinstance(value, ListExpr) and len(items) == 1:
            for index, item in enumerate(value.items):
                self.about_value(item, items[0], f"{at}[{index}]", code)
        if self.count == before and not is_subtype(self._checker.infer(value, wanted).type, wanted):
            wanted_text = type_text(wanted, self._checker.options)
            given, hint = self._value_text(value, wanted)
            message = f"Argument {quoted(at)} of {self._tool} must be {wanted_text}, not {given}{hint}"
            self.report(message, value, code)

    def about_object(self, value: DictExpr, wanted: TypedDictType, at: str, code: ErrorCode) -> None:
        """Reports what is wrong with a dict that is written in the call. Says nothing if its keys are not."""
        keys = [(key, key.value) for key, _ in value.items if isinstance(key, StrExpr)]
        is_complete = len(keys) == len(value.items)
        required = wanted.required_keys if is_complete else ()
        self.about_keys(
            {name: key for key, name in keys},
            wanted.items,
            sorted(required),
            value,
            code,
            at,
        )
        for key, item in value.items:
            if isinstance(key, StrExpr) and key.value in wanted.items:
                self.about_value(item, wanted.items[key.value], f"{at}{key.value}", code)

    def _value_text(self, value: Expression, wanted: Type) -> tuple[str, str]:
        """What was given, and the nearest choice if there are choices: the value itself where it can be seen."""
        choices = [text for kind in _alternatives(wanted) for text in literal_values(kind) or ()]
        if isinstance(value, StrExpr) and choices:
            return quoted(value.value), did_you_mean(value.value, choices)
        if isinstance(value, UnaryExpr | IntExpr) and choices:
            return "int", ""
        return type_text(self._checker.infer(value).type, self._checker.options), ""


def _alternatives(wanted: Type) -> list[Type]:
    proper = get_proper_type(wanted)
    items = proper.items if isinstance(proper, UnionType) else [proper]
    return [kind for kind in map(get_proper_type, items) if not isinstance(kind, NoneType)]


def _is_list(kind: Instance) -> bool:
    return kind.type.fullname in _LISTS and len(kind.args) == 1


# ----------------------------------------------------------------------------------------------------------------------
# Calls with keywords: `tk.tools.<name>(...)`, the input models, `bind(...)` and the policy's classes.

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
    """`tk.tools.read_file(path="x")`."""
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
