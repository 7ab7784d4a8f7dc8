"""The only caller of datamodel-code-generator.

Half of a run's cost is fixed, so several tools share one. A tool's classes come out as from a run of its own: tools of one
run have no name in common, and recursive types run alone, because the order of their classes depends on the rest of the run.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolkit.codegen.package import python_names
from toolkit.codegen.package.inputs import TEXTS, cache_file, generator_version, replace_cache_file
from toolkit.codegen.package.literals import docstring, literal, text_literal
from toolkit.codegen.package.manifest import digest
from toolkit.codegen.package.rows import TypeText
from toolkit.codegen.schema.document import (
    DECLARED_BY_SOME,
    RICH_TYPE,
    Document,
    described,
    name_of,
    reference_to,
    references,
    rich_types_in,
)
from toolkit.codegen.schema.simplify import branch_for
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError
from toolkit.schema.keywords import Schema

if TYPE_CHECKING:
    from datamodel_code_generator.config import GenerateConfig


# ----------------------------------------------------------------------------------------------------------------------
# Python source with its syntax tree, and where each node is in the text.

Edit: TypeAlias = tuple[int, int, str]
"""A replacement for the text between two positions."""
_Piece: TypeAlias = tuple[str, ast.stmt]
"""A statement, and the text between it and the one before."""


class SourceText:
    """The positions are those of bytes, as in syntax trees."""

    def __init__(self, text: str) -> None:
        self.module = ast.parse(text)
        self._data = text.encode()
        self._lines = [0, *accumulate(len(line) + 1 for line in self._data.split(b"\n"))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node starts and ends."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, start: int, end: int) -> str:
        return self._data[start:end].decode()

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        return self.text(*self.span(node))

    def line_end_before(self, position: int) -> int:
        """Where the line before the one of this position ends."""
        return self._data.rindex(b"\n", 0, position)

    def edited(self, node: ast.stmt, edits: Iterable[Edit]) -> str:
        """The text of a statement after some edits."""
        place, end = self.span(node)
        parts = []
        for edit_start, edit_end, replacement in sorted(edits):
            parts += [self.text(place, edit_start), replacement]
            place = edit_end
        return "".join([*parts, self.text(place, end)])


# ----------------------------------------------------------------------------------------------------------------------
# A tool's types, and the schema of them that datamodel-code-generator may see: our identifiers, no prose.


@dataclass(frozen=True)
class ToolTypes:
    """Everything that has a name in the documents of one tool."""

    nodes: Mapping[str, Schema]
    roots: Mapping[str, str | None]
    """The names of the documents' roots, each with the schema it enforces."""
    endless: frozenset[str]
    """The aliases that hold themselves with no class in between."""
    rich: frozenset[str]
    """The names of our own types that the nodes use."""

    @staticmethod
    def of(documents: Sequence[Document]) -> ToolTypes:
        nodes = {name: node for document in documents for name, node in document.nodes().items()}
        return ToolTypes(
            nodes,
            {document.name: document.enforced for document in documents},
            frozenset(name for document in documents for name in document.aliases if document.is_endless(name)),
            frozenset(name for node in nodes.values() for name in rich_types_in(node)),
        )

    @property
    def is_recursive(self) -> bool:
        """Whether a type leads back to itself."""
        open_names = {name: set(references(node)) for name, node in self.nodes.items()}
        while open_names:
            settled = [name for name, inner in open_names.items() if inner.isdisjoint(open_names)]
            if not settled:
                return True
            for name in settled:
                del open_names[name]
        return False

    @cached_property
    def plain_schemas(self) -> dict[str, Schema]:
        """The nodes as datamodel-code-generator may see them."""
        return {name: _strip_node(node, self.nodes) for name, node in self.nodes.items()}

    def digest(self) -> str:
        """Of all that datamodel-code-generator may see, in order: the order of classes depends on it."""
        return hashlib.sha256(json.dumps([self.plain_schemas, sorted(self.rich)]).encode()).hexdigest()


def _strip_node(node: Any, nodes: Mapping[str, Schema]) -> Any:
    """The node with identifiers for properties, no descriptions, no model as a default."""
    if not isinstance(node, dict):
        return node
    if RICH_TYPE in node:
        return reference_to(node[RICH_TYPE])
    plain: Schema = {}
    names = python_names.field_names(node["properties"]) if "properties" in node else {}
    for word, value in node.items():
        if word == "properties":
            plain[word] = {names[key]: _strip_property(item, nodes) for key, item in value.items()}
        elif word == "required":
            plain[word] = [names.get(key, key) for key in value]
        elif word in ("items", "additionalProperties"):
            # The base class is open already: repeating it would only make the code longer.
            if value not in (True, {}):
                plain[word] = _strip_node(value, nodes)
        elif word == "anyOf":
            plain[word] = [_strip_node(branch, nodes) for branch in value]
        elif word not in ("description", "default", "format", DECLARED_BY_SOME):
            plain[word] = value
    return plain


