"""The hooks: which calls and classes the plugin looks at."""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import ClassDefContext, FunctionSigContext, MethodSigContext, Plugin
from mypy.types import FunctionLike

from toolkit.mypy.facades import replace_overloads
from toolkit.mypy.invoke import INVOKES, signature_of_call


class ToolkitPlugin(Plugin):
    """Holds no state, so that it works in mypy's daemon."""

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return replace_overloads

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        return signature_of_call if fullname in INVOKES else None
