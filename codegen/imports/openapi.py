"""An OpenAPI 3.0 or 3.1 document -> one tool per operation. Its ``request`` says how arguments become an HTTP request.

All mistakes of a document are raised at once, each at its place. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.imports.importers.openapi.documents import DocumentNode, Documents
from toolkit.codegen.imports.importers.openapi.request import read_input
from toolkit.codegen.imports.importers.openapi.response import read_output
from toolkit.codegen.imports.importers.openapi.service import own_servers, security_notes, service_url
from toolkit.codegen.imports.importers.result import ImportResult
from toolkit.codegen.imports.importers.source_file import find_source_file
from toolkit.codegen.imports.openapi_schema import MAX_DEFINED, Schema, Schemas, SchemaTooLarge
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import nearest
from toolkit.schema.problems import Finding, quote
from toolkit.schema.spec import Json
from toolkit.spec.check import MAX_SCHEMA_NODES
from toolkit.spec.load import MAX_FILE_BYTES

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


# -- which operations, and the names of their tools -----------------------------------------------------------------------


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


# -- one tool --------------------------------------------------------------------------------------------------------------


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
        taken = read_input(self.documents, operation.path, operation.item, operation.node, self.inputs, configured)
        self.service.notes += [replace(note, message=f"{operation.place}: {note.message}") for note in taken.notes]
        output, accept = read_output(self.documents, operation.node, self.outputs)
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


def _description(operation: DocumentOperation) -> str:
    summary, text = operation.node.text("summary").strip(), operation.node.text("description").strip()
    parts = [text] if text.startswith(summary) else [summary, text]
    if operation.node.is_set("deprecated"):
        parts.insert(0, "Deprecated.")
    return "\n\n".join(part for part in parts if part) or operation.place


def _annotations(operation: DocumentOperation) -> dict[str, bool]:
    deprecated = {"deprecated": True} if operation.node.is_set("deprecated") else {}
    return {**_HINTS[operation.method], "openWorldHint": True, **deprecated}
