"""A pack whose tools are operations of a web service that an OpenAPI document describes.

Promise: a call goes through the network guard to exactly the service's configured origin; redirects are refused, and the
``deny_hosts`` of the context applies. An origin that a document chose (``public_only``) is reached only at public addresses,
or at those that the context allows; every lookup is judged. Values of arguments cannot change the path or add headers or
parameters. The value of ``${NAME}`` in a header is read when a call is made, and appears in no error, preview or audit line.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict
from urllib.parse import quote, quote_plus, unquote

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolFailed, ToolkitError
from toolkit.guard.network.hosts import Url
from toolkit.guard.policy.preview import Preview
from toolkit.packs.answers import block_type, find_not_json, hide_secrets
from toolkit.runtime.arguments import Reader, describe_errors, first_errors
from toolkit.runtime.packs import HandlerParts, Pack
from toolkit.runtime.tool_context import ToolContext
from toolkit.user_state import fill_in, read_variables
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from toolkit.web import Response


# ----------------------------------------------------------------------------------------------------------------------
# OpenAPI's styles for values in paths, queries, headers and cookies; each value is percent-encoded.
#
# Only this module writes separators: whatever a value contains, it stays one value.

Encode: TypeAlias = Callable[[str], str]
Pairs: TypeAlias = list[tuple[str, str]]

_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
# Reserved characters that a query may contain as they are; without those that end a value or start the next.
_RESERVED: Final = "!$'()*,/:;?@[]"


def percent_encode(text: str) -> str:
    """Everything but letters, digits and ``-._~`` as percent escapes.

    >>> percent_encode("../a b")
    '..%2Fa%20b'
    """
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidArguments("text must not contain lone surrogates") from None


def percent_encode_except_reserved(text: str) -> str:
    """As ``percent_encode``, for a parameter with ``allowReserved``.

    >>> percent_encode_except_reserved("a/b?c&d")
    'a/b?c%26d'
    """
    percent_encode(text)  # refuses lone surrogates
    return quote(text, safe=_RESERVED)


def to_text(value: object) -> str:
    """One value as text: a string as it is, an empty text for null, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else to_json(value)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def query_pairs(name: str, value: object, style: str, explode: bool, encode: Encode = percent_encode) -> Pairs:
    """The encoded pairs of a query for one parameter; none for null and for an empty list or object.

    >>> query_pairs("id", [3, 4], "form", True)
    [('id', '3'), ('id', '4')]
    """
    if style == "deepObject":
        return list(_deep_pairs(percent_encode(name), value, encode))
    if not isinstance(value, dict | list):
        return [] if value is None else [(percent_encode(name), encode(to_text(value)))]
    if explode:
        exploded = value.items() if isinstance(value, dict) else ((name, item) for item in value)
        return [(percent_encode(key), encode(to_text(item))) for key, item in exploded]
    listed = _encode_items(value, encode)
    return [(percent_encode(name), _DELIMITERS[style].join(listed))] if listed else []


def _deep_pairs(name: str, value: object, encode: Encode) -> Iterator[tuple[str, str]]:
    """``name[key]=value``, as deep as the value goes; the standard defines one level, services use more."""
    if isinstance(value, dict):
        inner: list[tuple[str, Any]] = list(value.items())
    elif isinstance(value, list):
        inner = [(str(index), item) for index, item in enumerate(value)]
    else:
        if value is not None:
            yield name, encode(to_text(value))
        return
    for key, item in inner:
        yield from _deep_pairs(f"{name}%5B{percent_encode(key)}%5D", item, encode)


