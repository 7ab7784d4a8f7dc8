"""The plugin: which calls and classes it looks at. A hook that fails is one line at the call, not a crash of mypy."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import TypeVar

from mypy.nodes import TypeInfo
from mypy.options import Options
from mypy.plugin import AttributeContext, ClassDefContext, FunctionSigContext, MethodSigContext, Plugin
from mypy.types import FunctionLike, Type

from toolkit.mypy.checking import has_tools_as_methods, signature_of_method, signature_of_model
from toolkit.mypy.invoke import INVOKES, signature_of_call
from toolkit.mypy.packages import replace_overloads, signature_of_create
from toolkit.mypy.packs import CLASSES, CONTENT, ContentHook, signature_of_bind, signature_of_policy
from toolkit.mypy.supported import TESTED

ContextT = TypeVar("ContextT", MethodSigContext, FunctionSigContext)


def reported(hook: Callable[[ContextT], FunctionLike]) -> Callable[[ContextT], FunctionLike]:
    """The hook, with a line of text instead of what it raises."""

    def report_failure(ctx: ContextT) -> FunctionLike:
        try:
            return hook(ctx)
        except Exception as error:
            ctx.api.fail(
                f"toolkit.mypy cannot check this call ({type(error).__name__}: {error}); it is tested with mypy {TESTED},"
                f' and this is mypy {version("mypy")}. Everything works without it: remove "toolkit.mypy" from the plugins',
                ctx.context,
            )
            return ctx.default_signature

    return report_failure


_MODEL = "toolkit.schema.models.ToolModel"


class ToolkitPlugin(Plugin):
    """Remembers nothing from one expression to the next, so that it works in mypy's daemon."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._content_hook = ContentHook()

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return replace_overloads

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        if fullname in INVOKES:
            return reported(signature_of_call)
        info = self._find_class(fullname.rpartition(".")[0])
        return reported(signature_of_method) if info is not None and has_tools_as_methods(info) else None

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
        if fullname in CLASSES:
            return reported(signature_of_policy)
        if fullname.endswith("agent_toolkit"):
            return reported(signature_of_create)
        if fullname.endswith(".bind"):
            return reported(signature_of_bind)
        info = self._find_class(fullname) if fullname.endswith("Input") else None
        return reported(signature_of_model) if info is not None and info.has_base(_MODEL) else None

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return self._content_hook if fullname == CONTENT else None

    def _find_class(self, fullname: str) -> TypeInfo | None:
        symbol = self.lookup_fully_qualified(fullname) if fullname else None
        return symbol.node if symbol is not None and isinstance(symbol.node, TypeInfo) else None
