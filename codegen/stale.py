"""Imported files and the settings they were made by must agree: one says what the tools are, the other how they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from codegen.import_settings import ImportSettings, url_mistake
from codegen.rows import Row
from codegen.settings import Settings
from toolkit.errors import SpecError, ToolkitError
from toolkit.guard.addresses import AddressRules
from toolkit.guard.hosts import Url


def not_imported(settings: Settings) -> list[str]:
    """The imports of the settings that have no file yet."""
    return [item.name for item in settings.imports if not settings.import_file(item.name).is_file()]


def refuse_stale_imports(settings: Settings, rows: Sequence[Row]) -> None:
    """Stops where a file says it was imported by settings that are gone, or that say something else now."""
    problems = list(dict.fromkeys(text for row in rows for text in _mistakes(settings, row)))
    if problems:
        raise SpecError(problems)


def _mistakes(settings: Settings, row: Row) -> Iterator[str]:
    if row.origin is None:
        return
    kind, name = row.origin["kind"], row.origin["name"]
    item = settings.import_named(name)
    if item is None:
        yield (
            f"this file was imported as {name!r}, and the settings have no [tool.toolkit.imports.{name}] any more;"
            f" put it back, or delete the file @ {row.source}:/origin/name"
        )
        return
    if item.kind != kind:
        yield (
            f"[tool.toolkit.imports.{name}] is of the kind {item.kind!r} now, not {kind!r}{_again(name)}"
            f" @ {row.source}:/origin/kind"
        )
        return
    if row.namePointer.endswith("/name") and row.name != f"{item.prefix}{row.originalName}":
        yield (
            f"[tool.toolkit.imports.{name}] puts {item.prefix!r} before its tools' names now{_again(name)}"
            f" @ {row.source}:/prefix"
        )
    # Permissions are what a policy judges: nothing may be started or called without them.
    for permission in item.permissions:
        if permission not in row.required:
            yield f"{row.name!r} must ask for the permission {permission!r}{_again(name)} @ {row.source}:/tools"
    if kind == "openapi":
        yield from _address_mistakes(item, row)


def _address_mistakes(item: ImportSettings, row: Row) -> Iterator[str]:
    if row.request is None:
        yield f"an operation of an OpenAPI document needs 'request'{_again(item.name)} @ {row.source}:/tools"
    url = service_url(item, [row])
    mistake = url_mistake(url) if url else "which is empty"
    if mistake:
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