def _strip_property(node: Schema, nodes: Mapping[str, Schema]) -> Schema:
    default = {"default": node["default"]} if "default" in node and render_model_default(node, nodes) is None else {}
    return {**_strip_node(node, nodes), **default}


def render_model_default(node: Schema, nodes: Mapping[str, Schema]) -> str | None:
    """The source of a default that holds models, which datamodel-code-generator cannot write; None for any other."""
    if not isinstance(node.get("default"), dict | list):
        return None
    source = _render_value(node, node["default"], nodes)
    return source if source != literal(node["default"]) else None


def _render_value(node: Schema, value: Any, nodes: Mapping[str, Schema]) -> str:
    """The source of a value that ``node`` accepts: models where the node is a class, literals elsewhere."""
    node = branch_for(node, value, lambda ref: nodes.get(name_of(ref)), through_refs=False)
    if "$ref" in node and isinstance(value, dict):
        return f"{name_of(node['$ref'])}.model_validate({literal(value)})"
    if isinstance(value, list):
        return "[" + ", ".join(_render_value(node.get("items", {}), item, nodes) for item in value) + "]"
    inner = node.get("additionalProperties")
    if isinstance(value, dict) and isinstance(inner, dict):
        return (
            "{" + ", ".join(f"{literal(key)}: {_render_value(inner, item, nodes)}" for key, item in value.items()) + "}"
        )
    return literal(value)


# ----------------------------------------------------------------------------------------------------------------------
# Our edits, by position: all that datamodel-code-generator cannot express.


class _Editor:
    """Edits one tool's classes: wire names as aliases, ``Omissible`` for optional fields that refuse null, docstrings,
    defaults that are models, exact limits."""

    def __init__(self, tool: ToolTypes, source: SourceText) -> None:
        self._tool = tool
        self._nodes = tool.nodes
        self._source = source

    def edit(self, pieces: Iterable[_Piece]) -> str:
        return "".join(gap + self._edit_statement(statement) for gap, statement in pieces).strip()

    def _edit_statement(self, statement: ast.stmt) -> str:
        source, name = self._source, _defined_by(statement)
        if isinstance(statement, ast.ClassDef):
            edits = list(self._class_edits(statement))
            if enforced := self._tool.roots.get(statement.name):
                end = source.span(statement)[1]
                edits.append((end, end, _render_enforced(enforced)))
            return source.edited(statement, edits)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and name is not None:
            # X = TypeAliasType("X", T) -> X: TypeAlias = T, which pydantic resolves while it builds the class
            node = self._nodes[name]
            value = _with_exact_limits(source.text_of(statement.value.args[1]), node)
            if name in self._tool.endless:
                return _render_endless(name, value, node)
            if name in self._tool.roots:
                return _render_root(name, value, node, self._tool.roots[name])
            return f"{name}: TypeAlias = {value}"
        return source.text_of(statement)

    def _class_edits(self, node: ast.ClassDef) -> Iterator[Edit]:
        schema = self._nodes[node.name]
        yield self._head_edit(node, schema.get("description"))
        names = {name: wire for wire, name in python_names.field_names(schema.get("properties", {})).items()}
        for field in node.body:
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            end = self._source.span(field)[1]
            if field.target.id == "__pydantic_extra__":
                # No effect at run time; without it, checkers would see an argument.
                yield end, end, " = Field(init=False)"
            elif field.target.id in names:
                wire = names[field.target.id]
                yield from self._field_edits(field, field.target.id, wire, schema)
                if doc := described(schema["properties"][wire], self._nodes.get):
                    yield end, end, "\n" + docstring(doc, "    ")

    def _head_edit(self, node: ast.ClassDef, description: str | None) -> Edit:
        """Replaces ``model_config`` with class keywords, and inserts the docstring."""
        source = self._source
        start = source.span(node.bases[0])[1]
        first = node.body[0]
        config = first.value if isinstance(first, ast.Assign) and isinstance(first.value, ast.Call) else None
        fields = node.body[1:] if config is not None or isinstance(first, ast.Pass) else node.body
        given = config.keywords if config is not None else ()
        keywords = "".join(f", {word.arg}={literal(ast.literal_eval(word.value))}" for word in given)
        doc = "\n" + docstring(description, "    ") if description else "" if fields else "\n    pass"
        end = source.line_end_before(source.span(fields[0])[0]) if fields else source.span(node)[1]
        # A blank line between the docstring and the first field.
        return start, end, f"{keywords}):{doc}" + ("\n" if description and fields else "")

    def _field_edits(self, field: ast.AnnAssign, name: str, wire: str, schema: Schema) -> Iterator[Edit]:
        node = schema["properties"][wire]
        default = render_model_default(node, self._nodes)
        start, end = self._source.span(field.annotation)
        written = annotation = self._source.text(start, end)
        optional = wire not in schema.get("required", ()) and ("default" not in node or default is not None)
        if optional and not _takes_null(node) and DECLARED_BY_SOME not in node:
            annotation = self._without_null(field.annotation, has_default=default is not None)
        annotation = _with_exact_limits(annotation, node)
        if DECLARED_BY_SOME in node:
            annotation = f"DeclaredBySome[{annotation}]"
        if name != wire:
            annotation = f"Annotated[{annotation}, Field(alias={text_literal(wire)})]"
        if annotation != written:
            yield start, end, annotation
        if default is not None and field.value is not None:
            yield (*self._source.span(field.value), default)

    def _without_null(self, annotation: ast.expr, *, has_default: bool) -> str:
        """``X | None`` -> ``Omissible[X]``, anywhere in the annotation; just ``X`` if there is a default."""
        source = self._source
        start, end = source.span(annotation)
        for node in ast.walk(annotation):
            if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value is None:
                inner = node.left
            elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Optional":
                inner = node.slice
            else:
                continue
            whole_start, whole_end = source.span(node)
            kept = source.text_of(inner) if has_default else f"Omissible[{source.text_of(inner)}]"
            return source.text(start, whole_start) + kept + source.text(whole_end, end)
        return source.text(start, end)


