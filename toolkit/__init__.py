"""Statically typed tools for LLM agents.

>>> from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
>>> policy = SecurityPolicy(default="deny", tools={"done": "allow"})
>>> with create_agent_toolkit(ToolkitContext(workspace=".", policy=policy)) as tk:
...     tk.invoke("done", {"message": "hello"}).content.message
'hello'

A first program needs:

- ``create_agent_toolkit``, ``create_async_agent_toolkit``: a toolkit for a ``ToolkitContext`` and its ``SecurityPolicy``
- ``run``, ``stream_run``: a model and a toolkit, until the model is done; ``Driver`` is what they take
- ``ToolCall``, ``ToolResult``, ``ToolDefinition``, ``ToolMessage``: what goes in and comes out
- ``Approve``, ``Deny``, ``Edit``, ``Respond``: what an ``Approver`` answers; ``ask_in_terminal`` is one
- ``ToolkitError``, ``ToolFailed``: what calls raise, and what handlers raise
- ``tool``, ``define_tool``, ``ToolRegistry``, ``ToolContext``, ``Depends``: tools of your own

Less common names are in modules:

- ``toolkit.errors``: every error and its code
- ``toolkit.guard``: policy, files, commands and network behind the boundary
- ``toolkit.loop``: the loop's events
- ``toolkit.stores``: the audit log, the output cache, todos, approvals and locks, in files or Redis
- ``toolkit.wire``: the neutral format between providers and tools
- ``toolkit.adapters``: one package for each provider
- ``toolkit.packs``: MCP servers and web services as tools
- ``toolkit.fleet``: batches of calls and runs over a Ray cluster
- ``toolkit.testing``: scripted models, transcripts and fixtures for tests; laws for adapters and packs of your own
- ``toolkit.generated``: the models of the built-in tools
- ``toolkit.codegen``: the generator

Everything here is loaded when it is first used.
"""

