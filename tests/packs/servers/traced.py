# mypy: ignore-errors
"""A server written by hand whose only resource is the ``traceparent`` of the request."""

import json
import sys

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"resources": {}},
    "serverInfo": {"name": "traced", "version": "0"},
}


def answer(request):
    if request["method"] == "initialize":
        return {"result": HELLO}
    if request["method"] != "resources/read":
        return {"error": {"code": -32601, "message": "unknown method"}}
    parent = request["params"].get("_meta", {}).get("traceparent", "none")
    return {"result": {"contents": [{"uri": request["params"]["uri"], "text": parent}]}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)}) + "\n")
        sys.stdout.flush()
