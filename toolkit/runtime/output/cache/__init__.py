"""The output cache: it keeps whole outputs in the private state directory, so that models can be shown a part."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.output.cache.cached_output import CachedLine as CachedLine
    from toolkit.runtime.output.cache.cached_output import CachedOutput as CachedOutput
    from toolkit.runtime.output.cache.null_cache import NullCache as NullCache
    from toolkit.runtime.stores.budget import fit_history as fit_history
    from toolkit.runtime.stores.budget import fit_text as fit_text
    from toolkit.runtime.stores.output_files import FileOutputCache as FileOutputCache
    from toolkit.runtime.stores.outputs import OutputCache as OutputCache
    from toolkit.runtime.stores.outputs import OutputWriter as OutputWriter
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.stores.budget": "fit_history fit_text",
            "toolkit.runtime.output.cache.null_cache": "NullCache",
            "toolkit.runtime.output.cache.cached_output": "CachedLine CachedOutput",
            "toolkit.runtime.stores.outputs": "OutputCache OutputWriter",
            "toolkit.runtime.stores.output_files": "FileOutputCache",
        },
    )
