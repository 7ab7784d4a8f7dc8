"""Handlers of the toolkit's own tools, whose modules are imported at the first use of the tool.

A program that calls one built-in tool then does not import the other ones. Only for modules of the toolkit, which are known
to be right: a mistake in somebody's own handler must be found when the toolkit is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolkit.errors import SetupError
from toolkit.runtime.catalog.handler_parts import HandlerParts, find_parts
from toolkit.runtime.workers import is_async


class LazyHandler:
    """The ``run`` of a handler module that is not imported yet, and what a policy must know before that."""

    def __init__(self, module: str, *, has_preview: bool) -> None:
        self.module: Final = module
        self.has_preview: Final = has_preview

    def load(self) -> HandlerParts[..., Any]:
        parts = find_parts(importlib.import_module(self.module).run)
        # Rules were checked, and will be applied, by what was said here.
        if (parts.preview is not None) != self.has_preview:
            raise SetupError(
                f"{self.module!r} {'has no' if self.has_preview else 'has a'} preview, but is bound otherwise"
            )
        return parts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.load().run(*args, **kwargs)


def is_own_sync_handler(run: Callable[..., Any]) -> bool:
    """Whether a handler is one of the toolkit's own, and a plain function."""
    return getattr(run, "__module__", "").startswith("toolkit.builtin.") and not is_async(run)


class LazyModule:
    """Stands for a handler module where handlers are bound; type checkers see the module itself."""

    def __init__(self, name: str, *, has_preview: bool = False) -> None:
        self.run: Final = LazyHandler(name, has_preview=has_preview)


class Handlers:
    """The handlers of a toolkit by the names of their tools. Lazy ones are imported when they are first asked for."""

    def __init__(self, found: Mapping[str, HandlerParts[..., Any] | LazyHandler]) -> None:
        self._found: Final = dict(found)

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def get(self, name: str) -> HandlerParts[..., Any] | None:
        found = self._found.get(name)
        if isinstance(found, LazyHandler):
            found = self._found[name] = found.load()
        return found

    def loaded(self) -> list[HandlerParts[..., Any]]:
        """Those that need no import: all of somebody's own packs."""
        return [parts for parts in self._found.values() if not isinstance(parts, LazyHandler)]

    def load_all(self) -> Iterator[HandlerParts[..., Any]]:
        for name in self._found:
            parts = self.get(name)
            assert parts is not None
            yield parts

    def has_preview(self, name: str) -> bool:
        found = self._found.get(name)
        return found is not None and (
            found.has_preview if isinstance(found, LazyHandler) else found.preview is not None
        )

    def is_sandboxed(self, name: str) -> bool:
        """Whether what a handler starts is in the sandbox. Handlers of the toolkit itself cannot opt out of it."""
        found = self._found.get(name)
        return not isinstance(found, HandlerParts) or found.sandboxed
