"""The path of one call: what each of its stages does, as plain functions.

1. **resolve** the name: ``TOOL_NOT_FOUND``. A tool is prepared at its first call (``toolkit.Core``): what is the same for all
   of its calls is decided then, and a call walks only the stages that can matter for it.
2. **admit** by name, before the arguments are read, so that a forbidden tool reveals nothing: ``TOOL_NOT_ALLOWED``.
3. **read** the arguments (``read_arguments``): a dict, the input model, or a model's JSON text.
4. **authorize**, only if a rule or ``ask`` concerns the tool: what the call would touch is judged, and approved.
5. **turn**, only if ``Concurrency`` limits the tool.
6. **run** the handler with its dependencies; it sees a ``ToolContext`` that holds only what its permissions grant.
7. **conclude**: check the output, make the message.

``sync.Runner._run`` and ``async_.AsyncRunner._run`` drive these stages; every entry point starts there.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from toolkit.errors import (
    InternalError,
    InvalidArguments,
    InvalidArgumentsType,
    ToolCancelled,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
    ToolNotFound,
    ToolTimeout,
    nearest,
)
from toolkit.inject import DependencyNode, Planner
from toolkit.runtime.arguments import (
    MANY_ARGUMENTS,
    MANY_ERRORS,
    describe_errors,
    first_errors,
    parse_arguments,
    shown_place,
)
from toolkit.runtime.output import Reported, StreamedOutput, ToolMessage
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.workers import Workers, is_async, is_interruption
from toolkit.system_faults import find_system_fault
from toolkit.wire.call import ToolResult

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import Verdict
    from toolkit.runtime.approvals import ApprovalRequest, Approver, Reply
    from toolkit.runtime.arguments import Repair
    from toolkit.runtime.catalog import Tool
    from toolkit.runtime.signals import CallSignal


MAX_LISTED_ERRORS: Final = 50
_MAX_NAMED_ERRORS: Final = 5
_MAX_SHOWN: Final = 100
_NO_REPAIRS: Final[tuple[Repair, ...]] = ()


def not_found(name: object, known: Mapping[str, object]) -> ToolNotFound:
    """The error for a name that the catalog does not have; it says nothing about the policy."""
    if not isinstance(name, str):
        return ToolNotFound(
            f"a tool name must be a string, not {type(name).__name__}", tool_name=str(name)[:_MAX_SHOWN]
        )
    shown = name if len(name) <= _MAX_SHOWN else name[:_MAX_SHOWN] + "…"
    return ToolNotFound(f"unknown tool {shown!r}.{nearest(name, known)}", tool_name=shown)


def closed(name: object) -> ToolCancelled:
    """The error for a call after the toolkit was closed."""
    return ToolCancelled("this toolkit has been closed", tool_name=str(name)[:_MAX_SHOWN])


def not_admitted(tool: Tool) -> ToolNotAllowed:
    """The refusal by name, before the arguments are looked at: a forbidden tool reveals nothing."""
    return ToolNotAllowed(tool.refusal or "", tool_name=tool.name, details={"decision": "deny"})


def not_allowed(name: str, verdict: Verdict) -> ToolNotAllowed:
    """The refusal of a call by the policy, with the reason."""
    asked = (
        ", and no approver is configured: ask the user, or configure an approver" if verdict.decision == "ask" else ""
    )
    details = {"decision": verdict.decision, "because": verdict.because}
    return ToolNotAllowed(f"{name!r} is not allowed: {verdict.because}{asked}", tool_name=name, details=details)


def read_arguments(tool: Tool, arguments: object, is_text: bool) -> tuple[BaseModel, Sequence[Repair]]:
    """The arguments as the tool's input model. What is plainly right is read at once, anything else with care."""
    given = tool.input
    try:
        if is_text:
            args = given.from_text(arguments)  # type: ignore[arg-type]  # anything else raises
        elif type(arguments) is dict:
            args = given.from_dict(arguments)
        else:
            # What is judged must not change until it runs, so it is a copy then.
            args = given.from_instance(arguments) if tool.always is not None else None
    except (TypeError, ValueError):
        args = None
    if args is not None:
        return args, _NO_REPAIRS
    return validate(tool, as_object(tool, arguments, is_text=is_text))


