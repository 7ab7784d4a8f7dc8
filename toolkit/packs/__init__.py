"""Packs that run imported tools: each calls the server or service its specs came from. Loaded when first used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.packs.functions import FunctionTools as FunctionTools
    from toolkit.packs.mcp.pack import McpTool as McpTool
    from toolkit.packs.mcp.pack import mcp_pack as mcp_pack
    from toolkit.packs.mcp.server import McpServer as McpServer
    from toolkit.packs.openapi.pack import ApiOperation as ApiOperation
    from toolkit.packs.openapi.pack import ApiService as ApiService
    from toolkit.packs.openapi.pack import api_pack as api_pack
    from toolkit.packs.openapi.request import ApiBody as ApiBody
    from toolkit.packs.openapi.request import ApiParameter as ApiParameter
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".functions": "FunctionTools",
            ".mcp.pack": "McpTool mcp_pack",
            ".mcp.server": "McpServer",
            ".openapi.pack": "ApiOperation ApiService api_pack",
            ".openapi.request": "ApiBody ApiParameter",
        },
    )
