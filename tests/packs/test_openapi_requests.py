"""What an operation's arguments become on the wire: request lines, headers and bodies, byte for byte."""

from __future__ import annotations

import email
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import tries
from tests.packs.service import Service
from toolkit.errors import InvalidArguments, SetupError, ToolkitError
from toolkit.packs import ApiBody, ApiOperation, ApiParameter, ApiService, api_pack
from toolkit.schema.models import ToolModel
from toolkit.testing import StandaloneContext

CONTENT = "toolkit.wire.content:ContentOutput"


class Arguments(ToolModel):
    """Whatever a test gives."""


def call(
    service: Service,
    ctx: StandaloneContext,
    arguments: dict[str, Any],
    *,
    method: str = "get",
    path: str = "/x",
    base: str = "/v1",
    headers: dict[str, str] | None = None,
    parameters: dict[str, ApiParameter] | None = None,
    body: ApiBody | None = None,
    accept: str = "application/json",
) -> Any:
    operation = ApiOperation(
        method=method, path=path, parameters=parameters or {}, body=body, output=CONTENT, accept=accept
    )
    pack = api_pack(ApiService(name="pets", url=service.url + base, headers=headers or {}), {"op": operation})
    return pack.handlers["op"](Arguments.model_validate(arguments), ctx)


SHADES = ["a b", "c&d"]
COLOUR = {"R": 100, "G": "x=y"}
# Each row: how the parameter `c` is written, its value, what stands in the query.
QUERIES: dict[str, tuple[ApiParameter, object, str]] = {
    "a text": ({"in": "query"}, "a&b=c#d/é", "?c=a%26b%3Dc%23d%2F%C3%A9"),
    "a number": ({"in": "query"}, 1.5, "?c=1.5"),
    "a boolean": ({"in": "query"}, True, "?c=true"),
    "null": ({"in": "query"}, None, ""),
    "an empty text": ({"in": "query"}, "", "?c="),
    "a list": ({"in": "query"}, SHADES, "?c=a%20b&c=c%26d"),
    "an empty list": ({"in": "query"}, [], ""),
    "a list at once": ({"in": "query", "explode": False}, SHADES, "?c=a%20b,c%26d"),
    "an object": ({"in": "query"}, COLOUR, "?R=100&G=x%3Dy"),
    "an object at once": ({"in": "query", "explode": False}, COLOUR, "?c=R,100,G,x%3Dy"),
    "with spaces": ({"in": "query", "style": "spaceDelimited"}, SHADES, "?c=a%20b%20c%26d"),
    "with pipes": ({"in": "query", "style": "pipeDelimited"}, SHADES, "?c=a%20b%7Cc%26d"),
    "with pipes, exploded": ({"in": "query", "style": "pipeDelimited", "explode": True}, SHADES, "?c=a%20b&c=c%26d"),
    "deep": ({"in": "query", "style": "deepObject"}, {"a": {"b": [1, 2]}, "d]": None}, "?c%5Ba%5D%5Bb%5D%5B0%5D=1&c%5Ba%5D%5Bb%5D%5B1%5D=2"),
    "reserved": ({"in": "query", "allowReserved": True}, "a/b?c&d=e#f+g", "?c=a/b?c%26d%3De%23f%2Bg"),
    "JSON": ({"in": "query", "json": True}, {"a": ["b"]}, "?c=%7B%22a%22%3A%5B%22b%22%5D%7D"),
    "text as JSON": ({"in": "query", "json": True}, "b", "?c=%22b%22"),
    "another name": ({"in": "query", "name": "filter[c]&x"}, "b", "?filter%5Bc%5D%26x=b"),
}  # fmt: skip


@pytest.mark.parametrize("case", QUERIES)
def test_queries(service: Service, ctx: StandaloneContext, case: str) -> None:
    how, value, query = QUERIES[case]
    call(service, ctx, {"c": value}, parameters={"c": how})
    assert service.last.line == f"GET /v1/x{query} HTTP/1.1"


