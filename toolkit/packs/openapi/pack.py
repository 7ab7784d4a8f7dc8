"""A pack whose tools are operations of a web service that an OpenAPI document describes.

Promise: a call goes through the network guard to exactly the service's configured origin; redirects are refused, and the
``deny_hosts`` of the context applies. An origin that a document chose (``public_only``) is reached only at public addresses,
or at those that the context allows; every lookup is judged. Values of arguments cannot change the path or add headers or
parameters. The value of ``${NAME}`` in a header is read when a call is made, and appears in no error, preview or audit line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from toolkit.errors import SandboxViolation, SetupError, ToolkitError
from toolkit.guard.environment_variables import fill_in, read_variables
from toolkit.guard.network.hosts import Url
from toolkit.guard.policy.preview import Preview
from toolkit.packs.openapi.answer import OutputModel, read_answer
from toolkit.packs.openapi.request import ApiBody, ApiParameter, ServiceRequest, build_request, check_parameters
from toolkit.runtime.catalog.handler_parts import HandlerParts
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.tool_context import ToolContext

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
        from toolkit.guard.network.guard import check_headers

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

    return HandlerParts(run, preview=preview)


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