def _render_endless(name: str, value: str, node: Schema) -> str:
    """An alias that holds itself. Only pydantic's own kind can be read at run time; pyright reads only the plain kind.

    ``Exact``: the class around it does not see what is inside.
    """
    plain = TypeText(Document("", {}), name=str).render(node)
    if node.get("type") == "array" and "list[" not in value:  # datamodel-code-generator writes just ``list`` here
        items = TypeText(Document("", {}), name=str).render(node["items"])
        value = re.sub(r"\blist\b", lambda _: f"list[{text_literal(items)}]", value, count=1)
    return "\n".join(
        [
            "if TYPE_CHECKING:",
            f"    {name}: TypeAlias = {text_literal(plain)}",
            "else:",
            f'    {name} = TypeAliasType("{name}", Annotated[{value}, Exact()])',
        ]
    )


def _render_root(name: str, value: str, node: Schema, enforced: str | None) -> str:
    """The class for a schema whose root is not an object."""
    doc = docstring(node.get("description") or "The value is `root`.", "    ")
    return f"class {name}(ToolRootModel[{value}]):\n{doc}{_render_enforced(enforced) if enforced else ''}"


def _render_enforced(text: str) -> str:
    """The line that makes a class also check values against its JSON Schema."""
    return f"\n    __enforced__: ClassVar[str] = {text_literal(text)}"


_LIMITS: Final = {
    "minimum": "ge",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}


def _with_exact_limits(annotation: str, node: Schema) -> str:
    """Integer limits of a number as in the spec: datamodel-code-generator writes floats, which round large ones."""
    for part in (node, *node.get("anyOf", ())):
        if part.get("type") != "number":
            continue
        for word, key in _LIMITS.items():
            if isinstance(part.get(word), int):
                annotation = re.sub(rf"\b{key}=[-+.\de]+", f"{key}={part[word]}", annotation)
    return annotation


def _takes_null(node: Schema) -> bool:
    if "enum" in node:
        return None in node["enum"]
    if "anyOf" in node:
        return any(map(_takes_null, node["anyOf"]))
    return "$ref" not in node and node.get("type", "null") == "null"


# ----------------------------------------------------------------------------------------------------------------------
# Runs of datamodel-code-generator

_MAX_CLASSES: Final = 100
"""In a shared run. From about 20 on, more make a run no cheaper for each; from 1,000 on it gets more expensive."""

WrittenTexts: TypeAlias = MutableMapping[str, str]
"""What datamodel-code-generator wrote for a tool, by the digest of what it was given."""
OPTIONS: Final = {
    "input_file_type": "jsonschema",
    "output_model_type": "pydantic_v2.BaseModel",
    "target_python_version": "3.11",
    "base_class": "toolkit.generated_support.ToolModel",
    "formatters": ["builtin"],
    "builtin_format_line_length": 120,
    "enum_field_as_literal": "all",
    "disable_future_imports": True,
    "disable_timestamp": True,
    "field_constraints": True,
    "skip_root_model": True,
    "strict_nullable": True,
    "use_annotated": True,
    "use_double_quotes": True,
    "use_type_alias": True,
}
"""All options of datamodel-code-generator, by the names and values of its command line."""


@lru_cache(maxsize=1)
def _config() -> GenerateConfig:
    """Imported here, because importing it takes a third of a second."""
    from datamodel_code_generator.config import GenerateConfig

    return GenerateConfig.model_validate(OPTIONS)