# Each row: how the parameter `c` is written, its value, what stands in the path.
PATHS: dict[str, tuple[ApiParameter, object, str]] = {
    "a text": ({"in": "path"}, "a/b?c#d", "a%2Fb%3Fc%23d"),
    "a number": ({"in": "path"}, 7, "7"),
    "a list": ({"in": "path"}, SHADES, "a%20b,c%26d"),
    "an object": ({"in": "path"}, COLOUR, "R,100,G,x%3Dy"),
    "an object, exploded": ({"in": "path", "explode": True}, COLOUR, "R=100,G=x%3Dy"),
    "label": ({"in": "path", "style": "label"}, "a.b", ".a.b"),
    "label, a list": ({"in": "path", "style": "label"}, [1, 2], ".1,2"),
    "label, a list, exploded": ({"in": "path", "style": "label", "explode": True}, [1, 2], ".1.2"),
    "label, an object, exploded": ({"in": "path", "style": "label", "explode": True}, COLOUR, ".R=100.G=x%3Dy"),
    "matrix": ({"in": "path", "style": "matrix"}, "a;b", ";c=a%3Bb"),
    "matrix, a list": ({"in": "path", "style": "matrix"}, [1, 2], ";c=1,2"),
    "matrix, a list, exploded": ({"in": "path", "style": "matrix", "explode": True}, [1, 2], ";c=1;c=2"),
    "matrix, an object, exploded": ({"in": "path", "style": "matrix", "explode": True}, COLOUR, ";R=100;G=x%3Dy"),
}


@pytest.mark.parametrize("case", PATHS)
def test_paths(service: Service, ctx: StandaloneContext, case: str) -> None:
    how, value, text = PATHS[case]
    call(service, ctx, {"c": value}, path="/a b/{c}/d", parameters={"c": how})
    assert service.last.line == f"GET /v1/a%20b/{text}/d HTTP/1.1"


def test_a_query_that_belongs_to_the_path(service: Service, ctx: StandaloneContext) -> None:
    call(service, ctx, {"q": 1}, path="/x?action=list#variant", parameters={"q": {"in": "query"}}, base="")
    assert service.last.line == "GET /x?action=list&q=1 HTTP/1.1"


@pytest.mark.parametrize("value", ["", ".", "..", "../x", "a/../../b", "..\\x", "a/.", "..;x", "a/..;b=1/c", None, []])
def test_values_that_would_lead_elsewhere(service: Service, ctx: StandaloneContext, value: object) -> None:
    with pytest.raises(InvalidArguments):
        call(service, ctx, {"c": value}, path="/x/{c}/y", parameters={"c": {"in": "path"}})
    assert service.seen == []


def test_dots_put_together_from_two_values(service: Service, ctx: StandaloneContext) -> None:
    with pytest.raises(InvalidArguments):
        call(service, ctx, {"a": ".", "b": "."}, path="/{a}{b}", parameters={"a": {"in": "path"}, "b": {"in": "path"}})
    with pytest.raises(InvalidArguments, match="c: it is part of the path and must be given"):
        call(service, ctx, {}, path="/{c}", parameters={"c": {"in": "path"}})
    assert service.seen == []


AWKWARD = st.one_of(
    st.text(max_size=20),
    st.lists(
        st.sampled_from(["..", "/", "\\", "%2e", "%2F", "?", "#", "&", "=", ";", "\r\n", "\0", "x", "@", ":"])
    ).map("".join),
)


