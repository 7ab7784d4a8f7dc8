"""What handlers are given, what they may ask for, and how they are packed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.inject import DependencyKey as DependencyKey
    from toolkit.inject import Depends as Depends
    from toolkit.runtime.packs import Handler as Handler
    from toolkit.runtime.packs import HandlerParts as HandlerParts
    from toolkit.runtime.packs import Pack as Pack
    from toolkit.runtime.packs import PackSource as PackSource
    from toolkit.runtime.tool_context import ToolContext as ToolContext
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.tool_context": "ToolContext",
            "toolkit.inject": "Depends DependencyKey",
            "toolkit.runtime.packs": "HandlerParts Handler Pack PackSource",
        },
    )
