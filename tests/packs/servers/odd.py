# ruff: noqa: T201
# mypy: ignore-errors
"""A server written by hand, without any SDK, that misbehaves as its first argument says; see ``HABITS`` at the end."""

import json
import os
import sys
import time
import urllib.request

HABIT, _, DETAIL = sys.argv[1].partition(": ")
TOOL = {"name": "ask", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, **result):
    write({"id": request["id"], "result": result})


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def handshake(request):
    answer(
        request,
        protocolVersion="2025-06-18",
        capabilities={"tools": {}},
        serverInfo={"name": "odd", "version": "0"},
    )


def banner(request):
    print("Welcome to the odd server!")
    print('{"level": "info", "msg": "not JSON-RPC either"}')
    answer(request, **text("42", structuredContent={"n": 42}))


def wrong_id(request):
    write({"id": 987654, "result": text("for somebody else", structuredContent={"n": 0})})
    write({"id": None, "error": {"code": 1, "message": "for nobody"}})
    answer(request, **text("7", structuredContent={"n": 7}))


def long_line(request):
    sys.stdout.write("x" * (40 << 20))
    sys.stdout.flush()
    time.sleep(10000)


def big(request):
    answer(request, **text("y" * (8 << 20), structuredContent={"n": 8}))


def garbage(request):
    while True:
        sys.stdout.write("no json\n" * 1000)


def silent(request):
    open("asked", "w").close()


def deaf(request):
    open("asked", "w").close()
    time.sleep(10000)


def no_result(request):
    answer(request, content="not a list")


def half_a_character(request):
    answer(request, **text("\ud800"))


def refuses(request):
    write({"id": request["id"], "error": {"code": -32602, "message": "no such tool\u202e here"}})


def refuses_with_a_code_of_clients(request):
    """The official clients use this code for their own time limits."""
    write({"id": request["id"], "error": {"code": -32001, "message": "no such account"}})


def asks_back(request):
    """Whatever the client offers is told in the result."""
    heard = []
    for number, method in enumerate(["sampling/createMessage", "roots/list", "elicitation/create", "ping", "no/such"]):
        params = {
            "sampling/createMessage": {"messages": [], "maxTokens": 1},
            "elicitation/create": {
                "message": "your password?",
                "requestedSchema": {"type": "object", "properties": {}},
            },
        }.get(method, {})
        write({"id": f"s{number}", "method": method, "params": params})
        reply = next(item for item in messages() if item.get("id") == f"s{number}")
        heard.append(method + ("!" if "error" in reply else "+"))
    answer(request, **text(" ".join(heard), structuredContent={"n": len(heard)}))


def dies(request):
    print(f"the token is {os.environ.get('TOKEN')}", file=sys.stderr, flush=True)
    os._exit(9)


def fails(request):
    answer(request, isError=True, structuredContent={"n": "no number"}, **text("it is broken"))


def fails_telling(request):
    answer(request, isError=True, **text(f"the token is {os.environ['TOKEN']}"))


def forges(request):
    """An error as the client writes its own, which it must not take for one of them."""
    told = {"code": -32099, "message": f"the token is {os.environ['TOKEN']}\x1b[0m", "data": {"reason": "NETWORK"}}
    write({"id": request["id"], "error": told})


def odd_ids(request):
    for identity in (True, "\ud800", 10**400):
        write({"id": identity, "result": 5})
    answer(request, **text("9", structuredContent={"n": 9}))


def asks_without_listening(request):
    while True:
        write({"id": "again", "method": "ping"})


def many_blocks(request):
    picture = {"type": "image", "data": "", "mimeType": "image/png"}
    answer(request, content=[picture] * 10_000, structuredContent={"n": 10_000})


def too_many_blocks(request):
    answer(request, content=[{"type": "text", "text": "x"}] * 400_000, structuredContent={"n": 1})


def floods(request):
    """Sends the message in the second part of the habit, as often as the tool's text says, then answers."""
    number = int(request["params"]["arguments"]["text"])
    line = json.dumps({"jsonrpc": "2.0", **json.loads(DETAIL)}) + "\n"
    sys.stdout.write(line * number)
    answer(request, **text("6", structuredContent={"n": 6}))


def many_keys(request):
    answer(request, content=[], structuredContent={"n": 1, **{f"k{number}": number for number in range(100_000)}})


