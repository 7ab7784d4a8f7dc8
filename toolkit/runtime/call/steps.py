"""The steps of one call, in the order of the road. Pure functions: the sync and async runners only drive them.

``resolve`` the name, ``admit`` by name, ``as_object``, ``validate``, ``authorize`` (rules on what the call touches, then
approval), run, ``conclude``.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from toolkit.errors import (
    InternalError,
    InvalidArguments,
    InvalidArgumentsType,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
    ToolNotFound,
    nearest,
)
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.call.approval import ApprovalRequest, Deny, refused
from toolkit.runtime.call.argument_text import parse_arguments
from toolkit.runtime.call.reader import refused_places
from toolkit.runtime.call.repair import Repair, repair_arguments
from toolkit.runtime.catalog.catalog import Tool
from toolkit.runtime.context.toolkit_context import ToolContext, logger
from toolkit.runtime.output.keep_text import Kept
from toolkit.runtime.output.message import ToolMessage

MAX_LISTED_ERRORS: Final = 50
_MAX_NAMED_ERRORS: Final = 5
_NO_REPAIRS: Final[tuple[Repair, ...]] = ()


def not_found(name: object, known: Mapping[str, object]) -> ToolNotFound:
    """The error for a name the catalog does not have; ``admit`` has not looked, so it says nothing of policy."""
    if not isinstance(name, str):
        return ToolNotFound(f"a tool's name is text, not {type(name).__name__}", tool_name=str(name)[:100])
    shown = name if len(name) <= 100 else name[:100] + "…"
    return ToolNotFound(f"no tool is called {shown!r}.{nearest(name, known)}", tool_name=name)


def admit(tool: Tool) -> None:
    """Policy and permissions by name, before the arguments are looked at: a forbidden tool reveals nothing."""
    if tool.refusal is not None:
        raise ToolNotAllowed(tool.refusal, tool_name=tool.name, details={"decision": "deny"})


def not_allowed(name: str, verdict: Verdict) -> ToolNotAllowed:
    """The refusal of a call by policy, with the words behind it."""
    asked = ", and nobody is there to approve it" if verdict.decision == "ask" else ""
    details = {"decision": verdict.decision, "because": verdict.because}
    return ToolNotAllowed(f"{name!r} is not allowed: {verdict.because}{asked}", tool_name=name, details=details)


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
        f"the arguments of {tool.name!r} must be an object, not {_json_word(arguments)}", tool_name=tool.name
    )


def validate(tool: Tool, arguments: dict[str, Any] | BaseModel) -> tuple[BaseModel, Sequence[Repair]]:
    """The arguments as the tool's input model, accepted exactly when its JSON Schema accepts them."""
    try:
        if isinstance(arguments, BaseModel):
            return tool.input.again(arguments), _NO_REPAIRS
        return tool.input.from_wire(arguments), _NO_REPAIRS
    except ValidationError as error:
        if tool.input_schema is not None and isinstance(arguments, dict):
            return _validate_repaired(tool, tool.input_schema(), arguments, error)
        raise invalid_arguments(tool, error) from None


def _validate_repaired(
    tool: Tool, schema: Mapping[str, object], arguments: dict[str, Any], error: ValidationError
) -> tuple[BaseModel, list[Repair]]:
    mended, repairs = repair_arguments(arguments, schema, lambda trial: _failing(tool, trial))
    try:
        return tool.input.from_wire(mended), repairs
    except ValidationError:
        # What the model sent is what it must correct: the errors of the repaired copy would confuse it.
        raise invalid_arguments(tool, error) from None


def _failing(tool: Tool, arguments: dict[str, Any]) -> frozenset[object]:
    """The arguments the schema refuses, by their names at the top."""
    try:
        tool.input.from_wire(arguments)
    except ValidationError as error:
        places = (item["loc"] for item in error.errors(include_input=False, include_url=False, include_context=False))
        return frozenset(place[0] if place else None for place in places)
    return frozenset()


