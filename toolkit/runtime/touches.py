"""Finds what a call would touch, from the handler's ``preview`` or the spec's ``x-resource`` marks; and what it may touch."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from copy import copy
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from toolkit.errors import SetupError
from toolkit.guard.files.consent import AskRule, Consent, Globs
from toolkit.guard.policy.policy import Verdict

if TYPE_CHECKING:
    from toolkit.guard.files.consent import LocatedPath
    from toolkit.guard.files.sandbox_fs import SandboxFS
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.catalog import Tool, ToolInfo
    from toolkit.runtime.context import ToolkitContext
    from toolkit.runtime.tool_context import ToolContext

_CONDITIONS: Final = {"read-path": "path", "write-path": "path", "argv": "command", "shell": "command", "url": "host"}
# "cwd" and "env" belong to a command and are not conditions of their own.
RESOURCE_KINDS: Final = (*_CONDITIONS, "cwd", "env")
_NAMED_BY: Final = "FileSettings(ask_before_writing=[...]) names such files"


def touched_kinds(info: ToolInfo, *, has_preview: bool) -> frozenset[str]:
    """Which conditions of rules can apply to a tool; a handler with a ``preview`` may report anything."""
    if has_preview:
        return frozenset(_CONDITIONS.values())
    return frozenset(_CONDITIONS[kind] for _, kind in info.resources if kind in _CONDITIONS)


def find_consent(
    context: ToolkitContext[Any],
    policy: SecurityPolicy[Any],
    name: str,
    required: Collection[Permission],
    granted: Collection[Permission],
    kinds: Collection[str],
) -> Consent | None:
    """What calls of a tool may touch without approval; None if nothing limits that.

    Allow rules limit only a tool that declares paths, because only its paths can be judged before the call.
    """
    rules = policy._ask_rules(name, required)
    if context.ask_before_writing and context.mode == "workspace-write" and "write" in granted:
        rules += (_rule_for_writes(context.ask_before_writing),)
    allows = policy._allowed_places(name, required) if "path" in kinds else None
    return Consent(rules, allows) if rules or allows is not None else None


@lru_cache(16)
def _rule_for_writes(patterns: tuple[str, ...]) -> AskRule:
    because = f"a file like this can run code for the user later ({_NAMED_BY})"
    return AskRule(Globs(patterns), because, only_writes=True)


def judge_writes(verdict: Verdict, consent: Consent | None, places: Collection[LocatedPath]) -> Verdict:
    """The verdict of the policy, or ``ask`` if the call would change what ``ask_before_writing`` names."""
    if verdict.decision == "deny" or consent is None:
        return verdict
    asking = [rule for rule in consent.rules if rule.only_writes]
    found = next(((rule, place) for place in places for rule in asking if rule.concerns(place)), None)
    if found is None:
        return verdict
    rule, place = found
    # The pattern, not the path: the reason goes into the audit log, which has no argument values.
    pattern = next(
        glob for glob in rule.globs.globs if AskRule(Globs([glob]), rule.because, rule.only_writes).concerns(place)
    )
    because = (
        f"the call would change {pattern!r}, which can run code for the user later, so an approver must allow it"
        f" ({_NAMED_BY})"
    )
    return Verdict("ask", because if verdict.decision == "allow" else f"{verdict.because}; {because}")


def locate_paths(fs: SandboxFS | None, preview: Preview) -> tuple[LocatedPath, ...] | None:
    """Where the paths of a call lead; None for a tool without files, whose paths are judged by their text."""
    if fs is None:
        return None
    writes = dict.fromkeys(preview.writes)
    reads = [path for path in dict.fromkeys(preview.reads) if path not in writes]
    return (*map(fs.locate, reads), *(fs.locate(path, is_written=True) for path in writes))


def as_approved(tool: Tool, places: tuple[LocatedPath, ...] | None) -> Tool:
    """The tool for a call that was approved as it named these places."""
    if tool.fs is None or tool.consent is None or not places:
        return tool
    return _with_files(tool, tool.fs.with_consent(tool.consent.approve(places)))


def before_approval(tool: Tool) -> Tool:
    """The tool for its preview."""
    return tool if tool.consent is None else _with_files(tool, tool.preview_fs)


def _with_files(tool: Tool, fs: SandboxFS | None) -> Tool:
    view = copy(tool)
    view.fs = fs
    return view


def preview_call(tool: Tool, args: BaseModel, ctx: ToolContext) -> Preview:
    """The preview of one call, before it runs."""
    if tool.preview is None:
        return _preview_from_marks(tool.info, args, ctx._core.context.workspace)
    try:
        made = tool.preview(args, ctx)
    finally:
        if ctx._scope is not None:
            ctx._scope.close()
    if not isinstance(made, _preview_class()):
        raise SetupError(f"the preview of {tool.name!r} returned {type(made).__name__}, not a Preview")
    return made


@cache
def _preview_class() -> type[Preview]:
    # Imported at first use; an import statement in the functions above would take as long as all of a call's rules.
    from toolkit.guard.policy.preview import Preview

    return Preview


def _join_texts(texts: list[str]) -> str:
    """Several shell texts are judged as one that runs all of them."""
    if len(texts) == 1:
        return texts[0]
    from toolkit.guard.policy.shell_text import join_texts

    return join_texts(texts)


def _preview_from_marks(info: ToolInfo, args: BaseModel, workspace: str) -> Preview:
    found: dict[str, list[str]] = {kind: [] for kind in _CONDITIONS}
    argv: tuple[str, ...] | None = None
    cwd = "."
    variables: tuple[str, ...] = ()
    for field, kind in info.resources:
        value = getattr(args, field)
        if value is None:
            continue
        if kind == "argv" and argv is None:
            argv = tuple(value)
        elif kind == "argv":
            found["shell"].append(shlex.join(value))
        elif kind == "cwd":
            cwd = "." if value == workspace else str(value)
        elif kind == "env":
            variables = tuple(map(str, value))
        else:
            found[kind] += value if isinstance(value, list) else [value]
    return _preview_class()(
        reads=tuple(found["read-path"]),
        writes=tuple(found["write-path"]),
        argv=argv,
        shell=_join_texts(found["shell"]) if found["shell"] else None,
        url=found["url"][0] if found["url"] else None,
        cwd=cwd,
        variables=variables,
    )
