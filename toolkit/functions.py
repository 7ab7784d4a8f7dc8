"""Code-first tools: typed Python functions as tools, and the registry that holds them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.context import DynamicContext as DynamicContext
    from toolkit.runtime.context import DynamicPolicy as DynamicPolicy
    from toolkit.runtime.context import DynamicRule as DynamicRule
    from toolkit.runtime.functions import FunctionTool as FunctionTool
    from toolkit.runtime.functions import LazyTool as LazyTool
    from toolkit.runtime.functions import define_tool as define_tool
    from toolkit.runtime.functions import tool as tool
    from toolkit.runtime.registry import RunnableTool as RunnableTool
    from toolkit.runtime.registry import RunnableTools as RunnableTools
    from toolkit.runtime.registry import StandaloneContext as StandaloneContext
    from toolkit.runtime.registry import ToolRegistry as ToolRegistry
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.functions": "tool define_tool FunctionTool LazyTool",
            "toolkit.runtime.registry": "ToolRegistry RunnableTool RunnableTools StandaloneContext",
            "toolkit.runtime.context": "DynamicContext DynamicPolicy DynamicRule",
        },
    )
