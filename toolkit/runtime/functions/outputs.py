"""What a function returns: checked against its return annotation, and turned into text, content blocks or data.

Data is anything but text and content blocks: a model, a dataclass, a typed dict, a number, a list.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Sequence
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import (
    PydanticCustomError,
    PydanticSerializationError,
    SchemaValidator,
    to_json,
    to_jsonable_python,
)

from toolkit.errors import SetupError
from toolkit.models.own_types import schema_of_output
from toolkit.runtime.arguments import Reader
from toolkit.runtime.output.message import MessageForm, Reported, ToolMessage
from toolkit.schema.exact import check_json
from toolkit.schema.models import validator_from_wire
from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.json_types import JsonObject
from toolkit.wire.result import ToolResult

NameT_co = TypeVar("NameT_co", bound=str, covariant=True)
ContentT_co = TypeVar("ContentT_co", covariant=True)

_UNEXPECTED: Final = re.compile(
    r"Expected `(?P<wanted>[^`]+)`.* \[(field_name='(?P<field>\w+)', )?input_value=.*, input_type=(?P<given>\w+)\]"
)
NO_OUTPUT: Final = "(no output)"
"""What a model reads if a tool returns None: an empty answer would look like a mistake."""


class FunctionOutput:
    """The return type of one function. ``owner`` is the function's name in messages."""

    def __init__(self, annotation: Any, owner: str) -> None:
        self._is_content: Final = _is_content(annotation)
        self._is_any: Final = annotation in (Any, object)
        try:
            self._adapter: Final = TypeAdapter[Any](annotation)
            self._validate: Final = self._adapter.validator.validate_python
            self._serializer: Final = self._adapter.serializer
            self.schema: Final[JsonObject | None] = (
                None if self._is_content or self._is_any else schema_of_output(self._adapter)
            )
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise SetupError(
                f"the return type of {owner} cannot be written as JSON: {reason}; return a pydantic "
                f"model, a dataclass, a typed dict, text, content blocks or a JSON value"
            ) from None

    @cached_property
    def _from_wire(self) -> SchemaValidator:
        return validator_from_wire(self._adapter.core_schema)

    def check(self, value: Any) -> Any:
        """The value itself if it matches the annotation; if only its wire form does, the value read from that."""
        try:
            self._validate(value, strict=True)
            self._check_content(value)
        except ValidationError as error:
            try:
                value = self._from_wire.validate_python(value)
                self._check_content(value)
            except (ValidationError, SetupError):
                raise error from None
        return value

    def _check_content(self, value: Any) -> None:
        """Instances are accepted as they are; their content is checked when they are written."""
        try:
            check_json(self.data(value, strict=True))
        except PydanticSerializationError as error:
            raise _output_error(
                PydanticCustomError("output_value", "{reason}", {"reason": _why_not_written(str(error))})
            ) from None
        except PydanticCustomError as error:
            raise _output_error(error) from None

    def data(self, value: Any, *, strict: bool = False) -> Any:
        """The value as JSON."""
        if self._is_content:
            return None
        if self._is_any:
            return to_jsonable_python(value, by_alias=True)
        return self._serializer.to_python(value, mode="json", by_alias=True, warnings="error" if strict else False)

    def json(self, value: Any) -> str:
        """The value as JSON text."""
        if self._is_any:
            return to_json(value, by_alias=True).decode()
        return self._serializer.to_json(value, by_alias=True, warnings=False).decode()

    def as_generated(self, value: Any) -> Any:
        """The value for a generated output model, or for a ``ContentOutput`` if there is no schema."""
        if self.schema is not None:
            return self.data(value)
        blocks = blocks_of(value)
        if blocks is not None:
            return {"text": _text_of(blocks), "blocks": tuple(block for block in blocks if block.type != "text")}
        if isinstance(value, ContentOutput):
            return {"text": value.text, "blocks": value.blocks, "structured": value.structured}
        if value is None or isinstance(value, str):
            return {"text": NO_OUTPUT if value is None else value}
        return {"structured": self.data(value)}

    def from_generated(self, content: Any) -> Any:
        """The function's value, read back from a generated output model."""
        if self.schema is None:
            return content.text if content.structured is None and not content.blocks else content
        return self._validate(content.model_dump(mode="json", by_alias=True, exclude_unset=True))

    def message(
        self, name: str, content: object, form: MessageForm, reported: Reported | None = None
    ) -> ToolMessage[Any, Any]:
        """The answer that returns this value."""
        message = ValueMessage(name, content, form, reported)
        message._output = self
        return message


