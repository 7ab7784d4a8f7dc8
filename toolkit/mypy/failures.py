"""A mypy that the plugin was not made for: a hook that fails is one line at the call, not a crash of mypy."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import TypeVar

from mypy.plugin import FunctionSigContext, MethodSigContext
from mypy.types import FunctionLike

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
