"""Signatures: what each tool takes and returns, as Python text for models and for the checker of programs.

Promise: the text for a model depends only on the tools in it. A tool that is added later adds its own lines and changes no
other, so that a provider's prompt cache keeps what comes before them. Limit: the types are plain; they leave out limits and
patterns, which only a call checks.

``toolkit generate`` writes the types of a generated package into its manifest, so describing a thousand tools imports none of
their models. The signatures of code-first tools come from their functions.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import keyword
import re
import types
import typing
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypeAlias,
    TypeVar,
    Union,
    cast,
)

import typing_extensions
from pydantic import AnyUrl, BaseModel, RootModel

from toolkit.errors import GenerationError, SetupError
from toolkit.schema.spec import attribute_name
from toolkit.visible import hidden_pattern
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from toolkit.runtime.catalog import Catalog
    from toolkit.runtime.functions import FunctionTool

Fields: TypeAlias = tuple[tuple[str, str], ...]
"""The names and types of a class's fields."""
_OPTIONAL: Final = "NotRequired["


class ShownType(NamedTuple):
    """A class, a typed dict or an alias that fits on one line of Python."""

    name: str
    fields: Fields = ()
    is_dict: bool = False
    alias: str | None = None
    """The type that an alias stands for."""

    @property
    def line(self) -> str:
        """The line that a model reads.

        >>> ShownType("Point", (("x", "int"), ("y", "int"))).line
        'class Point: x: int; y: int'
        >>> ShownType("Args", (("x", "NotRequired[int]"), ("y", "NotRequired[list[int]]")), is_dict=True).line
        'class Args(TypedDict, total=False): x: int; y: list[int]'
        """
        if self.alias is not None:
            return f"{self.name}: TypeAlias = {self.alias}"
        if not self.has_plain_keys:
            rows = ", ".join(f"{key!r}: {text}" for key, text in self.fields)
            return f"{self.name} = TypedDict({self.name!r}, {{{rows}}})"
        bases = "(TypedDict, total=False)" if self.is_all_optional else "(TypedDict)" if self.is_dict else ""
        return f"class {self.name}{bases}: {'; '.join(f'{key}: {text}' for key, text in self.body) or 'pass'}"

    @property
    def body(self) -> Fields:
        """The fields as the body of a class has them: ``total=False`` says for all that they may be left out."""
        if not self.is_all_optional:
            return self.fields
        return tuple((key, text.removeprefix(_OPTIONAL).removesuffix("]")) for key, text in self.fields)

    @property
    def is_all_optional(self) -> bool:
        """Whether every key of a typed dict may be left out."""
        return self.is_dict and bool(self.fields) and all(text.startswith(_OPTIONAL) for _, text in self.fields)

    @property
    def has_plain_keys(self) -> bool:
        """Whether it can be written as a class: the keys of a typed dict may be any text."""
        return not self.is_dict or all(key.isidentifier() and not keyword.iskeyword(key) for key, _ in self.fields)


class ShownParameter(NamedTuple):
    """A keyword parameter of a tool."""

    name: str
    type: str
    default: str | None
    """As Python text, ``...`` if it may be left out and has none; None if it is required."""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.default is None else f" = {self.default}")


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """One tool as a Python function."""

    name: str
    """The name on the wire."""
    attribute: str
    """The name in ``tools.<attribute>(...)``."""
    parameters: tuple[ShownParameter, ...]
    """Required ones first."""
    output: str
    """The return type."""
    argument_types: tuple[ShownType, ...]
    """Each class or alias that the parameters mention, directly or not."""
    output_types: tuple[ShownType, ...]
    """The same for the return type."""
    doc: str
    """The first sentence of the description."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Parameters whose Python name is not their name on the wire: both names."""

    @property
    def types(self) -> tuple[ShownType, ...]:
        """Every class and alias that the signature mentions."""
        return (*self.argument_types, *self.output_types)

    @property
    def call(self) -> str:
        """The tool with its parameters."""
        return f"{self.attribute}({', '.join(map(str, self.parameters))})"


