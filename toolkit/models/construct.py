"""The constructors of classes with ``Omissible`` fields: None for one of them means that it is not given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from toolkit.models.absent import without_none
from toolkit.models.ignoring import ignoring_validator

_OURS: Final = "__toolkit_constructor__"


def needs_constructor(model: Any) -> bool:
    """Whether the constructor of a class with such fields is pydantic's, or one that a class below it got here."""
    return model.__init__ is BaseModel.__init__ or hasattr(model.__init__, _OURS)


def _mark(constructor: Callable[..., None]) -> Callable[..., None]:
    # pydantic-core does not call such a constructor while it validates: from the wire, null is refused.
    vars(constructor).update({"__pydantic_base_init__": True, _OURS: True})
    return constructor


@_mark
def first_constructor(self: Any, /, **data: Any) -> None:
    """The constructor until there is an instance: most classes of a package are never used, so the faster one waits."""
    __tracebackhide__ = True
    _construct(self, **data)
    model = type(self)
    if vars(model).get("__init__") is first_constructor:
        ignoring = ignoring_validator(model)
        setattr(model, "__init__", _construct if ignoring is None else _quick_constructor(model, ignoring))  # noqa: B010


@_mark
def _construct(self: Any, /, **data: Any) -> None:
    __tracebackhide__ = True
    for value in data.values():
        if value is None:
            data = without_none(data, self.__omissible__)
            break
    if self is not self.__pydantic_validator__.validate_python(data, self_instance=self):
        BaseModel.__init__(self, **data)  # which warns about a validator that returns another object


def _quick_constructor(model: Any, ignoring: SchemaValidator) -> Callable[..., None]:
    """What is not plainly right is left to ``_construct``, as are instances of classes below this one."""
    validate, omissible = ignoring.validate_python, model.__omissible__
    required = sum(field.is_required() for field in model.model_fields.values())

    @_mark
    def construct(self: Any, /, **data: Any) -> None:
        __tracebackhide__ = True
        if type(self) is model:
            if len(data) != required:  # else it has just those, or it is refused
                for value in data.values():
                    if value is None:
                        data = without_none(data, omissible)
                        break
            try:
                validate(data, self_instance=self)
                if len(self.__pydantic_fields_set__) == len(data):
                    return
            except ValidationError:
                pass
        _construct(self, **data)

    return construct
