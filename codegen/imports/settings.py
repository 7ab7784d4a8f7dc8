"""``[tool.toolkit.imports.<name>]``: where imported tools come from, and how they are reached.

Promise: commands, addresses and names of variables come only from these settings, so no imported file can decide what is
started or called. (``trust`` asks a person about the settings themselves, because they are in the workspace.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from toolkit.errors import SpecError, ToolkitError
from toolkit.schema.problems import Finding, below, is_misspelt, quote, unknown_key
from toolkit.schema.spec import Origin, ToolSpec, is_wire_name

if TYPE_CHECKING:
    from toolkit.codegen.settings import Settings

ImportKind: TypeAlias = Literal["mcp", "openapi", "tools", "functions", "models"]
ServerNetwork: TypeAlias = bool | Literal["guarded"]

POINTER: Final = "/tool/toolkit/imports"


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """``oauth = true``, or a table with these keys; see ``McpOAuth``."""

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    issuer: str = ""
    redirect_port: int = 0

    def given(self) -> dict[str, str | int]:
        """What the settings name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """One import. ``kind`` follows from the one key that names the source of the tools.

    >>> ImportSettings("files", command=("npx", "server"), prefix="fs_").kind
    'mcp'
    """

    name: str
    prefix: str = ""
    """Added to every tool's name; the origin sees its own names."""
    command: tuple[str, ...] = ()
    """Starts an MCP server that communicates over standard input and output."""
    url: str = ""
    """The address of an MCP server; with ``openapi``, of the service."""
    env: tuple[str, ...] | Mapping[str, str] = ()
    """Names of environment variables that the command gets, or values by name, in which ``${NAME}`` is such a variable."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request; ``${NAME}`` in a value is an environment variable, read when connecting."""
    sandbox: bool = True
    network: ServerNetwork = False
    """What the command reaches: nothing, what the toolkit's ``Network`` allows (``guarded``), or what this machine does."""
    timeout: float = 60.0
    """Seconds for one call."""
    startup_timeout: float | None = None
    """Seconds for the start of a server, if that is not ``timeout``."""
    read_roots: tuple[str, ...] = ()
    """Directories outside the workspace that the command reads: its own environment."""
    cwd: str = "."
    """The folder of the workspace in which the command starts."""
    oauth: OAuthSettings | None = None
    """The login of a server over HTTP."""
    openapi: str = ""
    """The document's file, relative to the project's folder. It may be outside, for example in another project."""
    operations: tuple[str, ...] = ()
    """The operations to import; empty means all."""
    without: tuple[str, ...] = ()
    """Tools of a server or a file that are not imported, by their names there."""
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What the arguments of a tool name (``x-resource``), by the tool's name there, so that rules can judge them."""
    tools: str = ""
    """A file of tools in a provider's format, relative to the project's folder."""
    functions: tuple[str, ...] = ()
    """Modules of code-first tools, or ``module:name`` of a registry or a pack."""
    models: tuple[str, ...] = ()
    """``module:Input`` or ``module:Input -> module:Output`` for one tool each."""

    @property
    def kind(self) -> ImportKind:
        if self.openapi:
            return "openapi"
        if self.tools:
            return "tools"
        if self.functions:
            return "functions"
        return "models" if self.models else "mcp"

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permissions that each of its tools requires.

        >>> ImportSettings("files", command=("npx", "server"), network=True).permissions
        ('execute', 'network')
        """
        if self.command:
            return ("execute", "network") if self.network else ("execute",)
        return ("network",) if self.kind in ("mcp", "openapi") else ()

    @property
    def identifier(self) -> str:
        """The Python name of its pack."""
        return self.name.upper().replace("-", "_")

    def finding(self, message: str, key: str | None = None) -> Finding:
        """A mistake in its table of the settings, or at a key of it."""
        pointer = below(POINTER, self.name)
        return Finding(message, "pyproject.toml", pointer if key is None else below(pointer, key))


def url_mistake(url: str) -> str | None:
    """Why a text cannot be the address of a service, as the end of a sentence about it; None if it can."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        return "is not an absolute http or https URL, such as https://example.org/mcp"
    if parts.username is not None or parts.password is not None:
        return "contains credentials; send them in 'headers', as ${NAME}"
    if parts.fragment:
        return "has a fragment; remove what follows '#'"
    return None


