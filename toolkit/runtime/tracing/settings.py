"""How a toolkit is traced; opentelemetry is imported when a toolkit that is traced is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

_SCOPE: Final = "toolkit"
_SCHEMA: Final = "https://opentelemetry.io/schemas/1.41.0"
"""The version of the conventions that the attributes follow."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """How the calls and runs of a toolkit are traced: ``ToolkitContext(tracing=Tracing(content=True))``.

    :param provider: where spans go; by default the global provider of OpenTelemetry, as your application configured it.
    :param content: whether spans have the arguments and results of calls, without what schemas mark as ``x-secret``. They
        may hold personal data, so the default is no.

    >>> Tracing()
    Tracing(provider=None, content=False)
    """

    provider: TracerProvider | None = None
    content: bool = False

    def make_tracer(self) -> Tracer:
        """The tracer of a toolkit."""
        try:
            from opentelemetry import trace
        except ImportError:
            raise SetupError(
                "tracing needs the package 'opentelemetry-api': pip install 'typed-toolkit[otel]'"
            ) from None
        from toolkit import __version__

        if self.provider is not None and not hasattr(self.provider, "get_tracer"):
            raise SetupError(f"the provider of Tracing must be a TracerProvider, not {type(self.provider).__name__}")
        return trace.get_tracer(_SCOPE, __version__, tracer_provider=self.provider, schema_url=_SCHEMA)


def read_tracing(given: bool | Tracing) -> Tracing | None:
    """The setting of a context: None if nothing is traced."""
    if isinstance(given, Tracing):
        return given
    if not isinstance(given, bool):
        raise SetupError(f"tracing must be True, False or Tracing(...), not {type(given).__name__}")
    return Tracing() if given else None
