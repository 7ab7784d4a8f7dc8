# mypy: ignore-errors
"""Stands in for mcp-server-time where nothing can be downloaded: the same tool, with its description, at a fixed time."""

import json
import sys

TOOL = {
    "name": "get_current_time",
    "description": "Get current time in a specific timezone",
    "inputSchema": {
        "type": "object",
        "title": "get_current_timeArguments",
        "required": ["timezone"],
        "properties": {
            "timezone": {
                "type": "string",
                "title": "Timezone",
                "description": "IANA timezone name (e.g., 'America/New_York', 'Europe/London'). Use 'Etc/UTC' as local "
                "timezone if no timezone provided by the user.",
            }
        },
    },
    "outputSchema": {
        "type": "object",
        "title": "TimeResult",
        "required": ["timezone", "datetime", "day_of_week", "is_dst"],
        "properties": {
            "timezone": {"type": "string", "title": "Timezone"},
            "datetime": {"type": "string", "title": "Datetime"},
            "day_of_week": {"type": "string", "title": "Day Of Week"},
            "is_dst": {"type": "boolean", "title": "Is Dst"},
        },
    },
}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "time", "version": "0"}}


def answer(request):
    if request["method"] == "initialize":
        return {"result": HELLO}
    if request["method"] == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if request["method"] != "tools/call":
        return {"error": {"code": -32601, "message": "unknown method"}}
    zone = request["params"]["arguments"]["timezone"]
    now = {"timezone": zone, "datetime": "2026-03-09T09:00:00+01:00", "day_of_week": "Monday", "is_dst": False}
    return {"result": {"content": [{"type": "text", "text": json.dumps(now)}], "structuredContent": now}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\n")
        sys.stdout.flush()
