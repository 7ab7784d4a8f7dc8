"""The files of the page. They are the same for everyone and hold no data, so they need no token."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_FOLDER: Final = "toolkit.playground"
_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def page_files() -> Mapping[str, tuple[bytes, str]]:
    """Path -> content and type of every file. The path of the page itself is ``/``."""
    found = {}
    for file in files(_FOLDER).joinpath("page").iterdir():
        kind = _TYPES.get(file.name[file.name.rfind(".") :])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            found[path] = (file.read_bytes(), kind)
    return found


async def send_page_file(request: Request) -> Response:
    """Answers with the file of a path."""
    from starlette.responses import Response

    content, kind = page_files()[request.url.path]
    return Response(content, media_type=kind)
