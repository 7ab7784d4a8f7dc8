"""Types of a running program as text: what code-first tools take and return, and models that are inputs of programs.

A program gets values in the form that JSON has, but for models and dataclasses, which keep their attributes, and dates, times
and UUIDs. So a tuple is a list, an enumeration is one of its values, and a path is text.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType, NotRequired, Required, TypeVar, Union

import typing_extensions
from pydantic import AnyUrl, BaseModel, RootModel
from pydantic.fields import FieldInfo

from toolkit.runtime.signatures.generated_tool import CONTENT_CLASSES
from toolkit.runtime.signatures.type_lines import alias_line, class_line
from toolkit.wire.content import ContentBlock, ContentOutput

_TEXTS: Final[dict[Any, str]] = {
    Any: "Any", object: "Any", None: "None", types.NoneType: "None",
    str: "str", int: "int", float: "float", bool: "bool",
    datetime.datetime: "datetime", datetime.date: "date", datetime.time: "time", uuid.UUID: "UUID",
    bytes: "str", decimal.Decimal: "str", list: "list[Any]", tuple: "list[Any]", dict: "dict[str, Any]",
}  # fmt: skip
_ALIASES: Final = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
_KEY_MARKS: Final = (NotRequired, Required, typing_extensions.ReadOnly)


class ShownField(NamedTuple):
    """One field of a class: its name for a program, its type, and whether a caller may leave it out."""

    name: str
    type: Any
    is_optional: bool


class TypeTexts:
    """Writes types, and collects a line for each class they name. The names of classes begin with ``prefix``.

    As arguments, models and dataclasses are typed dicts: a program passes plain data.
    """

    def __init__(self, prefix: str, *, as_arguments: bool = False) -> None:
        self._prefix: Final = prefix
        self._as_arguments: Final = as_arguments
        self._names: Final[dict[Any, str]] = {}
        self._lines: Final[dict[str, str]] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """The classes and aliases that were named so far."""
        return tuple(self._lines.values())

    def write(self, annotation: Any) -> str:
        """
        >>> TypeTexts("").write(dict[int, tuple[decimal.Decimal, ...]] | None)
        'dict[str, list[str]] | None'
        """
        try:
            if annotation in _TEXTS:
                return _TEXTS[annotation]
        except TypeError:  # not hashable
            return "Any"
        if isinstance(annotation, _ALIASES):
            return self._named(annotation, annotation.__name__, self._alias_line)
        if isinstance(annotation, NewType):
            return self.write(annotation.__supertype__)
        if isinstance(annotation, TypeVar):
            return self.write(annotation.__bound__ or Any)
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self._write_generic(origin, typing.get_args(annotation), annotation)
        return self._write_class(annotation) if isinstance(annotation, type) else "Any"

    def _write_generic(self, origin: Any, arguments: tuple[Any, ...], annotation: Any) -> str:
        if origin is Annotated:
            return self.write(arguments[0])
        if origin is Literal:
            return _literal(arguments)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if not isinstance(origin, type):
            return "Any"
        if issubclass(origin, Mapping):
            return f"dict[str, {self.write(arguments[-1])}]"
        if issubclass(origin, Iterable) and origin is not str:
            return f"list[{self._union([part for part in arguments if part is not ...]) or 'Any'}]"
        return self._write_class(annotation if _is_model(annotation) else origin)

    def _union(self, parts: Iterable[Any]) -> str:
        found = list(dict.fromkeys(map(self.write, parts)))
        return " | ".join([text for text in found if text != "None"] + ["None"] * ("None" in found))

    def _write_class(self, kind: type) -> str:
        if kind is ContentBlock or issubclass(kind, ContentOutput):
            lines = CONTENT_CLASSES[1:] if kind is ContentBlock else CONTENT_CLASSES
            self._lines.update({line: line for line in lines})
            return ContentBlock.__name__ if kind is ContentBlock else ContentOutput.__name__
        if issubclass(kind, enum.Enum):
            return _literal([member.value for member in kind])
        if issubclass(kind, AnyUrl) or hasattr(kind, "__fspath__"):
            return "str"
        if _is_model(kind) and issubclass(kind, RootModel) and self._as_arguments:
            return self.write(kind.model_fields["root"].annotation)
        if _is_model(kind) or dataclasses.is_dataclass(kind) or typing_extensions.is_typeddict(kind):
            return self._named(kind, kind.__name__, self._class_line)
        return next((text for base, text in _TEXTS.items() if _is_below(kind, base)), "Any")

    def _named(self, kind: Any, word: str, make_line: Callable[[str, Any], str]) -> str:
        """The name of a class or alias; its line is made at the first use, and may name itself."""
        if kind not in self._names:
            name = f"{self._prefix}{re.sub(r'[^0-9A-Za-z_]+', '_', word).strip('_')}"
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
            self._lines[name] = ""  # keeps its place before the classes that it mentions
            self._lines[name] = make_line(name, kind)
        return self._names[kind]

    def _alias_line(self, name: str, alias: Any) -> str:
        return alias_line(name, self.write(alias.__value__))

    def _class_line(self, name: str, kind: type) -> str:
        is_dict = self._as_arguments or typing_extensions.is_typeddict(kind)
        fields = list(fields_of(kind, by_wire_name=is_dict))
        texts = {
            field.name: f"NotRequired[{self.write(field.type)}]"
            if is_dict and field.is_optional
            else self.write(field.type)
            for field in fields
        }
        return class_line(name, texts, is_dict=is_dict)


def fields_of(kind: type, *, by_wire_name: bool) -> Iterable[ShownField]:
    """The fields of a model, a dataclass or a typed dict."""
    if _is_model(kind):
        for name, field in kind.model_fields.items():
            yield ShownField(
                wire_name(name, field) if by_wire_name else name, field.annotation, not field.is_required()
            )
        return
    hints = _hints(kind)
    if typing_extensions.is_typeddict(kind):
        for name in kind.__annotations__:
            yield _field_of_typed_dict(kind, name, hints.get(name, Any))
        return
    for own in dataclasses.fields(kind):
        has_default = own.default is not dataclasses.MISSING or own.default_factory is not dataclasses.MISSING
        yield ShownField(own.name, hints.get(own.name, Any), has_default)


def wire_name(name: str, field: FieldInfo) -> str:
    """The name of a model's field in JSON."""
    return field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing_extensions.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):  # what a class of a function names is not known here
        return {}


def _field_of_typed_dict(kind: type, name: str, annotation: Any) -> ShownField:
    """A mark on the key counts; the class itself does not see the marks in annotations that are texts."""
    is_optional = name not in getattr(kind, "__required_keys__", ())
    while (mark := typing.get_origin(annotation)) in _KEY_MARKS:
        is_optional = mark is NotRequired or is_optional and mark is not Required
        annotation = typing.get_args(annotation)[0]
    return ShownField(name, annotation, is_optional)


def _literal(values: Iterable[Any]) -> str:
    plain = [value.value if isinstance(value, enum.Enum) else value for value in values]
    if not plain or not all(isinstance(value, str | int | bool | None) for value in plain):
        return "Any"
    return f"Literal[{', '.join(map(repr, plain))}]"


def _is_model(kind: Any) -> typing_extensions.TypeIs[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_below(kind: type, base: Any) -> bool:
    return isinstance(base, type) and base is not object and issubclass(kind, base)