def path_text(name: str, value: object, style: str, explode: bool) -> str:
    """One parameter as encoded text in a path.

    >>> path_text("id", [3, 4], "matrix", True)
    ';id=3;id=4'
    """
    if style == "simple":
        return simple_text(value, explode, percent_encode)
    lead = "." if style == "label" else ";"
    if not isinstance(value, dict | list):
        text = percent_encode(to_text(value))
        return (
            f".{text}"
            if style == "label"
            else f";{percent_encode(name)}={text}"
            if text
            else f";{percent_encode(name)}"
        )
    if explode:
        pairs = query_pairs(name, value, "form", True)
        named = isinstance(value, dict) or style == "matrix"
        return "".join(f"{lead}{key}={item}" if named else f"{lead}{item}" for key, item in pairs)
    listed = ",".join(_encode_items(value, percent_encode))
    return f".{listed}" if style == "label" else f";{percent_encode(name)}={listed}"


def simple_text(value: object, explode: bool, encode: Encode) -> str:
    """Values separated by commas, the default style of paths and headers.

    >>> simple_text({"a": 1, "b": True}, True, percent_encode)
    'a=1,b=true'
    """
    if isinstance(value, dict) and explode:
        return ",".join(f"{encode(str(key))}={encode(to_text(item))}" for key, item in value.items())
    return ",".join(_encode_items(value, encode)) if isinstance(value, dict | list) else encode(to_text(value))


def _encode_items(value: Mapping[str, object] | list[object], encode: Encode) -> list[str]:
    items = [part for pair in value.items() for part in pair] if isinstance(value, Mapping) else value
    return [encode(to_text(item)) for item in items]


# ----------------------------------------------------------------------------------------------------------------------
# Request bodies: JSON, forms, multipart, text and bytes.

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


