"""``task``: work for a subagent, run by what the application puts in place for that."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Annotated, Any

from toolkit.errors import ToolFailed
from toolkit.generated import TaskInput, TaskOutput
from toolkit.inject.key import Depends
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.stores.keys import SUBAGENT_RUNNER
from toolkit.runtime.stores.subagent import SubagentRequest, SubagentResult, SubagentRunner


def run(
    args: TaskInput,
    ctx: ToolContext,
    runner: Annotated[SubagentRunner | None, Depends(SUBAGENT_RUNNER)],
    parent: ToolkitContext[Any],
) -> TaskOutput | Awaitable[TaskOutput]:
    if runner is None:
        raise ToolFailed(
            "LLM_ASSIST_REQUIRED", "no subagent can be run here: the application has put none in place; do it yourself"
        )
    ctx.metadata(title=args.description)
    request = SubagentRequest(
        args.description, args.prompt, args.subagent_type, args.session_id, parent, ctx.signal, ctx.call_id
    )
    result = runner.run(request)
    return _later(result) if inspect.isawaitable(result) else _output(result)


async def _later(result: Awaitable[SubagentResult]) -> TaskOutput:
    return _output(await result)


def _output(result: SubagentResult) -> TaskOutput:
    return TaskOutput(status=result.status, output=result.output, session_id=result.session_id)


def text(output: TaskOutput) -> str:
    status = "" if output.status == "completed" else f"[the subagent ended as {output.status}]\n"
    return f"{status}{output.output}\n[go on with it: session_id {output.session_id}]"
