"""An OpenAPI 3.0 or 3.1 document -> one tool for each operation, with ``request``: how a call is made of arguments.

All mistakes of a document are raised at once, each as ``message @ file:pointer``. Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.imports.importers.openapi.documents import Documents, Node
from toolkit.codegen.imports.importers.openapi.request import read_input
from toolkit.codegen.imports.importers.openapi.response import read_output
from toolkit.codegen.imports.importers.openapi.schema import MAX_DEFINED, Schema, Schemas, TooLarge
from toolkit.codegen.imports.importers.openapi.service import own_servers, security_notes, service_url
from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.importers.source_file import named_file
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import nearest
from toolkit.spec.check import MAX_SCHEMA_NODES
from toolkit.spec.load import MAX_FILE_BYTES
from toolkit.spec.model import Json
from toolkit.spec.problems import shown

MAX_OPERATIONS: Final = 5000
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_VERSION: Final = re.compile(r"3\.[01](\.\d+)?(-.*)?")
# What HTTP says of its methods; a POST may do anything.
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
class Operation:
    """One operation: where it stands in the document, and what its tool is called."""

    method: str
    path: str
    item: Node
    node: Node

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
    """What a document holds: the tools, where the service is, and sentences for the person who imports."""

    url: str
    title: str
    version: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def import_openapi(settings: ImportSettings, root: Path) -> Imported:
    """The document that an import of the settings names, as tools."""
    service = read_openapi(
        named_file(settings, root), root, url=settings.url, headers=settings.headers, operations=settings.operations
    )
    origin: dict[str, Any] = {"service": {"title": service.title, "version": service.version}}
    if not settings.url:
        origin["url"] = service.url
    return Imported(origin, service.tools, tuple(service.notes))


def read_openapi(
    document: Path,
    base: Path,
    *,
    url: str = "",
    headers: Mapping[str, str] | None = None,
    operations: Sequence[str] = (),
) -> Service:
    """The tools of ``document``; files in mistakes are named relative to ``base``.

    ``url``: where the service is, if not where the document says. ``operations``: the only ones to read, by their
    ``operationId`` or as ``GET /pets``; all of them if there are none.
    """
    source = os.path.relpath(document, base).replace(os.sep, "/")
    documents = Documents(document, source)
    _check_version(documents)
    chosen = _chosen(documents, operations)
    info = documents.root.below("info") or Node({}, source)
    service = Service(service_url(documents, url), info.text("title"), info.text("version"))
    legacy = documents.root.text("openapi").startswith("3.0")
    taken = Schemas(documents, "request", legacy=legacy)
    given = Schemas(documents, "response", legacy=legacy)
    reading = _Reading(documents, service, taken, given, headers or {}, url_given=bool(url))
    for operation in chosen:
        reading.add(operation)
    size = len(json.dumps(service.tools, indent=2, ensure_ascii=False))
    if size > MAX_FILE_BYTES:
        fills = f"its {len(service.tools)} tools would fill {size >> 20} MiB"
        limit = f"more than the {MAX_FILE_BYTES >> 20} of a spec file"
        documents.add(f"{fills}, {limit}: choose some with 'operations', in several imports if need be", documents.root)
    documents.raise_problems()
    service.notes = list(dict.fromkeys([*service.notes, *documents.notes]))
    return service


def _check_version(documents: Documents) -> None:
    """Ends the reading of what cannot be an OpenAPI document: everything else said of it would mislead."""
    root = documents.root
    documents.raise_problems()
    if "swagger" in root.mapping:
        documents.add(
            "this is Swagger 2.0; OpenAPI 3.0 and 3.1 are read: convert the document once, for example with "
            "`npx swagger2openapi`, and import the result",
            root.at("swagger"),
        )
    elif not isinstance(root.value, dict) or "openapi" not in root.value:
        documents.add("this is no OpenAPI document: it has no 'openapi: 3.0.x' or 'openapi: 3.1.x'", root)
    elif not _VERSION.fullmatch(root.text("openapi")):
        documents.add("OpenAPI 3.0 and 3.1 are read: 'openapi' must be '3.0.x' or '3.1.x', as text", root.at("openapi"))
    elif not isinstance(root.mapping.get("paths", {}), dict):
        documents.add("'paths' must be an object", root.at("paths"))
    documents.raise_problems()


# -- which operations, and what their tools are called -----------------------------------------------------------------------


def _chosen(documents: Documents, wanted: Sequence[str]) -> list[Operation]:
    found = list(_operations(documents))
    if wanted:
        found = _selected(documents, found, wanted)
    if len(found) > MAX_OPERATIONS:
        documents.add(f"{len(found)} operations are too many: choose some with 'operations'", documents.root)
    elif not found:
        documents.add("the document has no operations", documents.root)
    first: dict[str, Operation] = {}
    for operation in found:
        taken = first.setdefault(operation.name, operation)
        if taken is not operation:
            documents.add(
                f"{operation.place} and {taken.place} would both be the tool {shown(operation.name)}: give one another "
                f"'operationId', or name only one in 'operations'",
                operation.node,
            )
    return found[:MAX_OPERATIONS]


def _operations(documents: Documents) -> Iterator[Operation]:
    paths = documents.root.below("paths")
    for path, entry in paths.children() if paths else ():
        item = documents.followed(entry) if path.startswith("/") else None
        for method in _METHODS if item else ():
            assert item is not None
            node = item.below(method)
            if node is None:
                continue
            if isinstance(node.value, dict):
                yield Operation(method, path, item, node)
            else:
                documents.add("an operation must be an object", node)


def _selected(documents: Documents, found: list[Operation], wanted: Sequence[str]) -> list[Operation]:
    words = [word.lower() if " /" in word else word for word in wanted]
    chosen = [each for each in found if each.id in words or each.place.lower() in words]
    known = {word for each in chosen for word in (each.id, each.place.lower())}
    for word, asked in zip(words, wanted, strict=True):
        if word not in known:
            hint = nearest(asked, [each.id or each.place for each in found])
            documents.add(f"'operations' asks for {shown(asked)}, which is not there.{hint}", documents.root)
    return chosen


def tool_name(text: str) -> str:
    """A name that tools may have on the wire, as near to ``text`` as can be; empty where nothing is left of it.

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
class _Reading:
    """What all operations of a document are read with."""

    documents: Documents
    service: Service
    inputs: Schemas
    outputs: Schemas
    headers: Mapping[str, str]
    url_given: bool

    def add(self, operation: Operation) -> None:
        """Adds the tool of one operation to the service's."""
        self._judge_servers(operation)
        self.service.notes += security_notes(self.documents, operation.node, self.headers)
        try:
            self.service.tools.append(self._tool(operation))
        except TooLarge:
            words = f"a schema of the operation has more than {MAX_SCHEMA_NODES - MAX_DEFINED} values"
            self.documents.add(words, operation.node)

    def _judge_servers(self, operation: Operation) -> None:
        others = own_servers(operation.item, operation.node, self.service.url)
        if others and self.url_given:
            words = f"{operation.place} has a server of its own ({shown(others[0])}), but 'url' is asked"
            self.service.notes.append(words)
        elif others:
            self.documents.add(
                f"the operation has a server of its own, {shown(others[0])}: make it an import of its own with that 'url' "
                f"and 'operations', or leave it out of 'operations'",
                operation.node,
            )

    def _tool(self, operation: Operation) -> dict[str, Any]:
        settled = {name.lower() for name in self.headers}
        taken = read_input(self.documents, operation.path, operation.item, operation.node, self.inputs, settled)
        self.service.notes += [f"{operation.place}: {note}" for note in taken.notes]
        output, accept = read_output(self.documents, operation.node, self.outputs)
        request: Schema = {"method": operation.method, "path": operation.path}
        if taken.parameters:
            request["parameters"] = taken.parameters
        if taken.body is not None:
            request["body"] = taken.body
        return {
            "name": operation.name,
            "description": _description(operation),
            "inputSchema": self._whole(operation, self.inputs, taken.schema),
            **({} if output is None else {"outputSchema": self._whole(operation, self.outputs, output)}),
            "annotations": _annotations(operation),
            "permissions": ["network"],
            "request": {**request, "accept": accept},
        }

    def _whole(self, operation: Operation, schemas: Schemas, schema: Json) -> Schema:
        whole, left_open = schemas.root(schema)
        if left_open:
            named = ", ".join(left_open[:3]) + (", ..." if len(left_open) > 3 else "")
            words = f"{operation.place}: what is farthest away in its schemas is left open ({len(left_open)}: {named})"
            self.service.notes.append(words)
        return whole


def _description(operation: Operation) -> str:
    summary, text = operation.node.text("summary").strip(), operation.node.text("description").strip()
    parts = [text] if text.startswith(summary) else [summary, text]
    if operation.node.is_set("deprecated"):
        parts.insert(0, "Deprecated.")
    return "\n\n".join(part for part in parts if part) or operation.place


def _annotations(operation: Operation) -> dict[str, bool]:
    deprecated = {"deprecated": True} if operation.node.is_set("deprecated") else {}
    return {**_HINTS[operation.method], "openWorldHint": True, **deprecated}
