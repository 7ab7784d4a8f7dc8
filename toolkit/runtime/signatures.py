"""Signatures as the text that a model reads: one line for a tool, then one for each class it uses, in the order of the names.

The text depends only on the tools in it. A tool that is added later adds its own lines and changes no other, so that a
provider's prompt cache keeps what comes before them.

If a text must be short, every tool is shown in the fullest form in which all fit. Then tools are shown in the next fuller
form, in the order of their names, where there is room. The forms: with all classes; without the classes of the output; as a
name and one sentence; as a name.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import decimal
import enum
import keyword
import pkgutil
import re
import types
import typing
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
    TypeVar,
    Union,
    cast,
)

import typing_extensions
from pydantic import AnyUrl, BaseModel, RootModel
from pydantic.fields import FieldInfo

from toolkit import errors
from toolkit.errors import GenerationError, SetupError
from toolkit.guard.late_imports import remembered_file
from toolkit.schema.spec import attribute_name
from toolkit.visible import hidden_pattern
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from toolkit.runtime.catalog import Catalog, ToolInfo
    from toolkit.runtime.functions import FunctionTool


# ----------------------------------------------------------------------------------------------------------------------
# Annotations of generated code as plain types: what a value is, without limits, patterns and marks.

_MEANING_FIRST: Final = frozenset({"Annotated", "DeclaredBySome"})
"""``Annotated[int, ...]`` -> ``int``"""
_OR_NONE: Final = frozenset({"Omissible", "Optional"})
_RICH: Final = {
    "WireDate": "date",
    "WireDateTime": "datetime",
    "WireTime": "time",
    "WireUUID": "UUID",
    "WireUrl": "str",
}


def _as_it_is(name: str) -> str:
    return name


def parse_type(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def plain_text(annotation: ast.expr, spell: Callable[[str], str] = _as_it_is) -> str:
    """A type as text. ``spell`` says how a name is written.

    >>> plain_text(parse_type("list[Annotated[Omissible[str], Field(min_length=1)]]"))
    'list[str | None]'
    """
    return " | ".join(dict.fromkeys(text for part in _branches(annotation) for text in _texts(part, spell)))


def _texts(node: ast.expr, spell: Callable[[str], str]) -> Iterator[str]:
    """The branches of a type that has no ``|`` of its own."""
    if isinstance(node, ast.Name):
        yield spell(_RICH.get(node.id, node.id))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield plain_text(parse_type(node.value), spell)
    elif not isinstance(node, ast.Subscript):
        yield ast.unparse(node)
    else:
        yield from _subscript_texts(ast.unparse(node.value), node.slice, spell)


def _subscript_texts(name: str, inside: ast.expr, spell: Callable[[str], str]) -> Iterator[str]:
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Literal":
        yield f"{spell(name)}[{', '.join(map(ast.unparse, parts))}]"
    elif name in _MEANING_FIRST:
        yield plain_text(parts[0], spell)
    elif name in _OR_NONE or name == "Union":
        yield from (plain_text(part, spell) for part in parts)
        if name != "Union":
            yield "None"
    else:
        yield f"{spell(name)}[{', '.join(plain_text(part, spell) for part in parts)}]"


def _branches(node: ast.expr) -> list[ast.expr]:
    """What stands between the ``|`` of a type. A union of hundreds of types is that deep, so this is a loop."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def names_in(node: ast.expr) -> Iterator[str]:
    """The names that a plain type mentions, in order."""
    for part in _branches(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Subscript) and ast.unparse(part.value) != "Literal":
            yield from names_in(part.value)
            for inner in part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]:
                yield from names_in(inner)


# ----------------------------------------------------------------------------------------------------------------------
# Classes and aliases, each as one line of Python.

_OPTIONAL: Final = "NotRequired["


def class_line(name: str, fields: Mapping[str, str], *, is_dict: bool = False) -> str:
    """A class with typed attributes, or a typed dict.

    >>> class_line("Point", {"x": "int", "y": "int"})
    'class Point: x: int; y: int'
    >>> class_line("Args", {"x": "NotRequired[int]", "y": "NotRequired[list[int]]"}, is_dict=True)
    'class Args(TypedDict, total=False): x: int; y: list[int]'
    """
    if is_dict and not all(key.isidentifier() and not keyword.iskeyword(key) for key in fields):
        rows = ", ".join(f"{key!r}: {text}" for key, text in fields.items())
        return f"{name} = TypedDict({name!r}, {{{rows}}})"
    bases = "(TypedDict)" if is_dict else ""
    if is_dict and fields and all(text.startswith(_OPTIONAL) for text in fields.values()):
        bases = "(TypedDict, total=False)"
        fields = {key: text.removeprefix(_OPTIONAL).removesuffix("]") for key, text in fields.items()}
    return f"class {name}{bases}: {'; '.join(f'{key}: {text}' for key, text in fields.items()) or 'pass'}"