def placeholders(text: str) -> list[str]:
    """The texts inside ``${...}``; an unclosed one counts as empty.

    >>> placeholders("Bearer ${TOKEN}")
    ['TOKEN']
    """
    return [name if closed else "" for name, closed, _ in (piece.partition("}") for piece in text.split("${")[1:])]


# ----------------------------------------------------------------------------------------------------------------------
# Reads ``[tool.toolkit.imports.<name>]``; every mistake is reported at its place, and reading continues.

_OF_COMMANDS: Final = (
    "prefix", "without", "resources", "env", "sandbox", "network", "timeout", "startup_timeout", "read_roots", "cwd",
)  # fmt: skip
# The key that decides the kind of an import, and the keys allowed with it. `url` decides only if no other key does.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": _OF_COMMANDS,
    "openapi": ("prefix", "url", "headers", "operations", "resources", "timeout"),
    "tools": ("prefix", "without", "resources"),
    "functions": ("prefix",),
    "models": ("prefix",),
    "url": ("prefix", "without", "resources", "headers", "timeout", "startup_timeout", "oauth"),
}
_ALL_KEYS: Final = tuple(dict.fromkeys([*_KEYS, *(key for keys in _KEYS.values() for key in keys)]))
# What other programs call these keys.
_OTHER_WORDS: Final[Mapping[str, str]] = {
    "cmd": "the program and its arguments are 'command'",
    "args": "write the arguments into 'command', after the program",
}
_MAX_PREFIX: Final = 64

# Becomes a file name and, in capitals, a Python name.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_MODULE: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_FUNCTIONS: Final = re.compile(rf"{_MODULE}(?::[^\W\d]\w*)?")
_MODELS: Final = re.compile(rf"{_MODULE}:{_MODULE}(?:\s*->\s*{_MODULE}:{_MODULE})?")


def read_imports(value: object, problems: list[Finding]) -> tuple[ImportSettings, ...]:
    """The table of imports; every mistake in it goes to ``problems``."""
    if not isinstance(value, dict):
        message = "'imports' must be tables: write, for example, [tool.toolkit.imports.time]"
        problems.append(Finding(message, "pyproject.toml", POINTER))
        return ()
    found = [_read_import(name, table, problems) for name, table in value.items()]
    return tuple(item for item in found if item is not None and not _clashes(item, found, problems))


def _read_import(name: str, value: object, problems: list[Finding]) -> ImportSettings | None:
    reader = _ImportTable(name, value if isinstance(value, dict) else {}, problems)
    if not _NAME.fullmatch(name):
        reader.add(f"an import's name must be a letter followed by letters, digits, '_' or '-', not {quote(name)}")
    if not isinstance(value, dict):
        reader.add("an import must be a table")
        return None
    if reader.deciding_key() is None:
        return None
    return ImportSettings(
        name=name,
        prefix=reader.prefix(),
        command=reader.command(),
        url=reader.url(),
        env=reader.env(),
        headers=reader.headers(),
        sandbox=reader.flag("sandbox", default=True),
        network=reader.network(),
        timeout=reader.seconds("timeout", default=60.0),
        startup_timeout=reader.seconds("startup_timeout", default=0.0) or None,
        read_roots=reader.read_roots(),
        cwd=reader.text("cwd") or ".",
        oauth=reader.oauth(),
        openapi=reader.file("openapi"),
        operations=reader.texts("operations"),
        without=reader.texts("without"),
        resources=reader.resources(),
        tools=reader.file("tools"),
        functions=reader.texts("functions", _FUNCTIONS, "written 'acme.math' or 'acme.math:REGISTRY'"),
        models=reader.texts(
            "models", _MODELS, "written 'acme.shapes:Query' or 'acme.shapes:Query -> acme.shapes:Answer'"
        ),
    )


def _clashes(item: ImportSettings, found: Iterable[ImportSettings | None], problems: list[Finding]) -> bool:
    """Whether an earlier import has the same name in Python, or in a file system that ignores case."""
    first = next(other for other in found if other is not None and other.identifier == item.identifier)
    if first is not item:
        message = f"imports {first.name!r} and {item.name!r} both become {item.identifier} in Python; rename one"
        problems.append(item.finding(message))
    return first is not item


