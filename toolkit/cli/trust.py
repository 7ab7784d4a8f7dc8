"""How the command line decides about imports that nobody confirmed: by ``--trust``, by asking a person, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.cli.report import ask, can_ask, print_warning
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.codegen import TrustDecision, UntrustedImport


def choose_decision(trust: bool, as_json: bool) -> TrustDecision:
    """A person is asked only on a terminal: a script must say ``--trust``."""
    from toolkit.codegen import accept_configured, refuse_untrusted

    if trust:
        return accept_configured
    return _ask_person if can_ask() and not as_json else refuse_untrusted


def _ask_person(untrusted: Sequence[UntrustedImport]) -> None:
    print_warning("pyproject.toml names what will run or be reached. Confirm it if it is what you want.")
    for item in untrusted:
        for line in item.explain():
            print_warning(line)
    if not ask("Run and reach this?"):
        raise SetupError("not confirmed: nothing was run, reached or written")
