"""Where a service is and what it wants to know of its caller, as far as a document tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import Documents, Node
from toolkit.spec.problems import shown

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_WAY_OUT: Final = 'write url = "https://..." in the import\'s settings'


def service_url(documents: Documents, given: str) -> str:
    """The address of the settings, else the only absolute one that the document names."""
    if given:
        return given
    urls = _urls(documents.root)
    absolute = [url for url in urls if re.match(r"https?://", url, re.IGNORECASE)]
    if len(absolute) == 1:
        return absolute[0]
    if absolute:
        named = ", ".join(map(shown, absolute))
        documents.add(f"the document names {len(absolute)} servers ({named}): {_WAY_OUT}", documents.root)
    else:
        documents.add(f"the document names no server with http:// or https://: {_WAY_OUT}", documents.root)
    return ""


def own_servers(item: Node, operation: Node, url: str) -> list[str]:
    """Servers that a path or an operation has for itself, unless they are the service's own."""
    urls = _urls(operation) or _urls(item)
    return [] if url.rstrip("/") in [each.rstrip("/") for each in urls] else urls


def _urls(owner: Node) -> list[str]:
    servers = owner.below("servers")
    found = [_with_defaults(server) for _, server in servers.children()] if servers else []
    return [url for url in found if url]


def _with_defaults(server: Node) -> str:
    def default(match: re.Match[str]) -> str:
        variable = server.below("variables", match[1])
        return match[0] if variable is None else str(variable.mapping.get("default", match[0]))

    return _VARIABLE.sub(default, server.text("url"))


def security_notes(documents: Documents, operation: Node, headers: Mapping[str, str]) -> list[str]:
    """What the operation's security would need and the settings do not give; nothing if one alternative is met."""
    required = operation.below("security") or documents.root.below("security")
    alternatives = [node for _, node in required.children()] if required else []
    given = {name.lower() for name in headers}
    wanting = [list(_wanting(documents, alternative, given)) for alternative in alternatives]
    if not wanting or not all(wanting):
        return []
    return min(wanting, key=len)


def _wanting(documents: Documents, alternative: Node, given: set[str]) -> Iterator[str]:
    for name in alternative.mapping:
        scheme = documents.root.below("components", "securitySchemes", name)
        found = None if scheme is None else documents.followed(scheme)
        if found is None:
            yield f"the security scheme {shown(name)} is described nowhere"
            continue
        sentence = _needs(found, given)
        if sentence:
            yield f"the security scheme {shown(name)} {sentence}"


def _needs(scheme: Node, given: set[str]) -> str:
    kind, place, name = scheme.text("type"), scheme.text("in"), scheme.text("name")
    if kind == "apiKey" and place == "query":
        return f"wants its key as {shown(name)} in the query, and keys are only sent in headers"
    if kind == "mutualTLS":
        return "wants a certificate of the caller, which cannot be given"
    if kind == "apiKey":
        header, value = ("Cookie", f"{name}=${{API_KEY}}") if place == "cookie" else (name, "${API_KEY}")
    else:
        basic = kind == "http" and scheme.text("scheme").lower() == "basic"
        header, value = "Authorization", "Basic ${CREDENTIALS_AS_BASE64}" if basic else "Bearer ${API_TOKEN}"
    if header.lower() in given:
        return ""
    return f'wants the header {shown(header)}: write headers = {{ "{header}" = "{value}" }} in the import\'s settings'