class _ImportTable:
    """Reads the keys of one import. A wrong value is reported and replaced, so that reading continues."""

    def __init__(self, name: str, table: Mapping[str, Any], problems: list[Finding]) -> None:
        self._table = table
        self._problems = problems
        self._pointer = below(POINTER, name)

    def add(self, message: str, *keys: str) -> None:
        self._problems.append(Finding(message, "pyproject.toml", reduce(below, keys, self._pointer)))

    def deciding_key(self) -> str | None:
        """The key that names the source of the tools. Unknown keys, and keys that do not go with it, are mistakes."""
        found = [key for key in _KEYS if key in self._table and key != "url"] or [
            key for key in ("url",) if key in self._table
        ]
        for key in self._table:
            if key not in _ALL_KEYS:
                other = _OTHER_WORDS.get(key)
                self.add(f"unknown key {key!r}; {other}" if other else unknown_key(key, _ALL_KEYS), key)
        is_reported = "cmd" in self._table or any(is_misspelt(key, self._table, _ALL_KEYS) for key in _KEYS)
        if not found and is_reported:
            return None
        if len(found) != 1:
            message = (
                f"{' and '.join(map(repr, found))} are set together" if found else "the source of the tools is missing"
            )
            self.add(f"{message}: an import has exactly one of command, url, openapi, tools, functions and models")
            return None
        for key in self._table:
            if key in _ALL_KEYS and key not in (found[0], *_KEYS[found[0]]):
                self.add(f"{key!r} has no effect with {found[0]!r}; remove it", key)
        return found[0]

    def text(self, key: str) -> str:
        value = self._table.get(key, "")
        if isinstance(value, str) and (value or key not in self._table) and "\0" not in value:
            return value
        self.add(f"{key!r} must be a non-empty string", key)
        return ""

    def file(self, key: str) -> str:
        value = self.text(key)
        if _ADDRESS.match(value):
            # Not shown: an address may hold a secret.
            self.add(
                f"{key!r} must be a file, because nothing is downloaded: download the document and name the file", key
            )
        return value

    def texts(self, key: str, rule: re.Pattern[str] | None = None, words: str = "") -> tuple[str, ...]:
        value = self._table.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) and "\0" not in item for item in values):
            self.add(f"{key!r} must be a list of strings", key)
            return ()
        if key in self._table and (not all(values) or not values and key not in ("env", "without")):
            self.add(f"{key!r} must not be empty or contain an empty string", key)
        for item in values:
            if rule is not None and item and not rule.fullmatch(item):
                self.add(f"{quote(item)} in {key!r} is not {words}", key)
        return tuple(values)

    def command(self) -> tuple[str, ...]:
        words = self._table.get("command", [])
        if not isinstance(words, list) or not all(isinstance(word, str) and "\0" not in word for word in words):
            self.add("'command' must be a list of strings: the program, then its arguments", "command")
            return ()
        if "command" in self._table and not (words and words[0]):
            self.add("'command' must name a program first", "command")
        return tuple(words)

    def prefix(self) -> str:
        value = self._table.get("prefix", "")
        if not isinstance(value, str) or len(value) > _MAX_PREFIX or not is_wire_name(f"{value}x"):
            self.add(
                f"'prefix' must be the start of a tool name, such as 'fs_', with at most {_MAX_PREFIX} characters",
                "prefix",
            )
            return ""
        return value

    def url(self) -> str:
        value = self.text("url")
        mistake = url_mistake(value) if value else None
        if mistake:
            # Not shown: the value may hold a secret.
            self.add(f"'url' {mistake}", "url")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._table.get(key, default)
        if isinstance(value, bool):
            return value
        self.add(f"{key!r} must be true or false", key)
        return default

    def network(self) -> ServerNetwork:
        value = self._table.get("network", False)
        if value == "guarded" and self._table.get("sandbox") is False:
            self.add("'network = \"guarded\"' needs the sandbox: remove 'sandbox = false'", "network")
        if isinstance(value, bool):
            return value
        if value == "guarded":
            return "guarded"
        self.add("'network' must be true, false or \"guarded\"", "network")
        return False

    def env(self) -> tuple[str, ...] | Mapping[str, str]:
        value = self._table.get("env", [])
        if not isinstance(value, dict):
            return self.texts("env", _VARIABLE, "the name of a variable")
        if not all(isinstance(text, str) and "\0" not in text for text in value.values()):
            self.add("'env' must be a list of names, or a table of texts", "env")
            return ()
        for name, text in value.items():
            if not _VARIABLE.fullmatch(name):
                self.add(f"{quote(name)} in 'env' is not the name of a variable", "env")
            self._check_placeholders(text, f"the variable {quote(name)}", "env", name)
        return dict(value)

    def read_roots(self) -> tuple[str, ...]:
        roots = self.texts("read_roots")
        for root in roots:
            if not root.startswith(("/", "~/")):
                self.add(f"{quote(root)} in 'read_roots' must be an absolute path, or start with '~/'", "read_roots")
        if roots and self._table.get("sandbox") is False:
            self.add("'read_roots' has no effect without the sandbox: remove one of the two lines", "read_roots")
        return roots

    def oauth(self) -> OAuthSettings | None:
        value = self._table.get("oauth", False)
        if value is False:
            return None
        self._check_https(self._table.get("url"), "'oauth'", "url")
        if value is True:
            return OAuthSettings()
        if not isinstance(value, dict):
            self.add("'oauth' must be true or a table", "oauth")
            return None
        kinds: dict[str, type] = {name: int if name == "redirect_port" else str for name in OAuthSettings.__slots__}
        for key, found in value.items():
            if key not in kinds:
                self.add(unknown_key(key, kinds), "oauth", key)
            elif type(found) is not kinds[key] or not found:
                self.add(
                    f"{key!r} of 'oauth' must be a {'port' if kinds[key] is int else 'non-empty string'}", "oauth", key
                )
        known: dict[str, Any] = {key: found for key, found in value.items() if type(found) is kinds.get(key)}
        read = OAuthSettings(**known)
        self._check_oauth(read)
        return read

    def _check_oauth(self, read: OAuthSettings) -> None:
        if read.client_secret and not placeholders(read.client_secret):
            self.add("'client_secret' must be written '${NAME}': a secret does not belong in this file", "oauth")
        self._check_placeholders(read.client_secret, "'client_secret'", "oauth", "client_secret")
        if read.client_secret and not (read.client_id and read.issuer):
            self.add("'client_secret' needs 'client_id' and 'issuer': it is sent to that issuer only", "oauth")
        if read.issuer and (mistake := url_mistake(read.issuer)):
            self.add(f"'issuer' {mistake}", "oauth", "issuer")
        self._check_https(read.issuer, "'issuer'", "oauth", "issuer")

    def _check_https(self, url: object, what: str, *keys: str) -> None:
        from toolkit.packs.mcp.server import NEEDS_HTTPS, is_readable_on_the_way

        if isinstance(url, str) and not url_mistake(url) and is_readable_on_the_way(url):
            self.add(f"{what} {NEEDS_HTTPS}", *keys)

    def _check_placeholders(self, text: str, what: str, *keys: str) -> None:
        if not all(_VARIABLE.fullmatch(word) for word in placeholders(text)):
            self.add(f"{what} has '${{' without the name of a variable and '}}'", *keys)

    def resources(self) -> dict[str, dict[str, str]]:
        """What arguments name: tool -> argument -> kind."""
        from toolkit.runtime.touches import RESOURCE_KINDS

        value = self._table.get("resources", {})
        if not isinstance(value, dict) or not all(isinstance(marks, dict) for marks in value.values()):
            self.add(
                "'resources' must hold a table for each tool: write read_file = { path = \"read-path\" }", "resources"
            )
            return {}
        for tool, marks in value.items():
            for argument, kind in marks.items():
                if kind not in RESOURCE_KINDS:
                    self.add(
                        f"a resource is one of {', '.join(RESOURCE_KINDS)}, not {quote(kind)}",
                        "resources",
                        tool,
                        argument,
                    )
        return value

    def seconds(self, key: str, *, default: float) -> float:
        if key not in self._table:
            return default
        value = self._table[key]
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
            return float(value)
        self.add(f"{key!r} must be a number of seconds greater than 0", key)
        return default

    def headers(self) -> dict[str, str]:
        value = self._table.get("headers", {})
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            self.add("'headers' must be a table of strings", "headers")
            return {}
        for name, text in value.items():
            if not _HEADER_NAME.fullmatch(name):
                self.add(f"{quote(name)} is not a header name", "headers", name)
            if not _HEADER_VALUE.fullmatch(text):
                self.add(
                    f"the header {quote(name)} contains a character that is not allowed in headers", "headers", name
                )
            self._check_placeholders(text, f"the header {quote(name)}", "headers", name)
        if self._table.get("oauth") and "authorization" in map(str.lower, value):
            self.add("'oauth' sends the header 'Authorization' itself: remove one of the two", "headers")
        return dict(value)


