"""An OpenAPI 3.0 or 3.1 document -> one tool per operation. Its ``request`` says how arguments become an HTTP request.

All mistakes of a document are raised at once, each at its place. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.imports.openapi_schema import MAX_DEFINED, DocumentNode, Documents, Schema, Schemas, SchemaTooLarge
from toolkit.codegen.imports.python_modules import find_source_file
from toolkit.codegen.imports.run import ImportResult
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import nearest
from toolkit.schema.checks import MAX_SCHEMA_NODES
from toolkit.schema.problems import Finding, quote
from toolkit.schema.spec import Json
from toolkit.schema.spec_files import MAX_FILE_BYTES

MAX_OPERATIONS: Final = 5000
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_VERSION: Final = re.compile(r"3\.[01](\.\d+)?(-.*)?")
# What HTTP defines for its methods; a POST may do anything.
_HINTS: Final[dict[str, dict[str, bool]]] = {
    "get": {"readOnlyHint": True},
    "head": {"readOnlyHint": True},
    "options": {"readOnlyHint": True},
    "put": {"readOnlyHint": False, "idempotentHint": True},
    "delete": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    "post": {"readOnlyHint": False},
    "patch": {"readOnlyHint": False},
}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_./ :-]+")
_MAX_NAME: Final = 128
_SUCCESS: Final = re.compile(r"2(?:\d\d|XX)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DocumentOperation:
    """One operation: its place in the document, and the name of its tool."""

    method: str
    path: str
    item: DocumentNode
    node: DocumentNode

    @property
    def place(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def id(self) -> str:
        return self.node.text("operationId")

    @property
    def name(self) -> str:
        words = re.sub(r"[^A-Za-z0-9]+", "_", self.path).strip("_")
        return tool_name(self.id) or tool_name(f"{self.method}_{words}".rstrip("_"))


@dataclass(slots=True)
class Service:
    """What a document describes: the tools, the address of the service, and notes for the person who imports."""

    url: str
    title: str
    version: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Finding | str] = field(default_factory=list)


def import_openapi(settings: ImportSettings, root: Path) -> ImportResult:
    """The tools of the import's document."""
    service = read_openapi(
        find_source_file(settings, root),
        root,
        url=settings.url,
        headers=settings.headers,
        operations=settings.operations,
    )
    origin: dict[str, Any] = {"service": {"title": service.title, "version": service.version}}
    if not settings.url:
        origin["url"] = service.url
    return ImportResult(origin, service.tools, tuple(service.notes))


def read_openapi(
    document: Path,
    base: Path,
    *,
    url: str = "",
    headers: Mapping[str, str] | None = None,
    operations: Sequence[str] = (),
) -> Service:
    """The tools of ``document``; errors name files relative to ``base``.

    ``url``: the address of the service, instead of the document's. ``operations``: those to read, by their ``operationId`` or
    as ``GET /pets``; empty means all.
    """
    source = os.path.relpath(document, base).replace(os.sep, "/")
    documents = Documents(document, source)
    _check_version(documents)
    chosen = _choose_operations(documents, operations)
    info = documents.root.below("info") or DocumentNode({}, source)
    service = Service(service_url(documents, url), info.text("title"), info.text("version"))
    legacy = documents.root.text("openapi").startswith("3.0")
    taken = Schemas(documents, "request", legacy=legacy)
    given = Schemas(documents, "response", legacy=legacy)
    reading = _OperationReader(documents, service, taken, given, headers or {}, url_given=bool(url))
    for operation in chosen:
        reading.add(operation)
    size = len(json.dumps(service.tools, indent=2, ensure_ascii=False))
    if size > MAX_FILE_BYTES:
        sizes = f"{size / 2**20:.1f} MiB, more than the {MAX_FILE_BYTES >> 20} of a spec file"
        message = f"its {len(service.tools)} tools take {sizes}"
        documents.add(f"{message}: select some with 'operations', in several imports if needed", documents.root)
    documents.raise_problems()
    service.notes = list(dict.fromkeys([*service.notes, *documents.notes]))
    return service