@tries(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(AWKWARD, AWKWARD)
def test_no_value_changes_anything_but_its_own_place(
    service: Service, ctx: StandaloneContext, inner: str, query: str
) -> None:
    from urllib.parse import parse_qsl, unquote

    service.forget()
    parameters: dict[str, ApiParameter] = {"c": {"in": "path"}, "q": {"in": "query"}, "r": {"in": "query"}}
    try:
        call(service, ctx, {"c": inner, "q": query, "r": "end"}, path="/x/{c}/y", parameters=parameters)
    except InvalidArguments:
        assert service.seen == []
        return
    method, target, version = service.last.line.split(" ")
    path, _, asked = target.partition("?")
    assert (method, version) == ("GET", "HTTP/1.1")
    empty, base, first, value, last = path.split("/")
    assert (empty, base, first, unquote(value), last) == ("", "v1", "x", inner, "y")
    assert parse_qsl(asked, keep_blank_values=True) == [("q", query), ("r", "end")]
    assert service.last.headers.keys() == {"host", "accept", "user-agent", "accept-encoding", "connection"}


def test_headers_and_cookies(service: Service, ctx: StandaloneContext) -> None:
    parameters: dict[str, ApiParameter] = {
        "X-Id": {"in": "header"},
        "list": {"in": "header", "name": "X-List"},
        "Accept-Language": {"in": "header"},
        "a": {"in": "cookie"},
        "b": {"in": "cookie"},
    }
    arguments = {"X-Id": 7, "list": ["a", "b"], "Accept-Language": None, "a": "x; y", "b": 2}
    call(service, ctx, arguments, parameters=parameters, accept="text/csv")
    sent = service.last.headers
    assert (sent["x-id"], sent["x-list"], sent["cookie"], sent["accept"]) == ("7", "a,b", "a=x%3B%20y; b=2", "text/csv")
    assert "accept-language" not in sent


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "日本"])
def test_headers_cannot_be_broken_out_of(service: Service, ctx: StandaloneContext, value: str) -> None:
    with pytest.raises(InvalidArguments, match="the header 'x-id' must not contain"):
        call(service, ctx, {"X-Id": value}, parameters={"X-Id": {"in": "header"}})
    assert service.seen == []


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Transfer-Encoding", "Connection", "X Y", "Proxy-Authorization"]
)
def test_headers_that_are_not_for_an_argument(service: Service, ctx: StandaloneContext, name: str) -> None:
    with pytest.raises(InvalidArguments):
        call(service, ctx, {"h": "x"}, parameters={"h": {"in": "header", "name": name}})
    assert service.seen == []


