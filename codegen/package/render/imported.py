"""``imported.py``: packs that run imported tools, with the commands and addresses of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from toolkit.codegen.imports.freshness import service_url
from toolkit.codegen.imports.settings import ImportSettings, OAuthSettings
from toolkit.codegen.package.modules import RUN_BY_US, header, origin_kind
from toolkit.codegen.package.render.literal import literal
from toolkit.codegen.package.rows import Row

_SUPPORT: Final = {
    "functions": ("FunctionTools",),
    "mcp": ("McpServer", "McpTool", "mcp_pack"),
    "openapi": ("ApiOperation", "ApiService", "api_pack"),
}


def imports_with_tools(imports: Iterable[ImportSettings], rows: Sequence[Row]) -> list[ImportSettings]:
    """The imports whose files hold tools; an import that is new in the settings has none yet."""
    named = {row.origin["name"] for row in rows if row.origin is not None}
    return [item for item in imports if item.name in named]


def list_packs(imports: Iterable[ImportSettings], package: str) -> list[str]:
    """The packs of ``imported.py``. The project itself handles imported tools of other kinds."""
    return [f"{package}.imported:{item.identifier}" for item in imports if item.kind in RUN_BY_US]


def render_imported(imports: Iterable[ImportSettings], rows: Sequence[Row]) -> str | None:
    """The text of the module, one pack for each import; None if there is no pack. Every value is a literal."""
    imports = [item for item in imports if item.kind in RUN_BY_US]
    if not imports:
        return None
    kinds = {item.kind for item in imports}
    used = [name for kind, names in _SUPPORT.items() if kind in kinds for name in names]
    used += ["McpOAuth"] if any(item.oauth is not None for item in imports) else []
    packs = "\n".join(_pack(item, [row for row in rows if _belongs_to(row, item)]) for item in imports)
    return f"""{header("Packs for imported tools; commands and addresses come from the settings.")}
from typing import Final

from toolkit.generated_support import {", ".join(sorted(used))}

{packs}"""


def _belongs_to(row: Row, item: ImportSettings) -> bool:
    return origin_kind(row) == item.kind and row.origin is not None and row.origin["name"] == item.name


def _pack(item: ImportSettings, rows: Sequence[Row]) -> str:
    if item.kind == "functions":
        sources = tuple(entry if ":" in entry else f"{entry}:*" for entry in item.functions)
        names = "".join(f"        {literal(row.name)}: {literal(row.originalName)},\n" for row in rows)
        return f"{item.identifier}: Final = FunctionTools(\n    {literal(sources)},\n    {{\n{names}    }},\n)\n"
    if item.kind == "mcp":
        function, peer, members = "mcp_pack", _server(item), map(_tool, rows)
    else:
        function, peer, members = "api_pack", _service(item, rows), map(_operation, rows)
    entries = "".join(f"        {literal(row.name)}: {text},\n" for row, text in zip(rows, members, strict=True))
    return f"{item.identifier}: Final = {function}(\n    {peer},\n    {{\n{entries}    }},\n)\n"


def _server(item: ImportSettings) -> str:
    how: dict[str, object]
    if item.command:
        env = dict(item.env) if isinstance(item.env, Mapping) else item.env
        how = {"command": item.command, "env": env, "sandbox": item.sandbox, "network": item.network}
        how |= {"read_roots": item.read_roots} if item.read_roots else {}
        how |= {"cwd": item.cwd} if item.cwd != "." else {}
    else:
        how = {"url": item.url, "headers": dict(item.headers)}
        how |= {"oauth": _Source(_login(item.oauth))} if item.oauth is not None else {}
    how |= {"timeout": item.timeout}
    how |= {"startup_timeout": item.startup_timeout} if item.startup_timeout is not None else {}
    return _call("McpServer", {"name": item.name, **how})


def _login(oauth: OAuthSettings) -> str:
    return f"McpOAuth({', '.join(f'{name}={literal(value)}' for name, value in oauth.given().items())})"


class _Source(str):
    """Python source, to be written as it is."""

    __slots__ = ()


def _tool(row: Row) -> str:
    return f"McpTool({literal(row.originalName)}, {literal(_output(row))}, wraps_result={literal(row.wrapsResult)})"


def _service(item: ImportSettings, rows: Sequence[Row]) -> str:
    how = {"url": service_url(item, rows), "headers": dict(item.headers), "timeout": item.timeout}
    if not item.url:
        how["public_only"] = True
    return _call("ApiService", {"name": item.name, **how})


def _operation(row: Row) -> str:
    return _call("ApiOperation", {**(row.request or {}), "output": _output(row)}, indent="        ")


def _output(row: Row) -> str:
    return f"{row.module}:{row.prefix}Output"


def _call(name: str, values: dict[str, object], indent: str = "    ") -> str:
    """A call with one keyword per line. The keywords of a request were checked when its spec was read."""
    sources = {key: value if isinstance(value, _Source) else literal(value) for key, value in values.items()}
    lines = "".join(f"{indent}    {key}={source},\n" for key, source in sources.items())
    return f"{name}(\n{lines}{indent})"