def _check_version(documents: Documents) -> None:
    """Stops if this is not an OpenAPI document we read: any other error would be misleading."""
    root = documents.root
    documents.raise_problems()
    if "swagger" in root.mapping:
        # No maintained Python library converts it, and half a converter would change meanings silently.
        documents.add(
            "this is Swagger 2.0, and only OpenAPI 3.0 and 3.1 are supported: convert the document, for example with "
            "`npx swagger2openapi`, and import the result",
            root.at("swagger"),
        )
    elif not isinstance(root.value, dict) or "openapi" not in root.value:
        documents.add("this is not an OpenAPI document: it has no 'openapi: 3.0.x' or 'openapi: 3.1.x'", root)
    elif not _VERSION.fullmatch(root.text("openapi")):
        documents.add(
            "only OpenAPI 3.0 and 3.1 are supported: 'openapi' must be the string '3.0.x' or '3.1.x'",
            root.at("openapi"),
        )
    elif not isinstance(root.mapping.get("paths", {}), dict):
        documents.add("'paths' must be an object", root.at("paths"))
    documents.raise_problems()


def _choose_operations(documents: Documents, wanted: Sequence[str]) -> list[DocumentOperation]:
    found = list(_list_operations(documents))
    if wanted:
        found = _select_operations(documents, found, wanted)
    if len(found) > MAX_OPERATIONS:
        documents.add(
            f"{len(found)} operations, but at most {MAX_OPERATIONS} are allowed: select some with 'operations'",
            documents.root,
        )
    elif not found and not wanted:
        documents.add("the document has no operations", documents.root)
    first: dict[str, DocumentOperation] = {}
    for operation in found:
        taken = first.setdefault(operation.name, operation)
        if taken is not operation:
            documents.add(
                f"{operation.place} and {taken.place} would both be the tool {quote(operation.name)}: change one "
                f"'operationId', or list only one in 'operations'",
                operation.node,
            )
    return found[:MAX_OPERATIONS]


def _list_operations(documents: Documents) -> Iterator[DocumentOperation]:
    paths = documents.root.below("paths")
    for path, entry in paths.children() if paths else ():
        item = documents.follow_to_object(entry) if path.startswith("/") else None
        for method in _METHODS if item else ():
            assert item is not None
            node = item.below(method)
            if node is None:
                continue
            if isinstance(node.value, dict):
                yield DocumentOperation(method, path, item, node)
            else:
                documents.add("an operation must be an object", node)


def _select_operations(
    documents: Documents, found: list[DocumentOperation], wanted: Sequence[str]
) -> list[DocumentOperation]:
    words = [word.lower() if " /" in word else word for word in wanted]
    chosen = [each for each in found if each.id in words or each.place.lower() in words]
    known = {word for each in chosen for word in (each.id, each.place.lower())}
    for word, asked in zip(words, wanted, strict=True):
        if word not in known:
            hint = nearest(asked, [each.id or each.place for each in found])
            documents.add(f"'operations' lists {quote(asked)}, which does not exist.{hint}", documents.root)
    return chosen


def tool_name(text: str) -> str:
    """A valid tool name as close to ``text`` as possible; empty if nothing is left.

    >>> tool_name("pets#show"), tool_name("../__init__")
    ('pets_show', '_init__')
    """
    name = _NOT_IN_NAMES.sub("_", text)
    name = re.sub(r"\.{2,}", ".", name).strip("./ :-")
    name = re.sub(r"(^|[./: -])_{2,}", r"\1_", name)
    if len(name) <= _MAX_NAME:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{name[: _MAX_NAME - 9]}_{digest}"


# ----------------------------------------------------------------------------------------------------------------------
# One operation -> one tool


