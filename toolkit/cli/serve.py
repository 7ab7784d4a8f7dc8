"""``toolkit serve``: the tools for any MCP client; ``toolkit playground``: the same tools on a local page for you."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from toolkit.cli.package import load_named_package, load_package
from toolkit.cli.report import count, print_line, report_errors, write_warning
from toolkit.cli.tool_options import Package, Workspace
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.serve.http import Address
    from toolkit.serve.server import ToolkitServer
    from toolkit.serve.setup import ServedTools


TOKEN_VARIABLE: Final = "TOOLKIT_SERVE_TOKEN"
REDIS_VARIABLE: Final = "TOOLKIT_SERVE_REDIS"
BUILT_IN: Final = "toolkit.generated"

PresetName: TypeAlias = Literal["read-only", "edit", "full"]
SandboxName: TypeAlias = Literal["auto", "full", "reduced", "unsafe-none"]

Preset = Annotated[
    PresetName | None,
    typer.Option(
        help="What clients may do: read the workspace, also edit its files, or also run commands and fetch pages.",
        show_default=False,
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Policy file (TOML), outside the workspace, in place of a preset.",
        show_default=False,
    ),
]
ServedPackage = Annotated[
    str,
    typer.Option(
        metavar="PACKAGE", help="Generated package to serve: an installed one, or that of the project in this folder."
    ),
]
Sandbox = Annotated[SandboxName, typer.Option(help="The sandbox that commands need.")]
Audit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Record every call here, outside the workspace.", show_default=False),
]


def serve(
    workspace: Workspace = Path(),
    preset: Preset = None,
    policy: PolicyFile = None,
    package: ServedPackage = BUILT_IN,
    sandbox: Sandbox = "auto",
    audit: Audit = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve over HTTP, at the path /mcp. Default: stdio.", show_default=False
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"With --http: the bearer token that clients must send. Or set {TOKEN_VARIABLE}.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --http: another Host header that is accepted, such as the name of a proxy.",
            show_default=False,
        ),
    ] = None,
    redis: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"With --http: one of several processes, which share this Redis server. Or set {REDIS_VARIABLE}.",
            show_default=False,
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --redis: a secret that is the same for all processes.", show_default=False
        ),
    ] = None,
) -> None:
    """Serve the tools to an MCP client, over stdio or HTTP.

    Nothing is allowed without --preset or --policy. A changed policy file is used as soon as it is valid; clients are told
    if the list of tools changes. A call for which the policy says `ask` is shown to the person at the client.

    Over HTTP, other machines need a token. Foreign web pages are refused.
    """
    with report_errors(False, spec_mistakes=2):
        served = make_served(workspace, preset, policy, package, sandbox, audit)
        if http is None and (token_file is not None or allow_host or redis or secret_file):
            raise SetupError("--token-file, --allow-host, --redis and --secret-file are for HTTP; add --http HOST:PORT")
        served = _share(served, redis or (os.environ.get(REDIS_VARIABLE) if http else None), secret_file)
        from toolkit.serve.setup import OperatorLog

        with OperatorLog(write_warning) as log:  # standard output belongs to the protocol
            if http is None:
                _serve_stdio(served, log.tell)
            else:
                _serve_http(served, http, token_file, tuple(allow_host or ()), log.tell)


def make_served(
    workspace: Path,
    preset: PresetName | None,
    policy: Path | None,
    package: str,
    sandbox: SandboxName,
    audit: Path | None,
) -> ServedTools:
    """What is served, from the options. The extra ``mcp`` brings what it is served with."""
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError:
        raise SetupError("this needs the extra `mcp`: run `pip install 'typed-toolkit[mcp]'`") from None
    from toolkit.serve.setup import ServedTools

    return ServedTools(load_named_package(package), workspace, preset, policy, sandbox, audit)


def _share(served: ServedTools, redis_url: str | None, secret_file: Path | None) -> ServedTools:
    """The same as one of several processes, if there is a Redis server that they share."""
    if redis_url is None and secret_file is None:
        return served
    if redis_url is None or secret_file is None:
        missing = "--redis URL" if redis_url is None else "--secret-file FILE"
        raise SetupError(f"several processes share a Redis server and a secret; add {missing}")
    from toolkit.serve.setup import SharedState, read_secret

    return replace(served, shared=SharedState(redis_url, read_secret(secret_file, served.workspace)))


def _serve_stdio(served: ServedTools, tell: Callable[[str], None]) -> None:
    from toolkit.serve.transports import serve_stdio

    server = _make_server(served, tell)
    serve_stdio(server, lambda: tell(f"{_describe_tools(server, served)} over stdio; {served.describe()}"))


def _serve_http(
    served: ServedTools, address: str, token_file: Path | None, names: tuple[str, ...], tell: Callable[[str], None]
) -> None:
    from toolkit.serve.http import Address
    from toolkit.serve.transports import PATH, check_token, serve_http

    where, token = Address.parse(address), _read_token(token_file, served.workspace)
    check_token(where, token)
    server = _make_server(served, tell)

    def announce(bound: Address) -> None:
        url = f"http://{bound.shown_host}:{bound.port}{PATH}"
        secret = "with a token" if token else "without a token"
        tell(f"{_describe_tools(server, served)} at {url}, {secret}; {served.describe()}")
        if bound.is_unspecified and not names:
            tell(
                f"clients reach this machine by a name or an address of its own: give it with --allow-host NAME:{bound.port}"
            )

    serve_http(server, where, token, names, announce)
    tell("stopped")


def _make_server(served: ServedTools, tell: Callable[[str], None]) -> ToolkitServer:
    from toolkit.serve.server import ToolkitServer

    return ToolkitServer(served, tell)


def _describe_tools(server: Any, served: ServedTools) -> str:
    return f"serving {count(server.count_tools(), 'tool')} in {served.workspace.resolve()}"


def _read_token(file: Path | None, workspace: Path) -> str | None:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    from toolkit.serve.setup import read_secret

    return read_secret(file, workspace)


# ----------------------------------------------------------------------------------------------------------------------
# ``toolkit playground``.


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
                raise SetupError(
                    f"the playground needs {needed}, which is not installed: pip install 'typed-toolkit[mcp]'"
                )
        from toolkit.serve.setup import ServedTools

        log = Path(private, "audit.jsonl") if audit is None else audit.resolve()
        served = ServedTools(load_package(package), workspace.resolve(), preset, policy, sandbox, log)
        _serve_page(served, audit is None, port, None if no_open or not sys.stdout.isatty() else Path(private))


def _serve_page(served: ServedTools, audit_is_temporary: bool, port: int, page_folder: Path | None) -> None:
    from toolkit.playground.app import PlaygroundSession, make_app
    from toolkit.serve.http import Address, allowed_hosts, run_app

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
