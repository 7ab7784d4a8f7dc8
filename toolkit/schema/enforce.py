"""Checks what types cannot express, with the JSON Schema from which the model was generated.

A model's types accept at least what its schema accepts. Where they would accept more (``not``, ``if``, some ``allOf``), its
class carries the schema as ``__enforced__``, which is checked after the types, on the wire form. Other classes pay nothing.
The validator is jsonschema-rs: patterns take linear time, nothing is downloaded, messages do not repeat values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_core import PydanticCustomError

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from pydantic import BaseModel

MAX_REPORTED: Final = 5
_MISSING: Final = (
    "its schema has rules that types cannot express, which need jsonschema-rs: pip install 'typed-toolkit[schema]'"
)


def new_validator(schema: dict[str, Any]) -> Validator:
    """A validator for a schema; raises ValueError, or an error of jsonschema-rs, for a schema that it does not accept."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        schema,
        mask="the value",
        offline=True,
        validate_formats=False,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=1 << 22, dfa_size_limit=1 << 22),
    )


class Enforced:
    """Checks models of one class with a JSON Schema, which is parsed at the first check.

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
        validator = self._validator or self._make_validator()
        # The model has just been validated. pydantic-core still warns where a class with typed extra properties is in a
        # union of a union, and a caller who makes warnings errors would see a wrong refusal.
        value = model.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
        if not validator.is_valid(value):
            raise _refusal(validator, value)
        return model

    def _make_validator(self) -> Validator:
        try:
            import json

            self._validator = new_validator(json.loads(self._text))
        except ImportError:
            # Not a ValueError: the value is not wrong.
            raise ImportError(_MISSING) from None
        return self._validator


def require_validator(model: type[BaseModel]) -> None:
    """Refuses a model that cannot be checked because jsonschema-rs is missing, before any value is checked."""
    if "__enforced__" not in vars(model):
        return
    from importlib.util import find_spec

    if find_spec("jsonschema_rs") is None:
        raise SetupError(f"{model.__name__}: {_MISSING}")


def _refusal(validator: Validator, value: object) -> PydanticCustomError:
    words = []
    for error in validator.iter_errors(value):
        place = ".".join(map(str, error.instance_path))
        words.append(f"{place}: {error.message}" if place else error.message)
        if len(words) == MAX_REPORTED:
            break
    # As a value, not in the template: the text may contain braces.
    return PydanticCustomError("json_schema", "{words}", {"words": "; ".join(words)})