def write_classes(tools: Sequence[ToolTypes], written: WrittenTexts) -> list[str]:
    """The source of each tool's classes and aliases, without imports. What was written before is not written again."""
    texts = [""] * len(tools)
    keys = [tool.digest() for tool in tools]
    missing = []
    for index, (key, tool) in enumerate(zip(keys, tools, strict=True)):
        if key in written:
            source = SourceText(written[key])
            texts[index] = _Editor(tool, source).edit(_pieces(source.module.body, source))
        else:
            missing.append(index)
    for run in _share_runs(tools, missing):
        source, pieces = _run([tools[index] for index in run])
        for index, some in zip(run, pieces, strict=True):
            texts[index] = _Editor(tools[index], source).edit(some)
            written[keys[index]] = "".join(gap + source.text_of(statement) for gap, statement in some)
    return texts


def _share_runs(tools: Sequence[ToolTypes], missing: Sequence[int]) -> Iterator[list[int]]:
    """The positions of the tools that may be in one run."""
    run: list[int] = []
    taken: set[str] = set()
    for index in missing:
        tool = tools[index]
        if tool.is_recursive:
            yield [index]
            continue
        if run and (not taken.isdisjoint(tool.nodes) or len(taken) + len(tool.nodes) > _MAX_CLASSES):
            yield run
            run, taken = [], set()
        run.append(index)
        taken.update(tool.nodes)
    if run:
        yield run


def _run(tools: Sequence[ToolTypes]) -> tuple[SourceText, list[list[_Piece]]]:
    """What one run writes for some tools, and which pieces of it are the classes of each."""
    from datamodel_code_generator import generate

    schemas = {name: schema for tool in tools for name, schema in tool.plain_schemas.items()}
    # Named, so that datamodel-code-generator refers to them; our own types take the place of these. They are last, so that
    # the order of a tool's classes does not depend on which tool names one first.
    rich = {name: {"type": "string"} for tool in tools for name in sorted(tool.rich)}
    text = generate(json.dumps({"$defs": {**schemas, **rich}}), config=_config())
    if not isinstance(text, str):
        raise TypeError("datamodel-code-generator returned several modules for one document")
    source = SourceText(text)
    statements = [node for node in source.module.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    defined = {name for statement in statements if (name := _defined_by(statement)) is not None}
    if defined != {*schemas, *rich}:
        raise GenerationError(
            f"datamodel-code-generator did not return the expected classes: {sorted(defined ^ {*schemas, *rich})}"
        )
    owners = {name: index for index, tool in enumerate(tools) for name in tool.nodes}
    pieces: list[list[_Piece]] = [[] for _ in tools]
    for gap, statement in _pieces(statements, source):
        name = _defined_by(statement)
        if name in rich:
            continue
        if name is None and len(tools) > 1:
            raise GenerationError("datamodel-code-generator wrote a statement that may be of any tool in the run")
        own = pieces[0 if name is None else owners[name]]
        own.append((gap if own else "", statement))
    return source, pieces


def _pieces(statements: Iterable[ast.stmt], source: SourceText) -> Iterator[_Piece]:
    end = 0
    for statement in statements:
        gap_start = end
        start, end = source.span(statement)
        yield source.text(gap_start, start), statement


def _defined_by(statement: ast.stmt) -> str | None:
    """The name of a class or an alias."""
    match statement:
        case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


# ----------------------------------------------------------------------------------------------------------------------
# What datamodel-code-generator wrote for the tools of a package, kept in the user's cache folder.
#
# It sees no prose, so after a change of a description, a setting or a branch its text is often known. Then it is not even
# imported, which would take longer than the rest of the run. ``check`` does not read what is kept.

_TEXTS_A_TOOL: Final = 2
"""How many are kept: what the tools of two branches need."""
_MIN_KEPT: Final = 100


def read_kept_texts(settings: Settings) -> WrittenTexts:
    """Nothing if the file is damaged, or if another version or other options wrote it."""
    file = cache_file(settings, TEXTS)
    try:
        head, _, data = (file.read_bytes() if file is not None else b"").partition(b"\n")
    except OSError:
        return {}
    return json.loads(data) if head.decode("latin-1") == _head(data) else {}


def keep_texts(settings: Settings, texts: WrittenTexts, tools: int) -> None:
    """Keeps the newest texts."""
    newest = list(texts.items())[-max(_MIN_KEPT, _TEXTS_A_TOOL * tools) :]
    data = json.dumps(dict(newest))
    replace_cache_file(cache_file(settings, TEXTS), f"{_head(data.encode())}\n{data}")


def _head(data: bytes) -> str:
    """The first line of the file: a digest of the rest and of what wrote the texts."""
    return digest(b"\0".join([json.dumps(OPTIONS).encode(), generator_version().encode(), data]))
