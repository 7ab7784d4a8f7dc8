"""What whoever operates a server asks it: whether it is well, and what it is doing, as numbers for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HEALTH: Final = "/health"
METRICS: Final = "/metrics"
_TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, or one for each value of a label.

    >>> print(Metric("toolkit_calls_waiting", "gauge", "Calls that wait.", {(): 3}).as_text())
    # HELP toolkit_calls_waiting Calls that wait.
    # TYPE toolkit_calls_waiting gauge
    toolkit_calls_waiting 3
    """

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    values: Mapping[tuple[tuple[str, str], ...], float]
    """By labels, which are pairs of a name and a value."""

    def as_text(self) -> str:
        """In Prometheus' text format."""
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        for labels, value in self.values.items():
            shown = ",".join(f"{name}={json.dumps(text)}" for name, text in labels)
            lines.append(f"{self.name}{f'{{{shown}}}' if shown else ''} {value:g}")
        return "\n".join(lines)


class Operations:
    """Answers ``/health`` and ``/metrics``, and passes every other request on."""

    def __init__(
        self, app: ASGIApp, *, is_stopping: Callable[[], bool], metrics: Callable[[], Iterable[Metric]]
    ) -> None:
        self._app: Final = app
        self._is_stopping: Final = is_stopping
        self._metrics: Final = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in (HEALTH, METRICS):
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        if scope["method"] not in ("GET", "HEAD"):
            answer = PlainTextResponse("only GET is answered here", 405, {"Allow": "GET, HEAD"})
        elif scope["path"] == METRICS:
            text = "".join(f"{metric.as_text()}\n" for metric in self._metrics())
            answer = PlainTextResponse(text, media_type=_TEXT_FORMAT)
        elif self._is_stopping():
            answer = PlainTextResponse("stopping\n", 503)
        else:
            answer = PlainTextResponse("ok\n")
        answer.headers["Cache-Control"] = "no-store"
        await answer(scope, receive, send)