class BodyEncoding(TypedDict, total=False):
    """How one property of a form, or one part, is encoded, where that is not the default."""

    contentType: str
    base64: bool
    """The property is base64 of bytes, and the bytes are sent."""
    style: str
    explode: bool
    allowReserved: bool


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON, whatever parameters it has.

    >>> [is_json(name) for name in ("application/problem+json; charset=utf-8", "text/html")]
    [True, False]
    """
    name = media_type.partition(";")[0].strip().lower()
    return name in ("application/json", "text/json") or name.endswith("+json")


def encode_body(
    value: object, media_type: str, encoding: Mapping[str, BodyEncoding], *, is_base64: bool
) -> tuple[str, bytes]:
    """The content type and the bytes to send for one value."""
    if is_json(media_type):
        return media_type, _encode_utf8(to_json(value))
    if media_type == FORM:
        return media_type, _encode_form(_require_object(value), encoding).encode()
    if media_type == MULTIPART:
        boundary = secrets.token_hex(16)
        return f"{media_type}; boundary={boundary}", b"".join(
            _encode_multipart(_require_object(value), encoding, boundary)
        )
    if is_base64:
        return media_type, _decode_base64("body", value)
    return f"{media_type}; charset=utf-8", _encode_utf8(to_text(value))


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments("text must not contain lone surrogates") from None


def _require_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidArguments("the body of a form must be an object")
    return value


def _decode_base64(name: str, value: object) -> bytes:
    try:
        return base64.b64decode(to_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArguments(f"{name}: bytes must be base64-encoded") from None


def _encode_form(value: dict[str, object], encoding: Mapping[str, BodyEncoding]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, item in value.items():
        how = encoding.get(name, {})
        if "style" in how or "explode" in how or "allowReserved" in how:
            style = how.get("style", "form")
            encode = percent_encode_except_reserved if how.get("allowReserved") else percent_encode
            pairs += query_pairs(name, item, style, how.get("explode", style == "form"), encode)
        else:
            # Objects are sent as JSON, the default for such a property.
            items = item if isinstance(item, list) else [] if item is None else [item]
            pairs += [(quote_plus(name), quote_plus(to_text(each))) for each in items]
    return "&".join(f"{name}={text}" for name, text in pairs)


def _encode_multipart(value: dict[str, object], encoding: Mapping[str, BodyEncoding], boundary: str) -> Iterator[bytes]:
    for name, item in value.items():
        how = encoding.get(name, {})
        for each in item if isinstance(item, list) else [] if item is None else [item]:
            yield f"--{boundary}\r\n".encode() + _encode_part(name, each, how) + b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _encode_part(name: str, value: object, how: BodyEncoding) -> bytes:
    head = f'content-disposition: form-data; name="{_escape_quoted(name)}"'
    if how.get("base64"):
        content, default = _decode_base64(name, value), "application/octet-stream"
        head += f'; filename="{_escape_quoted(name)}"'
    else:
        is_text = isinstance(value, str)
        content, default = _encode_utf8(to_text(value)), "text/plain; charset=utf-8" if is_text else "application/json"
    return _encode_utf8(f"{head}\r\ncontent-type: {how.get('contentType', default)}\r\n\r\n") + content


def _escape_quoted(name: str) -> str:
    """A name for use between quotes, escaped as browsers do it."""
    return re.sub(r'[\x00-\x1f"\x7f]', lambda match: f"%{ord(match[0]):02X}", name)


# ----------------------------------------------------------------------------------------------------------------------
# A service's answer as the output of a tool, or as an error that names the service.

_MAX_QUOTED: Final = 2000
_MAX_ERRORS: Final = 50
# Worth another try: too early, too often, or a server on the way was not available.
_RETRIABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class OutputModel:
    """The output model of a tool, given as ``module:Class`` and imported when it is first needed."""

    def __init__(self, name: str) -> None:
        self._module, colon, self._class = name.partition(":")
        if not colon:
            raise SetupError(f"an output model must be given as 'module:Class', not {name!r}")

    @cached_property
    def reader(self) -> Reader:
        return Reader(getattr(importlib.import_module(self._module), self._class))

    @property
    def is_content(self) -> bool:
        return issubclass(self.reader.model, ContentOutput)


def read_answer(
    owner: str, response: Response, output: OutputModel, secrets: Iterable[str], *, enforce: bool
) -> object:
    """The output; ``secrets`` are kept out of error texts.

    A value that the output schema refuses is an error with ``enforce``, otherwise returned as it came.
    """
    if not 200 <= response.status < 300:
        raise _status_error(owner, response, secrets)
    if response.truncated:
        size = len(response.body)
        raise ToolFailed("TOO_LARGE", f"{owner} answered with more than {size} bytes", status=response.status)
    if output.is_content:
        return _read_content(response, output)
    value = _read_json(owner, response, secrets)
    try:
        return output.reader.from_wire(value)
    except ValidationError as error:
        if enforce:
            raise _schema_error(owner, response, error) from None
        return value


def _status_error(owner: str, response: Response, secrets: Iterable[str]) -> ToolFailed:
    try:
        phrase = f"{response.status} {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = str(response.status)
    if 300 <= response.status < 400:
        message = (
            f"{owner} answered {phrase}: redirects are not followed; if it has moved, change its url in the settings"
        )
        return ToolFailed(f"HTTP_{response.status}", message, status=response.status)
    quoted = _quote_body(response, secrets)
    message = f"{owner} answered {phrase}: {quoted}" if quoted else f"{owner} answered {phrase}"
    failed = ToolFailed(f"HTTP_{response.status}", message, status=response.status)
    failed.retriable = response.status in _RETRIABLE
    return failed


def _quote_body(response: Response, secrets: Iterable[str]) -> str:
    """The beginning of a body as text for an error, without secrets."""
    if b"\0" in response.body[:_MAX_QUOTED]:
        return f"{len(response.body)} bytes that are not text"
    text = _without_secrets(response.text().strip(), secrets)
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}... ({len(text)} characters)"


def _without_secrets(text: str, secrets: Iterable[str]) -> str:
    return hide_secrets(text, (("[secret]", value) for value in secrets))


def _read_json(owner: str, response: Response, secrets: Iterable[str]) -> object:
    if not response.body.strip():
        return None
    if response.content_type and not is_json(response.content_type):
        kind = _without_secrets(response.content_type, secrets)[:100]
        message = f"{owner} answered with {kind}, but its OpenAPI document declares JSON"
        raise ToolFailed("REMOTE", f"{message}: {_quote_body(response, secrets)[:200]}", status=response.status)
    try:
        value: object = from_json(response.body.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
    except ValueError:
        raise ToolFailed("REMOTE", f"{owner} answered with text that is not JSON", status=response.status) from None
    if problem := find_not_json(value):
        raise ToolFailed("REMOTE", f"{owner} sent an answer that {problem}", status=response.status)
    return value


def _schema_error(owner: str, response: Response, error: ValidationError) -> ToolFailed:
    return ToolFailed(
        "INVALID_OUTPUT",
        f"{owner} sent an answer that its OpenAPI document does not allow: {describe_errors(error)}",
        status=response.status,
        errors=first_errors(error, _MAX_ERRORS),
        error_count=error.error_count(),
    )


def _read_content(response: Response, output: OutputModel) -> object:
    """An answer for which the document declares no JSON: text as it is, JSON also as data, anything else as media."""
    media_type = response.content_type.partition(";")[0].strip().lower()
    content: dict[str, Any] = {}
    if _is_text(media_type, response.body):
        content["text"] = response.text()
        if is_json(media_type) and response.body.strip():
            content = {**content, **_read_structured(response.body)}
    elif response.body:
        data = base64.b64encode(response.body).decode()
        content["blocks"] = (ContentBlock(block_type(media_type), media_type or "application/octet-stream", data=data),)
    return output.reader.model(**content)


def _read_structured(body: bytes) -> dict[str, Any]:
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        return {}
    return {} if find_not_json(value) else {"structured": value}


def _is_text(media_type: str, body: bytes) -> bool:
    family = media_type.partition("/")[0]
    if is_json(media_type) or family == "text" or media_type.endswith(("+xml", "/xml")):
        return True
    if family in ("image", "audio", "video", "font") or b"\0" in body[:_MAX_QUOTED]:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


# ----------------------------------------------------------------------------------------------------------------------
# A tool's arguments as a request to a service: where each argument goes and how it is encoded there.

_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_SAFE_IN_PATH: Final = "!$&'()*+,-./:;=@_~%"
_STYLES: Final = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}

ApiParameter = TypedDict(
    "ApiParameter",
    {
        "in": Literal["path", "query", "header", "cookie"],
        "name": str,
        "style": str,
        "explode": bool,
        "allowReserved": bool,
        "json": bool,
    },
    total=False,
)
"""Where one argument goes. ``name`` is its name at the service, if that differs; ``json`` means that it is sent as JSON;
the other keys are OpenAPI's, with its defaults."""


