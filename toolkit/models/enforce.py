"""What a type cannot say of a value is judged here, by the JSON Schema the model was generated from.

The validator is jsonschema-rs: patterns take linear time, nothing is retrieved, values are not repeated in messages.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import PydanticCustomError

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from pydantic import BaseModel

MAX_TOLD: Final = 5
_MISSING: Final = (
    "its schema says what types cannot, and is judged by jsonschema-rs: pip install 'typed-toolkit[schema]'"
)


def new_validator(schema: dict[str, Any]) -> Validator:
    """A validator for a schema; ValueError (or what it raises of its own) where the schema is none it takes."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        schema,
        mask="the value",
        offline=True,
        validate_formats=False,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=1 << 22, dfa_size_limit=1 << 22),
    )


class Enforced:
    """Judges models of one class by a JSON Schema; the schema is read when the first model is judged.

    >>> from pydantic import BaseModel
    >>> class Tags(BaseModel):
    ...     tags: list[str]
    >>> Enforced('{"properties": {"tags": {"uniqueItems": true}}}')(Tags(tags=["a", "b"]))
    Tags(tags=['a', 'b'])
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._validator: Validator | None = None

    def __call__(self, model: Any) -> Any:
        validator = self._validator or self._made()
        value = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if not validator.is_valid(value):
            raise _refused(validator, value)
        return model

    def _made(self) -> Validator:
        try:
            self._validator = new_validator(json.loads(self._text))
        except ImportError:
            # No ValueError: it is not the value that is wrong.
            raise ImportError(_MISSING) from None
        return self._validator


def require_validator(model: type[BaseModel]) -> None:
    """Refuses a model that could not be judged here, before any value is there to be judged."""
    if "__enforced__" in vars(model) and find_spec("jsonschema_rs") is None:
        raise SetupError(f"{model.__name__}: {_MISSING}")


def _refused(validator: Validator, value: object) -> PydanticCustomError:
    words = []
    for error in validator.iter_errors(value):
        place = ".".join(map(str, error.instance_path))
        words.append(f"{place}: {error.message}" if place else error.message)
        if len(words) == MAX_TOLD:
            break
    # As a value, not as the template: the words may hold braces.
    return PydanticCustomError("json_schema", "{words}", {"words": "; ".join(words)})
