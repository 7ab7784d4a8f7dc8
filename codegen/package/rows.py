"""One tool as plain data: all that rendering needs, kept in the manifest so that unchanged specs are not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from toolkit.codegen.package import python_names
from toolkit.codegen.package.literals import docstring, literal, text_literal
from toolkit.codegen.package.python_names import ToolNames
from toolkit.codegen.schema.document import (
    RICH,
    RICH_TYPE,
    TEXT_TOO,
    Document,
    described,
    name_of,
    references,
    separate_forms,
)
from toolkit.errors import SpecError, nearest
from toolkit.schema.problems import Finding, below
from toolkit.schema.spec import ToolSpec

RESOURCES: Final = ("read-path", "write-path", "argv", "shell", "url", "cwd", "env")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One keyword of ``tools.<name>(...)``."""

    name: str
    wire: str
    type: str
    """Source text, without module names."""
    shown: str
    """The type as signatures show it."""
    required: bool
    default: str | None
    """Source text of the default, if the schema has one that a signature can show."""
    description: str


@dataclass(frozen=True, slots=True)
class Row:
    """One tool. The field names are the keys in the manifest."""

    name: str
    attribute: str
    module: str
    prefix: str
    title: str | None
    description: str
    longDescription: str | None
    annotations: dict[str, Any]
    required: tuple[str, ...]
    optional: tuple[str, ...]
    parallel: bool
    blocking: bool
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    parameters: tuple[Parameter, ...]
    resources: tuple[tuple[str, str], ...]
    """What a call touches, from ``x-resource``: the Python name of the field, and the kind."""
    argumentTypes: ShownTypes
    """What the types of the parameters mention, as signatures show it."""
    outputTypes: ShownTypes
    """The same for the output; empty if it has no schema."""
    imports: tuple[str, ...]
    """Names from the tool's model module that its parameter types use."""
    nested: tuple[str, ...]
    """What the tool's model module defines besides its input, output and arguments."""
    source: str
    namePointer: str
    """JSON pointer of the name in the source."""
    descriptionSource: str | None
    function: str | None = None
    """``module:function`` of a tool that was read from one."""
    ownOutput: dict[str, Any] | None = None
    """Its return type, if that is what the tool's output is: ``type`` as source text, and the ``modules`` in it."""
    origin: dict[str, Any] | None = None
    """Where an imported tool came from; ``originalName`` is its name there."""
    originalName: str | None = None
    request: dict[str, Any] | None = None
    """How to call an operation of an OpenAPI document."""
    wrapsResult: bool = False
    """Whether the server wraps the output in ``{"result": ...}``."""
    mustBeNamed: bool = False
    """Whether only a policy that names the tool allows it."""
    unconfined: bool = False
    """Whether the settings of its import turn the server's sandbox off."""

    def as_json(self) -> dict[str, Any]:
        """Not a copy: the schemas in it are the row's own."""
        data = {key: getattr(self, key) for key in _ROW_KEYS}
        data["parameters"] = [{key: getattr(item, key) for key in _PARAMETER_KEYS} for item in self.parameters]
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> Row:
        parameters = tuple(Parameter(**parameter) for parameter in data["parameters"])
        lists = {key: tuple(data[key]) for key in ("required", "optional", "imports", "nested")}
        resources = tuple((field, kind) for field, kind in data["resources"])
        return Row(**{**data, **lists, "parameters": parameters, "resources": resources})


_ROW_KEYS: Final = tuple(field.name for field in fields(Row))
_PARAMETER_KEYS: Final = tuple(field.name for field in fields(Parameter))


