"""How far a run may go."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import SetupError


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The most that one run may use; None is no limit. A run that reaches one raises ``RunLimitReached``.

    ``turns`` counts answers of the model. ``tokens`` counts input and output as the provider reports them, and is checked
    before each request. After ``seconds`` the query, stream or call in progress is ended, too.

    >>> RunLimits(turns=10, seconds=600)
    RunLimits(turns=10, tokens=None, seconds=600)
    """

    turns: int | None = 50
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "tokens", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SetupError(f"the limit of {name} must be greater than 0, not {value!r}; None is no limit")
