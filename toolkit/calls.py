"""What a call returns, and what can be said about it while it runs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.catalog import ParsedCall as ParsedCall
    from toolkit.runtime.context import Tracing as Tracing
    from toolkit.runtime.output import ToolMessage as ToolMessage
    from toolkit.runtime.progress import Progress as Progress
    from toolkit.runtime.signals import CancelSignal as CancelSignal
    from toolkit.runtime.surface import OMIT as OMIT
    from toolkit.runtime.surface import Omit as Omit
    from toolkit.runtime.turns import Concurrency as Concurrency
    from toolkit.runtime.turns import Load as Load
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.output": "ToolMessage",
            "toolkit.runtime.catalog": "ParsedCall",
            "toolkit.runtime.turns": "Concurrency Load",
            "toolkit.runtime.progress": "Progress",
            "toolkit.runtime.signals": "CancelSignal",
            "toolkit.runtime.surface": "OMIT Omit",
            "toolkit.runtime.context": "Tracing",
        },
    )
