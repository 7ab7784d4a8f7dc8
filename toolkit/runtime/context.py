"""What a toolkit is built from: the workspace, the policy, and what its tools may do there.

First come the groups of settings and the ``ToolkitContext`` that holds them; then the same for tools whose names are known
only at run time, the profiles of generated packages, the functions that answer MCP servers, and tracing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from toolkit.errors import SetupError
from toolkit.guard.files.consent import Globs
from toolkit.guard.permission import (
    ALL_PERMISSIONS,
    PERMISSIONS,
    CommandNetwork,
    GitMode,
    Mode,
    Permission,
    SandboxChoice,
    UnenforcedRules,
)
from toolkit.guard.policy.policy import NarrowedPolicy, SecurityPolicy
from toolkit.guard.policy.rule import Rule
from toolkit.runtime.state_directory import StateDirectory
from toolkit.runtime.surface import OMIT, Omit
from toolkit.runtime.turns import Concurrency, Turns
from toolkit.wire.message import TextMessage

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

    from toolkit.guard.network.hosts import Network
    from toolkit.guard.permission import CommandLimits
    from toolkit.inject import DependencyScope, Factory
    from toolkit.runtime.approvals import Approver
    from toolkit.runtime.audit.settings import AuditFile, AuditSink
    from toolkit.runtime.output import ToolMessage
    from toolkit.runtime.programs.result import ProgramSettings
    from toolkit.runtime.progress import OnProgress
    from toolkit.runtime.remembered import RememberedApproval


NameT = TypeVar("NameT", bound=str)
GroupT = TypeVar("GroupT")

OutputCheck: TypeAlias = Literal["enforce", "warn", "off"]
OnResult: TypeAlias = "Callable[[ToolMessage[Any, Any]], None]"

_FIELDS: Final = {"command_network": "network"}
"""The fields of shorthands that have another name."""
EMPTY: Final[Mapping[str, Factory]] = MappingProxyType({})


RUNS_LATER: Final[tuple[str, ...]] = (
    # Shells: every session reads one of these.
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
    "config.fish", ".xinitrc", ".xprofile", ".xsession", ".envrc", "mise.toml", ".mise.toml",
    # Editors: tasks, hooks and interpreters of the project that is opened.
    ".vscode", ".idea", ".fleet", ".zed", ".devcontainer", ".devcontainer.json", "*.code-workspace",
    ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".emacs.d", ".dir-locals.el",
    # Agents: their hooks, commands, permissions and servers.
    ".mcp.json", ".claude", ".claude.json", ".codex", ".cursor", ".agents", ".gemini", ".windsurf", ".continue", ".kiro",
    ".aider.conf.yml", ".opencode", "opencode.json",
    # Version control: settings and hooks that name programs.
    ".gitconfig", ".gitmodules", "hgrc", ".hgrc", ".pre-commit-config.yaml", ".husky", "lefthook.yml", ".lefthook.yml",
    # Programs that load what a file in the current or the home directory says.
    ".ripgreprc", ".gdbinit", ".lldbinit", ".pdbrc", ".Rprofile", ".irbrc", ".pryrc", ".ssh",
    # Where the workspace is a home directory.
    ".config/git/**", ".config/fish/**", ".config/autostart/**", ".config/systemd/**", ".local/bin/**",
)  # fmt: skip
"""Files that run code for the user later, without being asked: at the next shell, editor, agent, debugger or git command.

A tool that may write such a file can run code outside the sandbox, in the user's name. So a toolkit asks before one is
written, moved or removed; ``FileSettings(ask_before_writing=...)`` changes the list. The patterns are those of deny
rules: plain names are covered at any depth, with everything below them; those with a slash begin at a root.

