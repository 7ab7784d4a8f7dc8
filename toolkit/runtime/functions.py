"""Tools made from typed Python functions: they need no generated code, and can still be called as functions.

>>> from typing import Annotated
>>> from pydantic import Field
>>> from toolkit import ToolContext, tool
>>> @tool
... def repeat(text: Annotated[str, Field(description="What to say.")], times: int = 2) -> str:
...     "Say a text several times."
...     return " ".join([text] * times)
>>> repeat("hello")
'hello hello'
>>> repeat.definition.parameters["properties"]["text"]
{'description': 'What to say.', 'type': 'string'}
>>> with ToolContext.standalone(".") as ctx:
...     repeat.execute_raw('{"text": "hello", "times": 3}', ctx).value
...     repeat.execute_raw('{"text": 7}', ctx).value
'hello hello hello'
'INVALID_TOOL_ARGUMENTS: text: Input should be a valid string'
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, Signature
from types import FrameType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Final,
    ForwardRef,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    overload,
)

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import (
    PydanticCustomError,
    PydanticSerializationError,
    SchemaError,
    SchemaValidator,
    to_json,
    to_jsonable_python,
)

from toolkit.errors import SetupError
from toolkit.guard.permission import Permission, Permissions
from toolkit.guard.policy.preview import Preview
from toolkit.inject import DependencyNode, DependencyScope, Given, Needs, annotation_of, depends_of, name_of
from toolkit.runtime import path
from toolkit.runtime.arguments import Reader
from toolkit.runtime.catalog import Tool, ToolInfo
from toolkit.runtime.context import ToolkitContext
from toolkit.runtime.output import MessageForm, Reported, ToolMessage
from toolkit.runtime.packs import CodeTool, HandlerParts
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.touches import RESOURCE_KINDS
from toolkit.runtime.workers import is_async
from toolkit.schema.exact import check_json
from toolkit.schema.models import schema_of_arguments, schema_of_output, validator_from_wire
from toolkit.schema.spec import NAME_RULE, attribute_name, is_wire_name
from toolkit.wire.call import JsonObject, ToolResult
from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.definition import ToolDefinition

# ----------------------------------------------------------------------------------------------------------------------
# Reads the signature of a function: which parameters a model fills in, which the call path does, and what it returns.

_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """Parameters with resolved annotations, grouped by who fills them in."""

    wire: tuple[Parameter, ...]
    """Filled in by the model; with ``input``, the one parameter that takes everything."""
    context: tuple[Parameter, ...]
    """Take the ``ToolContext`` of the call."""
    injected: tuple[Parameter, ...]
    """Injected: ``Depends``, and the ``ToolkitContext``."""
    positional_only: tuple[str, ...]
    returns: Any
    """The return type, of an async function once awaited; ``Any`` if there is no annotation."""


def read_signature(
    function: Callable[..., Any], *, whole_input: bool = False, local_names: Mapping[str, object] | None = None
) -> FunctionSignature:
    """Reads the signature of a function that becomes a tool; refuses parameters that cannot be filled in.

    ``local_names`` are names in annotations that the globals of the function do not have.
    """
    plain = plain_function(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise SetupError(f"{qualified_name(function)} is a generator: a tool must return its result at once")
    local = local_names or {}
    resolved = [_resolve_annotation(plain, one, local) for one in inspect.signature(function).parameters.values()]
    context = tuple(parameter for parameter in resolved if _is_a(parameter, ToolContext))
    injected = tuple(parameter for parameter in resolved if _is_injected(parameter))
    wire = tuple(parameter for parameter in resolved if parameter not in context and parameter not in injected)
    if whole_input and len(wire) != 1:
        names = ", ".join(repr(parameter.name) for parameter in wire) or "none"
        raise SetupError(
            f"{qualified_name(function)} takes its arguments as one object, so it needs one parameter for the input, "
            f"not {names}; others must take the ToolContext or be injected"
        )
    if not whole_input:
        for parameter in wire:
            _check_parameter(function, parameter)
    positional = tuple(parameter.name for parameter in resolved if parameter.kind is Parameter.POSITIONAL_ONLY)
    return FunctionSignature(wire, context, injected, positional, _return_type(plain, local))


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def qualified_name(function: Callable[..., Any]) -> str:
    """The name of a function in messages: ``module.name``."""
    return name_of(plain_function(function))


def _resolve_annotation(function: Callable[..., Any], parameter: Parameter, names: Mapping[str, object]) -> Parameter:
    if parameter.annotation is Parameter.empty:
        return parameter
    # Without its default, so that an unknown name is an error and not ignored.
    return parameter.replace(annotation=annotation_of(function, parameter.replace(default=Parameter.empty), names))


def _is_a(parameter: Parameter, kind: type) -> bool:
    """Whether it takes a context; also an optional one, ``ctx: ToolContext | None = None``."""
    annotation = parameter.annotation
    if typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (Union, UnionType):
        others = [part for part in typing.get_args(annotation) if part is not NoneType]
        annotation = others[0] if len(others) == 1 else annotation
    origin = typing.get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, kind)


def _is_injected(parameter: Parameter) -> bool:
    return depends_of(parameter.annotation) is not None or _is_a(parameter, ToolkitContext)


def _check_parameter(function: Callable[..., Any], parameter: Parameter) -> None:
    what = f"the parameter {parameter.name!r} of {qualified_name(function)}"
    if parameter.kind in _VARIADIC:
        raise SetupError(f"{what} takes any number of arguments; a tool must name each of them")
    if parameter.annotation is Parameter.empty:
        hint = "; a method becomes a tool with define_tool(instance.method)" if parameter.name == "self" else ""
        raise SetupError(f"{what} has no type annotation: a model must know what to send{hint}")
    if isinstance(parameter.default, FieldInfo):
        raise SetupError(
            f"{what} has a Field as its default, which a plain call would receive; write Annotated[..., Field(...)] = default"
        )


def _return_type(function: Callable[..., Any], names: Mapping[str, object]) -> Any:
    written = inspect.signature(function).return_annotation
    if written is Parameter.empty:
        return Any
    returns = annotation_of(function, Parameter("returned", Parameter.KEYWORD_ONLY, annotation=written), names)
    if typing.get_origin(returns) in (Awaitable, Coroutine):
        returns = typing.get_args(returns)[-1]
    return NoneType if returns is None else returns


# ----------------------------------------------------------------------------------------------------------------------
# The arguments of a function on the wire: their schema, their validation, and the parameters they become.

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


# ----------------------------------------------------------------------------------------------------------------------
# Reads from a docstring what a tool does, and what its parameters are.

# The description ends at a Sphinx field, at a Google or NumPy section, or at an example.
_END: Final = re.compile(
    r"(:\w[^:]*:|>>> |(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):?\s*$)", re.IGNORECASE
)
_FIELD: Final = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_SECTION: Final = re.compile(r"(Args|Arguments|Parameters):\s*$", re.IGNORECASE)
_ITEM: Final = re.compile(r"(\s+)(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


def description_in(docstring: str | None) -> str:
    """The text before the first field, section or example.

    >>> description_in("Add two numbers.\\n\\n    Exactly.\\n\\n    :param a: the first one.")
    'Add two numbers.\\n\\nExactly.'
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    end = next((index for index, line in enumerate(lines) if _END.match(line)), len(lines))
    return "\n".join(lines[:end]).strip()