def alias_line(name: str, text: str) -> str:
    return f"{name}: TypeAlias = {text}"


# ----------------------------------------------------------------------------------------------------------------------
# The types in the source text of a generated model module. Nothing is imported, so no model is built.

CONTENT_OUTPUT: Final = "ContentOutput"
"""The base of outputs that have no schema. Signatures name it instead of the subclass, which adds nothing."""


class TypeLine(NamedTuple):
    """A class or an alias as one line of Python."""

    text: str
    mentions: tuple[str, ...]
    """The names in its types, in order."""


class ModelSource:
    """The classes and aliases of one module, by name."""

    def __init__(self, text: str) -> None:
        self._statements: Final = dict(_definitions(ast.parse(text).body))
        self._lines: Final[dict[str, TypeLine]] = {}

    def has_content_output(self, name: str) -> bool:
        """Whether a class is an output without a schema."""
        node = self._statements.get(name)
        return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == CONTENT_OUTPUT for base in node.bases)

    def reachable(self, names: Iterable[str]) -> list[str]:
        """The lines of the types with these names, and of those that they mention, each after the first mention of it."""
        found: dict[str, str] = {}
        pending = list(reversed(list(names)))
        while pending:
            name = pending.pop()
            if name in self._statements and name not in found:
                line = self._line(name)
                found[name] = line.text
                pending += reversed(line.mentions)
        return list(found.values())

    def _line(self, name: str) -> TypeLine:
        if name not in self._lines:
            node = self._statements[name]
            self._lines[name] = _class_line(node) if isinstance(node, ast.ClassDef) else _alias_line(name, node)
        return self._lines[name]


def _definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The statements that define a name; of those that are written twice, what checkers see."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        elif isinstance(node, ast.If):
            yield from _definitions(node.body)  # `if TYPE_CHECKING:`


def _class_line(node: ast.ClassDef) -> TypeLine:
    fields = {
        member.target.id: plain_text(member.annotation)
        for member in node.body
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name) and member.target.id[:2] != "__"
    }
    base = node.bases[0] if node.bases else None
    if isinstance(base, ast.Subscript):  # ToolRootModel[...]
        fields = {"root": plain_text(base.slice)}
    is_dict = isinstance(base, ast.Name) and base.id == "TypedDict"
    return TypeLine(class_line(node.name, fields, is_dict=is_dict), _mentions(fields.values()))


def _alias_line(name: str, node: ast.stmt) -> TypeLine:
    """An alias, or a TypedDict whose keys are not all names."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.Call):
        assert value is not None
        text = plain_text(value)
        return TypeLine(alias_line(name, text), _mentions([text]))
    keys = value.args[1]
    assert isinstance(keys, ast.Dict)
    fields = {
        ast.literal_eval(key): plain_text(kind)
        for key, kind in zip(keys.keys, keys.values, strict=True)
        if key is not None
    }
    return TypeLine(class_line(name, fields, is_dict=True), _mentions(fields.values()))


def _mentions(types: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for text in types for name in names_in(parse_type(text)))


# ----------------------------------------------------------------------------------------------------------------------
# What one tool takes and returns, as compact Python text.

MAX_DOC: Final = 160
"""The most characters of a tool's one line."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[^a-z])")


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """One tool as a Python function. The types are plain: limits and patterns are left out."""

    name: str
    """The name on the wire."""
    attribute: str
    """The name in ``tools.<attribute>(...)``."""
    parameters: str
    """The keyword parameters with types and defaults; ``...`` is the default of one that may be left out and has none."""
    output: str
    """The return type."""
    argument_classes: tuple[str, ...]
    """Each class or alias that the parameters mention, directly or not, as one line of Python."""
    output_classes: tuple[str, ...]
    """The same for the return type."""
    doc: str
    """The first sentence of the description."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Parameters whose Python name is not their name on the wire: both names."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Every class and alias that the signature mentions."""
        return (*self.argument_classes, *self.output_classes)