Limit: the list is not complete, and it cannot be. What runs only when the user builds, installs or tests (``Makefile``,
``package.json``, ``pyproject.toml``, ``conftest.py``) or on a server (``.github``) is left out: agents edit it all day.
"""


def check_patterns(patterns: object) -> tuple[str, ...]:
    """The patterns of ``ask_before_writing``; a pattern that cannot mean what it says is refused.

    >>> check_patterns([".envrc", "ci/**"])
    ('.envrc', 'ci/**')
    """
    if patterns is RUNS_LATER:
        return RUNS_LATER  # known to be right; reading them takes longer than the rest of building a context
    if isinstance(patterns, str) or not isinstance(patterns, Sequence):
        raise SetupError(f"ask_before_writing must be a list of patterns, not {patterns!r}")
    return Globs(patterns).globs


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """Which files tools and commands may read and write: ``ToolkitContext(files=FileSettings(...))``.

    >>> FileSettings(mode="read-only", read_roots=["/usr/share/dict"]).write_roots
    ()

    :param mode: whether tools and commands may write in the workspace.
    :param read_roots: other directories that tools may read, by absolute path.
    :param write_roots: other directories that tools may read and write.
    :param ask_before_writing: files that a tool may change only after approval, as patterns of deny rules. The default,
        ``toolkit.guard.RUNS_LATER``, is files that run code for the user later; ``()`` asks about none.
    """

    mode: Mode = "workspace-write"
    read_roots: Sequence[str | os.PathLike[str]] = ()
    write_roots: Sequence[str | os.PathLike[str]] = ()
    ask_before_writing: Sequence[str] = RUNS_LATER

    def __post_init__(self) -> None:
        _check_word("mode", self.mode, get_args(Mode))
        object.__setattr__(self, "read_roots", tuple(map(os.fspath, self.read_roots)))
        object.__setattr__(self, "write_roots", tuple(map(os.fspath, self.write_roots)))
        object.__setattr__(self, "ask_before_writing", check_patterns(self.ask_before_writing))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """What commands may do: ``ToolkitContext(commands=CommandSettings(...))``.

    >>> CommandSettings(network="guarded", git="read-only").sandbox
    'auto'

    :param sandbox: the tier that commands need; ``auto`` takes the best of this machine, ``unsafe-none`` means none.
    :param network: what commands reach: ``none`` (only a loopback of their own), ``guarded`` (what the context's ``network``
        allows, through a proxy) or ``host`` (everything this machine reaches).
    :param git: what commands may change in repositories: nothing, ``commit`` (everything but what makes git run
        programs) or ``write`` (everything). File tools change repositories that are not called ``.git`` only with
        ``write``, and ``.git`` never.
    :param limits: the memory, processes and disk space that one command may use; the defaults if not given.
    :param unenforced_rules: whether commands run where the sandbox cannot hide the paths that rules deny, which is the
        reduced tier; with ``accept`` they can open them.
    """

    sandbox: SandboxChoice = "auto"
    network: CommandNetwork = "none"
    git: GitMode = "commit"
    limits: CommandLimits | None = None
    unenforced_rules: UnenforcedRules = "refuse"

    def __post_init__(self) -> None:
        _check_word("sandbox", self.sandbox, get_args(SandboxChoice))
        _check_word("unenforced_rules", self.unenforced_rules, get_args(UnenforcedRules))
        _check_word("command_network", self.network, get_args(CommandNetwork))
        _check_word("git", self.git, get_args(GitMode))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How calls are checked, how long they may take, and how many run at once: ``ToolkitContext(calls=CallSettings(...))``.

    >>> CallSettings(deadline=30, concurrency=Concurrency(calls=8)).output_check
    'enforce'

    :param coerce: repair common mistakes of models in arguments, and report it in the message's metadata.
    :param output_check: whether an output that its schema refuses is an error, a warning in the log, or not checked.
    :param deadline: how many seconds one call may take, with everything it waits for: an approval, a turn, a thread.
    :param concurrency: how many calls may run and wait at the same time; the defaults if not given.
    """

    coerce: bool = False
    output_check: OutputCheck = "enforce"
    deadline: float | None = None
    concurrency: Concurrency | None = None

    def __post_init__(self) -> None:
        _check_word("output_check", self.output_check, get_args(OutputCheck))
        check_deadline(self.deadline)
        if not isinstance(self.concurrency, Concurrency | None):
            raise SetupError(f"concurrency must be Concurrency(...), not {type(self.concurrency).__name__}")


