# mypy: ignore-errors
"""A server written by hand that asks back, and has resources and prompts. ``python asking.py REVISION`` speaks the revision of
the protocol: ``2025-11-25`` asks with requests of its own, ``2026-07-28`` with results that need input."""

import json
import sys

REVISION = sys.argv[1]
IS_MODERN = REVISION == "2026-07-28"
INFO = {"name": "asking", "version": "1"}
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
    },
    "required": ["name"],
}
QUESTIONS = {
    "elicit": {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}},
    "open": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Pay here", "url": "https://example.org/pay", "elicitationId": "1"},
    },
    "sample": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Say hello"}},
                {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
            ],
            "maxTokens": 7,
            "systemPrompt": "Be brief.",
            "temperature": 0.5,
            "stopSequences": ["!"],
            "modelPreferences": {"hints": [{"name": "small"}]},
        },
    },
}
capabilities = {}


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    return json.loads(sys.stdin.readline())


def answer(request, **result):
    extra = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if IS_MODERN else {}
    write({"id": request["id"], "result": {**extra, **result}})


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(request):
    word = request["params"]["arguments"]["text"]
    if word == "capabilities":
        found = request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] if IS_MODERN else capabilities
        answer(request, **text(" ".join(sorted(found))))
    elif not IS_MODERN:
        write({"id": "question", **QUESTIONS[word]})
        reply = read()
        answer(request, **text(json.dumps(reply.get("result") or reply["error"]["message"])))
    elif "inputResponses" in request["params"]:
        answer(request, **text(json.dumps(request["params"]["inputResponses"]["question"])))
    else:
        asked = {"resultType": "input_required", "inputRequests": {"question": QUESTIONS[word]}, "requestState": "s"}
        write({"id": request["id"], "result": asked})


def resources(request):
    if request.get("params", {}).get("cursor") == "more":
        return answer(request, resources=[{"uri": "docs://b", "name": "b"}])
    first = {
        "uri": "docs://a",
        "name": "a",
        "title": "A",
        "description": "The first",
        "mimeType": "text/plain",
        "size": 3,
    }
    return answer(request, resources=[first], nextCursor="more")


def templates(request):
    answer(request, resourceTemplates=[{"uriTemplate": "docs://{name}", "name": "any", "mimeType": "text/plain"}])


def contents(request):
    uri = request["params"]["uri"]
    if uri == "docs://none":
        return write({"id": request["id"], "error": {"code": -32002, "message": "there is no such resource"}})
    media = {"uri": uri, "mimeType": "image/png", "blob": "aGk="}
    return answer(request, contents=[{"uri": uri, "mimeType": "text/plain", "text": "one\n"}, media])


def prompts(request):
    arguments = [{"name": "who", "description": "Whom to greet", "required": True}, {"name": "how"}]
    answer(request, prompts=[{"name": "greet", "title": "Greet", "description": "Greets", "arguments": arguments}])


def prompt(request):
    who = request["params"]["arguments"]["who"]
    messages = [
        {"role": "user", "content": {"type": "text", "text": f"Greet {who}"}},
        {"role": "assistant", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
    ]
    answer(request, messages=messages)


METHODS = {
    "tools/call": call,
    "resources/list": resources,
    "resources/templates/list": templates,
    "resources/read": contents,
    "prompts/list": prompts,
    "prompts/get": prompt,
}

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        capabilities = message["params"]["capabilities"]
        answer(message, protocolVersion="2025-11-25", capabilities=CAPABILITIES, serverInfo=INFO)
    elif method == "server/discover" and IS_MODERN:
        answer(message, supportedVersions=[REVISION], capabilities=CAPABILITIES, serverInfo=INFO)
    elif method in METHODS:
        METHODS[method](message)
    elif "id" in message and method:
        write({"id": message["id"], "error": {"code": -32601, "message": "unknown method"}})
