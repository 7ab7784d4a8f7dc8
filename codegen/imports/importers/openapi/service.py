"""The address of a service and the credentials it needs, from its document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import DocumentNode, Documents
from toolkit.schema.problems import quote

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_WAY_OUT: Final = 'set url = "https://..." in the import\'s settings'


def service_url(documents: Documents, given: str) -> str:
    """The address from the settings, else the only absolute one in the document."""
    if given:
        return given
    urls = _urls(documents.root)
    absolute = [url for url in urls if re.match(r"https?://", url, re.IGNORECASE)]
    if len(absolute) == 1:
        return absolute[0]
    if absolute:
        named = ", ".join(map(quote, absolute))
        documents.add(f"the document names {len(absolute)} servers ({named}): {_WAY_OUT}", documents.root)
    else:
        documents.add(f"the document names no server with http:// or https://: {_WAY_OUT}", documents.root)
    return ""


def own_servers(item: DocumentNode, operation: DocumentNode, url: str) -> list[str]:
    """Servers of a path or an operation that differ from the service's."""
    urls = _urls(operation) or _urls(item)
    return [] if url.rstrip("/") in [each.rstrip("/") for each in urls] else urls


def _urls(owner: DocumentNode) -> list[str]:
    servers = owner.below("servers")
    found = [_with_defaults(server) for _, server in servers.children()] if servers else []
    return [url for url in found if url]


def _with_defaults(server: DocumentNode) -> str:
    def default(match: re.Match[str]) -> str:
        variable = server.below("variables", match[1])
        return match[0] if variable is None else str(variable.mapping.get("default", match[0]))

    return _VARIABLE.sub(default, server.text("url"))


def security_notes(documents: Documents, operation: DocumentNode, headers: Mapping[str, str]) -> list[str]:
    """What the operation's security needs and the settings do not have; empty if one alternative is met."""
    required = operation.below("security") or documents.root.below("security")
    alternatives = [node for _, node in required.children()] if required else []
    given = {name.lower() for name in headers}
    missing = [list(_missing_credentials(documents, alternative, given)) for alternative in alternatives]
    if not missing or not all(missing):
        return []
    return min(missing, key=len)


def _missing_credentials(documents: Documents, alternative: DocumentNode, given: set[str]) -> Iterator[str]:
    for name in alternative.mapping:
        scheme = documents.root.below("components", "securitySchemes", name)
        found = None if scheme is None else documents.follow_to_object(scheme)
        if found is None:
            yield f"the security scheme {quote(name)} is not defined"
            continue
        sentence = _explain_scheme(found, given)
        if sentence:
            yield f"the security scheme {quote(name)} {sentence}"


def _explain_scheme(scheme: DocumentNode, given: set[str]) -> str:
    kind, place, name = scheme.text("type"), scheme.text("in"), scheme.text("name")
    if kind == "apiKey" and place == "query":
        return f"needs its key as {quote(name)} in the query, but keys are only sent in headers"
    if kind == "mutualTLS":
        return "needs a client certificate, which is not supported"
    if kind == "apiKey":
        header, value = ("Cookie", f"{name}=${{API_KEY}}") if place == "cookie" else (name, "${API_KEY}")
    else:
        basic = kind == "http" and scheme.text("scheme").lower() == "basic"
        header, value = "Authorization", "Basic ${CREDENTIALS_AS_BASE64}" if basic else "Bearer ${API_TOKEN}"
    if header.lower() in given:
        return ""
    return f'needs the header {quote(header)}: set headers = {{ "{header}" = "{value}" }} in the import\'s settings'