class ToolkitContext(Generic[NameT]):
    """Where tools work and what they may do. Generated packages export it with their own tool names filled in.

    Settings come in groups: ``files``, ``commands``, ``network``, ``calls``, ``programs``, ``mcp`` and ``tracing``. For the
    most common ones there is a shorthand: ``ToolkitContext(".", policy, mode="read-only")`` means
    ``ToolkitContext(".", policy, files=FileSettings(mode="read-only"))``. A group and one of its shorthands together are an
    error.

    :param workspace: the directory that is the root of every file tool.
    :param policy: which tools may be called.
    :param permissions: what tools may be granted; a tool that needs more is refused.
    :param approver: asked about calls for which the policy says ``ask``; without one they are refused. A sync one is
        asked about one call at a time; an async one may be asked about several at once.
    :param overrides: dependency id -> factory that replaces its own.
    :param files: which files tools and commands may read and write.
    :param commands: what commands may do: their sandbox, network, limits, and what they may change in repositories.
    :param network: which hosts and addresses may be reached.
    :param calls: how calls are checked, how long they may take, and how many run at once.
    :param programs: what programs of ``run_program`` may import and use; the defaults if not given.
    :param mcp: functions that answer MCP servers which ask the person or a model, or need a login; without them servers
        are refused.
    :param tracing: whether calls and runs are OpenTelemetry spans: True for the global provider, or ``Tracing(...)``.
    :param audit: where every call is recorded: the path of a file outside the workspace, ``AuditFile(...)``, or an
        ``AuditSink`` of your own; None means no log.
    :param state_dir: a private directory outside the workspace for what outlives a call: kept outputs, todos, the
        journal of patches. The default is ``typed-toolkit`` below the user's state directory.
    :param session_id: names the conversation in the audit log, in spans and for stores; a random one if not given.
    :param message_id: names the message that the calls belong to.
    :param agent: names the agent that makes the calls.
    :param on_progress: receives the progress events of running tools.
    :param on_result: receives the message of every successful call.
    :param mode: shorthand of ``files``.
    :param read_roots: shorthand of ``files``.
    :param write_roots: shorthand of ``files``.
    :param sandbox: shorthand of ``commands``.
    :param command_network: shorthand of ``commands``, where it is called ``network``.
    :param git: shorthand of ``commands``.
    :param coerce: shorthand of ``calls``.
    :param output_check: shorthand of ``calls``.
    :param deadline: shorthand of ``calls``.
    """

    __slots__ = (
        "_lazy_tools",
        "agent",
        "approver",
        "ask_before_writing",
        "audit",
        "coerce",
        "command_limits",
        "command_network",
        "concurrency",
        "deadline",
        "git",
        "mcp",
        "message_id",
        "mode",
        "network",
        "on_progress",
        "on_result",
        "output_check",
        "overrides",
        "permissions",
        "policy",
        "programs",
        "read_roots",
        "remembered",
        "sandbox",
        "session_id",
        "state",
        "tracing",
        "turn_to_ask",
        "unenforced_rules",
        "workspace",
        "write_roots",
    )  # fmt: skip

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        policy: SecurityPolicy[NameT],
        *,
        permissions: Collection[Permission] = ALL_PERMISSIONS,
        approver: Approver | None = None,
        overrides: Mapping[str, Factory] = EMPTY,
        files: FileSettings | None = None,
        commands: CommandSettings | None = None,
        network: Network | None = None,
        calls: CallSettings | None = None,
        programs: ProgramSettings | None = None,
        mcp: McpCallbacks | None = None,
        tracing: bool | Tracing = False,
        audit: str | os.PathLike[str] | AuditFile | AuditSink | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        message_id: str | None = None,
        agent: str = "main",
        on_progress: OnProgress | None = None,
        on_result: OnResult | None = None,
        mode: Mode | Omit = OMIT,
        read_roots: Sequence[str | os.PathLike[str]] | Omit = OMIT,
        write_roots: Sequence[str | os.PathLike[str]] | Omit = OMIT,
        sandbox: SandboxChoice | Omit = OMIT,
        command_network: CommandNetwork | Omit = OMIT,
        git: GitMode | Omit = OMIT,
        coerce: bool | Omit = OMIT,
        output_check: OutputCheck | Omit = OMIT,
        deadline: float | Omit | None = OMIT,
    ) -> None:
        check_permissions(permissions)
        if not isinstance(workspace, str | os.PathLike):
            raise SetupError(f"a workspace is given by its path, not by {type(workspace).__name__}")
        if not isinstance(policy, SecurityPolicy):
            raise SetupError(f"a context needs a SecurityPolicy, not {type(policy).__name__}{_how_to_write(policy)}")
        self.workspace: Final = os.fspath(workspace)
        self.policy: Final = policy
        self.permissions: Final = frozenset(permissions)
        self.approver: Final = approver
        # Shared with the contexts of subagents. An approver may itself call tools that need an approval.
        self.turn_to_ask: Final = Turns(1, sys.maxsize, "approvals")
        self.overrides: Final[Mapping[str, Factory]] = dict(overrides)
        file = _one_group("files", FileSettings, files, mode=mode, read_roots=read_roots, write_roots=write_roots)
        self.mode: Final = file.mode
        self.read_roots: Final = cast("tuple[str, ...]", file.read_roots)
        self.write_roots: Final = cast("tuple[str, ...]", file.write_roots)
        self.ask_before_writing: Final = cast("tuple[str, ...]", file.ask_before_writing)
        command = _one_group(
            "commands", CommandSettings, commands, sandbox=sandbox, command_network=command_network, git=git
        )
        self.sandbox: Final = command.sandbox
        self.command_network: Final = command.network
        self.git: Final = command.git
        self.command_limits: Final = command.limits
        self.unenforced_rules: Final = command.unenforced_rules
        self.network: Final = network
        call = _one_group("calls", CallSettings, calls, coerce=coerce, output_check=output_check, deadline=deadline)
        self.coerce: Final = call.coerce
        self.output_check: Final = call.output_check
        self.deadline: Final = call.deadline
        self.concurrency: Final = call.concurrency or Concurrency()
        self.programs: Final = programs
        self.mcp: Final = mcp
        self.tracing: Final = _read_tracing(tracing)
        self.audit: Final = None if audit is None else _read_audit(audit)
        roots = (self.workspace, *self.read_roots, *self.write_roots)
        self.state: Final = StateDirectory(None if state_dir is None else os.fspath(state_dir), roots)
        self.session_id: Final = os.urandom(16).hex() if session_id is None else session_id
        self.message_id: Final = message_id
        self.agent: Final = agent
        # Approvals for this session, by what they cover.
        self.remembered: Final[dict[str, RememberedApproval]] = {}
        self.on_progress: Final = on_progress
        self.on_result: Final = on_result
        # The lazy tools that were made for this context; they live as long as it does.
        self._lazy_tools: dict[object, DependencyScope] = {}

    def __repr__(self) -> str:
        # No values of settings that may be secret: only what decides where tools work and what they may do.
        words = ", ".join(word for word in PERMISSIONS if word in self.permissions) or "none"
        mode = "" if self.mode == "workspace-write" else f", {self.mode}"
        return f"<ToolkitContext: workspace {self.workspace!r}{mode}, permissions {words}, {self.policy!r}>"

    def narrow(self, permissions: Collection[Permission], *, session_id: str, agent: str) -> ToolkitContext[NameT]:
        """A copy for another agent, with those of these permissions that this context has."""
        made = copy(self)
        # A context never changes; this one is still being made.
        made.permissions = self.permissions.intersection(permissions)  # type: ignore[misc]
        if session_id != self.session_id:
            made.remembered = {}  # type: ignore[misc]
        made.session_id = session_id  # type: ignore[misc]
        made.agent = agent  # type: ignore[misc]
        made._lazy_tools = {}
        return made

    def with_policy(self, policy: SecurityPolicy[NameT]) -> ToolkitContext[NameT]:
        """A copy with another policy."""
        made = copy(self)
        made.policy = policy  # type: ignore[misc]
        made._lazy_tools = {}
        return made