def as_object(tool: Tool, arguments: object, *, is_text: bool) -> dict[str, Any] | BaseModel:
    """The arguments as an object: a dict, the tool's own input model, or JSON text of an object."""
    if is_text:
        try:
            arguments = parse_arguments(arguments)
        except InvalidArguments as error:
            error.tool_name = tool.name
            raise
    if isinstance(arguments, (dict, tool.input.model)):
        return arguments
    if isinstance(arguments, Mapping):
        return dict(arguments)
    raise InvalidArgumentsType(
        f"the arguments of {tool.name!r} must be an object, not {_json_type(arguments)}", tool_name=tool.name
    )


def validate(tool: Tool, arguments: dict[str, Any] | BaseModel) -> tuple[BaseModel, Sequence[Repair]]:
    """The arguments as the tool's input model, accepted exactly when its JSON Schema accepts them."""
    try:
        if isinstance(arguments, BaseModel):
            return tool.input.revalidate(arguments), _NO_REPAIRS
        if len(arguments) > MANY_ARGUMENTS:
            _refuse_unknown(tool, arguments)
        return tool.input.from_wire(arguments), _NO_REPAIRS
    except ValidationError as error:
        if tool.input_schema is not None and isinstance(arguments, dict) and error.error_count() <= MANY_ERRORS:
            return _validate_repaired(tool, tool.input_schema(), arguments, error)
        raise invalid_arguments(tool, error) from None


def _validate_repaired(
    tool: Tool, schema: Mapping[str, object], arguments: dict[str, Any], error: ValidationError
) -> tuple[BaseModel, list[Repair]]:
    from toolkit.runtime.arguments import repair_arguments

    mended, repairs = repair_arguments(arguments, schema, lambda trial: _find_failing(tool, trial))
    try:
        return tool.input.from_wire(mended), repairs
    except ValidationError:
        # The model must correct what it sent, not the repaired copy.
        raise invalid_arguments(tool, error) from None


def _find_failing(tool: Tool, arguments: dict[str, Any]) -> frozenset[object]:
    """The names of the top-level arguments that the schema refuses."""
    try:
        tool.input.from_wire(arguments)
    except ValidationError as error:
        places = (item["loc"] for item in error.errors(include_input=False, include_url=False, include_context=False))
        return frozenset(place[0] if place else None for place in places)
    return frozenset()


def invalid_arguments(tool: Tool, error: ValidationError) -> InvalidArguments:
    """The validator's errors, as data and as a sentence that a model can act on; rejected values are never repeated."""
    return _invalid(tool, first_errors(error, MAX_LISTED_ERRORS), error.error_count())


