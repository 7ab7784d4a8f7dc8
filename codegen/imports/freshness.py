"""Imported files must agree with the settings they were imported by: files hold the tools, settings how they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolkit.codegen.imports.settings import ImportSettings, url_mistake
from toolkit.codegen.package.rows import Row
from toolkit.codegen.settings import Settings
from toolkit.errors import SpecError, ToolkitError
from toolkit.schema.problems import Finding
from toolkit.schema.spec import Origin, ToolSpec


def refuse_stale_imports(settings: Settings, specs: Iterable[ToolSpec]) -> None:
    """Refuses files that were imported by settings that were removed or changed since."""
    mistakes = (found for spec in specs if spec.origin for found in _find_mistakes(settings, spec, spec.origin))
    problems = list(dict.fromkeys(mistakes))
    if problems:
        raise SpecError(problems)


def _find_mistakes(settings: Settings, spec: ToolSpec, origin: Origin) -> Iterator[Finding]:
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
    # Policies decide by permissions: nothing may be started or called without them.
    for permission in item.permissions:
        if permission not in spec.required:
            message = f"{spec.wire_name!r} must require the permission {permission!r}"
            yield Finding(f"{message}{_import_again(name)}", spec.source, "/tools")
    if kind == "openapi":
        yield from _find_address_mistakes(item, spec, origin)


def _find_address_mistakes(item: ImportSettings, spec: ToolSpec, origin: Origin) -> Iterator[Finding]:
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
    from toolkit.guard.net.addresses import AddressRules
    from toolkit.guard.network.hosts import Url

    try:
        host = Url.parse(url).host
    except ToolkitError:
        return False
    if host.address is not None:
        return AddressRules(()).permits(host.address)
    return host.text.rpartition(".")[2] not in ("localhost", "internal", "local")


def service_url(item: ImportSettings, rows: Iterable[Row]) -> str:
    """The address of an OpenAPI import's service: from the settings, else from its document."""
    urls = (row.origin.get("url") for row in rows if row.origin is not None)
    return item.url or next((url for url in urls if isinstance(url, str)), "")


def _import_again(name: str) -> str:
    return f"; run `toolkit import {name}` again"
