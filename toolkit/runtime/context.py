"""What a toolkit is built from: the workspace, the policy, and what its tools may do there."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

from toolkit.errors import SetupError
from toolkit.guard.files.protect import RUNS_LATER, check_patterns
from toolkit.guard.permission import (
    ALL_PERMISSIONS,
    PERMISSIONS,
    CommandNetwork,
    GitMode,
    Mode,
    Permission,
    SandboxChoice,
)
from toolkit.guard.policy.policy import NarrowedPolicy, SecurityPolicy
from toolkit.guard.policy.rule import Rule
from toolkit.runtime.state_directory import StateDirectory
from toolkit.runtime.turns import Concurrency, Turns
from toolkit.wire.message import TextMessage

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

    from toolkit.guard.network.hosts import Network
    from toolkit.guard.permission import CommandLimits
    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.inject import DependencyScope, Factory
    from toolkit.runtime.approvals import Approver
    from toolkit.runtime.audit.settings import AuditFile, AuditSink
    from toolkit.runtime.output import ToolMessage
    from toolkit.runtime.programs.result import ProgramSettings
    from toolkit.runtime.progress import OnProgress


NameT = TypeVar("NameT", bound=str)
WordT = TypeVar("WordT", bound=str)

OutputCheck: TypeAlias = Literal["enforce", "warn", "off"]
OnResult: TypeAlias = "Callable[[ToolMessage[Any, Any]], None]"

EMPTY: Final[Mapping[str, Factory]] = MappingProxyType({})


class ToolkitContext(Generic[NameT]):
    """Where tools work and what they may do. Generated packages export it with their own tool names filled in.

    :param workspace: the directory that is the root of every file tool.
    :param policy: which tools may be called.
    :param sandbox: the tier that commands need; ``auto`` takes the best of this machine, ``unsafe-none`` means none.
    :param mode: whether tools and commands may write in the workspace.
    :param read_roots: other directories that tools may read, by absolute path.
    :param write_roots: other directories that tools may read and write.
    :param network: which hosts and addresses may be reached.
    :param command_network: what commands reach: ``none`` (only a loopback of their own), ``guarded`` (what ``network``
        allows, through a proxy) or ``host`` (everything this machine reaches).
    :param git: what commands may change in repositories: nothing, ``commit`` (everything but what makes git run
        programs) or ``write`` (everything). File tools change repositories that are not called ``.git`` only with
        ``write``, and ``.git`` never.
    :param limits: the memory, processes and disk space that one command may use.
    :param ask_before_writing: files that a tool may change only after approval, as patterns of deny rules. The default,
        ``toolkit.guard.RUNS_LATER``, is files that run code for the user later; ``()`` asks about none.
    :param approver: asked about calls for which the policy says ``ask``; without one they are refused. A sync one is
        asked about one call at a time; an async one may be asked about several at once.
    :param permissions: what tools may be granted; a tool that needs more is refused.
    :param programs: what programs of ``run_program`` may import and use; the defaults if not given.
    :param coerce: repair common mistakes of models in arguments, and report it in the message's metadata.
    :param output_check: whether an output that its schema refuses is an error, a warning in the log, or not checked.
    :param deadline: how many seconds one call may take, with everything it waits for: an approval, a turn, a thread.
    :param concurrency: how many calls may run and wait at the same time; the defaults if not given.
    :param overrides: dependency id -> factory that replaces its own.
    :param state_dir: a private directory outside the workspace for what outlives a call: kept outputs, todos, the
        journal of patches. The default is ``typed-toolkit`` below the user's state directory.
    :param mcp: functions that answer MCP servers which ask the person or a model, or need a login; without them servers
        are refused.
    :param audit: where every call is recorded: the path of a file outside the workspace, ``AuditFile(...)``, or an
        ``AuditSink`` of your own; None means no log.
    :param tracing: whether calls and runs are OpenTelemetry spans: True for the global provider, or ``Tracing(...)``.
    :param on_progress: receives the progress events of running tools.
    :param on_result: receives the message of every successful call.
    """

    __slots__ = (
        "_lazy_tools",
        "agent",
        "approver",
        "ask_before_writing",
        "audit",
        "coerce",
        "command_network",
        "concurrency",
        "deadline",
        "git",
        "limits",
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
        "sandbox",
        "session_id",
        "state",
        "tracing",
        "turn_to_ask",
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
        sandbox: SandboxChoice = "auto",
        mode: Mode = "workspace-write",
        read_roots: Sequence[str | os.PathLike[str]] = (),
        write_roots: Sequence[str | os.PathLike[str]] = (),
        ask_before_writing: Sequence[str] = RUNS_LATER,
        network: Network | None = None,
        command_network: CommandNetwork = "none",
        git: GitMode = "commit",
        limits: CommandLimits | None = None,
        mcp: McpCallbacks | None = None,
        programs: ProgramSettings | None = None,
        coerce: bool = False,
        output_check: OutputCheck = "enforce",
        deadline: float | None = None,
        concurrency: Concurrency | None = None,
        session_id: str | None = None,
        message_id: str | None = None,
        agent: str = "main",
        state_dir: str | os.PathLike[str] | None = None,
        audit: str | os.PathLike[str] | AuditFile | AuditSink | None = None,
        tracing: bool | Tracing = False,
        on_progress: OnProgress | None = None,
        on_result: OnResult | None = None,
    ) -> None:
        check_permissions(permissions)
        check_deadline(deadline)
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
        self.sandbox: Final = _one_of("sandbox", sandbox, get_args(SandboxChoice))
        self.mode: Final = _one_of("mode", mode, get_args(Mode))
        self.read_roots: Final = tuple(os.fspath(root) for root in read_roots)
        self.write_roots: Final = tuple(os.fspath(root) for root in write_roots)
        self.ask_before_writing: Final = check_patterns(ask_before_writing)
        self.network: Final = network
        self.command_network: Final = _one_of("command_network", command_network, get_args(CommandNetwork))
        self.git: Final = _one_of("git", git, get_args(GitMode))
        self.limits: Final = limits
        self.mcp: Final = mcp
        self.programs: Final = programs
        self.coerce: Final = coerce
        self.output_check: Final = _one_of("output_check", output_check, get_args(OutputCheck))
        self.deadline: Final = deadline
        self.concurrency: Final = Concurrency() if concurrency is None else concurrency
        self.session_id: Final = os.urandom(16).hex() if session_id is None else session_id
        self.message_id: Final = message_id
        self.agent: Final = agent
        self.overrides: Final[Mapping[str, Factory]] = dict(overrides)
        roots = (self.workspace, *self.read_roots, *self.write_roots)
        self.state: Final = StateDirectory(None if state_dir is None else os.fspath(state_dir), roots)
        self.audit: Final = None if audit is None else _read_audit(audit)
        self.tracing: Final = _read_tracing(tracing)
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


def _one_of(what: str, word: WordT, words: tuple[str, ...]) -> WordT:
    if word not in words:
        raise SetupError(f"{what} must be one of {', '.join(words)}, not {word!r}")
    return word


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
# Policy and context for tools whose names are known only at run time, such as code-first tools.
#
# The ``SecurityPolicy`` of a generated package accepts only its own tool names, so that a typo is a type error. These accept
# any text; an unknown name is an error when the toolkit is built.

DynamicRule: TypeAlias = Rule[str]
DynamicPolicy: TypeAlias = SecurityPolicy[str]
DynamicContext: TypeAlias = ToolkitContext[str]


# ----------------------------------------------------------------------------------------------------------------------
# A profile: the tools that a part of a program may ever call, fixed when its package was generated.

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
# What MCP servers may ask for while a call runs, and the functions of yours that answer.
#
# Without a function the server is told that nobody answers, in a sentence it can pass on to the model.


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
# How a toolkit is traced; opentelemetry is imported when a toolkit that is traced is built.

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