from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from toolkit.adapters.history import repair_history as repair_history
    from toolkit.adapters.history import validate_history as validate_history
    from toolkit.errors import ActionNeeded as ActionNeeded
    from toolkit.errors import AnswerCutOff as AnswerCutOff
    from toolkit.errors import AnswerFailed as AnswerFailed
    from toolkit.errors import AnswerFiltered as AnswerFiltered
    from toolkit.errors import AnswerRefused as AnswerRefused
    from toolkit.errors import ErrorCode as ErrorCode
    from toolkit.errors import FailureReason as FailureReason
    from toolkit.errors import GenerationError as GenerationError
    from toolkit.errors import InternalError as InternalError
    from toolkit.errors import InvalidArguments as InvalidArguments
    from toolkit.errors import InvalidArgumentsType as InvalidArgumentsType
    from toolkit.errors import Overloaded as Overloaded
    from toolkit.errors import PolicyError as PolicyError
    from toolkit.errors import RunCancelled as RunCancelled
    from toolkit.errors import RunError as RunError
    from toolkit.errors import RunLimitReached as RunLimitReached
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
    from toolkit.guard import CommandLimits as CommandLimits
    from toolkit.guard import Decision as Decision
    from toolkit.guard import Network as Network
    from toolkit.guard import Permission as Permission
    from toolkit.guard import Permissions as Permissions
    from toolkit.guard import Preview as Preview
    from toolkit.guard import SandboxFS as SandboxFS
    from toolkit.guard import SandboxPath as SandboxPath
    from toolkit.guard import Verdict as Verdict
    from toolkit.inject import DependencyKey as DependencyKey
    from toolkit.inject import Depends as Depends
    from toolkit.loop import AsyncDriver as AsyncDriver
    from toolkit.loop import AsyncStreamingDriver as AsyncStreamingDriver
    from toolkit.loop import Conversation as Conversation
    from toolkit.loop import Driver as Driver
    from toolkit.loop import RunLimits as RunLimits
    from toolkit.loop import StreamingDriver as StreamingDriver
    from toolkit.loop import run as run
    from toolkit.loop import run_async as run_async
    from toolkit.loop import stream_run as stream_run
    from toolkit.loop import stream_run_async as stream_run_async
    from toolkit.runtime.approvals import ApprovalPending as ApprovalPending
    from toolkit.runtime.approvals import ApprovalRequest as ApprovalRequest
    from toolkit.runtime.approvals import Approve as Approve
    from toolkit.runtime.approvals import Approver as Approver
    from toolkit.runtime.approvals import Deny as Deny
    from toolkit.runtime.approvals import Edit as Edit
    from toolkit.runtime.approvals import Respond as Respond
    from toolkit.runtime.approvals import Suspend as Suspend
    from toolkit.runtime.approvals import SuspendedCall as SuspendedCall
    from toolkit.runtime.catalog import ParsedCall as ParsedCall
    from toolkit.runtime.context import CallSettings as CallSettings
    from toolkit.runtime.context import CommandSettings as CommandSettings
    from toolkit.runtime.context import DynamicContext as DynamicContext
    from toolkit.runtime.context import DynamicPolicy as DynamicPolicy
    from toolkit.runtime.context import DynamicRule as DynamicRule
    from toolkit.runtime.context import FileSettings as FileSettings
    from toolkit.runtime.context import Tracing as Tracing
    from toolkit.runtime.functions import FunctionTool as FunctionTool
    from toolkit.runtime.functions import define_tool as define_tool
    from toolkit.runtime.functions import tool as tool
    from toolkit.runtime.output import ToolMessage as ToolMessage
    from toolkit.runtime.packs import Handler as Handler
    from toolkit.runtime.packs import HandlerParts as HandlerParts
    from toolkit.runtime.packs import Pack as Pack
    from toolkit.runtime.programs.result import ProgramCall as ProgramCall
    from toolkit.runtime.programs.result import ProgramError as ProgramError
    from toolkit.runtime.programs.result import ProgramResult as ProgramResult
    from toolkit.runtime.programs.result import ProgramSettings as ProgramSettings
    from toolkit.runtime.programs.sessions import AsyncProgramSession as AsyncProgramSession
    from toolkit.runtime.programs.sessions import ProgramSession as ProgramSession
    from toolkit.runtime.progress import Progress as Progress
    from toolkit.runtime.registry import RunnableTool as RunnableTool
    from toolkit.runtime.registry import ToolRegistry as ToolRegistry
    from toolkit.runtime.signals import CancelSignal as CancelSignal
    from toolkit.runtime.stores.budget import fit_history as fit_history
    from toolkit.runtime.surface import OMIT as OMIT
    from toolkit.runtime.surface import Omit as Omit
    from toolkit.runtime.terminal import ask_in_terminal as ask_in_terminal
    from toolkit.runtime.tool_context import ToolContext as ToolContext
    from toolkit.runtime.turns import Concurrency as Concurrency
    from toolkit.runtime.turns import Load as Load
    from toolkit.stores import OUTPUT_CACHE as OUTPUT_CACHE
    from toolkit.stores import SUBAGENT_RUNNER as SUBAGENT_RUNNER
    from toolkit.stores import TODO_STORE as TODO_STORE
    from toolkit.stores import FileOutputCache as FileOutputCache
    from toolkit.stores import FileTodoStore as FileTodoStore
    from toolkit.stores import MemoryTodoStore as MemoryTodoStore
    from toolkit.stores import OutputCache as OutputCache
    from toolkit.stores import OutputWriter as OutputWriter
    from toolkit.stores import SubagentRequest as SubagentRequest
    from toolkit.stores import SubagentResult as SubagentResult
    from toolkit.stores import SubagentRunner as SubagentRunner
    from toolkit.stores import Todo as Todo
    from toolkit.stores import TodoStore as TodoStore
    from toolkit.wire import ArgumentsDelta as ArgumentsDelta
    from toolkit.wire import AssistantToolCallMessage as AssistantToolCallMessage
    from toolkit.wire import AsyncStreamResult as AsyncStreamResult
    from toolkit.wire import ChatMessage as ChatMessage
    from toolkit.wire import ContentBlock as ContentBlock
    from toolkit.wire import ContentOutput as ContentOutput
    from toolkit.wire import JsonObject as JsonObject
    from toolkit.wire import NamedTool as NamedTool
    from toolkit.wire import NativeChoice as NativeChoice
    from toolkit.wire import NativeTool as NativeTool
    from toolkit.wire import QueryOptions as QueryOptions
    from toolkit.wire import QueryResult as QueryResult
    from toolkit.wire import StreamResult as StreamResult
    from toolkit.wire import TextDelta as TextDelta
    from toolkit.wire import TextMessage as TextMessage
    from toolkit.wire import ToolCall as ToolCall
    from toolkit.wire import ToolChoice as ToolChoice
    from toolkit.wire import ToolDefinition as ToolDefinition
    from toolkit.wire import ToolResult as ToolResult
    from toolkit.wire import ToolResultMessage as ToolResultMessage
    from toolkit.wire import Usage as Usage
    from toolkit.wire import UsageUpdate as UsageUpdate
    from toolkit.wire import has_tool_calls as has_tool_calls
    from toolkit.wire import is_tool_result as is_tool_result
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        submodules="adapters codegen errors fleet generated guard loop packs stores testing wire"
    )