class ApiBody(TypedDict, total=False):
    """Which argument is the body and how it is encoded; ``base64`` means that it is base64 of the bytes to send."""

    property: str
    mediaType: str
    encoding: dict[str, BodyEncoding]
    base64: bool


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """What is sent. ``target`` is the encoded path and query."""

    target: str
    headers: dict[str, str]
    body: bytes | None


def check_parameters(path: str, parameters: Mapping[str, ApiParameter]) -> None:
    """Raises ``SetupError`` if an operation cannot be called as it is configured."""
    if not path.startswith("/"):
        raise SetupError(f"the path of an operation must start with a slash: {path!r}")
    for key, how in parameters.items():
        place = how.get("in")
        if place not in _STYLES:
            raise SetupError(f"the parameter {key!r} is in {place!r}; use one of {', '.join(_STYLES)}")
        if _style(how) not in _STYLES[place]:
            raise SetupError(f"the style of the {place} parameter {key!r} must be one of {', '.join(_STYLES[place])}")
    known = {how.get("name", key) for key, how in parameters.items() if how.get("in") == "path"}
    for name in _TEMPLATE.findall(path):
        if name not in known:
            raise SetupError(f"the path {path!r} needs {{{name}}}, which is not a parameter of the operation")


def build_request(
    base: str, path: str, parameters: Mapping[str, ApiParameter], body: ApiBody | None, arguments: Mapping[str, Any]
) -> ServiceRequest:
    """The request for these arguments, below the path ``base`` of a service."""
    values: dict[str, str] = {}
    query: Pairs = []
    headers: dict[str, str] = {}
    cookies: Pairs = []
    for key, how in parameters.items():
        if key not in arguments:
            continue
        name, value = how.get("name", key), arguments[key]
        if how.get("json"):
            value = to_json(value)
        style, explode = _style(how), how.get("explode", _style(how) == "form")
        if how["in"] == "path":
            values[name] = path_text(name, value, style, explode)
            _refuse_empty(key, values[name])
        elif how["in"] == "query":
            encode = percent_encode_except_reserved if how.get("allowReserved") else percent_encode
            query += query_pairs(name, value, style, explode, encode)
        elif how["in"] == "header" and value is not None:
            headers[name] = simple_text(value, explode, str)
        elif how["in"] == "cookie":
            cookies += query_pairs(name, value, style, explode)
    if cookies:
        headers["cookie"] = "; ".join(f"{name}={text}" for name, text in cookies)
    content = None
    if body is not None and body["property"] in arguments:
        media_type, content = encode_body(
            arguments[body["property"]],
            body["mediaType"],
            body.get("encoding", {}),
            is_base64=body.get("base64", False),
        )
        headers["content-type"] = media_type
    return ServiceRequest(_target(base, path, values, query), headers, content)


