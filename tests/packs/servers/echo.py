# mypy: ignore-errors
"""A server written by hand that records the arguments of each call as they arrived: a line in ``received.jsonl``.

Its first argument is the file that holds the schema of its tool.
"""

import json
import sys
from pathlib import Path

SCHEMA = json.loads(Path(sys.argv[1]).read_text())
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "0"}}


def answer(request):
    if request["method"] == "initialize":
        return {"result": HELLO}
    if request["method"] == "tools/list":
        return {"result": {"tools": [{"name": "roads", "description": "Finds roads.", "inputSchema": SCHEMA}]}}
    if request["method"] != "tools/call":
        return {"error": {"code": -32601, "message": "unknown method"}}
    with Path("received.jsonl").open("a") as file:
        file.write(json.dumps(request["params"].get("arguments")) + "\n")
    return {"result": {"content": [{"type": "text", "text": "done"}]}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\n")
        sys.stdout.flush()