def first_sentence(text: str) -> str:
    """The first sentence of a description on one line, cut if it is long.

    >>> first_sentence("Read a file, e.g. README.md. Images\\nare attached.")
    'Read a file, e.g. README.md.'
    """
    words = " ".join(hidden_pattern("").sub(" ", text).split())
    sentence = _SENTENCE_END.split(words, maxsplit=1)[0]
    return sentence if len(sentence) <= MAX_DOC else f"{sentence[: MAX_DOC - 1].rstrip()}…"


# ----------------------------------------------------------------------------------------------------------------------
# The signature of a tool of a generated package, from its row in the manifest and the text of its models.

CONTENT_CLASSES: Final = (
    "class ContentOutput: text: str; blocks: list[ContentBlock]; structured: Any",
    "class ContentBlock: type: Literal['text', 'image', 'audio', 'document']; media_type: str | None; data: str | None; "
    "url: str | None; file_id: str | None; text: str | None; filename: str | None",
)
"""What tools without an output schema return; one for all of them."""


def read_signature(row: Mapping[str, Any], source: str) -> ToolSignature:
    """The signature of the tool with this row; ``source`` is the text of its model module."""
    models = ModelSource(source)
    types = [plain_text(parse_type(one["type"])) for one in row["parameters"]]
    mentioned = [name for text in types for name in names_in(parse_type(text))]
    output = f"{row['prefix']}Output"
    returned: Iterable[str] = models.reachable([output])
    if models.has_content_output(output):
        output, returned = CONTENT_OUTPUT, CONTENT_CLASSES
    return ToolSignature(
        name=row["name"],
        attribute=row["attribute"],
        parameters=", ".join(_parameter(one, text) for one, text in zip(row["parameters"], types, strict=True)),
        output=output,
        argument_classes=tuple(models.reachable(mentioned)),
        output_classes=tuple(returned),
        doc=first_sentence(row["description"]),
        renamed=tuple((one["name"], one["wire"]) for one in row["parameters"] if one["name"] != one["wire"]),
    )


def _parameter(one: Mapping[str, Any], kind: str) -> str:
    text = f"{one['name']}: {kind}"
    if one["required"]:
        return text
    return f"{text} = {'...' if one['default'] is None else one['default']}"


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
    return f"{tool.attribute}({tool.parameters}){output}{comment}"


def _shorten(tools: Sequence[ToolSignature], budget: int, ways: Collection[str]) -> str:
    """The text with an end that says how to learn more, which counts too."""
    end = f"\n{_how_to_learn_more(ways)}"
    room = budget - len(end)
    level = next((level for level in (_CALLS, _SENTENCE, _NAME) if _size(tools, level) <= room), None)
    if level is None:
        return _some_names(tools, room) + end
    forms = [level] * len(tools)
    size = _size(tools, level)
    shared: set[str] = set()
    for index, tool in enumerate(tools):
        with_it = shared.union(tool.classes).intersection(CONTENT_CLASSES) if level + 1 == _FULL else shared
        size_with_it = size + len(_text(tool, level + 1)) - len(_text(tool, level))
        size_with_it += sum(len(line) + 1 for line in with_it - shared)
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
        line
        for line in CONTENT_CLASSES
        if any(form == _FULL and line in tool.classes for tool, form in zip(tools, forms, strict=True))
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
    own = [line for line in tool.classes if line not in CONTENT_CLASSES]
    return "\n".join([function_line(tool), *own])


def _without_output(tool: ToolSignature) -> str:
    return "\n".join([function_line(tool), *tool.argument_classes])


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
        signature = read_signature(self._catalog.definitions[name], _model_text(info))
        if not info.own_output:
            return signature

        outputs = TypeTexts(info.prefix)
        output = outputs.write(self._catalog.model(info, "Output"))
        return replace(signature, output=output, output_classes=outputs.lines)


def _model_text(info: ToolInfo) -> str:
    """The text of the module with a tool's models."""
    package, _, module = info.module.rpartition(".models.")
    path = f"models/{module}.py"
    data = remembered_file(package, path) or pkgutil.get_data(package, path)
    if data is None:
        raise GenerationError(f"the package {package!r} has no source of {path!r}; run `toolkit generate`")
    return data.decode()


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


