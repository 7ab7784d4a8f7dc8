"""Everything generated packages import from the toolkit. Nothing else here is for users.

Generated code imports from this module and from its own package only. Modules of the toolkit can therefore move without
regenerating every user's package. A name may be added here; removing or changing one breaks packages that are already
generated, so it needs a new ``FORM`` in ``toolkit.codegen.package.manifest``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy as SecurityPolicy
    from toolkit.guard.policy.rule import Rule as Rule
    from toolkit.lazy_exports import lazy_package as lazy_package
    from toolkit.lazy_exports import own_type as own_type
    from toolkit.packs.functions import FunctionTools as FunctionTools
    from toolkit.packs.mcp.pack import McpTool as McpTool
    from toolkit.packs.mcp.pack import mcp_pack as mcp_pack
    from toolkit.packs.mcp.server import McpOAuth as McpOAuth
    from toolkit.packs.mcp.server import McpServer as McpServer
    from toolkit.packs.openapi import ApiOperation as ApiOperation
    from toolkit.packs.openapi import ApiService as ApiService
    from toolkit.packs.openapi import api_pack as api_pack
    from toolkit.runtime.async_ import AsyncRunner as AsyncRunner
    from toolkit.runtime.async_ import CallToolAsync as CallToolAsync
    from toolkit.runtime.catalog import Catalog as Catalog
    from toolkit.runtime.catalog import ParsedCall as ParsedCall
    from toolkit.runtime.catalog import ToolInfo as ToolInfo
    from toolkit.runtime.catalog import parse_call as parse_call
    from toolkit.runtime.context import DynamicContext as DynamicContext
    from toolkit.runtime.context import Profile as Profile
    from toolkit.runtime.context import ToolkitContext as ToolkitContext
    from toolkit.runtime.output import ToolMessage as ToolMessage
    from toolkit.runtime.packs import Handler as Handler
    from toolkit.runtime.packs import Pack as Pack
    from toolkit.runtime.packs import PackSource as PackSource
    from toolkit.runtime.surface import OMIT as OMIT
    from toolkit.runtime.surface import ArgsOfNoTool as ArgsOfNoTool
    from toolkit.runtime.surface import Invoke as Invoke
    from toolkit.runtime.surface import InvokeAsync as InvokeAsync
    from toolkit.runtime.surface import JsonObjectForUnknownName as JsonObjectForUnknownName
    from toolkit.runtime.surface import NameOfNoTool as NameOfNoTool
    from toolkit.runtime.surface import Omit as Omit
    from toolkit.runtime.surface import Signature as Signature
    from toolkit.runtime.surface import send_only_given as send_only_given
    from toolkit.runtime.sync import CallTool as CallTool
    from toolkit.runtime.sync import Runner as Runner
    from toolkit.schema.formats import WireDate as WireDate
    from toolkit.schema.formats import WireDateTime as WireDateTime
    from toolkit.schema.formats import WireTime as WireTime
    from toolkit.schema.formats import WireUrl as WireUrl
    from toolkit.schema.formats import WireUUID as WireUUID
    from toolkit.schema.models import DeclaredBySome as DeclaredBySome
    from toolkit.schema.models import Exact as Exact
    from toolkit.schema.models import Omissible as Omissible
    from toolkit.schema.models import ToolModel as ToolModel
    from toolkit.schema.models import ToolRootModel as ToolRootModel
    from toolkit.wire.call import JsonObject as JsonObject
    from toolkit.wire.call import ToolCall as ToolCall
    from toolkit.wire.content import ContentOutput as ContentOutput
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
