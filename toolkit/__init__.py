"""Statically typed tools for LLM agents.

>>> from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
>>> policy = SecurityPolicy(default="deny", tools={"done": "allow"})
>>> with create_agent_toolkit(ToolkitContext(workspace=".", policy=policy)) as toolkit:
...     toolkit.invoke("done", {"message": "hello"}).content.message
'hello'

Everything here is loaded when it is first used.
"""

from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from toolkit.adapters.history import repair_history as repair_history
    from toolkit.adapters.history import validate_history as validate_history
    from toolkit.errors import ErrorCode as ErrorCode
    from toolkit.errors import FailureReason as FailureReason
    from toolkit.errors import GenerationError as GenerationError
    from toolkit.errors import InternalError as InternalError
    from toolkit.errors import InvalidArguments as InvalidArguments
    from toolkit.errors import InvalidArgumentsType as InvalidArgumentsType
    from toolkit.errors import PolicyError as PolicyError
    from toolkit.errors import SandboxViolation as SandboxViolation
    from toolkit.errors import SetupError as SetupError
    from toolkit.errors import SpecError as SpecError
    from toolkit.errors import ToolCancelled as ToolCancelled
    from toolkit.errors import ToolFailed as ToolFailed
    from toolkit.errors import ToolkitError as ToolkitError
    from toolkit.errors import ToolNotAllowed as ToolNotAllowed
    from toolkit.errors import ToolNotFound as ToolNotFound
    from toolkit.errors import ToolTimeout as ToolTimeout
    from toolkit.generated import AnyToolCall as AnyToolCall
    from toolkit.generated import AnyToolMessage as AnyToolMessage
    from toolkit.generated import AsyncToolkit as AsyncToolkit
    from toolkit.generated import Rule as Rule
    from toolkit.generated import SecurityPolicy as SecurityPolicy
    from toolkit.generated import Toolkit as Toolkit
    from toolkit.generated import ToolkitContext as ToolkitContext
    from toolkit.generated import ToolName as ToolName
    from toolkit.generated import create_agent_toolkit as create_agent_toolkit
    from toolkit.generated import create_async_agent_toolkit as create_async_agent_toolkit
    from toolkit.generated import is_tool_name as is_tool_name
    from toolkit.generated import parse_call as parse_call
    from toolkit.guard.fs.path import SandboxPath as SandboxPath
    from toolkit.guard.fs.sandbox_fs import SandboxFS as SandboxFS
    from toolkit.guard.net.network import Network as Network
    from toolkit.guard.permission import Permission as Permission
    from toolkit.guard.permission import Permissions as Permissions
    from toolkit.guard.policy.policy import Verdict as Verdict
    from toolkit.guard.policy.preview import Preview as Preview
    from toolkit.guard.policy.rule import Decision as Decision
    from toolkit.inject.key import DependencyKey as DependencyKey
    from toolkit.inject.key import Depends as Depends
    from toolkit.runtime.call.approval import ApprovalRequest as ApprovalRequest
    from toolkit.runtime.call.approval import Approve as Approve
    from toolkit.runtime.call.approval import Deny as Deny
    from toolkit.runtime.call.approval import Edit as Edit
    from toolkit.runtime.call.approval import Respond as Respond
    from toolkit.runtime.catalog.omit import OMIT as OMIT
    from toolkit.runtime.catalog.omit import Omit as Omit
    from toolkit.runtime.catalog.pack import Handler as Handler
    from toolkit.runtime.catalog.pack import Pack as Pack
    from toolkit.runtime.catalog.pack import PackSource as PackSource
    from toolkit.runtime.context.dynamic import DynamicContext as DynamicContext
    from toolkit.runtime.context.dynamic import DynamicPolicy as DynamicPolicy
    from toolkit.runtime.context.dynamic import DynamicRule as DynamicRule
    from toolkit.runtime.context.progress import Progress as Progress
    from toolkit.runtime.context.signals import CancelSignal as CancelSignal
    from toolkit.runtime.context.tool_context import ToolContext as ToolContext
    from toolkit.runtime.functions.define import FunctionTool as FunctionTool
    from toolkit.runtime.functions.define import define_tool as define_tool
    from toolkit.runtime.functions.define import tool as tool
    from toolkit.runtime.functions.lazy import LazyTool as LazyTool
    from toolkit.runtime.functions.registry import RunnableTool as RunnableTool
    from toolkit.runtime.functions.registry import RunnableTools as RunnableTools
    from toolkit.runtime.functions.registry import ToolRegistry as ToolRegistry
    from toolkit.runtime.functions.standalone import StandaloneContext as StandaloneContext
    from toolkit.runtime.output.cache.budget import fit_history as fit_history
    from toolkit.runtime.output.cache.store import FileOutputCache as FileOutputCache
    from toolkit.runtime.output.cache.store import OutputCache as OutputCache
    from toolkit.runtime.output.cache.store import OutputWriter as OutputWriter
    from toolkit.runtime.output.message import ParsedCall as ParsedCall
    from toolkit.runtime.output.message import ToolMessage as ToolMessage
    from toolkit.runtime.stores.keys import OUTPUT_CACHE as OUTPUT_CACHE
    from toolkit.runtime.stores.keys import SUBAGENT_RUNNER as SUBAGENT_RUNNER
    from toolkit.runtime.stores.keys import TODO_STORE as TODO_STORE
    from toolkit.runtime.stores.subagent import SubagentRequest as SubagentRequest
    from toolkit.runtime.stores.subagent import SubagentResult as SubagentResult
    from toolkit.runtime.stores.subagent import SubagentRunner as SubagentRunner
    from toolkit.runtime.stores.todos import FileTodoStore as FileTodoStore
    from toolkit.runtime.stores.todos import MemoryTodoStore as MemoryTodoStore
    from toolkit.runtime.stores.todos import Todo as Todo
    from toolkit.runtime.stores.todos import TodoStore as TodoStore
    from toolkit.wire.call import ToolCall as ToolCall
    from toolkit.wire.choice import NamedTool as NamedTool
    from toolkit.wire.choice import NativeChoice as NativeChoice
    from toolkit.wire.choice import ToolChoice as ToolChoice
    from toolkit.wire.content import ContentBlock as ContentBlock
    from toolkit.wire.content import ContentOutput as ContentOutput
    from toolkit.wire.definition import NativeTool as NativeTool
    from toolkit.wire.definition import ToolDefinition as ToolDefinition
    from toolkit.wire.json_types import JsonObject as JsonObject
    from toolkit.wire.message import AssistantToolCallMessage as AssistantToolCallMessage
    from toolkit.wire.message import ChatMessage as ChatMessage
    from toolkit.wire.message import TextMessage as TextMessage
    from toolkit.wire.message import ToolResultMessage as ToolResultMessage
    from toolkit.wire.message import has_tool_calls as has_tool_calls
    from toolkit.wire.message import is_tool_result as is_tool_result
    from toolkit.wire.query import AsyncStreamResult as AsyncStreamResult
    from toolkit.wire.query import QueryOptions as QueryOptions
    from toolkit.wire.query import QueryResult as QueryResult
    from toolkit.wire.query import StreamResult as StreamResult
    from toolkit.wire.query import Usage as Usage
    from toolkit.wire.result import ToolResult as ToolResult
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.generated": """AnyToolCall AnyToolMessage AsyncToolkit Rule SecurityPolicy ToolName Toolkit
                ToolkitContext create_agent_toolkit create_async_agent_toolkit is_tool_name parse_call""",
            "toolkit.adapters.history": "repair_history validate_history",
            "toolkit.errors": """ErrorCode FailureReason GenerationError InternalError InvalidArguments InvalidArgumentsType
                PolicyError SandboxViolation SetupError SpecError ToolCancelled ToolFailed ToolNotAllowed ToolNotFound
                ToolTimeout ToolkitError""",
            "toolkit.guard.fs.sandbox_fs": "SandboxFS",
            "toolkit.guard.net.network": "Network",
            "toolkit.guard.fs.path": "SandboxPath",
            "toolkit.guard.permission": "Permission Permissions",
            "toolkit.guard.policy.policy": "Verdict",
            "toolkit.guard.policy.preview": "Preview",
            "toolkit.guard.policy.rule": "Decision",
            "toolkit.inject.key": "DependencyKey Depends",
            "toolkit.runtime.call.approval": "ApprovalRequest Approve Deny Edit Respond",
            "toolkit.runtime.output.cache.budget": "fit_history",
            "toolkit.runtime.output.cache.store": "FileOutputCache OutputCache OutputWriter",
            "toolkit.runtime.context.tool_context": "ToolContext",
            "toolkit.runtime.functions.define": "FunctionTool define_tool tool",
            "toolkit.runtime.context.dynamic": "DynamicContext DynamicPolicy DynamicRule",
            "toolkit.runtime.functions.lazy": "LazyTool",
            "toolkit.runtime.output.message": "ParsedCall ToolMessage",
            "toolkit.runtime.catalog.omit": "OMIT Omit",
            "toolkit.runtime.context.progress": "Progress",
            "toolkit.runtime.functions.registry": "RunnableTool RunnableTools ToolRegistry",
            "toolkit.runtime.context.signals": "CancelSignal",
            "toolkit.runtime.functions.standalone": "StandaloneContext",
            "toolkit.runtime.stores.keys": "OUTPUT_CACHE SUBAGENT_RUNNER TODO_STORE",
            "toolkit.runtime.stores.subagent": "SubagentRequest SubagentResult SubagentRunner",
            "toolkit.runtime.catalog.pack": "Handler Pack PackSource",
            "toolkit.runtime.stores.todos": "FileTodoStore MemoryTodoStore Todo TodoStore",
            "toolkit.wire.call": "ToolCall",
            "toolkit.wire.choice": "NamedTool NativeChoice ToolChoice",
            "toolkit.wire.content": "ContentBlock ContentOutput",
            "toolkit.wire.definition": "NativeTool ToolDefinition",
            "toolkit.wire.json_types": "JsonObject",
            "toolkit.wire.message": """AssistantToolCallMessage ChatMessage TextMessage ToolResultMessage has_tool_calls
                is_tool_result""",
            "toolkit.wire.query": "AsyncStreamResult QueryOptions QueryResult StreamResult Usage",
            "toolkit.wire.result": "ToolResult",
        },
    )