# ----------------------------------------------------------------------------------------------------------------------
# The types of a program's inputs, from their values.

_SCALARS: Final = {str: "str", bool: "bool", int: "int", float: "float", type(None): "None"}
_MAX_DEPTH: Final = 8
"""Below this many lists and maps, a value is ``Any``."""


class InputTypes(NamedTuple):
    """The type of each input, and the classes that these types name."""

    types: dict[str, str]
    classes: tuple[str, ...]


def describe_inputs(inputs: Mapping[str, object]) -> InputTypes:
    """
    >>> describe_inputs({"paths": ["a.py"], "limits": {"lines": 3, "size": 1.5}}).types
    {'paths': 'list[str]', 'limits': 'dict[str, float]'}
    """
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise SetupError(f"the input {name!r} needs another name: a program reads it as `inputs.<name>`")
    models = TypeTexts("")
    types = {name: _type_of(value, models, 0) for name, value in inputs.items()}
    return InputTypes(types, models.lines)


def _type_of(value: object, models: TypeTexts, depth: int) -> str:
    if type(value) in _SCALARS:
        return _SCALARS[type(value)]
    if isinstance(value, BaseModel):
        return models.write(type(value))
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return f"list[{_common([_type_of(item, models, depth + 1) for item in value])}]"
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return f"dict[str, {_common([_type_of(item, models, depth + 1) for item in value.values()])}]"
    return "Any"


def _common(types: list[str]) -> str:
    """One type for values of all these types; ``Any`` if they have little in common."""
    found = set(types) - {"None"}
    if found == {"int", "float"}:
        found = {"float"}
    if len(found) != 1:
        return "Any"
    optional = " | None" if "None" in types and found != {"Any"} else ""
    return f"{found.pop()}{optional}"


# ----------------------------------------------------------------------------------------------------------------------
# The module that a type checker reads before a program: the tools, their types, and the inputs of the program.
#
# Whatever is not for the program has a name with an underscore, so that a program that uses ``Any`` or ``date`` without an
# import is refused. Types are written through modules: a field named ``list`` would hide ``list`` from the fields below it.
#
# The generated package is not read: it declares every tool and imports pydantic, which makes a check ten times as slow, and
# the sandbox would have to show it.

_HEAD: Final = """from __future__ import annotations
import builtins as _b, datetime as _d, typing as _t, uuid as _u
class _Model:
    def model_dump(self) -> _b.dict[_b.str, _t.Any]: raise NotImplementedError
    def model_dump_json(self) -> _b.str: raise NotImplementedError
"""
_MODULES: Final = {
    "_b": ("bool", "bytes", "dict", "float", "int", "list", "str", "tuple"),
    "_d": ("date", "datetime", "time"),
    "_t": ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict"),
    "_u": ("UUID",),
}
_SPELLED: Final = {name: module for module, names in _MODULES.items() for name in names}


def checker_text(signatures: Sequence[ToolSignature], inputs: Mapping[str, object] | None = None) -> str:
    """The text before a program: ``_Tools``, ``_AsyncTools`` and ``_Inputs``, the types of its three parameters."""
    given = describe_inputs(inputs or {})
    lines = dict.fromkeys(line for tool in signatures for line in tool.classes)
    known = {_defined_name(line) for line in lines}
    lines.update(dict.fromkeys(line for line in given.classes if _defined_name(line) not in known))
    methods = [_method(tool) for tool in signatures]
    fields = [f"    {name}: {_spell(parse_type(kind))}" for name, kind in given.types.items()]
    return "".join(
        [
            _HEAD,
            *(f"{spell_definition(line)}\n" for line in lines),
            _block("class _Tools(_t.Protocol):", [f"    def {method}" for method in methods]),
            _block("class _AsyncTools(_t.Protocol):", [f"    async def {method}" for method in methods]),
            _block("class _Inputs:", fields),
        ]
    )


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *(list(lines) or ["    pass"]), ""])