def parameters_in(docstring: str | None) -> dict[str, str]:
    """The text of each parameter: ``:param a: the first one`` or ``a: the first one`` below ``Args:``.

    >>> parameters_in("Add.\\n\\n    Args:\\n        a: The first\\n            number.\\n        b (int): The second.")
    {'a': 'The first number.', 'b': 'The second.'}
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    return {name: " ".join(words).strip() for name, words in (*_fields(lines), *_items(lines))}


def _fields(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(lines):
        found = _FIELD.match(line)
        if found:
            yield found[1], [found[2], *_read_continuation(lines[index + 1 :], deeper_than=0)]


def _items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    start = next((index + 1 for index, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    depth: int | None = None
    for index, line in enumerate(lines[start:], start):
        if line and not line[0].isspace():
            return
        found = _ITEM.match(line)
        if found and (depth is None or len(found[1]) == depth):
            depth = len(found[1])
            yield found[2], [found[3], *_read_continuation(lines[index + 1 :], deeper_than=depth)]


def _read_continuation(lines: list[str], *, deeper_than: int) -> Iterator[str]:
    for line in lines:
        if not line.strip() or len(line) - len(line.lstrip()) <= deeper_than:
            return
        yield line.strip()


# ----------------------------------------------------------------------------------------------------------------------
# Names that annotations mean in the function or class around a tool: its globals do not have them.

_NAME: Final = re.compile(r"[^\W\d]\w*")


def find_local_names(function: Callable[..., Any], frame: FrameType) -> Mapping[str, object]:
    """What the annotations of a function mention among the locals of ``frame``, where the tool is made, and its closure.

    Only those are kept, so that a tool does not keep everything alive that is in the frame.
    """
    if frame.f_locals is frame.f_globals:
        return {}
    plain = inspect.unwrap(plain_function(function))
    mentioned = {name for text in _texts(getattr(plain, "__annotations__", {})) for name in _NAME.findall(text)}
    if not mentioned:
        return {}
    spaces = [_closure(plain), frame.f_locals]
    while _is_class_body(frame) and frame.f_back is not None:
        frame = frame.f_back
        if frame.f_locals is not frame.f_globals:
            spaces.insert(0, frame.f_locals)
    return {name: space[name] for space in spaces for name in mentioned.intersection(space)}


def _texts(annotations: Mapping[str, object]) -> list[str]:
    """The parts of annotations that are written as text: ``"Order"``, ``list["Order"]``."""
    found: list[str] = []
    left = list(annotations.values())
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, ForwardRef):
            found.append(part.__forward_arg__)
        else:
            left.extend(typing.get_args(part))
    return found


def _closure(function: Callable[..., Any]) -> dict[str, object]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned later
            continue
    return found


def _is_class_body(frame: FrameType) -> bool:
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals


# ----------------------------------------------------------------------------------------------------------------------
# What a function returns: checked against its return annotation, and turned into text, content blocks or data.
#
# Data is anything but text and content blocks: a model, a dataclass, a typed dict, a number, a list.

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


P = ParamSpec("P")
R = TypeVar("R")
InputT = TypeVar("InputT", bound=BaseModel)

PermissionNeeds: TypeAlias = Permissions | Iterable[Permission]
"""Permissions of a tool; a plain list means required ones."""
PreviewOf: TypeAlias = Callable[[Any, ToolContext], Preview]
"""Returns what a call would touch; its first parameter has the arguments as attributes."""


class FunctionTool(CodeTool, Generic[P, R]):
    """A tool made from a function. Calling it calls the function, with the function's own types."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input: type[BaseModel] | None = None,
        permissions: PermissionNeeds = (),
        parallel: bool | None = None,
        blocking: bool = True,
        preview: PreviewOf | None = None,
        text: Callable[[Any], str] | None = None,
        local_names: Mapping[str, object] | None = None,
    ) -> None:
        if not callable(function):
            raise SetupError(f"a tool is made from a function, not from {type(function).__name__}")
        if isinstance(function, FunctionTool):
            local_names = {**function.local_names, **(local_names or {})}
            function = function.function
        self.function: Final[Callable[P, R]] = function
        self.name = check_name(name, function)
        self.title: Final = title
        self.permissions = Permissions.normalize(permissions)
        self.blocking: Final = blocking
        self.preview: Final = preview
        self.text: Final = text
        self.local_names: Final[Mapping[str, object]] = dict(local_names or {})
        """What its annotations mean in the function or class around it."""
        self.long_description = None
        docstring = plain_function(function).__doc__
        self.description: Final = description_in(docstring) if description is None else description
        self._input = input
        self._parallel = parallel
        self._described = parameters_in(docstring)
        # So that help() and documentation see the function.
        self.__doc__ = docstring
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name!r}: {self.owner}>"

    # -- what a model sees -------------------------------------------------------------------------------------------

    @property
    def definition(self) -> ToolDefinition:
        """Name, description and schema. A toolkit fills in the workspace of a long description."""
        return ToolDefinition(self.name, self.long_description or self.description, deepcopy(self.arguments.schema))

    @property
    def owner(self) -> str:
        """Where it comes from: ``module.function``."""
        return qualified_name(self.function)

    @property
    def origin(self) -> str:
        """The same for the generator: ``module:function``."""
        plain = plain_function(self.function)
        return f"{plain.__module__}:{plain.__qualname__}"

    @property
    def parallel(self) -> bool:
        """Whether it may run at the same time as other calls."""
        return set(self.permissions.required) <= {"read"} if self._parallel is None else self._parallel

    # -- what the call path needs; found at first use, because types may be defined later in the module -----------------

    @cached_property
    def signature(self) -> FunctionSignature:
        return read_signature(self.function, whole_input=self._input is not None, local_names=self.local_names)

    @cached_property
    def arguments(self) -> Arguments:
        """The parameters that a model fills in."""
        title = "".join(part.capitalize() for part in self.name.replace("-", "_").split("_")) + "Arguments"
        return Arguments(self.function, self.signature, model=self._input, title=title, described=self._described)

    @cached_property
    def output(self) -> FunctionOutput:
        """What it returns."""
        return FunctionOutput(self.signature.returns, self.owner)

    @cached_property
    def info(self) -> ToolInfo:
        """Its row in a toolkit's catalog."""
        return ToolInfo(
            name=self.name,
            attribute=attribute_name(self.name),
            module=plain_function(self.function).__module__,
            prefix="",
            required=self.permissions.required,
            optional=self.permissions.optional,
            resources=self.arguments.resources,
            parallel=self.parallel,
            blocking=self.blocking,
            function=self.origin,
        )

    def replace(
        self,
        *,
        name: str | None = None,
        permissions: PermissionNeeds | None = None,
        long_description: str | None = None,
    ) -> FunctionTool[P, R]:
        """A copy with another name, other permissions, or another long description."""
        if name is None and permissions is None and long_description is None:
            return self
        made = copy(self)
        changes: dict[str, object] = {}
        if name is not None:
            changes["name"] = check_name(name, self.function)
        if permissions is not None:
            changes["permissions"] = Permissions.normalize(permissions)
        if long_description is not None:
            changes["long_description"] = long_description
        vars(made).pop("info", None)
        vars(made).update(changes)
        return made