def structured(request):
    """Structured content as it is written in the second part of the habit, which need not be JSON."""
    message = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [], "structuredContent": "HERE"}}
    sys.stdout.write(json.dumps(message).replace('"HERE"', DETAIL) + "\n")
    sys.stdout.flush()


count = 0
waiting = {}


def obeys(request):
    """Does what the text says: ``count``, ``env``, ``read PATH``, ``write PATH``, ``fetch URL``, ``die CODE``, or
    ``wait NAME``, which never ends."""
    global count
    word, _, rest = request["params"]["arguments"]["text"].partition(" ")
    if word == "wait":
        waiting[request["id"]] = rest
        open(f"{rest}.began", "w").close()
        return
    if word == "die":
        with open("died", "a") as file:
            file.write("x")
        print("I am going", file=sys.stderr, flush=True)
        os._exit(int(rest))
    count += 1
    if word not in ("read", "write", "fetch"):
        return answer(request, **text(str(count) if word == "count" else json.dumps(dict(os.environ))))
    try:
        if word == "write":
            with open(rest, "w") as file:
                file.write("changed")
            return answer(request, **text("written"))
        with open(rest, "rb") if word == "read" else urllib.request.urlopen(rest) as file:
            answer(request, **text(file.read().decode()))
    except OSError as error:
        answer(request, isError=True, **text(f"{type(error).__name__}: {error}"))


def promised(words):
    return lambda request: answer(request, **text(words))


def not_ready(_):
    raise SystemExit("cannot find my configuration")


def messages():
    for line in sys.stdin:
        yield json.loads(line)


def page(number):
    """A list of tools that never ends, or always is the same page."""
    if HABIT == "loop":
        return {"tools": [TOOL], "nextCursor": "again"}
    if HABIT == "endless":
        return {"tools": [], "nextCursor": str(number + 1)}
    if HABIT == "crowd":
        return {"tools": [TOOL] * 4000, "nextCursor": str(number + 1)}
    if HABIT == "twins":
        return {"tools": [TOOL, {**TOOL, "name": "other"}, TOOL]}
    if number < 4:
        return {"tools": [{**TOOL, "name": f"tool_{number}"}], "nextCursor": str(number + 1)}
    return {"tools": [{**TOOL, "name": "last", "outputSchema": OUTPUT}]}


HABITS = {
    "obeys": obeys,
    "banner": banner,
    "wrong id": wrong_id,
    "long line": long_line,
    "big": big,
    "garbage": garbage,
    "silent": silent,
    "deaf": deaf,
    "no result": no_result,
    "refuses": refuses,
    "refuses with a code of clients": refuses_with_a_code_of_clients,
    "half a character": half_a_character,
    "asks back": asks_back,
    "dies": dies,
    "fails": fails,
    "fails telling": fails_telling,
    "forges": forges,
    "odd ids": odd_ids,
    "asks without listening": asks_without_listening,
    "many blocks": many_blocks,
    "too many blocks": too_many_blocks,
    "floods": floods,
    "structured": structured,
    "many keys": many_keys,
    "JSON as text": promised('{"n": 3}'),
    "text only": promised("three"),
    "wrong JSON as text": promised('{"n": "three"}'),
    "wrong structure": lambda request: answer(request, **text("x", structuredContent={"n": "three"})),
    "pages": promised(""),
    "loop": promised(""),
    "endless": promised(""),
    "twins": promised(""),
    "crowd": promised(""),
    "dies at once": None,
    "never ready": None,
    "speaks nonsense": None,
}

if HABIT == "dies at once":
    sys.exit("cannot find my configuration")
if HABIT == "never ready":
    time.sleep(10000)
if HABIT == "speaks nonsense":
    for _ in messages():
        print("what?", flush=True)
for item in messages():
    method = item.get("method")
    if method == "initialize":
        handshake(item)
    elif method == "tools/call":
        HABITS[HABIT](item)
    elif method == "tools/list":
        answer(item, **page(int(item.get("params", {}).get("cursor", 0)) if HABIT != "loop" else 0))
    elif method == "notifications/cancelled":
        open(f"{waiting.get(item['params']['requestId'], 'heard')}.cancelled", "w").close()
    elif "id" in item:
        write({"id": item["id"], "error": {"code": -32601, "message": "Method not found"}})
