"""Where a redirect leads, what may be sent there, and which redirects are refused.

The network's rules for the next address are applied when it is connected to, as for the first one (``guard.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Final

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed
from toolkit.guard.network.hosts import Url

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Any other header may be a secret for the first origin only.
_SENT_TO_OTHER_ORIGINS: Final = frozenset({"accept", "accept-language", "user-agent"})


def redirect_location(answer: HTTPResponse) -> str | None:
    """Where a redirect leads; None if the response is not a redirect."""
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or location is None:
        return None
    try:
        return location.encode("latin-1").decode()
    except UnicodeError:
        raise HTTPException("a Location header that is not text") from None


def next_hop(current: Url, location: str, sent: Mapping[str, str]) -> tuple[Url, dict[str, str]]:
    """The next URL and the headers to send there; refuses an invalid URL and a step from https to http."""
    try:
        following = current.join(location)
    except InvalidArguments as error:
        raise ToolFailed("REMOTE", f"'{current.host.text}' redirects to an invalid URL: {error.message}") from None
    if current.scheme == "https" and following.scheme == "http":
        raise SandboxViolation(f"'{current.host.text}' redirects from https to http, which is not followed")
    same = following.origin == current.origin
    return following, {name: value for name, value in sent.items() if same or name in _SENT_TO_OTHER_ORIGINS}