def check_name(name: str | None, function: Callable[..., Any]) -> str:
    """The name given, or the function's own."""
    found = name if name is not None else getattr(function, "__name__", None)
    if found is None or name is None and found == "<lambda>":
        raise SetupError(f"{qualified_name(function)} has no name: set one with name=...")
    if not isinstance(found, str) or not is_wire_name(found):
        raise SetupError(f"{found!r} is not a tool name: {NAME_RULE}")
    return found


class ToolMaker(Protocol):
    """What ``@tool(...)`` returns: it makes a tool from a function."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


# Every overload lists the options: not all checkers refuse unknown ones in `**options: Unpack[...]`.
@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: PermissionNeeds = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> ToolMaker: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool from a typed function, sync or async.

    The docstring describes the tool; ``Annotated[str, Field(description=...)]`` or ``:param path: ...`` describes a
    parameter. A parameter of type ``ToolContext`` takes the context of the call, ``Annotated[Db, Depends(open_db)]`` is
    injected; neither is in the schema. Annotations may name what is defined before the tool in the same function or class.

    :param name: the name for models; by default the function's name.
    :param permissions: what it needs: ``ctx.fs``, ``ctx.process`` and ``ctx.net`` depend on them.
    :param parallel: whether it may run at the same time as other calls; by default if it needs at most ``read``.
    :param blocking: whether a sync function runs in a thread under an async toolkit, and in ``call_all``.
    :param preview: returns what a call would touch, for rules on paths, commands and hosts, and for approvers.
    :param text: turns the function's result into the text that the model reads.

    >>> @tool(name="math.add", description="Add two numbers.")
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> add(1, 2), add.name
    (3, 'math.add')
    """
    if function is not None:
        return _make_tool(function, sys._getframe(1), options)
    return lambda function: _make_tool(function, sys._getframe(1), options)


