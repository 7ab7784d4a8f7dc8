"""The body of a request -> one property of a tool's input. Bytes are given as base64 and sent as what they are."""

from __future__ import annotations

from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import Documents, Node
from toolkit.codegen.imports.importers.openapi.input import Input
from toolkit.codegen.imports.importers.openapi.media import FORM, MULTIPART, best, is_json, is_text, offered, plain
from toolkit.codegen.imports.importers.openapi.schema import Schema, Schemas
from toolkit.spec.model import Json

_WITHOUT_BODY: Final = ("get", "head")
_BASE64: Final = "Base64 of the bytes."


def read_body(documents: Documents, operation: Node, schemas: Schemas, result: Input) -> None:
    """Adds the property ``body``, or ``request_body`` where a parameter is called so."""
    node = operation.below("requestBody")
    body = None if node is None else documents.followed(node)
    if body is None:
        return
    if operation.path[-1] in _WITHOUT_BODY:
        result.notes.append(f"{operation.path[-1].upper()} carries no body, so this one is left out @ {body.pointer}")
        return
    chosen = best(offered(documents, body))
    if chosen is None:
        result.notes.append(f"the body has no media type, so it is left out @ {body.pointer}")
        return
    key = result.free("body", "request_body")
    media_type, node = chosen
    result.body = {"property": key, "mediaType": _sent(media_type)}
    schema = _schema(node, schemas, result.body)
    if body.text("description") and isinstance(schema, dict) and "description" not in schema:
        schema = {**schema, "description": body.text("description")}
    result.properties[key] = schema
    if body.is_set("required"):
        result.required.append(key)


def _sent(media_type: str) -> str:
    if "*" in media_type:
        return "application/json" if is_json(media_type) else "application/octet-stream"
    return plain(media_type)


def _schema(media: Node, schemas: Schemas, body: Schema) -> Json:
    schema = media.below("schema")
    media_type = str(body["mediaType"])
    if is_json(media_type):
        return {} if schema is None else schemas.convert(schema)
    if media_type in (FORM, MULTIPART):
        converted = {} if schema is None else schemas.convert(schema)
        return _parts(converted, media, schemas, body) if converted else {"type": "object"}
    if is_text(media_type):
        return {"type": "string", "contentMediaType": media_type}
    body["base64"] = True
    return {"type": "string", "contentEncoding": "base64", "contentMediaType": media_type}


def _parts(schema: Json, media: Node, schemas: Schemas, body: Schema) -> Json:
    """The schema of a form, and in ``body`` how each property is written, where that is not the usual way.

    Properties that are bytes become base64 in a copy of the object, which others may refer to as it is.
    """
    told = media.below("encoding")
    target = _target(schema, schemas)
    found_properties = target.get("properties")
    properties = found_properties if isinstance(found_properties, dict) else {}
    changed: Schema = {}
    encoding: Schema = {}
    for name, value in properties.items():
        said = told.below(name) if told else None
        entry: Schema = {} if said is None else _as_said(said)
        found = _target(value, schemas)
        items = _target(found.get("items"), schemas)
        if _is_bytes(found):
            changed[name] = _as_base64(found)
        elif _is_bytes(items):
            changed[name] = {**found, "items": _as_base64(items)}
        if name in changed:
            entry["base64"] = True
        if entry:
            encoding[name] = entry
    if encoding:
        body["encoding"] = encoding
    return {**target, "properties": {**properties, **changed}} if changed else schema


def _target(schema: Json, schemas: Schemas) -> Schema:
    """The schema itself, or what its references lead to."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = schemas.definition(str(schema["$ref"]))
    return schema if isinstance(schema, dict) else {}


def _as_said(said: Node) -> Schema:
    entry: Schema = {}
    types = [plain(each) for each in said.text("contentType").split(",") if "*" not in each and each.strip()]
    if types:
        entry["contentType"] = types[0]
    if said.text("style"):
        entry["style"] = said.text("style")
    if isinstance(said.mapping.get("explode"), bool):
        entry["explode"] = said.mapping["explode"]
    if said.is_set("allowReserved"):
        entry["allowReserved"] = True
    return entry


def _is_bytes(schema: Schema) -> bool:
    """3.0 says ``format: binary``; 3.1 names a media type and no encoding."""
    is_binary = schema.get("format") == "binary" and schema.get("type", "string") in ("string", ["string", "null"])
    media_type = schema.get("contentMediaType")
    is_media = isinstance(media_type, str) and not is_text(media_type) and not is_json(media_type)
    return is_binary or (is_media and "contentEncoding" not in schema)


def _as_base64(schema: Schema) -> Schema:
    kept = {
        word: value for word, value in schema.items() if word not in ("format", "maxLength", "minLength", "pattern")
    }
    said = schema.get("description")
    words = f"{said.rstrip()}\n{_BASE64}" if isinstance(said, str) and said.strip() else _BASE64
    return {"type": "string", **kept, "contentEncoding": "base64", "description": words}