def _style(how: ApiParameter) -> str:
    return how.get("style", _STYLES[how["in"]][0])


def _refuse_empty(key: str, text: str) -> None:
    if not text:
        raise InvalidArguments(f"{key}: it is part of the path and must not be empty")


def _target(base: str, path: str, values: Mapping[str, str], query: Pairs) -> str:
    template, _, fixed = path.partition("#")[0].partition("?")
    for segment in template.split("/"):
        _refuse_dots(_fill(segment, values))
    pairs = [fixed] if fixed else []
    pairs += [f"{name}={text}" for name, text in query]
    target = base.rstrip("/") + _fill(template, values)
    return f"{target}?{'&'.join(pairs)}" if pairs else target


def _fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its parameters filled in; the text around them stays a path, whatever it contains."""
    pieces = _TEMPLATE.split(template)
    for at, piece in enumerate(pieces):
        if at % 2:
            if piece not in values:
                raise InvalidArguments(f"{piece}: it is part of the path and must be given")
            pieces[at] = values[piece]
        else:
            pieces[at] = quote(piece, safe=_SAFE_IN_PATH)
    return "".join(pieces)


def _refuse_dots(segment: str) -> None:
    """Percent-encoding does not change ``..``; some servers also see it after ``%2F``, and ignore what follows a ``;``."""
    if any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", unquote(segment))):
        raise InvalidArguments(
            "'.' and '..' must not be steps of a path: they would lead to another path of the service"
        )


MAX_BYTES: Final = 10 << 20
_METHODS: Final = ("get", "head", "options", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiService:
    """Where a service is, and what is sent with every call.

    :param name: its name in errors.
    :param url: its address; the paths of operations are below it.
    :param headers: sent with every call; ``${NAME}`` in a value stands for the environment variable of that name.
    :param timeout: seconds for one call.
    :param public_only: refuse addresses that are not public, because a document chose the url and not a person.

    >>> ApiService(name="pets", url="https://pets.example.org/v1").owner
    "the service 'pets'"
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0
    public_only: bool = False

    def __post_init__(self) -> None:
        from toolkit.web import check_headers

        try:
            url = Url.parse(self.url)
            check_headers(self.headers)
        except ToolkitError as error:
            raise SetupError(f"{self.owner}: {error.message}") from None
        if "?" in url.target:
            raise SetupError(f"{self.owner}: its url must not have a query; use 'headers' instead")
        if not self.timeout > 0:
            raise SetupError(f"{self.owner}: 'timeout' must be a number of seconds greater than 0")

    @property
    def owner(self) -> str:
        return f"the service {self.name!r}"

    @property
    def base(self) -> str:
        """The path of the url, which the paths of operations are appended to."""
        return Url.parse(self.url).target.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """How one operation is called. An argument that is neither a parameter nor the body is not sent.

    :param path: below the service's url, with parameters as ``{name}``.
    :param parameters: for each argument, where it goes, with OpenAPI's keys.
    :param body: which argument is the body, and its media type.
    :param accept: the value of the ``Accept`` header.
    :param output: the output model, as ``module:Class``.
    """

    method: str
    path: str
    output: str
    parameters: Mapping[str, ApiParameter] = field(default_factory=dict)
    body: ApiBody | None = None
    accept: str = "application/json"

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise SetupError(f"the method of an operation must be one of {', '.join(_METHODS)}, not {self.method!r}")
        check_parameters(self.path, self.parameters)