def make_row(
    spec: ToolSpec, names: ToolNames, package: str, inputs: Document, outputs: Document | None, *, unconfined: bool
) -> Row:
    """The row of a spec; ``inputs`` and ``outputs`` are its flattened schemas."""
    used: set[str] = set()
    shown = _ShownTypes(inputs, names.prefix)
    parameters = tuple(_parameters(inputs, names.prefix, used, shown))
    return Row(
        name=names.wire,
        attribute=names.attribute,
        module=f"{package}.models.{names.module}",
        prefix=names.prefix,
        title=spec.title,
        description=spec.description,
        longDescription=spec.long_description,
        annotations=spec.annotations,
        required=spec.required,
        optional=spec.optional,
        parallel=spec.parallel,
        blocking=spec.blocking,
        inputSchema=spec.input_schema,
        outputSchema=spec.output_schema,
        parameters=parameters,
        resources=_resources(spec),
        argumentTypes=shown.take_mentioned(),
        outputTypes=_show_outputs(outputs),
        imports=tuple(sorted(used)),
        nested=_nested(names.prefix, inputs, outputs),
        source=spec.source,
        namePointer=name_pointer(spec),
        descriptionSource=spec.description_source,
        function=spec.function,
        ownOutput=spec.own_output,
        origin=None if spec.origin is None else spec.origin.as_json(),
        originalName=None if spec.origin is None else spec.name,
        request=spec.request,
        wrapsResult=spec.wraps_result,
        mustBeNamed=spec.must_be_named,
        unconfined=unconfined,
    )


def name_pointer(spec: ToolSpec) -> str:
    return f"{spec.pointer}/{'rename' if spec.rename else 'name'}"


def _parameters(inputs: Document, prefix: str, used: set[str], shown: _ShownTypes) -> Iterator[Parameter]:
    """Required ones first."""

    def name(word: str) -> str:
        if word in SHARED_NAMES:
            return word
        word = args_name(word, prefix)
        used.add(word)
        return word

    text = TypeText(inputs, name=name)
    properties = inputs.root.get("properties", {})
    names = python_names.field_names(properties)
    required, nodes = inputs.root.get("required", ()), inputs.nodes()
    for wire in sorted(properties, key=lambda wire: wire not in required):
        node = properties[wire]
        yield Parameter(
            name=names[wire],
            wire=wire,
            type=text.render(node),
            shown=shown.text(node),
            required=wire in required,
            default=literal(node["default"]) if _can_show_default(node) else None,
            description=described(node, nodes.get),
        )


def _nested(prefix: str, inputs: Document, outputs: Document | None) -> tuple[str, ...]:
    documents = [inputs] if outputs is None else [inputs, outputs]
    models = {name for document in documents for name in document.nodes() if name != document.name}
    return tuple(sorted(models | {args_name(name, prefix) for name in inputs.objects}))


def _resources(spec: ToolSpec) -> tuple[tuple[str, str], ...]:
    properties = spec.input_schema.get("properties", {})
    assert isinstance(properties, dict)
    names = python_names.field_names(properties)
    marked = [
        (key, node["x-resource"]) for key, node in properties.items() if isinstance(node, dict) and "x-resource" in node
    ]
    for key, kind in marked:
        if kind not in RESOURCES:
            message = (
                f"'x-resource' must be one of {', '.join(RESOURCES)}, not {kind!r}.{nearest(str(kind), RESOURCES)}"
            )
            pointer = below(f"{spec.pointer}/inputSchema/properties", key)
            raise SpecError([Finding(message, spec.source, f"{pointer}/x-resource")])
    return tuple((names[key], str(kind)) for key, kind in marked)


def _can_show_default(node: dict[str, Any]) -> bool:
    """Whether a signature can show the default: calls would share a mutable one."""
    return "default" in node and not isinstance(node["default"], list | dict)


# ----------------------------------------------------------------------------------------------------------------------
# The static types of flat nodes as source text; and ``XArgs``: a tool's arguments as TypedDicts, so that checkers can check
# dict literals.

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


