"""The boundary plan of one toolkit: what each tool, its commands and servers may read, write and see.

It is made from the context and its policy, and everything that touches files obeys it: file tools through ``ToolFiles``,
commands and local servers through ``CommandBoundary``, programs through the tools that they call.

- A withheld ``write`` (by the context's permissions or mode, or a rule) makes commands and servers read-only.
- A withheld ``read``, and a rule that denies paths, hides them from commands and servers; an ``ask`` rule as well, unless
  the call was approved with a path that its command names.

Limits: what a remote server does with its own files; a local server that runs without the sandbox; ``unsafe-none``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolkit.errors import SetupError
from toolkit.guard.files.consent import AskRule, Consent, Globs, PathLimit

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.consent import LocatedPath
    from toolkit.guard.files.place import Names
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.guard.policy.preview import Preview
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.runtime.catalog import ToolInfo
    from toolkit.runtime.context import ToolkitContext

RUN_PROGRAM: Final = "run_program"
_FILE_PERMISSIONS: Final = frozenset({"read", "write"})
_GLOB: Final = re.compile(r"[*?\[]")
NAMED_BY: Final = "FileSettings(ask_before_writing=[...]) names such files"


def why_read_only(context: ToolkitContext[Any]) -> str | None:
    """Why nothing may be changed with this context, or None."""
    if context.mode == "read-only":
        return "mode='read-only'"
    return None if "write" in context.permissions else "the permission 'write', which this context does not grant"


class ToolFiles(NamedTuple):
    """The files of a tool without what is denied to it, and what its calls may touch there without approval."""

    fs: SandboxFS | None
    consent: Consent | None


@dataclass(frozen=True, slots=True)
class CommandBoundary:
    """What the commands of a tool, or the process of a server, may do with the files of the roots."""

    read_only: str | None = None
    """Why they may change nothing, or None."""
    limits: tuple[PathLimit, ...] = ()
    """What rules on paths keep from them."""
    approved: Mapping[PathLimit, tuple[Names, ...]] = field(default_factory=dict)
    """The real paths that the call was approved with, for each of the limits that ask."""

    def apply(self, process: ProcessGuard) -> ProcessGuard:
        """A view of the process guard whose commands obey this."""
        if self.read_only is not None:
            process = process.read_only()
        return process.with_limits(self.limits, self.approved) if self.limits else process

    def approve(self, places: Iterable[LocatedPath]) -> CommandBoundary:
        """The same for a call that was approved with these paths."""
        named = tuple(places)
        approved = {
            limit: tuple(name for place in named if rule.concerns(place) for name in place.places)
            for limit, rule in self._rules()
        }
        return replace(self, approved=approved) if approved else self

    def join(self, other: CommandBoundary) -> CommandBoundary:
        """What binds a process that both share. It outlives every call, so no approval lifts any of it."""
        limits = (limit._replace(asks=False) for limit in (*self.limits, *other.limits))
        return CommandBoundary(self.read_only or other.read_only, tuple(dict.fromkeys(limits)))

    @property
    def asking(self) -> tuple[PathLimit, ...]:
        """The limits that an approval can lift."""
        return tuple(limit for limit in self.limits if limit.asks)

    def _rules(self) -> list[tuple[PathLimit, AskRule]]:
        return [(limit, AskRule(Globs([limit.pattern]), limit.because)) for limit in self.asking]

    def find_asked(self, fs: SandboxFS, preview: Preview) -> tuple[tuple[PathLimit, LocatedPath], ...]:
        """The paths that the text of a command names, and that it may open only after approval."""
        if not self._rules():
            return ()
        return self.find_asked_places(fs.locate(path) for path in dict.fromkeys(_named_paths(preview)))

    def find_asked_places(self, located: Iterable[LocatedPath]) -> tuple[tuple[PathLimit, LocatedPath], ...]:
        """The same for paths whose places are known."""
        rules = self._rules()
        return tuple(
            (limit, place)
            for place in located
            if place.real is not None
            for limit, rule in rules
            if rule.concerns(place)
        )


NOTHING_TO_RUN: Final = CommandBoundary()


class Boundary:
    """Decides for each tool of a toolkit; made from its context and the policy as it applies to its tools."""

    def __init__(self, context: ToolkitContext[Any], policy: SecurityPolicy[Any]) -> None:
        self._context: Final = context
        self._policy: Final = policy
        self.read_only: Final = why_read_only(context)
        """Why nothing may be changed, or None."""

    def granted(self, info: ToolInfo) -> frozenset[Permission]:
        """What a tool requires, and the optional permissions that neither the context nor a rule withholds."""
        held = self._context.permissions
        optional = (word for word in info.optional if word in held and not self._policy._withholds(info.name, word))
        return frozenset((*info.required, *optional))

    def files(
        self,
        fs: SandboxFS,
        name: str,
        required: Collection[Permission],
        granted: Collection[Permission],
        kinds: Collection[str],
    ) -> ToolFiles:
        """The files of a tool; ``kinds`` are the conditions of rules that can apply to it."""
        if _FILE_PERMISSIONS.isdisjoint(granted):
            return ToolFiles(None, None)
        fs = fs if "write" in granted else fs.for_reading()
        denied = self._policy._denied_paths(name, required)
        return ToolFiles(fs.with_deny(denied) if denied else fs, self._consent(name, required, granted, kinds))

    def _consent(
        self, name: str, required: Collection[Permission], granted: Collection[Permission], kinds: Collection[str]
    ) -> Consent | None:
        """What calls may touch without approval; None if nothing limits that.

        Allow rules limit only a tool that declares paths, because only its paths can be judged before the call.
        """
        rules = self._policy._ask_rules(name, required)
        if self._context.ask_before_writing and self._context.mode == "workspace-write" and "write" in granted:
            rules += (_rule_for_writes(self._context.ask_before_writing),)
        allows = self._policy._allowed_places(name, required) if "path" in kinds else None
        return Consent(rules, allows) if rules or allows is not None else None

    def commands(self, name: str, granted: Collection[Permission]) -> CommandBoundary:
        """What binds the commands of a tool, or the server that it is a tool of."""
        if "execute" not in granted:
            return NOTHING_TO_RUN
        limits = self._policy._command_limits(name, granted)
        if "read" not in self._context.permissions:
            because = "the permission 'read', which this context does not grant"
            limits = (PathLimit("**", because), *limits)
        return CommandBoundary(self.read_only or self._policy._why_no_writing(name), limits)

    def workspace_of_programs(self, tools: Iterable[ToolInfo]) -> CommandBoundary:
        """What binds programs that see the workspace (``ProgramSettings(workspace="read-only")``): what is kept from any tool
        that reads. Refused where what may be read cannot be expressed as hidden paths."""
        settings = self._context.programs
        if settings is None or settings.workspace != "read-only":
            return NOTHING_TO_RUN
        if "read" not in self._context.permissions:
            raise _refused_workspace("this context does not grant the permission 'read'")
        boundary = NOTHING_TO_RUN
        for tool in tools:
            if tool.name == RUN_PROGRAM or ("read" in tool.required and "write" not in tool.required):
                self._refuse_limited_reads(tool)
                boundary = boundary.join(
                    CommandBoundary(None, self._policy._command_limits(tool.name, self.granted(tool)))
                )
        return boundary

    def _refuse_limited_reads(self, tool: ToolInfo) -> None:
        verdict = self._policy._admit(tool.name, tool.required)
        is_offered = verdict is None or verdict.decision != "deny"
        if (
            is_offered
            and "read" in tool.required
            and self._policy._allowed_places(tool.name, tool.required) is not None
        ):
            raise _refused_workspace(f"the policy limits what {tool.name} may read to some files, or asks")


def _refused_workspace(why: str) -> SetupError:
    return SetupError(
        f"programs: workspace='read-only' cannot be used, because {why}, and a program could read everything else; "
        "leave it out, then programs read files with tools"
    )


@lru_cache(16)
def _rule_for_writes(patterns: tuple[str, ...]) -> AskRule:
    because = f"a file like this can run code for the user later ({NAMED_BY})"
    return AskRule(Globs(patterns), because, only_writes=True)


def _named_paths(preview: Preview) -> Iterator[str]:
    """What may be a path in the words of a command: each word, what is behind a ``=`` in it, the directory of a glob.

    It only has to find what a person can be asked about: what is not found stays hidden.
    """
    words = list(preview.argv or ())
    if preview.shell is not None:
        import shlex

        lexer = shlex.shlex(preview.shell, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words += lexer
        except ValueError:  # a quote that is not closed
            words += preview.shell.split()
    for word in words:
        for text in dict.fromkeys((word, word.rpartition("=")[2])):
            if (glob := _GLOB.search(text)) is not None:  # what it stands for is in this directory
                text = text[: glob.start()].rpartition("/")[0]
            if text and not text.startswith("-"):
                yield text if text.startswith("/") or preview.cwd == "." else f"{preview.cwd}/{text}"