# ----------------------------------------------------------------------------------------------------------------------
# Imported files must agree with these settings: files hold the tools, settings how they run.


def refuse_stale_imports(settings: Settings, specs: Iterable[ToolSpec]) -> None:
    """Refuses files that were imported by settings that were removed or changed since."""
    mistakes = (found for spec in specs if spec.origin for found in _stale_mistakes(settings, spec, spec.origin))
    problems = list(dict.fromkeys(mistakes))
    if problems:
        raise SpecError(problems)


def _stale_mistakes(settings: Settings, spec: ToolSpec, origin: Origin) -> Iterator[Finding]:
    kind, name = origin.kind, origin.name
    item = settings.find_import(name)
    if item is None:
        message = (
            f"this file was imported as {name!r}, but the settings no longer have [tool.toolkit.imports.{name}];"
            " restore the table, or delete the file"
        )
        yield Finding(message, spec.source, "/origin/name")
        return
    if item.kind != kind:
        message = f"[tool.toolkit.imports.{name}] is now of the kind {item.kind!r}, not {kind!r}{_import_again(name)}"
        yield Finding(message, spec.source, "/origin/kind")
        return
    if spec.prefix != item.prefix and not spec.rename:
        message = f"[tool.toolkit.imports.{name}] now has the prefix {item.prefix!r}{_import_again(name)}"
        yield Finding(message, spec.source, "/prefix")
    if spec.name in item.without:
        message = f"[tool.toolkit.imports.{name}] now leaves out {spec.name!r}"
        yield Finding(f"{message}{_import_again(name)}", spec.source, spec.pointer)
    for argument, kind in item.resources.get(spec.name, {}).items():
        if (argument, kind) not in _marks(spec):
            message = f"[tool.toolkit.imports.{name}] now marks {argument!r} of {spec.name!r} as {kind!r}"
            yield Finding(f"{message}{_import_again(name)}", spec.source, spec.pointer)
    # Policies decide by permissions: nothing may be started or called without them.
    for permission in item.permissions:
        if permission not in spec.required:
            message = f"{spec.wire_name!r} must require the permission {permission!r}"
            yield Finding(f"{message}{_import_again(name)}", spec.source, "/tools")
    if kind == "openapi":
        yield from _address_mistakes(item, spec, origin)