def test_a_header_of_the_service_is_not_replaced_by_an_argument(
    service: Service, ctx: StandaloneContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PETS_TOKEN", "secret")
    parameters: dict[str, ApiParameter] = {"h": {"in": "header", "name": "x-KEY"}}
    call(service, ctx, {"h": "mine"}, parameters=parameters, headers={"X-Key": "Bearer ${PETS_TOKEN}/${}$"})
    assert service.last.headers["x-key"] == "Bearer secret/${}$"


# Each row: media type, how parts are written, the value, content type and bytes as they arrive.
BODIES: dict[str, tuple[ApiBody, object, str, bytes]] = {
    "JSON": (
        {"property": "body", "mediaType": "application/json"},
        {"a": [1, None, "é"]},
        "application/json",
        '{"a":[1,null,"é"]}'.encode(),
    ),
    "null": (
        {"property": "body", "mediaType": "application/merge-patch+json"},
        None,
        "application/merge-patch+json",
        b"null",
    ),
    "a form": (
        {"property": "body", "mediaType": "application/x-www-form-urlencoded"},
        {"a": "x y&z", "b": [1, 2], "c": {"d": True}, "e": None},
        "application/x-www-form-urlencoded",
        b"a=x+y%26z&b=1&b=2&c=%7B%22d%22%3Atrue%7D",
    ),
    "a form in styles": (
        {
            "property": "body",
            "mediaType": "application/x-www-form-urlencoded",
            "encoding": {"a": {"style": "deepObject"}, "b": {"explode": False}, "c": {"allowReserved": True}},
        },
        {"a": {"x": {"y": 1}}, "b": [1, 2], "c": "p/q"},
        "application/x-www-form-urlencoded",
        b"a%5Bx%5D%5By%5D=1&b=1,2&c=p/q",
    ),
    "text": ({"property": "body", "mediaType": "text/csv"}, "a;é\n", "text/csv; charset=utf-8", "a;é\n".encode()),
    "bytes": (
        {"property": "body", "mediaType": "application/octet-stream", "base64": True},
        "AP8=",
        "application/octet-stream",
        b"\x00\xff",
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies(service: Service, ctx: StandaloneContext, case: str) -> None:
    body, value, content_type, sent = BODIES[case]
    call(service, ctx, {"body": value}, method="post", body=body)
    assert service.last.line == "POST /v1/x HTTP/1.1"
    assert (service.last.headers["content-type"], service.last.body) == (content_type, sent)
    assert service.last.headers["content-length"] == str(len(sent))


def test_parts(service: Service, ctx: StandaloneContext) -> None:
    body: ApiBody = {
        "property": "body",
        "mediaType": "multipart/form-data",
        "encoding": {"file": {"base64": True, "contentType": "image/png"}, "more": {"base64": True}},
    }
    value = {"file": "AP8=", "more": ["YQ==", "Yg=="], 'na"me\r\nx': "text", "data": {"a": 1}, "none": None}
    call(service, ctx, {"body": value}, method="put", body=body)
    head = f"content-type: {service.last.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + service.last.body)
    parts = [
        (part["content-disposition"], part["content-type"], part.get_payload(decode=True))
        for part in message.walk()
        if not part.is_multipart()
    ]
    assert parts == [
        ('form-data; name="file"; filename="file"', "image/png", b"\x00\xff"),
        ('form-data; name="more"; filename="more"', "application/octet-stream", b"a"),
        ('form-data; name="more"; filename="more"', "application/octet-stream", b"b"),
        ('form-data; name="na%22me%0D%0Ax"', "text/plain; charset=utf-8", b"text"),
        ('form-data; name="data"', "application/json", b'{"a":1}'),
    ]


def test_what_is_no_base64(service: Service, ctx: StandaloneContext) -> None:
    body: ApiBody = {"property": "body", "mediaType": "application/pdf", "base64": True}
    with pytest.raises(InvalidArguments, match="bytes must be base64-encoded"):
        call(service, ctx, {"body": "!!"}, method="post", body=body)
    assert service.seen == []


def test_a_body_that_is_not_given(service: Service, ctx: StandaloneContext) -> None:
    body: ApiBody = {"property": "body", "mediaType": "application/json"}
    call(service, ctx, {}, method="post", body=body)
    assert (service.last.headers["content-length"], service.last.body) == ("0", b"")
    assert "content-type" not in service.last.headers
    call(service, ctx, {}, method="delete", body=body)
    assert "content-length" not in service.last.headers


@pytest.mark.parametrize("method", ["get", "head", "options", "post", "put", "patch", "delete"])
def test_methods(service: Service, ctx: StandaloneContext, method: str) -> None:
    call(service, ctx, {}, method=method)
    assert service.last.line.startswith(f"{method.upper()} /v1/x ")


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "trace", "path": "/x"}, "the method of an operation must be one of"),
    "path": ({"method": "get", "path": "x"}, "must start with a slash"),
    "place": ({"method": "get", "path": "/x", "parameters": {"a": {"in": "body"}}}, "'a' is in 'body'"),
    "style": (
        {"method": "get", "path": "/x", "parameters": {"a": {"in": "path", "style": "form"}}},
        "the style of the path parameter 'a' must be one of simple, label, matrix",
    ),
    "template": ({"method": "get", "path": "/{a}"}, "needs {a}, which is not a parameter"),
    "output": ({"method": "get", "path": "/x", "output": "Output"}, "must be given as 'module:Class'"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_of_an_operation(case: str) -> None:
    keys, told = MISTAKES[case]
    service = ApiService(name="pets", url="https://pets.example.org")
    with pytest.raises(SetupError) as caught:
        api_pack(service, {"op": ApiOperation(**{"output": CONTENT, **keys})})
    assert told in str(caught.value)


@pytest.mark.parametrize("keys", [
    {"url": "ftp://x"}, {"url": "https://me:secret@x"}, {"url": "https://x/?key=secret"}, {"url": "x"}, {"timeout": 0},
    {"headers": {"Host": "x"}}, {"headers": {"X": "secret\r\nY: 1"}},
])  # fmt: skip
def test_mistakes_of_a_service(keys: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="the service 'pets'") as caught:
        ApiService(**{"name": "pets", "url": "https://pets.example.org", **keys})
    assert "secret" not in str(caught.value)


def test_arguments_are_json(service: Service, ctx: StandaloneContext) -> None:
    call(
        service, ctx, {"body": {"a": 10**30}}, method="post", body={"property": "body", "mediaType": "application/json"}
    )
    assert json.loads(service.last.body) == {"a": 10**30}
    with pytest.raises(ToolkitError):
        call(service, ctx, {"q": "x" * 9000}, parameters={"q": {"in": "query"}})
