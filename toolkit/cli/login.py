"""How the command line shows the page of a login: it prints the address and opens the browser, if there is one."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable

from toolkit.cli.report import can_ask, print_warning


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