def _how_to_write(policy: object) -> str:
    """How to make a policy of what was probably meant as one."""
    if isinstance(policy, str | os.PathLike):
        return f"; write SecurityPolicy.load({os.fspath(policy)!r})"
    return "; write SecurityPolicy(tools={...})" if isinstance(policy, dict) else ""


def _read_audit(given: object) -> AuditFile | AuditSink:
    from toolkit.runtime.audit.settings import read_audit

    return read_audit(given)


def _read_tracing(given: bool | Tracing) -> Tracing | None:
    if given is False:
        return None  # nothing is imported for it

    return read_tracing(given)


def _one_group(name: str, kind: type[GroupT], group: GroupT | None, **shorthands: object) -> GroupT:
    """The group of settings, from itself or from its shorthands."""
    given = {word: value for word, value in shorthands.items() if value is not OMIT}
    if group is None:
        return kind(**{_FIELDS.get(word, word): value for word, value in given.items()})
    if given:
        word, value = next(iter(given.items()))
        written = f"{name}={kind.__name__}({_FIELDS.get(word, word)}={value!r}, ...)"
        raise SetupError(f"{name}= and its shorthand {word}= are both given; write {written} without the shorthand")
    if type(group) is not kind:
        raise SetupError(f"{name} must be {kind.__name__}(...), not {type(group).__name__}")
    return group


