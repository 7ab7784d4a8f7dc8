"""The types of one tool, and the schema that datamodel-code-generator may see of them: identifiers of ours, no prose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolkit.codegen.package import python_names
from toolkit.codegen.package.formats import RICH_TYPE, rich_types_in
from toolkit.codegen.package.render.literal import literal
from toolkit.codegen.schema.defaults import branch_for
from toolkit.codegen.schema.document import Document, refers_to
from toolkit.codegen.schema.objects import DECLARED_BY_SOME
from toolkit.jsonschema.keywords import Schema


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
        open_names = {name: set(refers_to(node)) for name, node in self.nodes.items()}
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
        return {"$ref": f"#/$defs/{node[RICH_TYPE]}"}
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
    node = branch_for(node, value, lambda ref: nodes.get(ref.rpartition("/")[2]), through_refs=False)
    if "$ref" in node and isinstance(value, dict):
        return f"{node['$ref'].rpartition('/')[2]}.model_validate({literal(value)})"
    if isinstance(value, list):
        return "[" + ", ".join(_render_value(node.get("items", {}), item, nodes) for item in value) + "]"
    inner = node.get("additionalProperties")
    if isinstance(value, dict) and isinstance(inner, dict):
        return (
            "{" + ", ".join(f"{literal(key)}: {_render_value(inner, item, nodes)}" for key, item in value.items()) + "}"
        )
    return literal(value)
