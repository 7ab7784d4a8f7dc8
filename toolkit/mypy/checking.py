"""Asking mypy's checker about expressions without printing anything, and telling it what a call depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mypy.checker import TypeChecker
from mypy.errorcodes import ErrorCode
from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    CallExpr,
    Context,
    DictExpr,
    Expression,
    ImportFrom,
    ListExpr,
    SymbolNode,
    TypeInfo,
)
from mypy.plugin import CheckerPluginInterface
from mypy.server.trigger import make_trigger
from mypy.subtypes import is_subtype
from mypy.types import AnyType, CallableType, Instance, ProperType, Type, TypeOfAny, get_proper_type


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
