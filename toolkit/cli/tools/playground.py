"""``toolkit playground``: a local page on which tools are looked at and called."""

from __future__ import annotations

import secrets
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.options import Package, Workspace
from toolkit.cli.package import load_package
from toolkit.cli.report import print_line, report_errors
from toolkit.cli.serve import PolicyFile, Preset, Sandbox
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.serve.setup.served_tools import ServedTools

_EXTRA = "pip install 'typed-toolkit[mcp]'"


def playground(
    workspace: Workspace = Path(),
    preset: Preset = None,
    policy: PolicyFile = None,
    package: Package = None,
    sandbox: Sandbox = "auto",
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Audit log, outside the workspace. Default: a temporary one.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 for any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
) -> None:
    """Open a local page to look at tools, call them and see why a call is allowed.

    The page shows every tool, and marks those that are not allowed. It is reached from this machine only, with the token in
    the printed URL. Calls go through the policy, the sandbox and the audit log like those of a model. Ctrl-C ends it.
    """
    with report_errors(False, spec_mistakes=2), TemporaryDirectory(prefix="toolkit-playground-") as private:
        for needed in ("starlette", "uvicorn"):
            if find_spec(needed) is None:
                raise SetupError(f"the playground needs {needed}, which is not installed: {_EXTRA}")
        from toolkit.serve.setup.served_tools import ServedTools

        log = Path(private, "audit.jsonl") if audit is None else audit.resolve()
        served = ServedTools(load_package(package), workspace.resolve(), preset, policy, sandbox, log)
        _serve(served, audit is None, port, None if no_open or not sys.stdout.isatty() else Path(private))


def _serve(served: ServedTools, audit_is_temporary: bool, port: int, page_folder: Path | None) -> None:
    from toolkit.playground.app import make_app
    from toolkit.playground.session import PlaygroundSession
    from toolkit.serve.http.address import Address, allowed_hosts
    from toolkit.serve.http.server import run_app

    wanted = Address("127.0.0.1", port)
    with wanted.listen() as listening:
        address = wanted.bound_to(listening)
        session = PlaygroundSession.open(served, audit_is_temporary=audit_is_temporary)
        token = secrets.token_urlsafe(32)
        url = f"http://{address.shown_host}:{address.port}/#token={token}"

        def announce() -> None:
            print_line(served.describe())
            print_line(f"playground: {url}")
            print_line("Ctrl-C ends it")
            if page_folder is not None:
                threading.Thread(target=_open_browser, args=(url, page_folder), daemon=True).start()

        app = make_app(session, hosts=allowed_hosts(address), token=token)
        run_app(app, listening, on_start=announce, on_stop=session.stop)


def _open_browser(url: str, folder: Path) -> None:
    """Opens the page through a private file: other users of the machine can read the arguments of a browser's process."""
    import webbrowser

    file = folder / "open.html"
    file.touch(mode=0o600)
    file.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">\n')
    webbrowser.open(file.as_uri())