@dataclass(frozen=True, slots=True)
class _OperationReader:
    """Reads the operations of one document into tools of the service."""

    documents: Documents
    service: Service
    inputs: Schemas
    outputs: Schemas
    headers: Mapping[str, str]
    url_given: bool

    def add(self, operation: DocumentOperation) -> None:
        """Adds the tool of one operation."""
        self._check_servers(operation)
        self.service.notes += security_notes(self.documents, operation.node, self.headers)
        try:
            self.service.tools.append(self._make_tool(operation))
        except SchemaTooLarge:
            limit = MAX_SCHEMA_NODES - MAX_DEFINED
            self.documents.add(f"a schema of the operation has more than {limit} values", operation.node)

    def _check_servers(self, operation: DocumentOperation) -> None:
        others = own_servers(operation.item, operation.node, self.service.url)
        if others and self.url_given:
            self.service.notes.append(
                f"{operation.place} has its own server ({quote(others[0])}), but calls go to 'url' of the settings"
            )
        elif others:
            self.documents.add(
                f"the operation has its own server, {quote(others[0])}: import it separately with that 'url' and with "
                f"'operations', or leave it out of 'operations'",
                operation.node,
            )

    def _make_tool(self, operation: DocumentOperation) -> dict[str, Any]:
        configured = {name.lower() for name in self.headers}
        taken = OperationInput(self.documents, self.inputs)
        taken.read(operation, configured)
        self.service.notes += [replace(note, message=f"{operation.place}: {note.message}") for note in taken.notes]
        output, accept = self._read_output(operation.node)
        request: Schema = {"method": operation.method, "path": operation.path}
        if taken.parameters:
            request["parameters"] = taken.parameters
        if taken.body is not None:
            request["body"] = taken.body
        return {
            "name": operation.name,
            "description": _description(operation),
            "inputSchema": self._make_schema(operation, self.inputs, taken.schema),
            **({} if output is None else {"outputSchema": self._make_schema(operation, self.outputs, output)}),
            "annotations": _annotations(operation),
            "permissions": ["network"],
            "request": {**request, "accept": accept},
        }

    def _make_schema(self, operation: DocumentOperation, schemas: Schemas, schema: Json) -> Schema:
        whole, left_open = schemas.root(schema)
        if left_open:
            named = ", ".join(left_open[:3]) + (", ..." if len(left_open) > 3 else "")
            self.service.notes.append(
                f"{operation.place}: its schemas are too large, so these definitions accept any value"
                f" ({len(left_open)}: {named})"
            )
        return whole

    # -- the output: a schema, or none if the document does not promise JSON --------------------------------------------

    def _read_output(self, operation: DocumentNode) -> tuple[Json, str]:
        """The output schema or None, and the value of the ``Accept`` header.

        Several successful responses become a union, and one without content adds null. If a successful response is not JSON,
        nothing can be promised, and there is no schema.
        """
        successes = self._list_successes(operation)
        if operation.path[-1] == "head":
            return None, "*/*"
        media = [each for response in successes for each in list_media(self.documents, response)]
        accept = ", ".join(dict.fromkeys(without_parameters(name) for name, _ in media)) or "*/*"
        if not media or not all(self._has_json(response) for response in successes):
            return None, accept
        asked = list(dict.fromkeys(without_parameters(name) for name, _ in media if is_json(name)))
        found: list[Json] = []
        for response in successes:
            schema = self._response_schema(response)
            if schema is None:
                return None, ", ".join(asked)
            if schema not in found:
                found.append(schema)
        root: Json = found[0] if len(found) == 1 else {"anyOf": found}
        return root, ", ".join("application/json" if "*" in name else name for name in asked)

    def _list_successes(self, operation: DocumentNode) -> list[DocumentNode]:
        """The responses with status 2xx in order; without any, the ``default`` response."""
        responses = operation.below("responses")
        if responses is None:
            return []
        if not isinstance(responses.value, dict):
            self.documents.add("'responses' must be an object", responses)
            return []
        children = dict(responses.children())
        statuses = sorted(status for status in children if _SUCCESS.fullmatch(status))
        chosen = [children[status] for status in statuses] or [
            children[word] for word in ("default",) if word in children
        ]
        followed = [self.documents.follow_to_object(node) for node in chosen]
        return [node for node in followed if node is not None]

    def _has_json(self, response: DocumentNode) -> bool:
        """Whether a response is JSON or has no content."""
        media = list_media(self.documents, response)
        return not media or any(is_json(name) for name, _ in media)

    def _response_schema(self, response: DocumentNode) -> Json:
        """The schema of a JSON response; null for a response without content; None if the document has no schema."""
        media = list_media(self.documents, response)
        if not media:
            return {"type": "null"}
        node = next(node for name, node in media if is_json(name))
        schema = node.below("schema")
        return None if schema is None else self.outputs.convert(schema)


def _description(operation: DocumentOperation) -> str:
    summary, text = operation.node.text("summary").strip(), operation.node.text("description").strip()
    parts = [text] if text.startswith(summary) else [summary, text]
    if operation.node.is_set("deprecated"):
        parts.insert(0, "Deprecated.")
    return "\n\n".join(part for part in parts if part) or operation.place


def _annotations(operation: DocumentOperation) -> dict[str, bool]:
    deprecated = {"deprecated": True} if operation.node.is_set("deprecated") else {}
    return {**_HINTS[operation.method], "openWorldHint": True, **deprecated}


