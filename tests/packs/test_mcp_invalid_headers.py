"""Tools whose ``x-mcp-header`` is invalid: a client over HTTP must not offer them, and the import says which ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolkit.codegen.imports.importers.mcp import import_mcp
from toolkit.codegen.imports.settings import ImportSettings


def described(name: str, *marked: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {f"p{number}": field for number, field in enumerate(marked)}}
    return {"name": name, "description": "D.", "inputSchema": schema}


TOOLS = [
    described("valid", {"type": "string", "x-mcp-header": "Region"}, {"type": "string"}),
    described("empty", {"type": "string", "x-mcp-header": ""}),
    described("object", {"type": "object", "x-mcp-header": "Region"}),
    described("twice", {"type": "string", "x-mcp-header": "Region"}, {"type": "string", "x-mcp-header": "region"}),
]
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Handler(BaseHTTPRequestHandler):
    revision = ""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **self.answer(request["method"])}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, method: str) -> dict[str, Any]:
        info = {"serverInfo": {"name": "marked", "version": "1"}, "capabilities": {"tools": {}}}
        modern = COMPLETE if self.revision == "2026-07-28" else {}
        if method == "server/discover" and modern:
            return {"result": {**modern, **info, "supportedVersions": [self.revision]}}
        if method == "initialize":
            return {"result": {**info, "protocolVersion": self.revision}}
        if method == "tools/list":
            return {"result": {**modern, "tools": TOOLS}}
        return {"error": {"code": -32601, "message": "unknown method"}}

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The revision of the protocol, and the address of a server that speaks it."""
    handler = type("Handler", (Handler,), {"revision": request.param})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield request.param, f"http://127.0.0.1:{running.server_port}/mcp"
        running.shutdown()
        thread.join()


def test_they_are_left_out_where_the_mark_has_a_meaning_and_the_import_says_so(
    server: tuple[str, str], tmp_path: Path
) -> None:
    revision, url = server
    found = import_mcp(ImportSettings("marked", url=url), tmp_path)
    names = [tool["name"] for tool in found.tools]
    if revision == "2025-11-25":  # knows no such mark
        assert names == ["valid", "empty", "object", "twice"] and found.notes == ()
        return
    assert names == ["valid"]
    assert [note.partition(":")[0] for note in found.notes] == [
        f"{name!r} is left out, as the protocol demands" for name in ("empty", "object", "twice")
    ]
    assert all("its x-mcp-header is invalid (" in note for note in found.notes)
