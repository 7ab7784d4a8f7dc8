"""The arguments of a function on the wire: their schema, their validation, and the parameters they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from toolkit.errors import SetupError
from toolkit.models.own_types import schema_of_arguments
from toolkit.runtime.arguments import Reader
from toolkit.runtime.functions.signature import FunctionSignature, qualified_name
from toolkit.runtime.touches import RESOURCE_KINDS
from toolkit.schema.models import validator_from_wire
from toolkit.wire.json_types import JsonObject

_REFUSED: Final = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, SetupError)


class _Arguments(BaseModel):
    """Base of the models made from signatures."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        protected_namespaces=(),
        regex_engine="rust-regex",
        ser_json_inf_nan="null",
    )


class WireReader(Reader):
    """Reads wire values into the user's own types; an instance is validated through its wire form."""

    __slots__ = ()

    def revalidate(self, value: BaseModel) -> BaseModel:
        checked: BaseModel = self.from_wire(value.model_dump(mode="json", by_alias=True, exclude_unset=True))
        return checked


class Arguments:
    """What a model may send for a function, and what the function is called with."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: FunctionSignature,
        *,
        model: type[BaseModel] | None,
        title: str,
        described: dict[str, str],
    ) -> None:
        self._whole = signature.wire[0].name if model is not None else None
        self._fields = {} if model is not None else _field_names(signature.wire)
        self._defaults: Final = {parameter.name: parameter.default for parameter in signature.wire}
        try:
            made = model or _model_of(function, signature.wire, self._fields, title, described)
            self.schema: Final[JsonObject] = schema_of_arguments(made)
            self.reader: Final = WireReader(made, validator_from_wire(made.__pydantic_core_schema__))
            self.resources: Final = tuple(_resources(made, self.schema))
        except _REFUSED as error:
            raise _not_from_json(function, signature, model, error) from None

    def by_parameter(self, args: BaseModel) -> dict[str, Any]:
        """Validated arguments by parameter name; a missing one gets the function's own default."""
        if self._whole is not None:
            return {self._whole: args}
        given, values = args.__pydantic_fields_set__, args.__dict__
        return {name: values[field] if field in given else self._defaults[name] for name, field in self._fields.items()}


def _model_of(
    function: Callable[..., Any],
    parameters: Iterable[Parameter],
    fields: dict[str, str],
    title: str,
    described: dict[str, str],
) -> type[BaseModel]:
    made: dict[str, Any] = {}
    for parameter in parameters:
        annotation, field = parameter.annotation, fields[parameter.name]
        info = FieldInfo.from_annotation(annotation)
        if info.validation_alias is not None and not isinstance(info.validation_alias, str):
            raise SetupError(f"{parameter.name!r} has several aliases; a parameter has only one name on the wire")
        if info.validation_alias is None and field != parameter.name:
            annotation = Annotated[annotation, Field(alias=parameter.name)]
        if info.description is None and parameter.name in described:
            annotation = Annotated[annotation, Field(description=described[parameter.name])]
        made[field] = (annotation, ... if parameter.default is Parameter.empty else parameter.default)
    module = getattr(function, "__module__", None) or __name__
    model: type[BaseModel] = create_model(title, __base__=_Arguments, __module__=module, **made)
    model.model_rebuild(raise_errors=True)
    return model


def _field_names(parameters: Iterable[Parameter]) -> dict[str, str]:
    """The model field of each parameter: model attributes and a leading "_" cannot be used as they are."""
    names = [parameter.name for parameter in parameters]
    taken = set(names)
    fields: dict[str, str] = {}
    for name in names:
        field = name
        if name.startswith("_") or hasattr(BaseModel, name):
            field = f"{name.strip('_') or 'field'}_"
            while field in taken:
                field += "_"
            taken.add(field)
        fields[name] = field
    return fields


def _resources(model: type[BaseModel], schema: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Field and kind of what a call touches, from ``x-resource`` in the ``json_schema_extra`` of parameters."""
    for field, info in model.model_fields.items():
        name = info.validation_alias if isinstance(info.validation_alias, str) else info.alias or field
        kind = schema.get("properties", {}).get(name, {}).get("x-resource")
        if kind is None:
            continue
        if kind not in RESOURCE_KINDS:
            raise SetupError(f"'x-resource' must be one of {', '.join(RESOURCE_KINDS)}, not {kind!r}")
        yield field, kind


def _not_from_json(
    function: Callable[..., Any], signature: FunctionSignature, model: type[BaseModel] | None, error: Exception
) -> SetupError:
    """Names the parameter that causes the error, if it is a single one."""
    reason = str(error).splitlines()[0].rstrip(".")
    if model is not None:
        return SetupError(f"the input of {qualified_name(function)} cannot be read from JSON: {reason}")
    for parameter in signature.wire:
        try:
            adapter = TypeAdapter[Any](parameter.annotation)
            validator_from_wire(adapter.core_schema)
            adapter.json_schema()
        except _REFUSED:
            return SetupError(
                f"the parameter {parameter.name!r} of {qualified_name(function)} cannot be read from JSON: {reason}"
            )
    return SetupError(f"the parameters of {qualified_name(function)} cannot be read from JSON: {reason}")
