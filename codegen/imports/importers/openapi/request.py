"""The parameters and the body of one operation -> the properties of a tool's input, and how each is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from toolkit.codegen.imports.importers.openapi.body import read_body
from toolkit.codegen.imports.importers.openapi.documents import DocumentNode, Documents
from toolkit.codegen.imports.importers.openapi.input import OperationInput
from toolkit.codegen.imports.importers.openapi.media import is_json, list_media
from toolkit.codegen.imports.openapi_schema import Schema, Schemas
from toolkit.schema.problems import quote
from toolkit.schema.spec import Json

PLACES: Final = ("path", "query", "header", "cookie")
STYLES: Final[dict[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles of each place; the first is the default."""

# OpenAPI says to ignore parameters with these names: they follow from the body, the response and the security.
_NOT_PARAMETERS: Final = ("accept", "authorization", "content-type")
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")


def read_input(
    documents: Documents,
    path: str,
    item: DocumentNode,
    operation: DocumentNode,
    schemas: Schemas,
    configured: Iterable[str],
) -> OperationInput:
    """The input of one operation. ``configured`` are headers that the settings send, in lower case: not parameters."""
    result = OperationInput()
    known = dict.fromkeys(_TEMPLATE.findall(path))
    for parameter in _merge_parameters(documents, item, operation):
        name, place = parameter.text("name"), parameter.text("in")
        if place == "header" and (name.lower() in _NOT_PARAMETERS or name.lower() in configured):
            continue
        if place == "path" and name not in known:
            message = f"the path has no {{{name}}}, so this parameter is ignored"
            result.notes.append(documents.finding(message, parameter))
            continue
        _add_parameter(documents, parameter, schemas, result)
    given = {str(entry.get("name", key)) for key, entry in _entries(result) if entry["in"] == "path"}
    for name in known:
        if name not in given:
            message = f"the document does not describe {{{name}}} in the path, so it is a string"
            result.notes.append(documents.finding(message, operation))
            _add_property(result, name, "path", {"type": "string"}, True, {"in": "path"})
    read_body(documents, operation, schemas, result)
    return result


def _entries(result: OperationInput) -> Iterator[tuple[str, Schema]]:
    return ((key, entry) for key, entry in result.parameters.items() if isinstance(entry, dict))


def _merge_parameters(documents: Documents, item: DocumentNode, operation: DocumentNode) -> list[DocumentNode]:
    """The parameters, path first and cookies last. An operation's parameter overrides that of its path."""
    found: dict[tuple[str, str], DocumentNode] = {}
    for owner in (item, operation):
        listed = owner.below("parameters")
        if listed is not None and not isinstance(listed.value, list):
            documents.add("'parameters' must be a list", listed)
        for _, entry in listed.children() if listed is not None else ():
            parameter = documents.follow_to_object(entry)
            if parameter is None:
                continue
            place, name = parameter.text("in"), parameter.text("name")
            if place in PLACES and name:
                found[place, name] = parameter
            else:
                documents.add(f"a parameter needs a 'name', and 'in' must be one of {', '.join(PLACES)}", parameter)
    return sorted(found.values(), key=lambda parameter: PLACES.index(parameter.text("in")))


def _add_parameter(documents: Documents, parameter: DocumentNode, schemas: Schemas, result: OperationInput) -> None:
    place, name = parameter.text("in"), parameter.text("name")
    entry: Schema = {"in": place}
    schema = parameter.below("schema")
    if schema is not None:
        entry.update(_style(documents, parameter, place))
        converted = schemas.convert(schema)
    else:
        converted = _convert_content(documents, parameter, schemas, entry)
    _add_property(result, name, place, _add_annotations(converted, parameter), parameter.is_set("required"), entry)


def _convert_content(documents: Documents, parameter: DocumentNode, schemas: Schemas, entry: Schema) -> Json:
    """A parameter with a media type: we serialise JSON, the caller anything else."""
    media = list_media(documents, parameter)
    if not media:
        documents.add("a parameter needs a 'schema' or a 'content'", parameter)
        return {}
    name, node = media[0]
    if not is_json(name):
        return {"type": "string", "contentMediaType": name}
    entry["json"] = True
    schema = node.below("schema")
    return {} if schema is None else schemas.convert(schema)


def _style(documents: Documents, parameter: DocumentNode, place: str) -> Schema:
    """How values are serialised, unless it is the default of the place."""
    default = STYLES[place][0]
    style = parameter.text("style") or default
    if style not in STYLES[place]:
        documents.add(f"{quote(style)} is not a style of {place} parameters: use {', '.join(STYLES[place])}", parameter)
    explode = parameter.mapping.get("explode", style == "form") is True
    entry: Schema = {} if style == default else {"style": style}
    if explode != (style == "form"):
        entry["explode"] = explode
    if place == "query" and parameter.is_set("allowReserved"):
        entry["allowReserved"] = True
    return entry


def _add_annotations(schema: Json, parameter: DocumentNode) -> Json:
    """Adds the parameter's own description, which is more specific than the schema's."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    if parameter.text("description"):
        result["description"] = parameter.text("description")
    if parameter.is_set("deprecated"):
        result["deprecated"] = True
    if "example" in parameter.mapping:
        result["examples"] = [parameter.mapping["example"]]
    return result


def _add_property(result: OperationInput, name: str, place: str, schema: Json, required: bool, entry: Schema) -> None:
    key = result.choose_name(name, f"{name}_{place}")
    result.properties[key] = schema
    if required or place == "path":
        result.required.append(key)
    result.parameters[key] = entry if key == name else {**entry, "name": name}
