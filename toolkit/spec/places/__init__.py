"""Line and column of findings. What finds them is imported only when something is reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit.errors import SetupError


@contextmanager
def located_errors(base: Path) -> Iterator[None]:
    """Gives line and column to the findings of an error that is raised inside; ``base`` is as for ``locate``."""
    try:
        yield
    except SetupError as error:
        from toolkit.spec.places.locate import locate

        if error.findings:
            error.replace_findings(locate(error.findings, base))
        raise
