"""Validates values into one generated model; what does not change between calls is decided once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from toolkit.guard.fs.path import display
from toolkit.models.enforce import require_validator

MANY_ERRORS: Final = 1000
"""From so many errors on, only those that are reported are made into objects: a value may be wrong in a million places."""
_MAX_NAMED: Final = 5
_MAX_KEY: Final = 100
_MAX_KEYS: Final = 20


class Reader:
    """Reads values into ``model``: from the wire by the names in the spec, from instances by Python names.

    ``validator`` is used instead of the model's own.
    """

    __slots__ = ("_by_python_name", "_is_root", "from_wire", "model")

    def __init__(self, model: type[BaseModel], validator: SchemaValidator | None = None) -> None:
        require_validator(model)
        validate = (validator or model.__pydantic_validator__).validate_python
        self.model: Final = model
        self._is_root = model.__pydantic_root_model__
        # Python names are not accepted on the wire. The option costs half a validation, so it is set only where they
        # differ from the wire names.
        aliased = validator is not None or _has_aliases(model)
        self.from_wire: Final[Callable[[Any], Any]] = (
            partial(validate, by_alias=True, by_name=False) if aliased else validate
        )
        self._by_python_name = partial(validate, by_alias=False, by_name=True) if aliased else validate

    def revalidate(self, value: BaseModel) -> BaseModel:
        """Validates an instance again: it may have been made without validation (``model_construct``)."""
        fields, given = value.__dict__, value.__pydantic_fields_set__
        checked: BaseModel
        if self._is_root:
            checked = self.from_wire(fields.get("root"))
            return checked
        # Unset fields are left out: they may be None where the schema refuses null.
        content = fields if len(fields) == len(given) else {key: fields[key] for key in given if key in fields}
        extra = value.__pydantic_extra__
        checked = self._by_python_name({**content, **extra} if extra else content)
        return checked


def describe_errors(error: ValidationError) -> str:
    """Each place that the schema of an output refuses, with the reason; the refused values are not repeated."""
    count = error.error_count()
    errors = first_errors(error, _MAX_NAMED)
    described = "; ".join(f"{shown_place(each['loc']) or 'the answer'}: {each['msg']}" for each in errors)
    return f"{described}; and {count - _MAX_NAMED} more" if count > _MAX_NAMED else described


def first_errors(error: ValidationError, limit: int) -> list[dict[str, Any]]:
    """The first ``limit`` errors as ``error.errors()`` has them, without the refused values; long keys are cut."""
    found: Iterable[Any]
    if error.error_count() <= MANY_ERRORS:
        found = error.errors(include_input=False, include_url=False)[:limit]
    else:
        # pydantic lists only all of them. As JSON that takes a quarter of the time and far less memory.
        text = error.json(include_input=False, include_url=False, include_context=False)
        found = islice(_read_items(text), limit)
    return [{**each, "loc": tuple(map(_cut_key, each["loc"]))} for each in found]


def _read_items(text: str) -> Iterator[Any]:
    """The items of a compact JSON array, one by one."""
    decode, at = json.JSONDecoder().raw_decode, 1
    while text[at] != "]":
        item, at = decode(text, at)
        at += text[at] == ","
        yield item


def _cut_key(key: int | str) -> int | str:
    return f"{key[:_MAX_KEY]}…" if isinstance(key, str) and len(key) > _MAX_KEY else key


def shown_place(keys: tuple[int | str, ...]) -> str:
    """A place in a value for a message: bounded, and without hidden characters.

    >>> shown_place(("lines", 3, "text"))
    'lines.3.text'
    """
    return ".".join(display(str(_cut_key(key))) for key in keys[:_MAX_KEYS])


def _has_aliases(model: type[BaseModel]) -> bool:
    """Whether any model of the same module has a field with another name on the wire."""
    neighbours = vars(sys.modules[model.__module__]).values()
    models = [found for found in neighbours if isinstance(found, type) and issubclass(found, BaseModel)]
    return any(field.alias is not None for found in models for field in found.model_fields.values())
