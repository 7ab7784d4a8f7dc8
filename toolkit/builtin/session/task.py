"""``task``: delegates work to a subagent, through the runner that the application configures."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Annotated, Any

from toolkit.errors import ToolFailed
from toolkit.generated import TaskInput, TaskOutput
from toolkit.inject import Depends
from toolkit.runtime.context import ToolkitContext
from toolkit.runtime.stores.keys import SUBAGENT_RUNNER, SubagentRequest, SubagentResult, SubagentRunner
from toolkit.runtime.tool_context import ToolContext


def run(
    args: TaskInput,
    ctx: ToolContext,
    runner: Annotated[SubagentRunner | None, Depends(SUBAGENT_RUNNER)],
    parent: ToolkitContext[Any],
) -> TaskOutput | Awaitable[TaskOutput]:
    if runner is None:
        raise ToolFailed("LLM_ASSIST_REQUIRED", "no subagent runner is configured; do the work directly")
    ctx.metadata(title=args.description)
    request = SubagentRequest(
        args.description, args.prompt, args.subagent_type, args.session_id, parent, ctx.signal, ctx.call_id
    )
    result = runner.run(request)
    return _await_result(result) if inspect.isawaitable(result) else _to_output(result)


async def _await_result(result: Awaitable[SubagentResult]) -> TaskOutput:
    return _to_output(await result)


def _to_output(result: SubagentResult) -> TaskOutput:
    return TaskOutput(status=result.status, output=result.output, session_id=result.session_id)


def text(output: TaskOutput) -> str:
    status = "" if output.status == "completed" else f"[subagent status: {output.status}]\n"
    return f"{status}{output.output}\n[to continue: session_id {output.session_id}]"
