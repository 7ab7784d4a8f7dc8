"""What one operation takes -> the properties of a tool's input, and how a call carries each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from toolkit.codegen.imports.importers.openapi.body import read_body
from toolkit.codegen.imports.importers.openapi.documents import Documents, Node
from toolkit.codegen.imports.importers.openapi.input import Input
from toolkit.codegen.imports.importers.openapi.media import is_json, offered
from toolkit.codegen.imports.importers.openapi.schema import Schema, Schemas
from toolkit.spec.model import Json
from toolkit.spec.problems import shown

PLACES: Final = ("path", "query", "header", "cookie")
STYLES: Final[dict[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles of each place; the first is what is meant where none is named."""

# OpenAPI tells to ignore parameters of these names: they follow from the body, the answer and the security.
_NOT_PARAMETERS: Final = ("accept", "authorization", "content-type")
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")


def read_input(
    documents: Documents, path: str, item: Node, operation: Node, schemas: Schemas, settled: Iterable[str]
) -> Input:
    """The input of one operation. ``settled`` are headers that the settings give, in lower case: nobody is asked for them."""
    result = Input()
    known = dict.fromkeys(_TEMPLATE.findall(path))
    for parameter in _merged(documents, item, operation):
        name, place = parameter.text("name"), parameter.text("in")
        if place == "header" and (name.lower() in _NOT_PARAMETERS or name.lower() in settled):
            continue
        if place == "path" and name not in known:
            result.notes.append(f"the path has no {{{name}}}, so this parameter is left out @ {parameter.pointer}")
            continue
        _add_parameter(documents, parameter, schemas, result)
    given = {str(entry.get("name", key)) for key, entry in _entries(result) if entry["in"] == "path"}
    for name in known:
        if name not in given:
            result.notes.append(f"nothing is said of {{{name}}} in the path, so it is text @ {operation.pointer}")
            _add_property(result, name, "path", {"type": "string"}, True, {"in": "path"})
    read_body(documents, operation, schemas, result)
    return result


def _entries(result: Input) -> Iterator[tuple[str, Schema]]:
    return ((key, entry) for key, entry in result.parameters.items() if isinstance(entry, dict))


def _merged(documents: Documents, item: Node, operation: Node) -> list[Node]:
    """The parameters, by place and name; an operation's stand in for those of its path. Path first, cookies last."""
    found: dict[tuple[str, str], Node] = {}
    for owner in (item, operation):
        listed = owner.below("parameters")
        if listed is not None and not isinstance(listed.value, list):
            documents.add("'parameters' must be a list", listed)
        for _, entry in listed.children() if listed is not None else ():
            parameter = documents.followed(entry)
            if parameter is None:
                continue
            place, name = parameter.text("in"), parameter.text("name")
            if place in PLACES and name:
                found[place, name] = parameter
            else:
                documents.add(f"a parameter has a 'name', and 'in' is one of {', '.join(PLACES)}", parameter)
    return sorted(found.values(), key=lambda parameter: PLACES.index(parameter.text("in")))


def _add_parameter(documents: Documents, parameter: Node, schemas: Schemas, result: Input) -> None:
    place, name = parameter.text("in"), parameter.text("name")
    entry: Schema = {"in": place}
    schema = parameter.below("schema")
    if schema is not None:
        entry.update(_style(documents, parameter, place))
        converted = schemas.convert(schema)
    else:
        converted = _by_content(documents, parameter, schemas, entry)
    _add_property(result, name, place, _described(converted, parameter), parameter.is_set("required"), entry)


def _by_content(documents: Documents, parameter: Node, schemas: Schemas, entry: Schema) -> Json:
    """A parameter that is a text of some media type: JSON is written by us, anything else by who calls."""
    media = offered(documents, parameter)
    if not media:
        documents.add("a parameter has a 'schema' or a 'content'", parameter)
        return {}
    name, node = media[0]
    if not is_json(name):
        return {"type": "string", "contentMediaType": name}
    entry["json"] = True
    schema = node.below("schema")
    return {} if schema is None else schemas.convert(schema)


def _style(documents: Documents, parameter: Node, place: str) -> Schema:
    """How values are written, as far as that is not the usual way of the place."""
    usual = STYLES[place][0]
    style = parameter.text("style") or usual
    if style not in STYLES[place]:
        documents.add(f"the style {shown(style)} is none of {place} parameters: {', '.join(STYLES[place])}", parameter)
    explode = parameter.mapping.get("explode", style == "form") is True
    entry: Schema = {} if style == usual else {"style": style}
    if explode != (style == "form"):
        entry["explode"] = explode
    if place == "query" and parameter.is_set("allowReserved"):
        entry["allowReserved"] = True
    return entry


def _described(schema: Json, parameter: Node) -> Json:
    """What is said of a parameter, put into its schema: it is nearer to the operation than what the schema says."""
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


def _add_property(result: Input, name: str, place: str, schema: Json, required: bool, entry: Schema) -> None:
    key = result.free(name, f"{name}_{place}")
    result.properties[key] = schema
    if required or place == "path":
        result.required.append(key)
    result.parameters[key] = entry if key == name else {**entry, "name": name}