def api_pack(service: ApiService, operations: Mapping[str, ApiOperation]) -> Pack:
    """The handlers of tools, by name; each calls one operation of ``service``.

    >>> pets = ApiService(name="pets", url="https://pets.example.org/v1")
    >>> listing = ApiOperation(method="get", path="/pets", output="toolkit.wire.content:ContentOutput")
    >>> list(api_pack(pets, {"list_pets": listing}).handlers)
    ['list_pets']
    """
    return Pack({name: _make_handler(service, operation) for name, operation in operations.items()})


def _make_handler(service: ApiService, operation: ApiOperation) -> HandlerParts[..., object]:
    output = OutputModel(operation.output)

    def run(args: BaseModel, ctx: ToolContext) -> object:
        ctx.metadata(title=f"{operation.method.upper()} {operation.path}")
        request = _build_request(service, operation, args)
        variables = read_variables(service.headers.values(), service.owner)
        own = {name: fill_in(text, variables) for name, text in service.headers.items()}
        try:
            response = ctx.net.service(service.url, public_only=service.public_only).send(
                request.target,
                method=operation.method.upper(),
                headers=_merge_headers({"accept": operation.accept}, request.headers, own),
                body=request.body,
                timeout=service.timeout,
                max_bytes=MAX_BYTES,
            )
        except SandboxViolation as error:
            raise _explain_refusal(service, error) from None
        ctx.metadata(status=response.status)
        return read_answer(service.owner, response, output, variables.values(), enforce=ctx.output_check == "enforce")

    def preview(args: BaseModel, ctx: ToolContext) -> Preview:
        try:
            return Preview(url=Url.parse(service.url).origin + _build_request(service, operation, args).target)
        except ToolkitError:  # the call itself reports it; rules on hosts need only the host
            return Preview(url=service.url)

    return HandlerParts(run, preview=preview, place="remote")


def _explain_refusal(service: ApiService, error: SandboxViolation) -> SandboxViolation:
    if not service.public_only or error.details.get("reason") != "NOT_PUBLIC":
        return error
    way_out = "if it is the right one, set it as 'url' in the import's settings"
    message = f"{error.message}; {service.owner} has its address from its OpenAPI document: {way_out}"
    return SandboxViolation(message, details=error.details)


def _build_request(service: ApiService, operation: ApiOperation, args: BaseModel) -> ServiceRequest:
    arguments = args.__pydantic_serializer__.to_python(args, mode="json", by_alias=True, exclude_unset=True)
    return build_request(service.base, operation.path, operation.parameters, operation.body, arguments)


def _merge_headers(*headers: Mapping[str, str]) -> dict[str, str]:
    """All headers, names in lower case; later ones win, so that no argument can replace the service's own."""
    return {name.lower(): value for each in headers for name, value in each.items()}