def _marks(spec: ToolSpec) -> set[tuple[str, object]]:
    """The arguments of a tool that name a resource, and the kind."""
    properties = spec.input_schema.get("properties")
    found = properties.items() if isinstance(properties, dict) else ()
    return {(name, schema.get("x-resource")) for name, schema in found if isinstance(schema, dict)}


def _address_mistakes(item: ImportSettings, spec: ToolSpec, origin: Origin) -> Iterator[Finding]:
    if spec.request is None:
        message = f"an operation of an OpenAPI document needs 'request'{_import_again(item.name)}"
        yield Finding(message, spec.source, "/tools")
    url = item.url or origin.details.get("url")
    if not isinstance(url, str) or not url or url_mistake(url):
        message = "the document names no server that can be called; set 'url' to the address of the service"
        yield item.finding(message, "url")
    elif not item.url and not _is_public(url):
        message = (
            f"the document names the server {url!r}, which is not a public address;"
            " if it is the right one, set it as 'url'"
        )
        yield item.finding(message, "url")


def _is_public(url: str) -> bool:
    """Whether a document may choose this address. Only the settings may name one inside this machine or network."""
    from toolkit.guard.network.hosts import AddressRules, Url

    try:
        host = Url.parse(url).host
    except ToolkitError:
        return False
    if host.address is not None:
        return AddressRules(()).permits(host.address)
    return host.text.rpartition(".")[2] not in ("localhost", "internal", "local")


def _import_again(name: str) -> str:
    return f"; run `toolkit import {name}` again"
