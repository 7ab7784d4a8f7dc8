"""Arguments that a server over HTTP wants in headers (``x-mcp-header``): what is invalid is not offered, and what changed is
learned."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.packs.conftest import Doors
from toolkit.codegen.imports.mcp import import_mcp
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import ToolFailed
from toolkit.packs import McpServer, McpTool, mcp_pack

GREET = "served.generated.models.web_greet:WebGreetOutput"


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
        answer = self.answer(request["method"])
        body = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **answer}).encode()
        self.send_response(200 if "result" in answer else 400)
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
        if method == "tools/call":
            return self.call()
        return {"error": {"code": -32601, "message": "unknown method"}}

    def call(self) -> dict[str, Any]:
        return {"error": {"code": -32601, "message": "there is nothing to call"}}

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@contextmanager
def served_by(handler: type[Handler]) -> Iterator[str]:
    """The address of a running server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/mcp"
        running.shutdown()
        thread.join()


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The revision of the protocol, and the address of a server that speaks it."""
    with served_by(type("Marked", (Handler,), {"revision": request.param})) as url:
        yield request.param, url


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
    notes = [str(note) for note in found.notes]
    assert [note.partition(":")[0] for note in notes] == [
        f"{name!r} is left out, as the protocol demands" for name in ("empty", "object", "twice")
    ]
    assert all("its x-mcp-header is invalid (" in note for note in notes)


class Changing(Handler):
    """Marks its argument only after the first list of its tools, and counts the calls it ran."""

    revision = "2026-07-28"
    lists = 0
    ran: ClassVar[list[str]] = []
    keeps_changing = False

    def answer(self, method: str) -> dict[str, Any]:
        if method != "tools/list":
            return super().answer(method)
        mark = {"x-mcp-header": "Name"} if type(self).lists and not self.keeps_changing else {}
        type(self).lists += 1
        return {
            "result": {
                **COMPLETE,
                "tools": [
                    described("greet", {"type": "string"})
                    | {"inputSchema": {"type": "object", "properties": {"name": {"type": "string", **mark}}}}
                ],
            }
        }

    def call(self) -> dict[str, Any]:
        name = self.headers.get("mcp-param-name")
        if name is None:
            return {"error": {"code": -32020, "message": "the header Mcp-Param-Name is missing"}}
        self.ran.append(name)
        return {"result": {**COMPLETE, "content": [{"type": "text", "text": f"Hello {name}"}]}}


@pytest.mark.parametrize("keeps_changing", [False, True])
def test_a_call_that_was_refused_for_its_headers_is_sent_once_more_with_those_of_the_new_list(
    make_sync: Doors, keeps_changing: bool
) -> None:
    handler = type("Changed", (Changing,), {"lists": 0, "ran": [], "keeps_changing": keeps_changing})
    with served_by(handler) as url:
        tools = mcp_pack(McpServer(name="marked", url=url), {"web_greet": McpTool("greet", GREET)})
        door = make_sync(tools)
        if keeps_changing:
            with pytest.raises(ToolFailed, match="the header Mcp-Param-Name is missing"):
                door.tool("web_greet", name="Ann")
        else:
            assert door.tool("web_greet", name="Ann").text == "Hello Ann"
        assert vars(handler)["ran"] == ([] if keeps_changing else ["Ann"]) and vars(handler)["lists"] == 2
