"""Everything generated packages import from the toolkit. Nothing else here is for users.

Generated code imports from this module and from its own package only. Modules of the toolkit can therefore move without
regenerating every user's package. A name may be added here; removing or changing one breaks packages that are already
generated, so it needs a new ``FORM`` in ``toolkit.codegen.package.manifest``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy as SecurityPolicy
    from toolkit.guard.policy.rule import Rule as Rule
    from toolkit.lazy_exports import lazy_exports as lazy_exports
    from toolkit.lazy_exports import lazy_package as lazy_package
    from toolkit.lazy_exports import own_type as own_type
    from toolkit.models.absent import Omissible as Omissible
    from toolkit.models.base import DeclaredBySome as DeclaredBySome
    from toolkit.models.base import Exact as Exact
    from toolkit.models.base import ToolModel as ToolModel
    from toolkit.models.root import ToolRootModel as ToolRootModel
    from toolkit.packs.functions import FunctionTools as FunctionTools
    from toolkit.packs.mcp.pack import McpTool as McpTool
    from toolkit.packs.mcp.pack import mcp_pack as mcp_pack
    from toolkit.packs.mcp.server import McpOAuth as McpOAuth
    from toolkit.packs.mcp.server import McpServer as McpServer
    from toolkit.packs.openapi.pack import ApiOperation as ApiOperation
    from toolkit.packs.openapi.pack import ApiService as ApiService
    from toolkit.packs.openapi.pack import api_pack as api_pack
    from toolkit.runtime.async_ import AsyncRunner as AsyncRunner
    from toolkit.runtime.async_ import CallToolAsync as CallToolAsync
    from toolkit.runtime.catalog.catalog import Catalog as Catalog
    from toolkit.runtime.catalog.catalog import ToolInfo as ToolInfo
    from toolkit.runtime.catalog.pack import Handler as Handler
    from toolkit.runtime.catalog.pack import Pack as Pack
    from toolkit.runtime.catalog.pack import PackSource as PackSource
    from toolkit.runtime.catalog.parse_call import parse_call as parse_call
    from toolkit.runtime.catalog.signatures import Invoke as Invoke
    from toolkit.runtime.catalog.signatures import InvokeAsync as InvokeAsync
    from toolkit.runtime.catalog.signatures import Signature as Signature
    from toolkit.runtime.catalog.unmatched import ArgsOfNoTool as ArgsOfNoTool
    from toolkit.runtime.catalog.unmatched import JsonObjectForUnknownName as JsonObjectForUnknownName
    from toolkit.runtime.catalog.unmatched import NameOfNoTool as NameOfNoTool
    from toolkit.runtime.context.dynamic import DynamicContext as DynamicContext
    from toolkit.runtime.context.profile import Profile as Profile
    from toolkit.runtime.context.toolkit_context import ToolkitContext as ToolkitContext
    from toolkit.runtime.output.message import ToolMessage as ToolMessage
    from toolkit.runtime.output.parsed_call import ParsedCall as ParsedCall
    from toolkit.runtime.surface import OMIT as OMIT
    from toolkit.runtime.surface import Omit as Omit
    from toolkit.runtime.surface import send_only_given as send_only_given
    from toolkit.runtime.sync import CallTool as CallTool
    from toolkit.runtime.sync import Runner as Runner
    from toolkit.schema.formats import WireDate as WireDate
    from toolkit.schema.formats import WireDateTime as WireDateTime
    from toolkit.schema.formats import WireTime as WireTime
    from toolkit.schema.formats import WireUrl as WireUrl
    from toolkit.schema.formats import WireUUID as WireUUID
    from toolkit.wire.call import ToolCall as ToolCall
    from toolkit.wire.content import ContentOutput as ContentOutput
    from toolkit.wire.json_types import JsonObject as JsonObject
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.guard.policy.policy": "SecurityPolicy",
            "toolkit.guard.policy.rule": "Rule",
            "toolkit.lazy_exports": "lazy_exports lazy_package own_type",
            "toolkit.models.absent": "Omissible",
            "toolkit.models.base": "DeclaredBySome Exact ToolModel",
            "toolkit.models.root": "ToolRootModel",
            "toolkit.schema.formats": "WireDate WireDateTime WireTime WireUUID WireUrl",
            "toolkit.packs.functions": "FunctionTools",
            "toolkit.packs.mcp.pack": "McpTool mcp_pack",
            "toolkit.packs.mcp.server": "McpOAuth McpServer",
            "toolkit.packs.openapi.pack": "ApiOperation ApiService api_pack",
            "toolkit.runtime.async_": "AsyncRunner CallToolAsync",
            "toolkit.runtime.catalog.parse_call": "parse_call",
            "toolkit.runtime.sync": "CallTool Runner",
            "toolkit.runtime.catalog.catalog": "Catalog ToolInfo",
            "toolkit.runtime.surface": "OMIT Omit send_only_given",
            "toolkit.runtime.catalog.pack": "Handler Pack PackSource",
            "toolkit.runtime.catalog.signatures": "Invoke InvokeAsync Signature",
            "toolkit.runtime.catalog.unmatched": "ArgsOfNoTool JsonObjectForUnknownName NameOfNoTool",
            "toolkit.runtime.context.dynamic": "DynamicContext",
            "toolkit.runtime.context.profile": "Profile",
            "toolkit.runtime.context.toolkit_context": "ToolkitContext",
            "toolkit.runtime.output.message": "ToolMessage",
            "toolkit.runtime.output.parsed_call": "ParsedCall",
            "toolkit.wire.call": "ToolCall",
            "toolkit.wire.content": "ContentOutput",
            "toolkit.wire.json_types": "JsonObject",
        },
    )
