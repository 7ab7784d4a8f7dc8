"""Finds what a call would touch, from the handler's ``preview`` or the spec's ``x-resource`` marks; and what it may touch."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from toolkit.errors import SetupError, ToolkitError
from toolkit.guard.files.consent import AskRule, Consent, Globs, PathLimit
from toolkit.guard.policy.policy import RUNS, Verdict
from toolkit.runtime.boundary import NAMED_BY

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.consent import LocatedPath
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.catalog import Tool, ToolInfo
    from toolkit.runtime.tool_context import ToolContext

_CONDITIONS: Final = {"read-path": "path", "write-path": "path", "argv": "command", "shell": "command", "url": "host"}
# "cwd" and "env" belong to a command and are not conditions of their own.
RESOURCE_KINDS: Final = (*_CONDITIONS, "cwd", "env")


def touched_kinds(info: ToolInfo, *, has_preview: bool) -> Collection[str]:
    """Which conditions of rules can apply to a tool; a handler with a ``preview`` may report anything."""
    runs = {RUNS} if "execute" in (*info.required, *info.optional) else set()
    if has_preview:
        return runs.union(_CONDITIONS.values())
    return runs.union(_CONDITIONS[kind] for _, kind in info.resources if kind in _CONDITIONS)


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
        f" ({NAMED_BY})"
    )
    return Verdict("ask", because if verdict.decision == "allow" else f"{verdict.because}; {because}")


def judge_named(verdict: Verdict, asked: Collection[tuple[PathLimit, LocatedPath]]) -> Verdict:
    """The verdict so far, or ``ask`` if a command names a path that it may open only after approval.

    What it may only change after approval is no reason to ask: most commands that name such a path read it.
    """
    limit = next((limit for limit, _ in asked if limit.hides), None)
    if limit is None or verdict.decision != "allow":
        return verdict
    return Verdict("ask", f"the command names what needs approval by {limit.because}")


def with_asked(
    places: tuple[LocatedPath, ...] | None, preview: Preview, asked: Collection[tuple[PathLimit, LocatedPath]]
) -> tuple[tuple[LocatedPath, ...] | None, Preview]:
    """What a person approves together with a command that names such paths."""
    if not asked:
        return places, preview
    named = tuple(place for _, place in asked)
    reads = (*preview.reads, *dict.fromkeys(place.text for place in named))
    return (*(places or ()), *named), replace(preview, reads=reads)


def locate_paths(fs: SandboxFS | None, preview: Preview) -> tuple[LocatedPath, ...] | None:
    """Where the paths of a call lead; None for a tool without files, whose paths are judged by their text."""
    if fs is None:
        return None
    writes = dict.fromkeys(preview.writes)
    reads = [path for path in dict.fromkeys(preview.reads) if path not in writes]
    return (*map(fs.locate, reads), *(fs.locate(path, is_written=True) for path in writes))


def as_approved(tool: Tool, places: tuple[LocatedPath, ...] | None) -> Tool:
    """The tool for a call that was approved as it named these places."""
    if not places:
        return tool
    view = copy(tool)
    if tool.fs is not None and tool.consent is not None:
        view.fs = tool.fs.with_consent(tool.consent.approve(places))
    view.commands = tool.commands.approve(places)
    return view


def before_approval(tool: Tool) -> Tool:
    """The tool for its preview."""
    if tool.consent is None:
        return tool
    view = copy(tool)
    view.fs = tool.preview_fs
    return view


def preview_call(tool: Tool, args: BaseModel, ctx: ToolContext) -> Preview:
    """The preview of one call, before it runs: what its handler says, or its spec marks; both for a server's tool."""
    if tool.preview is None:
        return _preview_from_marks(tool.info, args, ctx._core.context.workspace)
    try:
        made = tool.preview(args, ctx)
    finally:
        if ctx._scope is not None:
            ctx._scope.close()
    if not isinstance(made, _preview_class()):
        raise SetupError(f"the preview of {tool.name!r} returned {type(made).__name__}, not a Preview")
    if tool.info.resources and tool.place != "toolkit":
        marked = _preview_from_marks(tool.info, args, ctx._core.context.workspace)
        made = replace(made, reads=(*made.reads, *marked.reads), writes=(*made.writes, *marked.writes))
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