def _make_tool(function: Callable[..., Any], frame: FrameType, options: dict[str, Any]) -> FunctionTool[..., Any]:
    """A tool that is made in ``frame``: its annotations may mean what is defined there."""
    return FunctionTool(function, local_names=find_local_names(function, frame), **options)


@overload
def define_tool(
    execute: Callable[Concatenate[InputT, P], R],
    *,
    input: type[InputT],
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: PermissionNeeds = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> FunctionTool[Concatenate[InputT, P], R]: ...
@overload
def define_tool(
    execute: Callable[P, R],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: PermissionNeeds = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> FunctionTool[P, R]: ...
@overload
def define_tool(
    *, name: str, factory: Callable[[], Made] | Callable[[ToolkitContext[Any]], Made], permissions: PermissionNeeds = ()
) -> LazyTool: ...
def define_tool(
    execute: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    factory: Callable[..., Any] | None = None,
    permissions: PermissionNeeds = (),
    **options: Any,
) -> Any:
    """Makes a tool from data, or from a factory that is called when the tool is first needed.

    Without ``input``, the tool has the parameters of ``execute``, as with ``@tool``. With ``input``, a pydantic model, the
    first parameter takes all arguments as one object. The other options are those of ``@tool``.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> define_tool(name="plus", description="Add two numbers.", execute=add)(1, 2)
    3

    A factory, sync or async, returns a function or a tool. It takes no parameters and is called once, or it takes the
    ``ToolkitContext`` and is called once for each. Its permissions must be given here: they are needed before it is called.

    >>> def make(context: ToolkitContext[str]) -> FunctionTool[[], str]:
    ...     return define_tool(lambda: context.workspace, name="where", description="Tell the workspace.")
    >>> define_tool(name="where", factory=make)
    <lazy tool 'where': toolkit.runtime.functions.make>
    """
    if (execute is None) == (factory is None):
        raise SetupError("a tool needs either `execute` or `factory`: give one of them")
    if factory is None:
        assert execute is not None
        return _make_tool(execute, sys._getframe(1), {"name": name, "permissions": permissions, **options})

    if options or name is None:
        wrong = next(iter(options), "no name")
        raise SetupError(
            f"with a factory, give only `name` and `permissions`: the tool that it makes has the rest; got {wrong!r}"
        )
    return LazyTool(factory, name=name, permissions=permissions)


Made: TypeAlias = "FunctionTool[..., Any] | Callable[..., Any] | Awaitable[FunctionTool[..., Any] | Callable[..., Any]]"
"""What a factory returns: a tool, or a function to make one from."""


# ----------------------------------------------------------------------------------------------------------------------
# Makes handlers from functions: they take validated arguments and a context, and call the function.


def make_handler(tool: FunctionTool[..., Any]) -> HandlerParts[..., Any]:
    """A handler that takes arguments as the tool's own reader validated them."""
    return _make_handler(tool, tool.arguments.by_parameter, _identity, tool.text)


def make_generated_handler(tool: FunctionTool[..., Any], *, own_output: bool) -> HandlerParts[..., Any]:
    """A handler that takes a generated input model, and returns what the generated output model is made from; with
    ``own_output``, what the function returned.

    The generated models were made from the function's schemas, so nothing is lost. If the function has changed since, its
    own reader reports what it wants now.
    """
    text = tool.text

    # Schemas and readers are made at the first call, so that a toolkit of many functions is built quickly.
    def by_parameter(args: BaseModel) -> dict[str, Any]:
        reader = tool.arguments.reader
        sent = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
        try:
            return tool.arguments.by_parameter(reader.from_wire(sent))
        except ValidationError as error:
            raise path.invalid_arguments(Tool(tool.info, reader, reader), error) from None

    def convert(value: Any) -> Any:
        return tool.output.as_generated(value)

    def render(content: Any) -> str:
        assert text is not None
        return text(tool.output.from_generated(content))

    if own_output:
        return _make_handler(tool, by_parameter, _identity, text)
    return _make_handler(tool, by_parameter, convert, None if text is None else render)


def _make_handler(
    tool: FunctionTool[..., Any],
    by_parameter: Callable[[BaseModel], dict[str, Any]],
    convert: Callable[[Any], Any],
    text: Callable[[Any], str] | None,
) -> HandlerParts[..., Any]:
    function, signature = tool.function, tool.signature
    contexts = [parameter.name for parameter in signature.context]
    positional = signature.positional_only

    def split_arguments(args: BaseModel, ctx: ToolContext, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        values = {**by_parameter(args), **given}
        for name in contexts:
            values[name] = ctx
        return [values.pop(name) for name in positional], values

    async def run_async(args: BaseModel, ctx: ToolContext, /, **given: Any) -> Any:
        first, values = split_arguments(args, ctx, given)
        return convert(await function(*first, **values))

    def run(args: BaseModel, ctx: ToolContext, /, **given: Any) -> Any:
        first, values = split_arguments(args, ctx, given)
        value = function(*first, **values)
        return _convert_later(value, convert) if inspect.isawaitable(value) else convert(value)

    handler: Any = run_async if is_async(function) else run
    # The planner reads from the signature what is to be injected.
    given = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in ("_args", "_ctx")]
    handler.__signature__ = Signature([*given, *map(_as_injected, signature.injected)])
    handler.__qualname__, handler.__module__ = tool.owner.rpartition(".")[2], tool.owner.rpartition(".")[0]
    return HandlerParts(handler, text=text, preview=tool.preview)


def _as_injected(parameter: Parameter) -> Parameter:
    annotation = ToolkitContext if depends_of(parameter.annotation) is None else parameter.annotation
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=annotation)


async def _convert_later(value: Awaitable[Any], convert: Callable[[Any], Any]) -> Any:
    """For a plain function around an async one, such as a decorator."""
    return convert(await value)


def _identity(value: Any) -> Any:
    return value


# ----------------------------------------------------------------------------------------------------------------------
# Tools that a factory, sync or async, makes at their first use.

Wait: TypeAlias = Callable[[Awaitable[Any]], Any]
"""Waits for an awaitable, in another loop."""

_VAR_POSITIONAL, _VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


class LazyTool(CodeTool):
    """A tool of which only the name and the permissions are known until its factory is called.

    The factory is called once, or once per ``ToolkitContext`` if it takes one, also when several threads or tasks need the
    tool at the same time. After a failure, the next use tries again.
    """

    def __init__(
        self,
        factory: Callable[..., Any],
        *,
        name: str,
        permissions: PermissionNeeds = (),
        long_description: str | None = None,
    ) -> None:
        plain = plain_function(factory)
        if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
            raise SetupError(f"the factory {qualified_name(factory)} is a generator; a factory must return one tool")
        self.factory: Final = factory
        self.name = check_name(name, factory)
        self.permissions = Permissions.normalize(permissions)
        self.long_description = long_description
        self.needs_context: Final = _takes_context(factory)
        self._node = self._plan()
        self._for_all = DependencyScope(None)

    def __repr__(self) -> str:
        return f"<lazy tool {self.name!r}: {self.owner}>"

    @property
    def owner(self) -> str:
        """Where it comes from: ``module.factory``."""
        return qualified_name(self.factory)

    @property
    def description(self) -> str:
        """What it does. Like ``definition``, only for a factory that takes no context."""
        return self.load().description

    @property
    def definition(self) -> ToolDefinition:
        return self.load().definition

    def replace(self, *, permissions: PermissionNeeds | None = None, long_description: str | None = None) -> LazyTool:
        """A copy with other permissions, or another long description."""
        if permissions is None and long_description is None:
            return self
        needs = self.permissions if permissions is None else permissions
        text = self.long_description if long_description is None else long_description
        return LazyTool(self.factory, name=self.name, permissions=needs, long_description=text)

    # -- making it ---------------------------------------------------------------------------------------------------

    def load(self, context: ToolkitContext[Any] | None = None, wait: Wait | None = None) -> FunctionTool[..., Any]:
        """The tool. ``wait`` awaits an async factory; without it, the factory must have been called already."""
        scope = self._scope(context)
        tool: FunctionTool[..., Any] | None = scope.find(self._node)
        if tool is not None:
            return tool
        if not self._node.needs_loop:
            tool = scope.resolve(self._node)
        elif wait is not None:
            tool = wait(scope.resolve_async(self._node))
        else:
            raise SetupError(
                f"{self.name!r} is made by the async factory {self.owner}, which must be awaited: "
                f"`await registry.tools_async(context)`, then build the toolkit with that context"
            )
        assert tool is not None
        return tool

    async def load_async(self, context: ToolkitContext[Any] | None = None) -> FunctionTool[..., Any]:
        """The tool; its factory is awaited in the running loop."""
        tool: FunctionTool[..., Any] = await self._scope(context).resolve_async(self._node)
        return tool

    def _scope(self, context: ToolkitContext[Any] | None) -> DependencyScope:
        if not self.needs_context:
            return self._for_all
        if context is None:
            raise SetupError(
                f"{self.name!r} is made per context by {self.owner}: get its definition from a toolkit, or from "
                f"the registry's `tools(context)`"
            )
        return context._lazy_tools.setdefault(self, DependencyScope(context))

    def _plan(self) -> DependencyNode:
        """The factory as a dependency, so that the scope makes it once and handles concurrent uses."""
        needs: Needs = (("context", Given("run")),) if self.needs_context else ()
        if is_async(self.factory):

            async def make_async(**context: ToolkitContext[Any]) -> FunctionTool[..., Any]:
                return self._check_made(await self.factory(*context.values()))

            return DependencyNode(self.name, make_async, "async", "run", needs, needs_loop=True)

        def make(**context: ToolkitContext[Any]) -> FunctionTool[..., Any]:
            return self._check_made(self.factory(*context.values()))

        return DependencyNode(self.name, make, "value", "run", needs, needs_loop=False)

    def _check_made(self, made: object) -> FunctionTool[..., Any]:
        """The factory's result as a tool; refuses one that differs from what was declared."""
        if inspect.iscoroutine(made):
            made.close()
            raise SetupError(f"the factory {self.owner} of {self.name!r} returned a coroutine: write `async def`")
        if not callable(made):
            what = type(made).__name__
            raise SetupError(
                f"the factory {self.owner} of {self.name!r} returned {what}; it must return a function or a tool"
            )
        if not isinstance(made, FunctionTool):
            made = FunctionTool(made, name=self.name)
        if made.name != self.name:
            raise SetupError(f"the factory {self.owner} must make {self.name!r}, but made {made.name!r}")
        if not made.permissions.is_within(self.permissions):
            raise SetupError(
                f"the factory {self.owner} made {self.name!r} with permissions that were not declared: list them in "
                f"define_tool(..., permissions=...)"
            )
        return made.replace(permissions=self.permissions, long_description=self.long_description)


def _takes_context(factory: Callable[..., Any]) -> bool:
    parameters = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in (_VAR_POSITIONAL, _VAR_KEYWORD)
    ]
    if len(parameters) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters):
        raise SetupError(f"the factory {qualified_name(factory)} takes more parameters than the ToolkitContext")
    return bool(parameters)
