"""What the policy says about a call that somebody is still writing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolkit.errors import InvalidArguments, InvalidArgumentsType, ToolkitError
from toolkit.playground.answers.python_line import python_line
from toolkit.runtime.call.argument_text import parse_arguments
from toolkit.runtime.call.offers import why_not_offered

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy, Verdict
    from toolkit.runtime.toolkit import Core


def explain_call(core: Core, policy: SecurityPolicy[Any], name: str, text: str) -> dict[str, Any]:
    """The verdict and the lines of the policy behind it, what is wrong with the arguments, and the call in Python.

    As in a call, a tool that is refused by name is refused whatever its arguments are. Nothing runs.
    """
    refusal = why_not_offered(core, core.catalog.tools[name])
    verdict = None if refusal is None else {"decision": "deny", "because": refusal, "considered": []}
    try:
        arguments = parse_arguments(text if text.strip() else "{}")
        found = policy.explain(name, arguments)
    except (InvalidArguments, InvalidArgumentsType) as error:
        return {"verdict": verdict, "problems": _problems(error), "python": None}
    except ToolkitError as error:
        return {"verdict": verdict, "problems": [{"path": [], "message": str(error)}], "python": None}
    shown = _describe_verdict(found)
    if verdict is not None and found.decision != "deny":
        # Refused for another reason than the policy: a permission, the sandbox, a read-only workspace.
        shown = verdict
    return {"verdict": shown, "problems": [], "python": python_line(core.catalog.definitions[name], arguments)}


def _describe_verdict(verdict: Verdict) -> dict[str, Any]:
    considered = [
        {"place": one.place, "decision": one.decision, "rule": one.text, "outcome": one.outcome}
        for one in verdict.considered
    ]
    return {"decision": verdict.decision, "because": verdict.because, "considered": considered}


def _problems(error: ToolkitError) -> list[dict[str, Any]]:
    """Each mistake with the path of the argument; rejected values are not repeated."""
    listed = error.details.get("errors")
    if not isinstance(listed, list | tuple) or not listed:
        return [{"path": [], "message": error.message}]
    return [{"path": [str(step) for step in one["loc"]], "message": _sentence(one)} for one in listed]


def _sentence(problem: Mapping[str, Any]) -> str:
    words = {"missing": "This is required.", "extra_forbidden": "There is no argument of this name."}
    return words.get(problem["type"]) or f"{problem['msg']}."