class TypeText:
    """Writes the types of one document; ``name`` maps names of ``typing`` and of classes to how they are spelled."""

    def __init__(self, document: Document, *, name: Callable[[str], str]) -> None:
        self.document = document
        self.name = name

    def render(self, node: dict[str, Any]) -> str:
        """The type of the values that ``node`` accepts.

        >>> plain = TypeText(Document("X", {}), name=str)
        >>> plain.render({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
        'list[str] | None'
        """
        if "$ref" in node:
            target = name_of(node["$ref"])
            alias = self.document.aliases.get(target)
            if alias is None or target in self.document.recursive:
                return self.name(target)
            return self.render(alias)
        if "enum" in node:
            return self._enum(node["enum"])
        if "anyOf" in node:
            parts = dict.fromkeys(part for branch in node["anyOf"] for part in [self.render(branch)])
            nulls = [part for part in parts if part == "None"]
            return " | ".join([part for part in parts if part != "None"] + nulls)
        if RICH_TYPE in node:
            return self.name(node[RICH_TYPE]) + (" | str" if node.get(TEXT_TOO, True) else "")
        kind = node.get("type")
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "array":
            forms = separate_forms(node.get("items", {}))
            return " | ".join(f"list[{self.render(form)}]" for form in forms)
        if kind == "object":
            forms = separate_forms(node.get("additionalProperties", True))
            return " | ".join(f"dict[str, {self._map_value(form)}]" for form in forms)
        return "None" if kind == "null" else self.name("Any")

    def _map_value(self, extra: Any) -> str:
        return self.name("Any") if isinstance(extra, bool) else self.render(extra)

    def _enum(self, values: list[Any]) -> str:
        words = [literal(value) for value in values if value is not None]
        parts = [f"{self.name('Literal')}[{', '.join(words)}]"] if words else []
        return " | ".join(parts + ["None"] * (None in values))


SHARED_NAMES: Final = frozenset({"Any", "Literal", *RICH.values()})
"""Names in types that do not belong to one tool."""


def args_name(class_name: str, prefix: str) -> str:
    """``ReadFileInputFilter`` -> ``ReadFileArgsFilter``."""
    return f"{prefix}Args{class_name.removeprefix(f'{prefix}Input')}"


def render_args(document: Document, prefix: str) -> str:
    """The TypedDicts of one input document, the root last, then the types that lead back to themselves."""
    text = TypeText(document, name=lambda n: n if n in SHARED_NAMES else args_name(n, prefix))
    objects = {**document.objects, document.name: document.root}
    classes = [_typed_dict(args_name(name, prefix), node, text) for name, node in objects.items()]
    # Quoted, because their parts may be defined below them.
    aliases = [
        f"{args_name(name, prefix)}: TypeAlias = {text_literal(text.render(node))}"
        for name, node in document.aliases.items()
        if name in document.recursive
    ]
    return "\n\n\n".join([*classes, *aliases])


def _typed_dict(name: str, node: dict[str, Any], text: TypeText) -> str:
    required, fields = set(node.get("required", ())), {}
    for key, value in node.get("properties", {}).items():
        kind = text.render(value)
        if any(references(value)):  # quoted: the class may be defined below, or be this one
            kind = text_literal(kind)
        fields[key] = kind if key in required else f"NotRequired[{kind}]"
    closed = ", closed=True" if node.get("additionalProperties") is False else ""
    if all(map(python_names.is_plain_key, fields)):
        lines = [f"class {name}(TypedDict{closed}):"]
        for key, kind in fields.items():
            description = node["properties"][key].get("description")
            lines += [f"    {key}: {kind}", *([docstring(description, "    ")] if description else ())]
        return "\n".join(lines if fields else [*lines, "    pass"])
    rows = [f"        {text_literal(key)}: {kind}," for key, kind in fields.items()]
    last = [f"    {closed[2:]},"] if closed else []
    return "\n".join([f"{name} = TypedDict(", f'    "{name}",', "    {", *rows, "    },", *last, ")"])


# ----------------------------------------------------------------------------------------------------------------------
# Types as signatures show them to models and to the checker of programs: what a value is, without limits and marks.

ShownTypes: TypeAlias = dict[str, str | dict[str, str]]
"""By name: the fields of a class with their types, or the type that an alias stands for."""
_SHOWN: Final = {**_SCALARS, "null": "None"}
_SHOWN_RICH: Final = {
    "WireDate": "date", "WireDateTime": "datetime", "WireTime": "time", "WireUUID": "UUID", "WireUrl": "str",
}  # fmt: skip