# ----------------------------------------------------------------------------------------------------------------------
# One operation's parameters and body -> the properties of a tool's input, and how each is sent

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

_WITHOUT_BODY: Final = ("get", "head")
_BASE64: Final = "Base64 of the bytes."


class OperationInput:
    """The input schema of one operation's tool, and how its values are sent. ``notes`` are for the person who imports."""

    def __init__(self, documents: Documents, schemas: Schemas) -> None:
        self._documents = documents
        self._schemas = schemas
        self.properties: Schema = {}
        self.required: list[Json] = []
        self.parameters: Schema = {}
        self.body: Schema | None = None
        self.notes: list[Finding] = []

    @property
    def schema(self) -> Schema:
        required: Schema = {"required": self.required} if self.required else {}
        return {"type": "object", "properties": self.properties, **required, "additionalProperties": False}

    def read(self, operation: DocumentOperation, configured: Container[str]) -> None:
        """Reads parameters and body. ``configured`` are headers that the settings send, in lower case: not parameters."""
        known = dict.fromkeys(_TEMPLATE.findall(operation.path))
        for parameter in self._merge_parameters(operation.item, operation.node):
            name, place = parameter.text("name"), parameter.text("in")
            if place == "header" and (name.lower() in _NOT_PARAMETERS or name.lower() in configured):
                continue
            if place == "path" and name not in known:
                self._note(f"the path has no {{{name}}}, so this parameter is ignored", parameter)
                continue
            self._add_parameter(parameter)
        entries = ((key, entry) for key, entry in self.parameters.items() if isinstance(entry, dict))
        given = {str(entry.get("name", key)) for key, entry in entries if entry["in"] == "path"}
        for name in known:
            if name not in given:
                message = f"the document does not describe {{{name}}} in the path, so it is a string"
                self._note(message, operation.node)
                self._add_property(name, "path", {"type": "string"}, True, {"in": "path"})
        self._read_body(operation.node)

    def _note(self, message: str, node: DocumentNode) -> None:
        self.notes.append(self._documents.finding(message, node))

    # -- parameters -----------------------------------------------------------------------------------------------------

    def _merge_parameters(self, item: DocumentNode, operation: DocumentNode) -> list[DocumentNode]:
        """The parameters, path first and cookies last. An operation's parameter overrides that of its path."""
        found: dict[tuple[str, str], DocumentNode] = {}
        for owner in (item, operation):
            listed = owner.below("parameters")
            if listed is not None and not isinstance(listed.value, list):
                self._documents.add("'parameters' must be a list", listed)
            for _, entry in listed.children() if listed is not None else ():
                parameter = self._documents.follow_to_object(entry)
                if parameter is None:
                    continue
                place, name = parameter.text("in"), parameter.text("name")
                if place in PLACES and name:
                    found[place, name] = parameter
                else:
                    self._documents.add(
                        f"a parameter needs a 'name', and 'in' must be one of {', '.join(PLACES)}", parameter
                    )
        return sorted(found.values(), key=lambda parameter: PLACES.index(parameter.text("in")))

    def _add_parameter(self, parameter: DocumentNode) -> None:
        place, name = parameter.text("in"), parameter.text("name")
        entry: Schema = {"in": place}
        schema = parameter.below("schema")
        if schema is not None:
            entry.update(self._style(parameter, place))
            converted = self._schemas.convert(schema)
        else:
            converted = self._convert_content(parameter, entry)
        self._add_property(name, place, _add_annotations(converted, parameter), parameter.is_set("required"), entry)

    def _convert_content(self, parameter: DocumentNode, entry: Schema) -> Json:
        """A parameter with a media type: we serialise JSON, the caller anything else."""
        media = list_media(self._documents, parameter)
        if not media:
            self._documents.add("a parameter needs a 'schema' or a 'content'", parameter)
            return {}
        name, node = media[0]
        if not is_json(name):
            return {"type": "string", "contentMediaType": name}
        entry["json"] = True
        schema = node.below("schema")
        return {} if schema is None else self._schemas.convert(schema)

    def _style(self, parameter: DocumentNode, place: str) -> Schema:
        """How values are serialised, unless it is the default of the place."""
        default = STYLES[place][0]
        style = parameter.text("style") or default
        if style not in STYLES[place]:
            self._documents.add(
                f"{quote(style)} is not a style of {place} parameters: use {', '.join(STYLES[place])}", parameter
            )
        explode = parameter.mapping.get("explode", style == "form") is True
        entry: Schema = {} if style == default else {"style": style}
        if explode != (style == "form"):
            entry["explode"] = explode
        if place == "query" and parameter.is_set("allowReserved"):
            entry["allowReserved"] = True
        return entry

    def _add_property(self, name: str, place: str, schema: Json, required: bool, entry: Schema) -> None:
        key = self._choose_name(name, f"{name}_{place}")
        self.properties[key] = schema
        if required or place == "path":
            self.required.append(key)
        self.parameters[key] = entry if key == name else {**entry, "name": name}

    def _choose_name(self, *names: str) -> str:
        """The first of these names that is free."""
        for name in names:
            if name not in self.properties:
                return name
        return self._choose_name(f"{names[-1]}_")

    # -- the body: one property. Callers pass bytes as base64; they are sent as bytes -----------------------------------

    def _read_body(self, operation: DocumentNode) -> None:
        """Adds the property ``body``, or ``request_body`` if a parameter has that name."""
        node = operation.below("requestBody")
        body = None if node is None else self._documents.follow_to_object(node)
        if body is None:
            return
        if operation.path[-1] in _WITHOUT_BODY:
            message = f"{operation.path[-1].upper()} requests have no body, so this one is ignored"
            self._note(message, body)
            return
        chosen = choose_media(list_media(self._documents, body))
        if chosen is None:
            self._note("the body has no media type, so it is ignored", body)
            return
        key = self._choose_name("body", "request_body")
        media_type, node = chosen
        self.body = {"property": key, "mediaType": _sent_media_type(media_type)}
        schema = self._body_schema(node, self.body)
        if body.text("description") and isinstance(schema, dict) and "description" not in schema:
            schema = {**schema, "description": body.text("description")}
        self.properties[key] = schema
        if body.is_set("required"):
            self.required.append(key)

    def _body_schema(self, media: DocumentNode, body: Schema) -> Json:
        schema = media.below("schema")
        media_type = str(body["mediaType"])
        if is_json(media_type):
            return {} if schema is None else self._schemas.convert(schema)
        if media_type in (FORM, MULTIPART):
            converted = {} if schema is None else self._schemas.convert(schema)
            return self._form_schema(converted, media, body) if converted else {"type": "object"}
        if is_text(media_type):
            return {"type": "string", "contentMediaType": media_type}
        body["base64"] = True
        return {"type": "string", "contentEncoding": "base64", "contentMediaType": media_type}

    def _form_schema(self, schema: Json, media: DocumentNode, body: Schema) -> Json:
        """The schema of a form; ``body`` gets the encoding of each property, unless it is the default.

        Properties that are bytes become base64 in a copy of the object, because other schemas may refer to the original.
        """
        encodings = media.below("encoding")
        target = self._target(schema)
        found_properties = target.get("properties")
        properties = found_properties if isinstance(found_properties, dict) else {}
        changed: Schema = {}
        encoding: Schema = {}
        for name, value in properties.items():
            given = encodings.below(name) if encodings else None
            entry: Schema = {} if given is None else _read_encoding(given)
            found = self._target(value)
            items = self._target(found.get("items"))
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

    def _target(self, schema: Json) -> Schema:
        """The schema itself, or the target of its references."""
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self._schemas.definition(str(schema["$ref"]))
        return schema if isinstance(schema, dict) else {}


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