# ----------------------------------------------------------------------------------------------------------------------
# What a call touches, as a record of it: in the audit log, and read from there to judge the call again.

_MAX_CHARACTERS: Final = 16_384
_KEYS: Final = frozenset({"reads", "writes", "argv", "shell", "cwd", "variables", "host"})


def record_touched(tool: Tool, preview: Preview, places: Collection[LocatedPath] | None = None) -> dict[str, Any]:
    """The real paths that a call reads and writes, its command and where that starts, and the host of its URL.

    A path that leads nowhere, or to what a deny rule covers, is in it as it was given: ``{"unresolved": "../x"}``. A URL that
    cannot be read is null. What is too long to be recorded is only counted.
    """
    found: dict[str, Any] = {}
    names = {place.text: place.name for place in places or ()}
    for key, paths in (("reads", preview.reads), ("writes", preview.writes)):
        if paths:
            found[key] = [_record_path(tool.preview_fs, path, names) for path in paths]
    if preview.argv is not None:
        found["argv"] = list(preview.argv)
    if preview.shell is not None:
        found["shell"] = preview.shell
    if preview.argv is not None or preview.shell is not None:
        if preview.cwd != ".":
            found["cwd"] = preview.cwd
        if preview.variables:
            found["variables"] = list(preview.variables)
    if preview.url is not None:
        found["host"] = _host_of(preview.url)
    length = sum(map(len, texts_of(found)))
    return found if length <= _MAX_CHARACTERS else {"too_long": length}


def _record_path(fs: SandboxFS | None, path: str, known: dict[str, str | None]) -> str | dict[str, str]:
    if fs is None:  # only the tool knows where its paths lead
        return path
    name = known[path] if path in known else fs.name_real(path)
    return {"unresolved": path} if name is None else name


def _host_of(url: str) -> str | None:
    from toolkit.guard.network.hosts import Url

    try:
        read = Url.parse(url)
    except ToolkitError:
        return None
    return f"{read.scheme}://{read.authority}"


def texts_of(touched: object) -> Iterator[str]:
    """Every text in such a record."""
    if isinstance(touched, str):
        yield touched
    elif isinstance(touched, dict | list):
        for one in touched.values() if isinstance(touched, dict) else touched:
            yield from texts_of(one)


def read_touched(touched: dict[str, Any]) -> tuple[Preview, tuple[LocatedPath, ...]]:
    """The preview and the places of a call from its record. Raises ``ValueError`` for a record that does not say them."""
    if not _KEYS.issuperset(touched):
        raise ValueError
    places = [*_read_places(touched.get("writes", ()), True), *_read_places(touched.get("reads", ()), False)]
    argv = tuple(touched["argv"]) if "argv" in touched else None
    preview = _preview_class()(
        reads=tuple(place.text for place in places if not place.is_written),
        writes=tuple(place.text for place in places if place.is_written),
        argv=argv,
        shell=touched.get("shell"),
        url=f"{touched['host'] or ''}/" if "host" in touched else None,
        cwd=touched.get("cwd", "."),
        variables=tuple(touched.get("variables", ())),
    )
    if not all(isinstance(text, str) for text in (*(argv or ()), preview.shell or "", preview.cwd, *preview.variables)):
        raise ValueError
    return preview, tuple(places)


def _read_places(paths: Iterable[object], is_written: bool) -> Iterator[LocatedPath]:
    from toolkit.guard.files.consent import read_place

    for path in paths:
        leads_nowhere = isinstance(path, dict)
        name = path.get("unresolved") if isinstance(path, dict) else path
        if not isinstance(name, str):
            raise ValueError
        yield read_place(name, is_written=is_written, leads_nowhere=leads_nowhere)
