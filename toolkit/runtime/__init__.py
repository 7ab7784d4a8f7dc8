"""How a call runs: catalogs and packs, contexts, the call path, outputs, the audit log.

Everything here is loaded when it is first used. Most users need only what ``toolkit`` exports.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.packs import CodeTool as CodeTool
    from toolkit.runtime.packs import HandlerParts as HandlerParts
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