def _check_word(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise SetupError(f"{what} must be one of {', '.join(words)}, not {word!r}")


def check_permissions(permissions: Collection[str]) -> None:
    """Refuses what is not a permission."""
    unknown = sorted(set(permissions) - ALL_PERMISSIONS)
    if unknown:
        raise SetupError(f"unknown permission {unknown[0]!r}; use {', '.join(PERMISSIONS)}")


def check_deadline(deadline: float | None) -> None:
    """Refuses a deadline that is not a number of seconds above zero."""
    if deadline is None:
        return
    number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
    if not number or not 0 < deadline <= 2**53:
        raise SetupError(f"a deadline must be a number of seconds greater than 0, not {deadline!r}")


# ----------------------------------------------------------------------------------------------------------------------
# Tools whose names are known only at run time. In the types of a generated package an unknown name is a type error; here it
# is an error when the toolkit is built.

DynamicRule: TypeAlias = Rule[str]
DynamicPolicy: TypeAlias = SecurityPolicy[str]
DynamicContext: TypeAlias = ToolkitContext[str]


# ----------------------------------------------------------------------------------------------------------------------
# Profiles: the tools that a part of a program may ever call, fixed when its package was generated.

NamesT = TypeVar("NamesT", bound=tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Profile(Generic[NamesT]):
    """``[tool.toolkit.profiles.<name>]`` at run time. Generated packages make it."""

    name: str
    tools: NamesT
    policy: SecurityPolicy[str]

    def narrow(self, context: ToolkitContext[Any]) -> ToolkitContext[Any]:
        """A copy of a context whose policy allows nothing that the profile does not."""
        return context.with_policy(NarrowedPolicy(self.name, self.tools, self.policy, context.policy))


# ----------------------------------------------------------------------------------------------------------------------
# What MCP servers may ask for while a call runs. Without a function that answers, the server is told so, in a sentence that
# the model may read.


@dataclass(frozen=True, slots=True)
class ElicitRequest:
    """A server asks the person for something. What it says is untrusted text.

    :param server: the name of the server in the settings.
    :param schema: the JSON Schema of the answer: an object with properties that are texts, numbers, flags and choices.
    :param url: if it is not empty, the server wants this address to be opened instead of a form to be filled in.
    """

    server: str
    message: str
    schema: Mapping[str, Any]
    url: str = ""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A server asks for the text of a model. What it says is untrusted text, and your tokens are spent."""

    server: str
    messages: Sequence[TextMessage]
    max_tokens: int
    system: str | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    model_hints: tuple[str, ...] = ()
    """Names of models that the server would like, best first."""


@dataclass(frozen=True, slots=True)
class SampleAnswer:
    """The text of a model, for the server."""

    text: str
    model: str
    """The name of the model that wrote it."""
    cut: bool = False
    """Whether it ended because of ``max_tokens``."""


ElicitAnswer: TypeAlias = Mapping[str, object] | None
Elicit: TypeAlias = Callable[[ElicitRequest], ElicitAnswer | Awaitable[ElicitAnswer]]
"""Returns what the person filled in, or None if the person declines. Defaults of the schema are added to it."""

Sample: TypeAlias = Callable[[SampleRequest], SampleAnswer | Awaitable[SampleAnswer | None] | None]
"""Returns the text of a model, or None to refuse."""

OpenUrl: TypeAlias = Callable[[str], object]
"""Shows an address to the person or opens it in a browser, and returns at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCallbacks:
    """Functions that answer MCP servers, sync (run in a thread of their own) or async (run in the loop of the call).

    :param elicit: asks the person; without it servers are refused.
    :param sample: asks a model; without it servers are refused.
    :param open_url: called with the address at which the person logs in to a server; without it, a server that needs a
        login fails with what to run instead. The time limit of the call is paused meanwhile.

    >>> McpCallbacks(elicit=lambda request: {"name": "Ada"}).sample is None
    True
    """

    elicit: Elicit | None = None
    sample: Sample | None = None
    open_url: OpenUrl | None = None


# ----------------------------------------------------------------------------------------------------------------------
# Tracing. OpenTelemetry is imported only when a traced toolkit is built.

_SCOPE: Final = "toolkit"
_SCHEMA: Final = "https://opentelemetry.io/schemas/1.41.0"
"""The version of the conventions that the attributes follow."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """How the calls and runs of a toolkit are traced: ``ToolkitContext(tracing=Tracing(content=True))``.

    :param provider: where spans go; by default the global provider of OpenTelemetry, as your application configured it.
    :param content: whether spans have the arguments and results of calls, without what schemas mark as ``x-secret``. They
        may hold personal data, so the default is no.

    >>> Tracing()
    Tracing(provider=None, content=False)
    """

    provider: TracerProvider | None = None
    content: bool = False

    def make_tracer(self) -> Tracer:
        """The tracer of a toolkit."""
        try:
            from opentelemetry import trace
        except ImportError:
            raise SetupError(
                "tracing needs the package 'opentelemetry-api': pip install 'typed-toolkit[otel]'"
            ) from None
        from toolkit import __version__

        if self.provider is not None and not hasattr(self.provider, "get_tracer"):
            raise SetupError(f"the provider of Tracing must be a TracerProvider, not {type(self.provider).__name__}")
        return trace.get_tracer(_SCOPE, __version__, tracer_provider=self.provider, schema_url=_SCHEMA)


def read_tracing(given: bool | Tracing) -> Tracing | None:
    """The setting of a context: None if nothing is traced."""
    if isinstance(given, Tracing):
        return given
    if not isinstance(given, bool):
        raise SetupError(f"tracing must be True, False or Tracing(...), not {type(given).__name__}")
    return Tracing() if given else None
