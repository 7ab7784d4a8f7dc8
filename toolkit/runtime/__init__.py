"""How a call runs: catalogs and packs, contexts, the call path, outputs, the audit log.

Everything here is loaded when it is first used. Most users need only what ``toolkit`` exports.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.catalog.handler_parts import HandlerParts as HandlerParts
    from toolkit.runtime.catalog.pack import CodeTool as CodeTool
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.catalog.handler_parts": "HandlerParts",
            "toolkit.runtime.catalog.pack": "CodeTool",
        },
    )