def invalid_arguments(tool: Tool, error: ValidationError) -> InvalidArguments:
    """What the validator said, as data and as a sentence a model can act on; rejected values are never repeated."""
    count = error.error_count()
    errors = error.errors(include_input=False, include_url=False)
    known = [field.alias or name for name, field in tool.input.model.model_fields.items()]
    words = "; ".join(_sentence(item, known) for item in errors[:_MAX_NAMED_ERRORS])
    more = f"; and {count - _MAX_NAMED_ERRORS} more" if count > _MAX_NAMED_ERRORS else ""
    details = {"errors": errors[:MAX_LISTED_ERRORS], "error_count": count}
    return InvalidArguments(f"{words}{more}", tool_name=tool.name, details=details)


def _sentence(error: Any, known: list[str]) -> str:
    place = ".".join(str(part)[:100] for part in error["loc"])
    hint = nearest(place, known) if error["type"] == "extra_forbidden" and len(error["loc"]) == 1 else ""
    return f"{place}: {error['msg']}{'.' if hint else ''}{hint}"


def no_handler(tool: Tool) -> ToolFailed:
    """The error for a tool that none of the toolkit's packs handles."""
    words = f"none of this toolkit's packs handles {tool.name!r}; bind a handler, and name its pack in 'packs'"
    failed = ToolFailed("NO_HANDLER", words)
    failed.tool_name = tool.name
    return failed


def not_approved(request: ApprovalRequest, error: Exception) -> ToolkitError:
    """The refusal of a call whose approver failed: nobody has approved it. An error of ours says itself what it means."""
    if isinstance(error, ToolkitError):
        return error
    mark = _logged(error, "approver of tool", request.tool_name)
    return refused(request, Deny(f"the approver failed; the log holds the cause under {mark}"))


def conclude(
    tool: Tool, value: object, ctx: ToolContext, repairs: Sequence[Repair], of: str = ""
) -> ToolMessage[Any, Any]:
    """Checks the output and makes the message; ``content`` is the handler's value itself where it is a model.

    ``of`` is who answered, where that was not the tool.
    """
    streamed = None if ctx._writer is None else Kept.of(ctx._writer)
    if tool.output_check != "off":
        value = _checked_output(tool, value, of)
    metadata = ctx._metadata
    if repairs:
        metadata = {**(metadata or {}), "repairs": [repair.as_json() for repair in repairs]}
    return tool.message(tool.name, value, ctx._title, metadata, ctx._attachments, tool.render, tool.keeper, streamed)


def _checked_output(tool: Tool, value: object, of: str) -> object:
    try:
        if isinstance(value, tool.output.model):
            tool.output.again(value)
            return value
        made: object = tool.output.from_wire(value)
        return made
    except ValidationError as error:
        count = error.error_count()
        who = f"{of} answered in the tool's place" if of else "the tool answered"
        words = f"{who} what its output schema refuses: {refused_places(error)}"
        errors = error.errors(include_input=False, include_url=False)[:MAX_LISTED_ERRORS]
        if tool.output_check == "warn":
            logger.warning("%s: %s: %s", tool.name, words, errors)
            return value
        raise ToolFailed("INVALID_OUTPUT", words, errors=errors, error_count=count) from None


def named(error: BaseException, tool_name: str) -> ToolkitError:
    """Any error of a handler as one of ours; what was not expected goes to the log under a short id."""
    if isinstance(error, ToolkitError):
        # Always: a handler may raise one error object again and again, or let another tool's error through.
        error.tool_name = tool_name
        return error
    mark = _logged(error, "tool", tool_name)
    return InternalError(
        f"the tool failed unexpectedly; the log holds the cause under {mark}", tool_name=tool_name, details={"id": mark}
    )


def _logged(error: BaseException, where: str, tool_name: str) -> str:
    """Puts an error into the log; gives the mark it can be found by."""
    mark = secrets.token_hex(4)
    logger.error("internal error %s in %s %r", mark, where, tool_name, exc_info=error)
    return mark


def _json_word(value: object) -> str:
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