def _output_error(mistake: PydanticCustomError) -> ValidationError:
    return ValidationError.from_exception_data("output", [{"type": mistake, "input": None}])


def _why_not_written(text: str) -> str:
    """Why a value cannot be written, from what pydantic says: its message also shows the value."""
    found = _UNEXPECTED.search(text)
    if found is None:
        return text.splitlines()[0]
    field = "the value" if found["field"] is None else f"the field {found['field']!r}"
    return f"{field} should be {found['wanted']}, not {found['given']}"


class _NoModel:
    """Nothing is an instance of this, so that every value is checked."""


class OutputReader(Reader):
    """Checks outputs that are not generated models; they stay as they are."""

    __slots__ = ()

    def __init__(self, output: FunctionOutput) -> None:
        super().__init__(ContentOutput)
        self.model = _NoModel  # type: ignore[assignment, misc]
        self.from_wire = output.check  # type: ignore[misc]


class ValueMessage(ToolMessage[NameT_co, ContentT_co]):
    """The answer of a tool made from a function: ``content`` is what the function returned."""

    __slots__ = ("_output",)

    _output: FunctionOutput

    def to_result(self, tool_call_id: str) -> ToolResult:
        blocks = self._blocks()
        if blocks is None or self._show().is_cut:
            return super().to_result(tool_call_id)
        return self._result(tool_call_id, "multimodal", (*blocks, *self.attachments))

    def _blocks(self) -> tuple[ContentBlock, ...] | None:
        return blocks_of(self.content) if self.render is None else None

    def _own_text(self) -> str:
        blocks = self._blocks()
        if blocks is not None:
            return _text_of(blocks)
        if self.content is None:
            return NO_OUTPUT
        if isinstance(self.content, str):
            return self.content
        return super()._own_text() if isinstance(self.content, ContentOutput) else self._output.json(self.content)

    def _is_text(self) -> bool:
        return self.content is None or isinstance(self.content, str) or self._blocks() is not None or super()._is_text()

    def _media(self) -> tuple[ContentBlock, ...]:
        own = tuple(block for block in self._blocks() or () if block.type != "text")
        return (*own, *super()._media())

    def _data(self) -> object:
        data: object = self._output.data(self.content)
        return data


def blocks_of(value: object) -> tuple[ContentBlock, ...] | None:
    """The content blocks of a block, or of a list of blocks and texts; None for anything else."""
    if isinstance(value, ContentBlock):
        return (value,)
    if not isinstance(value, list | tuple) or not any(isinstance(part, ContentBlock) for part in value):
        return None
    if not all(isinstance(part, ContentBlock | str) for part in value):
        return None
    return tuple(ContentBlock("text", text=part) if isinstance(part, str) else part for part in value)


def _text_of(blocks: Sequence[ContentBlock]) -> str:
    return "\n".join(block.text for block in blocks if block.text is not None)


def _is_content(annotation: Any) -> bool:
    """Whether a type becomes text and media, without a schema."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _is_content(arguments[0])
    if origin in (Union, UnionType):
        return all(map(_is_content, arguments))
    if origin in (list, tuple, Sequence):
        parts = [part for part in arguments if part is not ...]
        return bool(parts) and all(map(_is_part, parts)) and any(_mentions_block(part) for part in parts)
    return annotation in (str, NoneType) or _is_block(annotation) or _is_class(annotation, ContentOutput)


def _is_part(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (Union, UnionType):
        return all(map(_is_part, typing.get_args(annotation)))
    return annotation is str or _is_block(annotation)


def _mentions_block(annotation: Any) -> bool:
    return _is_block(annotation) or any(map(_is_block, typing.get_args(annotation)))


def _is_block(annotation: Any) -> bool:
    return _is_class(annotation, ContentBlock)


def _is_class(annotation: Any, kind: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, kind)
