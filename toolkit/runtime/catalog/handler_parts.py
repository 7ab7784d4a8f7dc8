"""A handler with everything that belongs to it: how its output reads as text, what a call touches, what is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, final

if TYPE_CHECKING:
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.tool_context import ToolContext

P = ParamSpec("P")
R = TypeVar("R")


@final
@dataclass(frozen=True, slots=True)
class HandlerParts(Generic[P, R]):
    """A handler and its parts, to be bound in the place of a plain ``run`` function.

    A handler module needs no such object: its ``text``, ``preview`` and ``KEEPS_OUTPUT`` are found next to its ``run``,
    also when ``run`` is decorated with a decorator that uses ``functools.wraps``. A decorator without it hides the module;
    then bind ``HandlerParts(run, text=text, preview=preview)``.
    """

    run: Callable[P, R]
    text: Callable[[Any], str] | None = None
    """The output as the model reads it; JSON if not given."""
    preview: Callable[[Any, ToolContext], Preview] | None = None
    """What a call would touch; the spec's ``x-resource`` marks are used if not given."""
    sandboxed: bool = True
    """False where what the handler starts has no sandbox because its pack opted out of it."""
    keeps_output: bool = True
    """False for a tool that reads kept outputs: what it answers is neither kept again nor cut."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(*args, **kwargs)


def find_parts(handler: Callable[..., Any]) -> HandlerParts[..., Any]:
    """The parts of a handler: those it carries, or those its module exports next to ``run``."""
    if isinstance(handler, HandlerParts):
        return handler
    *_, innermost = chain = list(_unwrap(handler))
    module = _module_of(innermost)
    exported = module.get("run")
    if not any(exported is layer for layer in chain):
        return HandlerParts(handler)
    return HandlerParts(
        handler,
        text=_callable(module.get("text")),
        preview=_callable(module.get("preview")),
        keeps_output=module.get("KEEPS_OUTPUT") is not False,
    )


def _unwrap(handler: Any) -> Iterator[Any]:
    """The handler, and what each ``functools.wraps`` around it wrapped; decorators that form a cycle end it."""
    seen: set[int] = set()
    while handler is not None and id(handler) not in seen:
        seen.add(id(handler))
        yield handler
        handler = getattr(handler, "__wrapped__", None)


def _module_of(handler: Any) -> Mapping[str, Any]:
    space: Mapping[str, Any] | None = getattr(handler, "__globals__", None)
    if space is None:  # an object that can be called
        space = getattr(sys.modules.get(getattr(handler, "__module__", None) or ""), "__dict__", {})
    return space


def _callable(value: object) -> Callable[..., Any] | None:
    return value if callable(value) else None
