"""A response is closed however its exchange ends. Otherwise its finalizer runs whenever the garbage collector comes by, and
may read from what was closed before it: Python prints that on standard error, from 3.13 on also outside its development mode.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.projects import REPOSITORY

PROGRAM = """
import gc, socket, sys, threading
from http.client import HTTPResponse
from toolkit.errors import ToolkitError
from toolkit.guard import NetGuard, Network

def serve():
    peer, _ = listener.accept()
    with peer:
        while not peer.recv(65536).endswith(b"\\r\\n\\r\\n"):
            pass
        peer.sendall(sys.argv[2].encode())

def ask():
    net = NetGuard(Network(allow_addresses=["127.0.0.0/8"]))
    url = "http://127.0.0.1:%d" % listener.getsockname()[1]
    try:
        answer = net.fetch(url + "/") if sys.argv[1] == "fetch" else net.service(url).send("/")
        print(answer.status)
    except ToolkitError as error:
        print(error.message.partition("' ")[2])
        if sys.argv[3] == "kept":
            kept = error  # a cycle with its own traceback, as in any function that keeps an error

gc.disable()
with socket.create_server(("127.0.0.1", 0)) as listener:
    server = threading.Thread(target=serve)
    server.start()
    ask()
    server.join()
if sys.argv[3] == "dropped":
    print([thing for thing in gc.get_objects() if isinstance(thing, HTTPResponse)])
gc.collect()
"""

INVALID = "did not send a valid HTTP response"
RESPONSES = {
    "whole": ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", "200"),
    "body cut off": ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi", INVALID),
    "head cut off": ("HTTP/1.1 200 OK\r\ncontent-le", INVALID),
    "head not HTTP": ("hello\r\n\r\n", INVALID),
    "interim, then cut off": (
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi",
        INVALID,
    ),
    "unknown encoding": ("HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\nhi", INVALID),
    "switch of protocols": ("HTTP/1.1 101 Switching Protocols\r\n\r\n", INVALID),
}


def exchange(way: str, name: str, error: str) -> tuple[list[str], str]:
    """What a program prints that gets this response and keeps its error or not, and what Python prints on standard error."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, way, RESPONSES[name][0], error],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.splitlines(), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fetch", "service"])
@pytest.mark.parametrize("name", RESPONSES)
def test_no_finalizer_has_anything_to_do(way: str, name: str) -> None:
    assert exchange(way, name, "kept") == ([RESPONSES[name][1]], "")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fetch", "service"])
def test_nothing_is_left_to_the_garbage_collector(way: str) -> None:
    """From Python 3.12 on, an error that a generator of ``contextlib`` translates is part of a cycle."""
    assert exchange(way, "body cut off", "dropped") == ([INVALID, "[]"], "")