def _method(tool: ToolSignature) -> str:
    parsed = ast.parse(f"def {tool.attribute}({tool.parameters}) -> {tool.output}: ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    arguments, defaults = parsed.args.args, len(parsed.args.defaults)
    texts = [f"{one.arg}: {_spell(one.annotation)}" for one in arguments if one.annotation is not None]
    required = len(texts) - defaults
    texts = [text if index < required else f"{text} = ..." for index, text in enumerate(texts)]
    return (
        f"{tool.attribute}({', '.join(['self', '*', *texts] if texts else ['self'])}) -> {_spell(parsed.returns)}: ..."
    )


@lru_cache(maxsize=4096)
def spell_definition(line: str) -> str:
    """A class or alias of a signature, as the checker reads it."""
    node = ast.parse(line).body[0]
    if isinstance(node, ast.ClassDef):
        base = "_t.TypedDict" if node.bases else "_Model"
        base += ", total=False" if node.keywords else ""
        fields = [
            f"    {ast.unparse(member.target)}: {_spell(member.annotation)}"
            for member in node.body
            if isinstance(member, ast.AnnAssign)
        ]
        return _block(f"class {node.name}({base}):", fields).rstrip("\n")
    # What is not an annotation is evaluated when it is read, so it is quoted: it may name what is defined below it.
    if isinstance(node, ast.AnnAssign):
        return f"{ast.unparse(node.target)}: _t.TypeAlias = {_spell(node.value)!r}"
    assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    name, fields_of = node.value.args
    assert isinstance(fields_of, ast.Dict)
    rows = [
        f"{ast.unparse(key)}: {_spell(kind)!r}"
        for key, kind in zip(fields_of.keys, fields_of.values, strict=True)
        if key is not None
    ]
    return f"{ast.unparse(node.targets[0])} = _t.TypedDict({ast.unparse(name)}, {{{', '.join(rows)}}})"


def _spell(node: ast.expr | None) -> str:
    """A type with the names of built-in types and of ``typing`` written through their modules."""
    assert node is not None
    return plain_text(node, lambda name: f"{_SPELLED[name]}.{name}" if name in _SPELLED else name)


def _defined_name(line: str) -> str:
    """The name that a class or alias of a signature defines."""
    word = line.removeprefix("class ")
    return word[: next(index for index, letter in enumerate(word) if letter in "(: =")]


# ----------------------------------------------------------------------------------------------------------------------
# The errors that a program may catch, as a stub of the module ``toolkit`` inside.

_ERRORS_HEAD = """from typing import Any
class ToolkitError(Exception):
    code: str
    message: str
    tool_name: str | None
    details: dict[str, Any]
    retriable: bool
"""


def errors_stub() -> str:
    """The text of ``toolkit.pyi`` for the checker: every class that ``from toolkit import ...`` may name in a program."""
    return _ERRORS_HEAD + "".join(
        f"class {name}(ToolkitError):{' reason: str' if name == 'ToolFailed' else ' ...'}\n"
        for name in error_names()[1:]
    )


def error_names() -> list[str]:
    """The names of these classes, ``ToolkitError`` first."""
    return [
        "ToolkitError",
        *(kind.__name__ for kind in errors.ToolkitError.__subclasses__() if kind.__module__ == errors.__name__),
    ]


# ----------------------------------------------------------------------------------------------------------------------
# The signature of a code-first tool, from its function.


def function_signature(tool: FunctionTool[..., Any]) -> ToolSignature:
    """The signature of a tool made from a function."""
    prefix = class_prefix(tool.name)
    arguments = TypeTexts(f"{prefix}Args", as_arguments=True)
    outputs = TypeTexts(prefix)
    required: list[str] = []
    optional: list[str] = []
    renamed: list[tuple[str, str]] = []
    for field, info in tool.arguments.reader.model.model_fields.items():
        wire = wire_name(field, info)
        name = wire if wire.isidentifier() and not keyword.iskeyword(wire) else field
        text = f"{name}: {arguments.write(info.annotation)}"
        (required if info.is_required() else optional).append(text + _default(info))
        if name != wire:
            renamed.append((name, wire))
    return ToolSignature(
        name=tool.name,
        attribute=attribute_name(tool.name),
        parameters=", ".join([*required, *optional]),
        output=outputs.write(tool.signature.returns),
        argument_classes=arguments.lines,
        output_classes=outputs.lines,
        doc=first_sentence(tool.description),
        renamed=tuple(renamed),
    )


def class_prefix(name: str) -> str:
    """What the names of a tool's classes begin with.

    >>> class_prefix("math.find_primes")
    'MathFindPrimes'
    """
    return "".join(part[:1].upper() + part[1:] for part in attribute_name(name).split("_"))


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return ""
    value = info.default
    return f" = {value!r}" if type(value) in (str, int, float, bool, type(None)) else " = ..."