def _refuse_unknown(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Refuses very many unknown arguments without the validator, which would make an error of each."""
    if tool.input.model.model_config.get("extra") != "forbid":
        return
    known = set(_argument_names(tool))
    unknown = [name for name in arguments if name not in known]
    errors = [_unknown_argument(name) for name in unknown[:MAX_LISTED_ERRORS]]
    if len(unknown) > MANY_ARGUMENTS:
        raise _invalid(tool, errors, len(unknown))


def _unknown_argument(name: object) -> dict[str, Any]:
    return {"type": "extra_forbidden", "loc": (str(name)[:_MAX_SHOWN],), "msg": "Extra inputs are not permitted"}


def _argument_names(tool: Tool) -> list[str]:
    return [field.alias or name for name, field in tool.input.model.model_fields.items()]


def _invalid(tool: Tool, errors: Sequence[Any], count: int) -> InvalidArguments:
    known = _argument_names(tool)
    words = "; ".join(_sentence(item, known) for item in errors[:_MAX_NAMED_ERRORS])
    more = f"; and {count - _MAX_NAMED_ERRORS} more" if count > _MAX_NAMED_ERRORS else ""
    if any(_is_unknown_argument(item) and not nearest(item["loc"][0], known) for item in errors[:_MAX_NAMED_ERRORS]):
        more += f"; {tool.name!r} takes {', '.join(known) or 'no arguments'}"
    details = {"errors": errors, "error_count": count}
    return InvalidArguments(f"{words}{more}", tool_name=tool.name, details=details)


def _is_unknown_argument(error: Any) -> bool:
    return error["type"] == "extra_forbidden" and len(error["loc"]) == 1


def _sentence(error: Any, known: list[str]) -> str:
    """What is wrong with one argument, in plainer words than the validator's for the two most frequent mistakes."""
    place = shown_place(error["loc"])
    is_argument = len(error["loc"]) == 1
    noun = "argument" if is_argument else "property"
    if error["type"] == "missing":
        return f"{place}: required {noun} is missing"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg']}"
    hint = nearest(place, known) if is_argument else ""
    return f"{place}: unknown {noun}{'.' if hint else ''}{hint}"


def no_handler(tool: Tool) -> ToolFailed:
    """The error for a tool that none of the toolkit's packs handles."""
    words = f"no pack of this toolkit handles {tool.name!r}; bind a handler, and list its pack in 'packs'"
    failed = ToolFailed("NO_HANDLER", words)
    failed.tool_name = tool.name
    return failed


def ask(approver: Approver | None, request: ApprovalRequest, signal: CallSignal) -> Reply | Awaitable[Reply]:
    """What the approver answers; it is not asked about a call that ended while others were asked about."""
    assert approver is not None
    signal.check()
    return approver(request)


def note_missing_answer(error: ToolTimeout | ToolCancelled) -> None:
    """Adds to the end of a call that its approver had not answered: a model must know that nothing has run."""
    error.message = f"{error.message}, while it waited for an approval; nothing was run"
    error.args = (error.message,)


def not_approved(request: ApprovalRequest, error: Exception) -> ToolkitError:
    """The refusal of a call whose approver failed. A ``ToolkitError`` that the approver raised stays as it is."""
    if isinstance(error, ToolkitError):
        return error
    from toolkit.runtime.approvals import Deny, denial

    mark = _log_error(error, "approver of tool", request.tool_name)
    return denial(request, Deny(f"the approver failed; the cause is in the log under {mark}"))


def conclude(
    tool: Tool, value: object, ctx: ToolContext, repairs: Sequence[Repair] = _NO_REPAIRS, answered_by: str = ""
) -> ToolMessage[Any, Any]:
    """Checks the output and makes the message; ``content`` is the handler's own value if that is a model.

    ``answered_by`` names who answered, if it was not the tool.
    """
    reported = _reported(ctx, repairs) if ctx._is_used or repairs else None
    output = tool.output
    if tool.output_check != "off":
        try:
            if isinstance(value, output.model):
                output.check(value)
            else:
                value = output.from_wire(value)
        except ValidationError as error:
            _refuse_output(tool, error, answered_by)
    return tool.message(tool.name, value, tool.form if type(value) is output.model else tool.other_form, reported)


def _reported(ctx: ToolContext, repairs: Sequence[Repair]) -> Reported:
    streamed = None if ctx._writer is None else StreamedOutput.finish(ctx._writer)
    metadata = ctx._metadata
    if repairs:
        metadata = {**(metadata or {}), "repairs": [repair.as_json() for repair in repairs]}
    return Reported(ctx._title, metadata, ctx._attachments, streamed)


def _refuse_output(tool: Tool, error: ValidationError, answered_by: str = "") -> None:
    """Raises INVALID_OUTPUT, or logs it if outputs are only checked to warn."""
    count = error.error_count()
    what = f"the answer of {answered_by}" if answered_by else "the output of the tool"
    words = f"{what} does not match the tool's output schema: {describe_errors(error)}"
    errors = first_errors(error, MAX_LISTED_ERRORS)
    if tool.output_check != "warn":
        raise ToolFailed("INVALID_OUTPUT", words, errors=errors, error_count=count) from None
    import logging

    logging.getLogger("toolkit").warning("%s: %s: %s", tool.name, words, errors)


def as_toolkit_error(error: BaseException, tool_name: str) -> ToolkitError:
    """Any error of a handler as a ``ToolkitError``; an unexpected one is logged under a short id."""
    if isinstance(error, ToolkitError):
        # Always: a handler may raise the same error object again, or pass on the error of another tool.
        error.tool_name = tool_name
        return error
    fault = find_system_fault(error, "the tool could not go on")
    if fault is not None:
        fault.tool_name = tool_name
        return fault
    mark = _log_error(error, "tool", tool_name)
    return InternalError(
        f"the tool failed unexpectedly; the cause is in the log under {mark}", tool_name=tool_name, details={"id": mark}
    )


def reraise(error: BaseException, tool_name: str) -> NoReturn:
    """Raises what ended a call: as it is if it is meant for the whole program, else as a ``ToolkitError``."""
    if is_interruption(error):
        raise error
    raise as_toolkit_error(error, tool_name) from cause_of(error)


def cause_of(error: BaseException) -> BaseException | None:
    """The cause of ``as_toolkit_error``: programmers see what an unexpected error was, models only get its id."""
    return error.__cause__ if isinstance(error, ToolkitError) else error


def error_result(error: BaseException, call_id: str, tool_name: str) -> ToolResult:
    """A failed call as the model reads it: ``CODE: message``."""
    return ToolResult(call_id, tool_name, "error", str(as_toolkit_error(error, tool_name)))


def _log_error(error: BaseException, where: str, tool_name: str) -> str:
    """Logs an error; returns the id under which it is found."""
    import logging
    import secrets

    mark = secrets.token_hex(4)
    logging.getLogger("toolkit").error("internal error %s in %s %r", mark, where, tool_name, exc_info=error)
    return mark


def _json_type(value: object) -> str:
    words = {
        "NoneType": "null",
        "bool": "a boolean",
        "int": "a number",
        "float": "a number",
        "str": "text",
        "list": "a list",
    }
    kind = type(value).__name__
    return words.get(kind, kind)


# ----------------------------------------------------------------------------------------------------------------------
# Injects dependencies into handlers, and releases them in the thread or task that used them when the handler ends,
# even if its caller has stopped waiting.

T = TypeVar("T")

GIVEN_PARAMETERS: Final = 2
"""How many parameters of a handler the call path fills in: the arguments and the context."""


def inject(handler: Callable[..., Any], planner: Planner, workers: Workers, *, blocking: bool) -> Callable[..., Any]:
    """The handler without injected parameters: async if the handler or one of its dependencies is."""
    needs = planner.needs_of(handler, skip=GIVEN_PARAMETERS)
    if not needs:
        return handler
    awaits = is_async(handler)

    def run(args: BaseModel, ctx: ToolContext) -> Any:
        return handler(args, ctx, **ctx._open_scope().arguments(needs))

    async def run_async(args: BaseModel, ctx: ToolContext) -> Any:
        given = await ctx._open_scope().arguments_async(needs)
        if awaits:
            return await handler(args, ctx, **given)
        if not blocking:
            return handler(args, ctx, **given)
        import asyncio

        return await asyncio.wrap_future(workers.submit(lambda: handler(args, ctx, **given)))

    return (
        run_async if awaits or any(isinstance(need, DependencyNode) and need.needs_loop for _, need in needs) else run
    )


def run_and_release(handler: Callable[..., Any], args: BaseModel, ctx: ToolContext) -> Any:
    """Calls a sync handler, then releases its dependencies; not if it returned an awaitable, which may still use them."""
    try:
        value = handler(args, ctx)
    except BaseException as error:
        ctx._drop_output()
        if ctx._scope is not None:
            ctx._scope.close(error)
        raise
    if ctx._scope is not None and not inspect.isawaitable(value):
        ctx._scope.close()
    return value


async def await_and_release(handler: Callable[..., Awaitable[T]], args: BaseModel, ctx: ToolContext) -> T:
    """Awaits an async handler, then releases its dependencies.

    It calls the handler itself: a coroutine that is made elsewhere would be left over if this one never starts.
    """
    try:
        value = await handler(args, ctx)
    except BaseException as error:
        ctx._drop_output()
        if ctx._scope is not None:
            await ctx._scope.close_async(error)
        raise
    if ctx._scope is not None:
        await ctx._scope.close_async()
    return value
