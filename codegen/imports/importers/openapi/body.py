"""The body of a request -> one property of a tool's input. Callers pass bytes as base64; they are sent as bytes."""

from __future__ import annotations

from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import DocumentNode, Documents
from toolkit.codegen.imports.importers.openapi.input import OperationInput
from toolkit.codegen.imports.importers.openapi.media import (
    FORM,
    MULTIPART,
    choose_media,
    is_json,
    is_text,
    list_media,
    without_parameters,
)
from toolkit.codegen.imports.openapi_schema import Schema, Schemas
from toolkit.schema.spec import Json

_WITHOUT_BODY: Final = ("get", "head")
_BASE64: Final = "Base64 of the bytes."


def read_body(documents: Documents, operation: DocumentNode, schemas: Schemas, result: OperationInput) -> None:
    """Adds the property ``body``, or ``request_body`` if a parameter has that name."""
    node = operation.below("requestBody")
    body = None if node is None else documents.follow_to_object(node)
    if body is None:
        return
    if operation.path[-1] in _WITHOUT_BODY:
        message = f"{operation.path[-1].upper()} requests have no body, so this one is ignored"
        result.notes.append(documents.finding(message, body))
        return
    chosen = choose_media(list_media(documents, body))
    if chosen is None:
        result.notes.append(documents.finding("the body has no media type, so it is ignored", body))
        return
    key = result.choose_name("body", "request_body")
    media_type, node = chosen
    result.body = {"property": key, "mediaType": _sent_media_type(media_type)}
    schema = _schema(node, schemas, result.body)
    if body.text("description") and isinstance(schema, dict) and "description" not in schema:
        schema = {**schema, "description": body.text("description")}
    result.properties[key] = schema
    if body.is_set("required"):
        result.required.append(key)


def _sent_media_type(media_type: str) -> str:
    if "*" in media_type:
        return "application/json" if is_json(media_type) else "application/octet-stream"
    return without_parameters(media_type)


def _schema(media: DocumentNode, schemas: Schemas, body: Schema) -> Json:
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


def _parts(schema: Json, media: DocumentNode, schemas: Schemas, body: Schema) -> Json:
    """The schema of a form; ``body`` gets the encoding of each property, unless it is the default.

    Properties that are bytes become base64 in a copy of the object, because other schemas may refer to the original.
    """
    encodings = media.below("encoding")
    target = _target(schema, schemas)
    found_properties = target.get("properties")
    properties = found_properties if isinstance(found_properties, dict) else {}
    changed: Schema = {}
    encoding: Schema = {}
    for name, value in properties.items():
        given = encodings.below(name) if encodings else None
        entry: Schema = {} if given is None else _read_encoding(given)
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
    """The schema itself, or the target of its references."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = schemas.definition(str(schema["$ref"]))
    return schema if isinstance(schema, dict) else {}


def _read_encoding(node: DocumentNode) -> Schema:
    entry: Schema = {}
    types = [
        without_parameters(each) for each in node.text("contentType").split(",") if "*" not in each and each.strip()
    ]
    if types:
        entry["contentType"] = types[0]
    if node.text("style"):
        entry["style"] = node.text("style")
    if isinstance(node.mapping.get("explode"), bool):
        entry["explode"] = node.mapping["explode"]
    if node.is_set("allowReserved"):
        entry["allowReserved"] = True
    return entry


def _is_bytes(schema: Schema) -> bool:
    """Version 3.0 has ``format: binary``; 3.1 has a media type without an encoding."""
    is_binary = schema.get("format") == "binary" and schema.get("type", "string") in ("string", ["string", "null"])
    media_type = schema.get("contentMediaType")
    is_media = isinstance(media_type, str) and not is_text(media_type) and not is_json(media_type)
    return is_binary or (is_media and "contentEncoding" not in schema)


def _as_base64(schema: Schema) -> Schema:
    kept = {
        word: value for word, value in schema.items() if word not in ("format", "maxLength", "minLength", "pattern")
    }
    given = schema.get("description")
    description = f"{given.rstrip()}\n{_BASE64}" if isinstance(given, str) and given.strip() else _BASE64
    return {"type": "string", **kept, "contentEncoding": "base64", "description": description}
