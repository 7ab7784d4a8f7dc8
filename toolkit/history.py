"""Conversations as providers accept them: check, repair, and shorten to a budget."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.adapters.history import repair_history as repair_history
    from toolkit.adapters.history import validate_history as validate_history
    from toolkit.runtime.stores.budget import fit_history as fit_history
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.adapters.history": "repair_history validate_history",
            "toolkit.runtime.stores.budget": "fit_history",
        },
    )