MAX_DOC: Final = 160
"""The most characters of a tool's sentence."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[^a-z])")


def first_sentence(text: str) -> str:
    """The first sentence of a description on one line, cut if it is long.

    >>> first_sentence("Read a file, e.g. README.md. Images\\nare attached.")
    'Read a file, e.g. README.md.'
    """
    words = " ".join(hidden_pattern("").sub(" ", text).split())
    sentence = _SENTENCE_END.split(words, maxsplit=1)[0]
    return sentence if len(sentence) <= MAX_DOC else f"{sentence[: MAX_DOC - 1].rstrip()}…"


# ----------------------------------------------------------------------------------------------------------------------
# The text for a model: one line for a tool, then one for each class that it uses, in the order of the names.
#
# If the text must be short, every tool is shown in the fullest form in which all fit. Then tools are shown in the next fuller
# form, in the order of their names, while there is room. The forms: with all classes; without the classes of the output; as
# a name and one sentence; as a name.

CONTENT_OUTPUT: Final = ContentOutput.__name__
"""What tools without an output schema return. Signatures name it instead of the subclass, which adds nothing."""
CONTENT_TYPES: Final = (
    ShownType(CONTENT_OUTPUT, (("text", "str"), ("blocks", "list[ContentBlock]"), ("structured", "Any"))),
    ShownType(
        ContentBlock.__name__,
        (
            ("type", "Literal['text', 'image', 'audio', 'document']"),
            *((name, "str | None") for name in ("media_type", "data", "url", "file_id", "text", "filename")),
        ),
    ),
)
"""One of each for all tools."""
HEAD: Final = (
    "# Tools as Python functions. Pass arguments by name; one with a default may be left out. "
    f"A function without -> returns a {CONTENT_OUTPUT}."
)
LEAST_BUDGET: Final = 400
"""Room for the first and the last line."""
DESCRIBE, SEARCH = "describe_tools", "search_tools"


def prompt_text(
    signatures: Iterable[ToolSignature], budget: int | None = None, *, ways: Collection[str] = (DESCRIBE, SEARCH)
) -> str:
    """The text for a model, of at most ``budget`` characters. ``ways`` are the tools that tell it more."""
    if budget is not None and budget < LEAST_BUDGET:
        raise SetupError(f"a budget is a number of characters, at least {LEAST_BUDGET}, not {budget}")
    tools = sorted(signatures, key=lambda tool: tool.name)
    whole = _join(tools, [_FULL] * len(tools))
    if budget is None or len(whole) <= budget:
        return whole
    return _shorten(tools, budget, ways)


def function_line(tool: ToolSignature) -> str:
    """A tool as the head of a function, with its sentence and the names that differ in JSON as a comment."""
    notes = [f"{tool.name!r}."] if tool.name != tool.attribute else []
    notes += [tool.doc] if tool.doc else []
    notes += [f"In JSON: {', '.join(repr(wire) for _, wire in tool.renamed)}."] if tool.renamed else []
    comment = f"  # {' '.join(notes)}" if notes else ""
    output = "" if tool.output == CONTENT_OUTPUT else f" -> {tool.output}"
    return f"{tool.call}{output}{comment}"


def _shorten(tools: Sequence[ToolSignature], budget: int, ways: Collection[str]) -> str:
    """The text with an end that says how to learn more, which counts too."""
    end = f"\n{_how_to_learn_more(ways)}"
    room = budget - len(end)
    level = next((level for level in (_CALLS, _SENTENCE, _NAME) if _size(tools, level) <= room), None)
    if level is None:
        return _some_names(tools, room) + end
    forms = [level] * len(tools)
    size = _size(tools, level)
    shared: set[ShownType] = set()
    for index, tool in enumerate(tools):
        with_it = shared.union(tool.types).intersection(CONTENT_TYPES) if level + 1 == _FULL else shared
        size_with_it = size + len(_text(tool, level + 1)) - len(_text(tool, level))
        size_with_it += sum(len(one.line) + 1 for one in with_it - shared)
        if size_with_it <= room:
            forms[index], size, shared = level + 1, size_with_it, with_it
    return _join(tools, forms) + end


def _size(tools: Sequence[ToolSignature], level: int) -> int:
    return len(_join(tools, [level] * len(tools)))


def _join(tools: Sequence[ToolSignature], forms: Sequence[int]) -> str:
    """The head, the tools with functions, the classes that they share, and the other tools."""
    with_functions = [_text(tool, form) for tool, form in zip(tools, forms, strict=True) if form >= _CALLS]
    others = [_text(tool, form) for tool, form in zip(tools, forms, strict=True) if form < _CALLS]
    shared = [
        one.line
        for one in CONTENT_TYPES
        if any(form == _FULL and one in tool.types for tool, form in zip(tools, forms, strict=True))
    ]
    return "\n".join([HEAD, *with_functions, *shared, *others])


def _some_names(tools: Sequence[ToolSignature], room: int) -> str:
    """As many names as there is room for."""
    shown, size = [HEAD], len(HEAD)
    for tool in tools:
        size += len(tool.name) + 1
        if size > room:
            break
        shown.append(tool.name)
    return "\n".join(shown)


def _how_to_learn_more(ways: Collection[str]) -> str:
    sentences = {
        DESCRIBE: f"{DESCRIBE}(names=[...]) shows tools in full.",
        SEARCH: f"{SEARCH}(query=...) finds tools by words.",
    }
    found = [sentence for way, sentence in sentences.items() if way in ways]
    return " ".join(["# Not everything about the tools is shown here.", *found])


def _full(tool: ToolSignature) -> str:
    own = [one.line for one in tool.types if one not in CONTENT_TYPES]
    return "\n".join([function_line(tool), *own])


def _without_output(tool: ToolSignature) -> str:
    return "\n".join([function_line(tool), *(one.line for one in tool.argument_types)])


def _sentence(tool: ToolSignature) -> str:
    return f"{tool.name}: {tool.doc}" if tool.doc else tool.name


def _name(tool: ToolSignature) -> str:
    return tool.name


_FORMS: Final[tuple[Callable[[ToolSignature], str], ...]] = (_name, _sentence, _without_output, _full)
_NAME, _SENTENCE, _CALLS, _FULL = range(len(_FORMS))


def _text(tool: ToolSignature, form: int) -> str:
    return _FORMS[form](tool)


# ----------------------------------------------------------------------------------------------------------------------
# The signatures of the tools of a catalog, each made at its first use.


class CatalogSignatures:
    """Name -> signature, for the tools of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog: Final = catalog
        self._made: Final[dict[str, ToolSignature]] = {}

    def of(self, name: str) -> ToolSignature:
        """The signature of a tool of the catalog."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> ToolSignature:
        function = self._catalog.function(name)
        if function is not None:
            return function_signature(cast("FunctionTool[..., Any]", function))
        info = self._catalog.tools[name]
        try:
            signature = _written_signature(self._catalog.definitions[name])
        except KeyError:
            package = info.module.rpartition(".models.")[0]
            raise GenerationError(
                f"the package {package!r} has no signatures, because an older version of typed-toolkit generated it; run"
                " `toolkit generate`"
            ) from None
        if not info.own_output:
            return signature
        outputs = TypeTexts(info.prefix)
        output = outputs.write(self._catalog.model(info, "Output"))
        return replace(signature, output=output, output_types=outputs.types)


def _written_signature(row: Mapping[str, Any]) -> ToolSignature:
    """The signature in a row of a manifest."""
    has_content = row["outputSchema"] is None and row["ownOutput"] is None
    return ToolSignature(
        name=row["name"],
        attribute=row["attribute"],
        parameters=tuple(map(_written_parameter, row["parameters"])),
        output=CONTENT_OUTPUT if has_content else f"{row['prefix']}Output",
        argument_types=_written_types(row["argumentTypes"], is_dict=True),
        output_types=CONTENT_TYPES if has_content else _written_types(row["outputTypes"], is_dict=False),
        doc=first_sentence(row["description"]),
        renamed=tuple((one["name"], one["wire"]) for one in row["parameters"] if one["name"] != one["wire"]),
    )


def _written_parameter(row: Mapping[str, Any]) -> ShownParameter:
    default = "..." if row["default"] is None else row["default"]
    return ShownParameter(row["name"], row["shown"], None if row["required"] else default)


def _written_types(rows: Mapping[str, str | Mapping[str, str]], *, is_dict: bool) -> tuple[ShownType, ...]:
    return tuple(
        ShownType(name, alias=written) if isinstance(written, str) else ShownType(name, tuple(written.items()), is_dict)
        for name, written in rows.items()
    )


# ----------------------------------------------------------------------------------------------------------------------
# Types of a running program as text: what code-first tools take and return, and models that are inputs of programs.
#
# A program gets values in the form that JSON has, but for models and dataclasses, which keep their attributes, and
# dates, times and UUIDs. So a tuple is a list, an enumeration is one of its values, and a path is text.

_TEXTS: Final[dict[Any, str]] = {
    Any: "Any", object: "Any", None: "None", types.NoneType: "None",
    str: "str", int: "int", float: "float", bool: "bool",
    datetime.datetime: "datetime", datetime.date: "date", datetime.time: "time", uuid.UUID: "UUID",
    bytes: "str", decimal.Decimal: "str", list: "list[Any]", tuple: "list[Any]", dict: "dict[str, Any]",
}  # fmt: skip
_ALIASES: Final = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
_KEY_MARKS: Final = (NotRequired, Required, typing_extensions.ReadOnly)


class _Field(NamedTuple):
    """One field of a class: its name for a program, its type, and whether a caller may leave it out."""

    name: str
    type: Any
    is_optional: bool


class TypeTexts:
    """Writes types, and collects the classes and aliases that they name. The names of classes begin with ``prefix``.

    As arguments, models and dataclasses are typed dicts: a program passes plain data.
    """

    def __init__(self, prefix: str, *, as_arguments: bool = False) -> None:
        self._prefix: Final = prefix
        self._as_arguments: Final = as_arguments
        self._names: Final[dict[Any, str]] = {}
        self._types: Final[dict[str, ShownType]] = {}

    @property
    def types(self) -> tuple[ShownType, ...]:
        """The classes and aliases that were named so far."""
        return tuple(self._types.values())

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
            return self._named(annotation, annotation.__name__, self._alias)
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
            shown = CONTENT_TYPES[1:] if kind is ContentBlock else CONTENT_TYPES
            self._types.update({one.name: one for one in shown})
            return shown[0].name
        if issubclass(kind, enum.Enum):
            return _literal([member.value for member in kind])
        if issubclass(kind, AnyUrl) or hasattr(kind, "__fspath__"):
            return "str"
        if _is_model(kind) and issubclass(kind, RootModel) and self._as_arguments:
            return self.write(kind.model_fields["root"].annotation)
        if _is_model(kind) or dataclasses.is_dataclass(kind) or typing_extensions.is_typeddict(kind):
            return self._named(kind, kind.__name__, self._class)
        return next((text for base, text in _TEXTS.items() if _is_below(kind, base)), "Any")

    def _named(self, kind: Any, word: str, make: Callable[[str, Any], ShownType]) -> str:
        """The name of a class or alias; it is made at the first use, and may name itself."""
        if kind not in self._names:
            name = f"{self._prefix}{re.sub(r'[^0-9A-Za-z_]+', '_', word).strip('_')}"
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
            self._types[name] = ShownType(name)  # keeps its place before the classes that it mentions
            self._types[name] = make(name, kind)
        return self._names[kind]

    def _alias(self, name: str, alias: Any) -> ShownType:
        return ShownType(name, alias=self.write(alias.__value__))

    def _class(self, name: str, kind: type) -> ShownType:
        is_dict = self._as_arguments or typing_extensions.is_typeddict(kind)
        fields = []
        for field in _fields_of(kind, by_wire_name=is_dict):
            text = self.write(field.type)
            fields.append((field.name, f"{_OPTIONAL}{text}]" if is_dict and field.is_optional else text))
        return ShownType(name, tuple(fields), is_dict)


def _fields_of(kind: type, *, by_wire_name: bool) -> Iterable[_Field]:
    """The fields of a model, a dataclass or a typed dict."""
    if _is_model(kind):
        for name, field in kind.model_fields.items():
            yield _Field(_wire_name(name, field) if by_wire_name else name, field.annotation, not field.is_required())
        return
    hints = _hints(kind)
    if typing_extensions.is_typeddict(kind):
        for name in kind.__annotations__:
            yield _field_of_typed_dict(kind, name, hints.get(name, Any))
        return
    for own in dataclasses.fields(kind):
        has_default = own.default is not dataclasses.MISSING or own.default_factory is not dataclasses.MISSING
        yield _Field(own.name, hints.get(own.name, Any), has_default)


def _wire_name(name: str, field: FieldInfo) -> str:
    """The name of a model's field in JSON."""
    return field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing_extensions.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):  # what a class of a function names is not known here
        return {}


