"""The neutral format: the values that pass between any provider, the toolkit and its caller.

>>> from toolkit.wire import ToolCall, from_json, to_json
>>> from_json(to_json(ToolCall("1", "add", {"a": 1}))) == ToolCall("1", "add", {"a": 1})
True

Everything here is loaded when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.wire.call import JsonObject as JsonObject
    from toolkit.wire.call import ToolCall as ToolCall
    from toolkit.wire.call import ToolResult as ToolResult
    from toolkit.wire.codec import from_json as from_json
    from toolkit.wire.codec import to_json as to_json
    from toolkit.wire.content import ContentBlock as ContentBlock
    from toolkit.wire.content import ContentOutput as ContentOutput
    from toolkit.wire.definition import NamedTool as NamedTool
    from toolkit.wire.definition import NativeChoice as NativeChoice
    from toolkit.wire.definition import NativeTool as NativeTool
    from toolkit.wire.definition import Output as Output
    from toolkit.wire.definition import OutputSchema as OutputSchema
    from toolkit.wire.definition import ToolCallers as ToolCallers
    from toolkit.wire.definition import ToolChoice as ToolChoice
    from toolkit.wire.definition import ToolDefinition as ToolDefinition
    from toolkit.wire.definition import alias as alias
    from toolkit.wire.message import AssistantToolCallMessage as AssistantToolCallMessage
    from toolkit.wire.message import ChatMessage as ChatMessage
    from toolkit.wire.message import TextMessage as TextMessage
    from toolkit.wire.message import ToolResultMessage as ToolResultMessage
    from toolkit.wire.message import has_tool_calls as has_tool_calls
    from toolkit.wire.message import is_tool_result as is_tool_result
    from toolkit.wire.query import AnswerEnded as AnswerEnded
    from toolkit.wire.query import AnswerEvent as AnswerEvent
    from toolkit.wire.query import ArgumentsDelta as ArgumentsDelta
    from toolkit.wire.query import AsyncStreamResult as AsyncStreamResult
    from toolkit.wire.query import CachePoint as CachePoint
    from toolkit.wire.query import CallCompleted as CallCompleted
    from toolkit.wire.query import CallStarted as CallStarted
    from toolkit.wire.query import Conversation as Conversation
    from toolkit.wire.query import FinishReason as FinishReason
    from toolkit.wire.query import QueryOptions as QueryOptions
    from toolkit.wire.query import QueryResult as QueryResult
    from toolkit.wire.query import Reasoning as Reasoning
    from toolkit.wire.query import ReasoningDelta as ReasoningDelta
    from toolkit.wire.query import ReasoningEffort as ReasoningEffort
    from toolkit.wire.query import StreamResult as StreamResult
    from toolkit.wire.query import TextDelta as TextDelta
    from toolkit.wire.query import Usage as Usage
    from toolkit.wire.query import UsageUpdate as UsageUpdate
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
