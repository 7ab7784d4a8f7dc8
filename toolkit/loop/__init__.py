"""One loop for all providers: a model, a toolkit, and the conversation between them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.loop.async_ import run_async as run_async
    from toolkit.loop.async_ import stream_run_async as stream_run_async
    from toolkit.loop.driver import AsyncDriver as AsyncDriver
    from toolkit.loop.driver import AsyncStreamingDriver as AsyncStreamingDriver
    from toolkit.loop.driver import Driver as Driver
    from toolkit.loop.driver import StreamingDriver as StreamingDriver
    from toolkit.loop.state import CallAnswered as CallAnswered
    from toolkit.loop.state import RunEnded as RunEnded
    from toolkit.loop.state import RunEvent as RunEvent
    from toolkit.loop.state import RunLimits as RunLimits
    from toolkit.loop.sync import run as run
    from toolkit.loop.sync import stream_run as stream_run
    from toolkit.wire.query import Conversation as Conversation
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