def _field_of_typed_dict(kind: type, name: str, annotation: Any) -> _Field:
    """A mark on the key counts; the class itself does not see the marks in annotations that are texts."""
    is_optional = name not in getattr(kind, "__required_keys__", ())
    while (mark := typing.get_origin(annotation)) in _KEY_MARKS:
        is_optional = mark is NotRequired or is_optional and mark is not Required
        annotation = typing.get_args(annotation)[0]
    return _Field(name, annotation, is_optional)


def _literal(values: Iterable[Any]) -> str:
    plain = [value.value if isinstance(value, enum.Enum) else value for value in values]
    if not plain or not all(isinstance(value, str | int | bool | None) for value in plain):
        return "Any"
    return f"Literal[{', '.join(map(repr, plain))}]"


def _is_model(kind: Any) -> typing_extensions.TypeIs[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_below(kind: type, base: Any) -> bool:
    return isinstance(base, type) and base is not object and issubclass(kind, base)


# ----------------------------------------------------------------------------------------------------------------------
# The signature of a code-first tool, from its function.


def function_signature(tool: FunctionTool[..., Any]) -> ToolSignature:
    """The signature of a tool made from a function."""
    prefix = _class_prefix(tool.name)
    arguments = TypeTexts(f"{prefix}Args", as_arguments=True)
    outputs = TypeTexts(prefix)
    parameters: list[ShownParameter] = []
    renamed: list[tuple[str, str]] = []
    for field, info in tool.arguments.reader.model.model_fields.items():
        wire = _wire_name(field, info)
        name = wire if wire.isidentifier() and not keyword.iskeyword(wire) else field
        parameters.append(ShownParameter(name, arguments.write(info.annotation), _default(info)))
        if name != wire:
            renamed.append((name, wire))
    return ToolSignature(
        name=tool.name,
        attribute=attribute_name(tool.name),
        parameters=tuple(sorted(parameters, key=lambda one: one.default is not None)),
        output=outputs.write(tool.signature.returns),
        argument_types=arguments.types,
        output_types=outputs.types,
        doc=first_sentence(tool.description),
        renamed=tuple(renamed),
    )


def _class_prefix(name: str) -> str:
    """What the names of a tool's classes begin with.

    >>> _class_prefix("math.find_primes")
    'MathFindPrimes'
    """
    return "".join(part[:1].upper() + part[1:] for part in attribute_name(name).split("_"))


def _default(info: FieldInfo) -> str | None:
    if info.is_required():
        return None
    return repr(info.default) if type(info.default) in (str, int, float, bool, type(None)) else "..."
