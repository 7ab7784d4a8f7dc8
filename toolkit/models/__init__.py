"""Models that accept a value exactly when its JSON Schema does: generated ones, and the user's own types."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.models.absent import Omissible as Omissible
    from toolkit.models.base import ToolModel as ToolModel
    from toolkit.models.own_types import schema_of_arguments as schema_of_arguments
    from toolkit.models.own_types import schema_of_output as schema_of_output
    from toolkit.models.root import ToolRootModel as ToolRootModel
    from toolkit.schema.models import validator_from_wire as validator_from_wire
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.models.absent": "Omissible",
            "toolkit.models.base": "ToolModel",
            "toolkit.models.root": "ToolRootModel",
            "toolkit.schema.models": "validator_from_wire",
            "toolkit.models.own_types": "schema_of_arguments schema_of_output",
        },
    )