class _ShownTypes:
    """Writes the types of one document, and collects the classes and aliases that they mention.

    With ``prefix``, the types of arguments, which are typed dicts: a program passes plain data. Without, those of the output.
    """

    def __init__(self, document: Document, prefix: str | None) -> None:
        self._document = document
        self._prefix = prefix
        self._mentioned: list[str] = []

    def text(self, node: dict[str, Any]) -> str:
        return " | ".join(dict.fromkeys(self._members(node)))

    def _members(self, node: dict[str, Any]) -> list[str]:
        """The members of a union, or the one type that it is."""
        if "$ref" in node:
            return self._named(name_of(node["$ref"]))
        if "enum" in node:
            words = [repr(value) for value in node["enum"] if value is not None]
            return [f"Literal[{', '.join(words)}]"] * bool(words) + ["None"] * (None in node["enum"])
        if "anyOf" in node:
            members = [member for branch in node["anyOf"] for member in self._members(branch)]
            return [member for member in members if member != "None"] + ["None"] * ("None" in members)
        if RICH_TYPE in node:
            or_text = self._prefix is not None and node.get(TEXT_TOO, True)
            return [_SHOWN_RICH[node[RICH_TYPE]], *["str"] * or_text]
        kind = node.get("type")
        if kind == "array":
            return [f"list[{self.text(form)}]" for form in self._forms(node.get("items", {}))]
        if kind == "object":
            return [f"dict[str, {self.text(form)}]" for form in self._forms(node.get("additionalProperties", {}))]
        return [_SHOWN.get(str(kind), "Any")]

    def _forms(self, inner: Any) -> list[Any]:
        inner = inner if isinstance(inner, dict) else {}
        return separate_forms(inner) if self._prefix is not None else [inner]

    def _named(self, name: str) -> list[str]:
        alias = self._document.aliases.get(name)
        if alias is not None and self._prefix is not None and name not in self._document.recursive:
            return self._members(alias)
        self._mentioned.append(name)
        return [self._spell(name)]

    def _spell(self, name: str) -> str:
        return name if self._prefix is None else args_name(name, self._prefix)

    def take_mentioned(self) -> ShownTypes:
        """What the types so far mention, each after its first mention; then they count as not mentioned."""
        nodes, found = self._document.nodes(), ShownTypes()
        pending, self._mentioned = self._mentioned[::-1], []
        while pending:
            name = pending.pop()
            if self._spell(name) not in found:
                found[self._spell(name)] = self._definition(name, nodes[name])
                pending += self._mentioned[::-1]
                self._mentioned = []
        return found

    def _definition(self, name: str, node: dict[str, Any]) -> str | dict[str, str]:
        if name in self._document.aliases:
            return self.text(node)
        if self._prefix is None and not _is_class(node):
            return {"root": self.text(node)}
        properties, required = node.get("properties", {}), node.get("required", ())
        if self._prefix is None:
            names = python_names.field_names(properties)
            return {names[key]: self._field(value, key in required) for key, value in properties.items()}
        return {
            key: self.text(value) if key in required else f"NotRequired[{self.text(value)}]"
            for key, value in properties.items()
        }

    def _field(self, node: dict[str, Any], is_required: bool) -> str:
        """The type of a model's attribute: None stands for what is absent."""
        members = self._members(node)
        if not is_required and "default" not in node:
            members = [member for member in members if member != "None"] + ["None"]
        return " | ".join(dict.fromkeys(members))


def _is_class(root: dict[str, Any]) -> bool:
    """Whether the values of a root are objects with attributes."""
    is_map = isinstance(root.get("additionalProperties"), dict) and root["additionalProperties"]
    return "properties" in root or root.get("type") == "object" and not is_map


def _show_outputs(outputs: Document | None) -> ShownTypes:
    if outputs is None:
        return {}
    types = _ShownTypes(outputs, None)
    types.text({"$ref": f"#/$defs/{outputs.name}"})
    return types.take_mentioned()
