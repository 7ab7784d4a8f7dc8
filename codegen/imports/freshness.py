"""Imported files and the settings they were made by must agree: one says what the tools are, the other how they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolkit.codegen.imports.settings import ImportSettings, url_mistake
from toolkit.codegen.package.rows import Row
from toolkit.codegen.settings import Settings
from toolkit.errors import SpecError, ToolkitError
from toolkit.guard.net.addresses import AddressRules
from toolkit.guard.net.hosts import Url
from toolkit.spec.model import Origin, ToolSpec


def not_imported(settings: Settings) -> list[str]:
    """The imports of the settings that have no file yet."""
    return [item.name for item in settings.imports if not settings.import_file(item.name).is_file()]


def refuse_stale_imports(settings: Settings, specs: Iterable[ToolSpec]) -> None:
    """Stops where a file says it was imported by settings that are gone, or that say something else now."""
    mistakes = (text for spec in specs if spec.origin for text in _mistakes(settings, spec, spec.origin))
    problems = list(dict.fromkeys(mistakes))
    if problems:
        raise SpecError(problems)


def _mistakes(settings: Settings, spec: ToolSpec, origin: Origin) -> Iterator[str]:
    kind, name = origin.kind, origin.name
    item = settings.import_named(name)
    if item is None:
        yield (
            f"this file was imported as {name!r}, and the settings have no [tool.toolkit.imports.{name}] any more;"
            f" put it back, or delete the file @ {spec.source}:/origin/name"
        )
        return
    if item.kind != kind:
        yield (
            f"[tool.toolkit.imports.{name}] is of the kind {item.kind!r} now, not {kind!r}{_again(name)}"
            f" @ {spec.source}:/origin/kind"
        )
        return
    if spec.prefix != item.prefix and not spec.rename:
        yield (
            f"[tool.toolkit.imports.{name}] puts {item.prefix!r} before its tools' names now{_again(name)}"
            f" @ {spec.source}:/prefix"
        )
    if spec.name in item.without:
        yield f"[tool.toolkit.imports.{name}] leaves out {spec.name!r} now{_again(name)} @ {spec.source}:{spec.pointer}"
    # Permissions are what a policy judges: nothing may be started or called without them.
    for permission in item.permissions:
        if permission not in spec.required:
            words = f"{spec.wire_name!r} must ask for the permission {permission!r}"
            yield f"{words}{_again(name)} @ {spec.source}:/tools"
    if kind == "openapi":
        yield from _address_mistakes(item, spec, origin)


def _address_mistakes(item: ImportSettings, spec: ToolSpec, origin: Origin) -> Iterator[str]:
    if spec.request is None:
        yield f"an operation of an OpenAPI document needs 'request'{_again(item.name)} @ {spec.source}:/tools"
    url = item.url or origin.details.get("url")
    if not isinstance(url, str) or not url or url_mistake(url):
        yield (
            f"the document names no server that can be called; say where the service is with 'url' @ {item.pointer}/url"
        )
    elif not item.url and not _is_public(url):
        yield (
            f"the document says that its service is at {url!r}, which is no public address; if that is where it is, say so"
            f" with 'url' @ {item.pointer}/url"
        )


def _is_public(url: str) -> bool:
    """Whether a document may name an address by itself: one inside this machine or network is for its owner to name."""
    try:
        host = Url.parse(url).host
    except ToolkitError:
        return False
    if host.address is not None:
        return AddressRules(()).permits(host.address)
    return host.text.rpartition(".")[2] not in ("localhost", "internal", "local")


def service_url(item: ImportSettings, rows: Iterable[Row]) -> str:
    """Where the service of an OpenAPI import is: as the settings say, else as its document did."""
    said = (row.origin.get("url") for row in rows if row.origin is not None)
    return item.url or next((url for url in said if isinstance(url, str)), "")


def _again(name: str) -> str:
    return f"; run `toolkit import {name}` again"
