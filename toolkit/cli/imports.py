"""How ``toolkit import`` and ``toolkit check --live`` talk to a person: progress, results, and questions.

Progress goes to standard error, on a terminal and in a pipe: a line when an import starts and one when it ends.
"""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolkit.cli.report import ask, can_ask, count, print_line, print_warning
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.codegen import FileReport, ImportSettings, TrustDecision, UntrustedImport


_MAX_NOTES: Final = 10
_MAX_SHOWN: Final = 100


class ImportLines:
    """An ``ImportObserver`` that prints lines."""

    def start(self, item: ImportSettings) -> None:
        print_warning(f"{item.name}: {_describe_start(item)}")

    def finish(self, item: ImportSettings, tools: int | None) -> None:
        print_warning(f"{item.name}: {'failed' if tools is None else count(tools, 'tool')}")


def print_reports(reports: Sequence[FileReport]) -> None:
    for report in reports:
        print_line(f"{report.file}: {report.state}")
        for word, tools in (("added", report.added), ("removed", report.removed), ("changed", report.changed)):
            if tools:
                print_line(f"  {word}: {', '.join(tools)}")
        for note in report.notes[:_MAX_NOTES]:
            print_warning(f"  note: {note}")
        if len(report.notes) > _MAX_NOTES:
            print_warning(f"  and {count(len(report.notes) - _MAX_NOTES, 'more note')}; --json prints all of them")


def print_failures(failures: Mapping[str, SetupError], total: int) -> None:
    if failures:
        print_warning(f"{len(failures)} of {count(total, 'import')} failed:")
    for error in failures.values():
        for line in str(error).splitlines():
            print_warning(line)


def failure_as_json(name: str, error: SetupError) -> dict[str, Any]:
    """As a report, with the state ``failed``."""
    problems = {"problems": [found.as_json() for found in error.findings]} if error.findings else {"error": str(error)}
    return {"name": name, "state": "failed", **problems}


def _describe_start(item: ImportSettings) -> str:
    if item.command:
        from toolkit.codegen.imports.mcp import needs_network

        program = os.path.basename(item.command[0])
        # Said before the wait: without the network such a program tries for minutes.
        hint = f"; if {program} has to download it, set network = true" if needs_network(item) else ""
        return f"starting {_clip(' '.join(item.command))}{hint}"
    if item.kind == "mcp":
        from toolkit.codegen.imports.trust import show_address

        return f"connecting to {show_address(item.url)}"
    return f"reading {_clip(item.openapi or item.tools or ', '.join(item.functions or item.models))}"


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


# ----------------------------------------------------------------------------------------------------------------------
# Imports that nobody has confirmed: ``--trust`` accepts them, a person is asked, or they are refused.


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


# ----------------------------------------------------------------------------------------------------------------------
# Logins: prints the address, and opens it in the browser if there is one.


def choose_browser(as_json: bool) -> Callable[[str], object] | None:
    """Only on a terminal is there a person who can log in; a script uses the stored token."""
    return _show_login if can_ask() and not as_json else None


def _show_login(url: str) -> None:
    print_warning("Log in to the server in a browser on this machine:")
    print_warning(f"  {url}")
    if _has_browser():
        webbrowser.open(url)


def _has_browser() -> bool:
    """Whether there is a graphical one: a browser in the terminal would take the terminal away from the import."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
