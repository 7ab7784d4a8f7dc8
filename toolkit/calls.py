"""What a call returns, and what can be said about it while it runs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.context.concurrency import Concurrency as Concurrency
    from toolkit.runtime.context.concurrency import Load as Load
    from toolkit.runtime.output.message import ToolMessage as ToolMessage
    from toolkit.runtime.output.parsed_call import ParsedCall as ParsedCall
    from toolkit.runtime.progress import Progress as Progress
    from toolkit.runtime.signals import CancelSignal as CancelSignal
    from toolkit.runtime.surface import OMIT as OMIT
    from toolkit.runtime.surface import Omit as Omit
    from toolkit.runtime.tracing.settings import Tracing as Tracing
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.output.message": "ToolMessage",
            "toolkit.runtime.output.parsed_call": "ParsedCall",
            "toolkit.runtime.context.concurrency": "Concurrency Load",
            "toolkit.runtime.progress": "Progress",
            "toolkit.runtime.signals": "CancelSignal",
            "toolkit.runtime.surface": "OMIT Omit",
            "toolkit.runtime.tracing.settings": "Tracing",
        },
    )
