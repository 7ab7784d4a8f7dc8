"""Packs that run imported tools: each calls the server or service its specs came from. Loaded when first used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.packs.mcp.connection import McpClient as McpClient
    from toolkit.packs.mcp.connection import McpPrompt as McpPrompt
    from toolkit.packs.mcp.connection import McpPromptArgument as McpPromptArgument
    from toolkit.packs.mcp.connection import McpResource as McpResource
    from toolkit.packs.mcp.connection import McpResourceTemplate as McpResourceTemplate
    from toolkit.packs.mcp.pack import McpPack as McpPack
    from toolkit.packs.mcp.pack import McpTool as McpTool
    from toolkit.packs.mcp.pack import mcp_pack as mcp_pack
    from toolkit.packs.mcp.server import McpOAuth as McpOAuth
    from toolkit.packs.mcp.server import McpServer as McpServer
    from toolkit.packs.openapi import ApiBody as ApiBody
    from toolkit.packs.openapi import ApiOperation as ApiOperation
    from toolkit.packs.openapi import ApiParameter as ApiParameter
    from toolkit.packs.openapi import ApiService as ApiService
    from toolkit.packs.openapi import api_pack as api_pack
    from toolkit.runtime.context import ElicitRequest as ElicitRequest
    from toolkit.runtime.context import McpCallbacks as McpCallbacks
    from toolkit.runtime.context import SampleAnswer as SampleAnswer
    from toolkit.runtime.context import SampleRequest as SampleRequest
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