def _sent_media_type(media_type: str) -> str:
    if "*" in media_type:
        return "application/json" if is_json(media_type) else "application/octet-stream"
    return without_parameters(media_type)


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


# ----------------------------------------------------------------------------------------------------------------------
# Media types

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
_TEXTS: Final = ("application/xml", "application/graphql", "application/x-ndjson", "application/yaml")


def without_parameters(media_type: str) -> str:
    """A media type without its parameters.

    >>> without_parameters("Application/JSON; charset=utf-8")
    'application/json'
    """
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether this media type may be JSON; a document that leaves the type open means JSON.

    >>> [is_json(name) for name in ("application/hal+json", "*/*", "text/plain")]
    [True, True, False]
    """
    name = without_parameters(media_type)
    return name in ("application/json", "text/json", "*/*", "application/*") or name.endswith("+json")


def is_text(media_type: str) -> bool:
    name = without_parameters(media_type)
    return name.startswith("text/") or name in _TEXTS or name.endswith("+xml")


def list_media(documents: Documents, owner: DocumentNode) -> list[tuple[str, DocumentNode]]:
    """The media types under ``content``, each with its node."""
    content = owner.below("content")
    if content is None:
        return []
    if not isinstance(content.value, dict):
        documents.add("'content' must be an object", content)
        return []
    followed = [(name, documents.follow_to_object(node)) for name, node in content.children()]
    return [(name, node) for name, node in followed if node is not None]


def choose_media(media: Sequence[tuple[str, DocumentNode]]) -> tuple[str, DocumentNode] | None:
    """JSON before a form, a form before multipart, multipart before the first of the others."""

    def rank(entry: tuple[str, DocumentNode]) -> int:
        name = without_parameters(entry[0])
        if name == "application/json":
            return 0
        return 1 if is_json(name) else 2 if name == FORM else 3 if name == MULTIPART else 4

    return min(media, key=rank, default=None)


# ----------------------------------------------------------------------------------------------------------------------
# The address of a service, and the credentials it needs

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_WAY_OUT: Final = 'set url = "https://..." in the import\'s settings'


def service_url(documents: Documents, given: str) -> str:
    """The address from the settings, else the only absolute one in the document."""
    if given:
        return given
    urls = _urls(documents.root)
    absolute = [url for url in urls if re.match(r"https?://", url, re.IGNORECASE)]
    if len(absolute) == 1:
        return absolute[0]
    if absolute:
        named = ", ".join(map(quote, absolute))
        documents.add(f"the document names {len(absolute)} servers ({named}): {_WAY_OUT}", documents.root)
    else:
        documents.add(f"the document names no server with http:// or https://: {_WAY_OUT}", documents.root)
    return ""


def own_servers(item: DocumentNode, operation: DocumentNode, url: str) -> list[str]:
    """Servers of a path or an operation that differ from the service's."""
    urls = _urls(operation) or _urls(item)
    return [] if url.rstrip("/") in [each.rstrip("/") for each in urls] else urls


