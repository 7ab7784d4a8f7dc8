"""One rule of a policy: which tools it covers, under which condition, and its decision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

from toolkit.errors import PolicyError, SetupError
from toolkit.guard.files.path import split_names
from toolkit.guard.permission import PERMISSIONS, Permission, unknown_permission

if TYPE_CHECKING:
    from toolkit.guard.files.consent import AskRule, Globs, LocatedPath, RealPath
    from toolkit.guard.network.hosts import Host, HostPattern
    from toolkit.guard.policy.shell_text import ShellCommand
    from toolkit.guard.policy.touched import Touched


# The self-declared hints of tools (MCP's annotations), as names by which rules can select tools. A hint is not proof: a wrong
# declaration is not detected. So a rule that selects by a hint may ask or deny, but never allow, and a missing declaration
# counts as the worst case.

Hint: TypeAlias = Literal["destructive", "open-world", "not-read-only", "not-idempotent"]
HINTS: Final[tuple[Hint, ...]] = get_args(Hint)

_REACHES_OUTSIDE: Final = frozenset({"execute", "network"})
_WORDS: Final = (
    ("readOnlyHint", "read-only"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "open-world"),
)


def effective_hints(annotations: Mapping[str, Any], permissions: Collection[Permission]) -> frozenset[Hint]:
    """The hints that hold for a tool, given all permissions it may get.

    Where nothing is declared, MCP assumes a tool that changes and destroys things and reaches an open world. Only a tool
    without the permissions for that is assumed not to do so.

    >>> sorted(effective_hints({"readOnlyHint": True, "openWorldHint": False}, ["execute"]))
    []
    >>> sorted(effective_hints({}, ["network"]))
    ['destructive', 'not-idempotent', 'not-read-only', 'open-world']
    >>> sorted(effective_hints({}, ["read"]))
    []
    """
    declared = {key: annotations.get(key) for key, _ in _WORDS}
    read_only, destructive, open_world = (declared[key] for key in ("readOnlyHint", "destructiveHint", "openWorldHint"))
    only_reads = read_only is True or read_only is not False and {*permissions} <= {"read"}
    found: dict[Hint, bool] = {
        "destructive": destructive is True or not only_reads and destructive is not False,
        "open-world": open_world is True or open_world is not False and not _REACHES_OUTSIDE.isdisjoint(permissions),
        "not-read-only": not only_reads,
        "not-idempotent": not only_reads and declared["idempotentHint"] is not True,
    }
    return frozenset(hint for hint, holds in found.items() if holds)


def describe_hints(annotations: Mapping[str, Any]) -> list[str]:
    """The hints that a tool declares, in words.

    >>> describe_hints({"readOnlyHint": False, "destructiveHint": True})
    ['not read-only', 'destructive']
    """
    given = [(annotations[key], word) for key, word in _WORDS if isinstance(annotations.get(key), bool)]
    return [word if holds else f"not {word}" for holds, word in given]


Decision: TypeAlias = Literal["allow", "ask", "deny"]
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)
Condition: TypeAlias = Literal["path", "command", "host"]

NameT = TypeVar("NameT", bound=str)


class Rule(Generic[NameT]):
    """One decision for some tools. Without ``tools``, ``permission`` and ``hint`` it covers every tool.

    ``hint`` selects tools by their self-declared hints, or the lack of them; only rules that ask or deny may have one.
    A rule has at most one condition: ``path`` (a glob), ``command`` (its words, with ``*``) or ``host`` (a name, or
    ``*.example.org``). ``match`` and ``not_match`` are examples that are checked here, so a rule that does not mean what its
    author thinks is refused. ``tools=[]`` covers nothing: an empty list is never "no restriction".

    >>> Rule("allow", command="git log *", match=["git log -1"], not_match=["git logout", "git log > x"])
    Rule('allow', command='git log *')
    """

    def __init__(
        self,
        decision: Decision,
        *,
        tools: Sequence[NameT] | None = None,
        permission: Permission | None = None,
        hint: Hint | None = None,
        path: str | None = None,
        command: str | None = None,
        host: str | None = None,
        justification: str | None = None,
        match: Sequence[str] = (),
        not_match: Sequence[str] = (),
    ) -> None:
        if decision not in DECISIONS:
            raise PolicyError(f"a rule's decision must be allow, ask or deny, not {decision!r}")
        if permission is not None and permission not in PERMISSIONS:
            raise PolicyError(unknown_permission(permission))
        _check_hint(hint, decision)
        if isinstance(tools, str):
            raise PolicyError(f"a rule's 'tools' must be a list of names: write tools = [{tools!r}]")
        _check_strings({"path": path, "command": command, "host": host, "justification": justification})
        _check_lists({"tools": () if tools is None else tools, "match": match, "not_match": not_match})
        conditions: dict[Condition, str | None] = {"path": path, "command": command, "host": host}
        given: list[Condition] = [word for word, value in conditions.items() if value is not None]
        if len(given) > 1:
            raise PolicyError(f"a rule has only one condition, not {' and '.join(given)}; write separate rules")
        self.decision: Final = decision
        self.tools: Final[tuple[NameT, ...] | None] = None if tools is None else tuple(tools)
        self.permission: Final = permission
        self.hint: Final = hint
        self.path: Final = path
        self.command: Final = command
        self.host: Final = host
        self.justification: Final = justification
        self.condition: Final[Condition | None] = given[0] if given else None
        self._globs: Final = None if path is None or decision == "allow" else _globs(path)
        self._matches_path: Final = None if path is None else _path_matcher(path, self._globs)
        self.spelled: Final = None if command is None else _read_command(command, decision)
        """The command as it is compared."""
        self.host_pattern: Final = None if host is None else _host_pattern(host)
        self.ask_rule: Final = (
            None if self._globs is None or decision == "deny" else _ask_rule(self._globs, self.because)
        )
        """The rule as the sandbox enforces it, if it asks about paths."""
        self._check_examples(match, not_match)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made again from what it was given: what matches paths cannot be pickled. Its examples were checked here.
        names = ("tools", "permission", "hint", "path", "command", "host", "justification")
        return partial(type(self), self.decision, **{name: getattr(self, name) for name in names}), ()

    @property
    def is_conditional(self) -> bool:
        return self.condition is not None

    @property
    def because(self) -> str:
        """The rule as the reason of a decision."""
        return f"decided by {self!r}{f' ({self.justification})' if self.justification else ''}"

    def covers(self, name: str, permissions: Collection[Permission], hints: Collection[Hint] = HINTS) -> bool:
        """Whether the rule applies to this tool, which needs these permissions and for which these hints hold."""
        named = self.tools is None or name in self.tools
        hinted = self.hint is None or self.hint in hints
        return named and hinted and (self.permission is None or self.permission in permissions)

    def touches(self, touched: Touched) -> bool:
        """For deny and ask: whether anything that the call touches matches. What cannot be read counts as a match."""
        if self._matches_path is not None:
            return any(map(self._concerns, touched.places or ())) or any(map(self._matches_path, touched.paths))
        if self.spelled is not None:
            return touched.commands is not None and touched.commands.match(self.spelled)
        if self.host_pattern is not None:
            return touched.opaque_url or any(map(self.host_pattern.matches, touched.hosts))
        return True

    def _concerns(self, place: LocatedPath) -> bool:
        """For deny and ask: whether the rule matches where a path leads, or a name on the way."""
        if self.ask_rule is not None:
            return self.ask_rule.concerns(place)
        return self._globs is not None and self._globs.cover(place.forms)

    def allows_path(self, path: str) -> bool:
        return self._matches_path is not None and self._matches_path(path)

    def allows_real(self, real: RealPath) -> bool:
        """``allows_path`` for a path without links. A pattern with slashes starts at the workspace, or is absolute."""
        if self.path is None or self._matches_path is None:
            return False
        is_name = "/" not in self.path.rstrip("/")
        names = real.below if is_name else real.below[:1] if real.in_workspace else ()
        if self.path.startswith("/"):
            names += real.absolute
        return any(self._matches_path("/".join(one)) for one in names)

    def allows_host(self, host: Host) -> bool:
        return self.host_pattern is not None and self.host_pattern.matches(host)

    def _check_examples(self, match: Sequence[str], not_match: Sequence[str]) -> None:
        if (match or not_match) and self.condition is None:
            raise PolicyError(
                "'match' and 'not_match' are examples of a path, command or host, but this rule has no such condition"
            )
        for wanted, examples in ((True, match), (False, not_match)):
            for example in examples:
                if self._matches_example(example) != wanted:
                    raise PolicyError(
                        f"{self!r} {'does not match' if wanted else 'matches'} its example {example!r}; change one of them"
                    )

    def _matches_example(self, example: str) -> bool:
        from toolkit.guard.policy.preview import Preview
        from toolkit.guard.policy.touched import Touched

        preview = {
            "path": Preview(reads=(example,)),
            "command": Preview(shell=example),
            "host": Preview(url=example if "://" in example else f"https://{example}/"),
        }[self.condition or "path"]
        touched = Touched.from_preview(preview, need_commands=True)
        return touched.covered_by([self]) is not None if self.decision == "allow" else self.touches(touched)

    def __repr__(self) -> str:
        parts = [repr(self.decision)]
        parts += [f"tools={list(self.tools)!r}"] if self.tools is not None else []
        parts += [
            f"{word}={value!r}"
            for word in ("permission", "hint", "path", "command", "host")
            if (value := getattr(self, word))
        ]
        return f"Rule({', '.join(parts)})"


def _check_hint(hint: object, decision: Decision) -> None:
    if hint is None:
        return
    if hint not in HINTS:
        raise PolicyError(f"a rule's hint must be one of {', '.join(HINTS)}, not {hint!r}")
    if decision == "allow":
        raise PolicyError(
            "an allow rule cannot select by 'hint': a declaration of the server may tighten a policy, never widen it;"
            " name the tools with 'tools'"
        )


def _check_strings(values: Mapping[str, object]) -> None:
    """Rules also come from files, which no type checker has seen."""
    for name, value in values.items():
        if name == "command" and isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            import json

            from toolkit.guard.policy.commands import write_rule

            raise PolicyError(f"a rule's 'command' must be a string: write command = {json.dumps(write_rule(value))}")
        if value is not None and not isinstance(value, str):
            what = "a list; write one rule for each" if isinstance(value, list) else type(value).__name__
            raise PolicyError(f"a rule's {name!r} must be a string, not {what}")


def _check_lists(values: Mapping[str, object]) -> None:
    for name, value in values.items():
        if (
            isinstance(value, str)
            or not isinstance(value, Sequence)
            or not all(isinstance(text, str) for text in value)
        ):
            raise PolicyError(f"a rule's {name!r} must be a list of strings, not {value!r}")


# Most policies name tools only. What conditions need is imported by the rules that have one.


def _ask_rule(globs: Globs, because: str) -> AskRule:
    from toolkit.guard.files.consent import AskRule

    return AskRule(globs, because)


def _globs(pattern: str) -> Globs:
    """The pattern as rules that deny or ask compare it: it matches too much rather than too little."""
    from toolkit.guard.files.consent import Globs

    _refuse_home(pattern)
    try:
        return Globs([pattern])
    except SetupError as error:
        raise PolicyError(str(error)) from None


def _path_matcher(pattern: str, globs: Globs | None) -> Callable[[str], bool]:
    """Compares the text of a path: with ``globs``, or exactly for a rule that allows."""
    if globs is None:
        return _exact_matcher(pattern)
    from toolkit.guard.files.consent import Forms, fold_all
    from toolkit.guard.files.path import split_names

    def matches(path: str) -> bool:
        names = split_names(path)
        spellings = [names] if ".." not in names else [names, _without_parents(names)]
        return globs.cover(Forms(map(fold_all, spellings), []))

    return matches


def _without_parents(names: Iterable[str]) -> list[str]:
    """The names of a path after its ``..``, as a server that has no links resolves them.

    >>> _without_parents(["docs", "..", "..", "secret", "k"])
    ['secret', 'k']
    """
    found: list[str] = []
    for name in names:
        if name != "..":
            found.append(name)
        elif found:
            found.pop()
    return found


def _exact_matcher(pattern: str) -> Callable[[str], bool]:

    _refuse_home(pattern)
    try:
        return compile_exact(pattern)
    except SetupError as error:
        raise PolicyError(str(error)) from None


def _refuse_home(pattern: str) -> None:
    if pattern.startswith("~/"):
        raise PolicyError(f"the pattern {pattern!r} begins with '~', which is not expanded; write the absolute path")


def _host_pattern(text: str) -> HostPattern:
    from toolkit.guard.network.hosts import HostPattern

    try:
        return HostPattern.parse(text)
    except SetupError as error:
        raise PolicyError(str(error)) from None


def _read_command(command: str, decision: Decision) -> ShellCommand:
    from toolkit.guard.policy.commands import read_rule

    return read_rule(command, decision)


# -- patterns of allow rules -------------------------------------------------------------------------------------------


def compile_exact(pattern: str) -> Callable[[str], bool]:
    """A function that tests whether a path matches: ``*`` and ``?`` inside a name, ``**`` for any number of names.

    Names are compared exactly, never folded, in bounded time for every pattern. A pattern without a slash matches at any
    depth; a slash at its end does not count. A match covers everything below it.
    A path that contains ``..`` never matches, because only the kernel knows where it leads.

    >>> docs = compile_exact("docs/**")
    >>> docs("docs/a.md"), docs("Docs/a.md"), docs("docs/../secret")
    (True, False, False)
    """
    wanted = split_names(pattern)
    if not wanted:
        raise PolicyError(f"a path rule needs a pattern such as 'secrets/**' or '*.pem', not {pattern!r}")
    if len(wanted) == 1 and "/" not in pattern.rstrip("/"):
        wanted = ["**", *wanted]
    if wanted[-1] == "**" and len(wanted) > 1:
        wanted = wanted[:-1]

    def matches(path: str) -> bool:
        names = split_names(path)
        return ".." not in names and _covers(wanted, names)

    return matches


def _covers(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the pattern matches the path or a directory above it. ``reached`` are the possible positions in the pattern."""
    reached = _skip_double_stars({0}, wanted)
    for name in names:
        if len(wanted) in reached:
            return True
        stay = {at for at in reached if at < len(wanted) and wanted[at] == "**"}
        step = {at + 1 for at in reached if at < len(wanted) and wanted[at] != "**" and _matches(wanted[at], name)}
        reached = _skip_double_stars(stay | step, wanted)
    return len(wanted) in reached


def _skip_double_stars(places: set[int], wanted: Sequence[str]) -> set[int]:
    """The positions, and those after a ``**``, which may stand for no name at all."""
    found = set(places)
    for at in sorted(places):
        while at < len(wanted) and wanted[at] == "**":
            at += 1
            found.add(at)
    return found


def _matches(pattern: str, name: str) -> bool:
    """Whether one name matches. Only the last star is ever tried again, so the time is bounded for every input."""
    p = n = 0
    star = mark = -1
    while n < len(name):
        if p < len(pattern) and pattern[p] == "*":
            star, mark = p, n
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", name[n]):
            p += 1
            n += 1
        elif star >= 0:
            mark += 1
            p, n = star + 1, mark
        else:
            return False
    return all(letter == "*" for letter in pattern[p:])
