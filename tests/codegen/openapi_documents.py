"""OpenAPI documents for tests, small and whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolkit.codegen.imports.openapi import Service, read_openapi

Json = dict[str, Any]
OK: Json = {"200": {"description": "ok"}}


def document(version: str = "3.1.0", **keys: Any) -> Json:
    return {
        "openapi": version,
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://pets.example.org/v1"}],
        "paths": {},
        **keys,
    }


def one(operation: Json, *, method: str = "get", path: str = "/pets", version: str = "3.1.0", **keys: Any) -> Json:
    """A document of one operation."""
    return document(version, paths={path: {method: {"operationId": "op", "responses": OK, **operation}}}, **keys)


def answering(schema: Json, **keys: Any) -> Json:
    """A document of one operation that answers JSON of this schema."""
    media = {"application/json": {"schema": schema}}
    return one({"responses": {"200": {"description": "ok", "content": media}}}, **keys)


def taking(schema: Json, media_type: str = "application/json", media: Json | None = None, **keys: Any) -> Json:
    """A document of one operation with a body of this schema."""
    body = {"required": True, "content": {media_type: {"schema": schema, **(media or {})}}}
    return one({"requestBody": body}, method="post", **keys)


def imported(folder: Path, content: Json | str, **options: Any) -> Service:
    """What is read from a document, given as data or as YAML."""
    file = folder / ("api.yaml" if isinstance(content, str) else "api.json")
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_openapi(file, folder, **options)


def tool(folder: Path, content: Json | str, **options: Any) -> Json:
    """The only tool of a document."""
    [found] = imported(folder, content, **options).tools
    return found