def _urls(owner: DocumentNode) -> list[str]:
    servers = owner.below("servers")
    found = [_with_defaults(server) for _, server in servers.children()] if servers else []
    return [url for url in found if url]


def _with_defaults(server: DocumentNode) -> str:
    def default(match: re.Match[str]) -> str:
        variable = server.below("variables", match[1])
        return match[0] if variable is None else str(variable.mapping.get("default", match[0]))

    return _VARIABLE.sub(default, server.text("url"))


def security_notes(documents: Documents, operation: DocumentNode, headers: Mapping[str, str]) -> list[str]:
    """What the operation's security needs and the settings do not have; empty if one alternative is met."""
    required = operation.below("security") or documents.root.below("security")
    alternatives = [node for _, node in required.children()] if required else []
    given = {name.lower() for name in headers}
    missing = [list(_missing_credentials(documents, alternative, given)) for alternative in alternatives]
    if not missing or not all(missing):
        return []
    return min(missing, key=len)


def _missing_credentials(documents: Documents, alternative: DocumentNode, given: set[str]) -> Iterator[str]:
    for name in alternative.mapping:
        scheme = documents.root.below("components", "securitySchemes", name)
        found = None if scheme is None else documents.follow_to_object(scheme)
        if found is None:
            yield f"the security scheme {quote(name)} is not defined"
            continue
        sentence = _explain_scheme(found, given)
        if sentence:
            yield f"the security scheme {quote(name)} {sentence}"


def _explain_scheme(scheme: DocumentNode, given: set[str]) -> str:
    kind, place, name = scheme.text("type"), scheme.text("in"), scheme.text("name")
    if kind == "apiKey" and place == "query":
        return f"needs its key as {quote(name)} in the query, but keys are only sent in headers"
    if kind == "mutualTLS":
        return "needs a client certificate, which is not supported"
    if kind == "apiKey":
        header, value = ("Cookie", f"{name}=${{API_KEY}}") if place == "cookie" else (name, "${API_KEY}")
    else:
        basic = kind == "http" and scheme.text("scheme").lower() == "basic"
        header, value = "Authorization", "Basic ${CREDENTIALS_AS_BASE64}" if basic else "Bearer ${API_TOKEN}"
    if header.lower() in given:
        return ""
    return f'needs the header {quote(header)}: set headers = {{ "{header}" = "{value}" }} in the import\'s settings'
