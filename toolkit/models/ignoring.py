"""A faster validator for closed classes of single values, for callers who count.

pydantic-core spends a fifth of a validation on finding properties that a closed class does not have. A validator that ignores
them does not. Its caller compares how many properties were given with how many fields were set: if the numbers are equal,
nothing was ignored. If they are not, the validator of the class decides.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_core import SchemaValidator

from toolkit.models.scalars import holds_scalars


def ignoring_validator(model: type[BaseModel]) -> SchemaValidator | None:
    """The validator of a closed class without the search for other properties; None for any other class.

    >>> from toolkit.models.base import ToolModel
    >>> class Page(ToolModel, extra="forbid"):
    ...     number: int
    >>> ignoring_validator(Page).validate_python({"number": 1, "size": 2}).model_fields_set
    {'number'}
    """
    schema: Any = model.__pydantic_core_schema__
    # Classes in the fields would be built again, and a `post_init` would run twice if the class decides.
    if not holds_scalars(model) or "post_init" in schema:
        return None
    config = schema.get("config", {})
    if config.get("extra_fields_behavior") != "forbid":
        return None
    open_schema: Any = {**schema, "config": {**config, "extra_fields_behavior": "ignore"}}
    return SchemaValidator(open_schema, _use_prebuilt=False)
