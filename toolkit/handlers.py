"""What handlers are given, what they may ask for, and how they are packed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.inject.key import DependencyKey as DependencyKey
    from toolkit.inject.key import Depends as Depends
    from toolkit.runtime.catalog.handler_parts import HandlerParts as HandlerParts
    from toolkit.runtime.catalog.pack import Handler as Handler
    from toolkit.runtime.catalog.pack import Pack as Pack
    from toolkit.runtime.catalog.pack import PackSource as PackSource
    from toolkit.runtime.tool_context import ToolContext as ToolContext
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.tool_context": "ToolContext",
            "toolkit.inject.key": "Depends DependencyKey",
            "toolkit.runtime.catalog.handler_parts": "HandlerParts",
            "toolkit.runtime.catalog.pack": "Handler Pack PackSource",
        },
    )
