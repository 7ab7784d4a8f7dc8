"""Every error this toolkit raises, and the closed list of codes.

::

    Exception
    ├── ToolkitError                 one call has no result; ``code`` says why
    │   ├── ToolNotFound             TOOL_NOT_FOUND
    │   ├── ToolNotAllowed           TOOL_NOT_ALLOWED
    │   ├── InvalidArgumentsType     INVALID_TOOL_ARGUMENTS_TYPE
    │   ├── InvalidArguments         INVALID_TOOL_ARGUMENTS
    │   ├── SandboxViolation         SANDBOX_VIOLATION
    │   ├── ToolFailed               TOOL_FAILED, with a ``reason``
    │   ├── ToolTimeout              TOOL_TIMEOUT
    │   ├── ToolCancelled            TOOL_CANCELLED
    │   ├── Overloaded               OVERLOADED
    │   └── InternalError            INTERNAL
    ├── RunError                     ``toolkit.run`` has no answer; ``conversation`` is what was said until then
    │   ├── AnswerFailed             the provider reported an error, or its stream was cut
    │   ├── AnswerRefused            the model declined to answer
    │   ├── AnswerFiltered           the provider's filter blocked the request, or stopped the answer
    │   ├── AnswerCutOff             the answer was cut at the token limit
    │   ├── ActionNeeded             the provider waits for something that is not a tool call
    │   ├── RunLimitReached          the run has used its turns, tokens or time
    │   └── RunCancelled             the signal of the run was cancelled
    ├── OutputError                  a model's answer is not the data that was asked for
    └── SetupError (ValueError)      wrong setup, before any call
        ├── SpecError                mistakes in spec files, all at once
        ├── PolicyError              a policy that is inconsistent
        └── GenerationError          the generator refuses, or its output is stale

Messages of ``ToolkitError`` are read by models: they never hold a host path outside the
workspace, an environment value or a rejected argument's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from toolkit.schema.problems import Finding
    from toolkit.wire.query import Conversation, QueryResult

ErrorCode: TypeAlias = Literal[
    "TOOL_NOT_FOUND",
    "TOOL_NOT_ALLOWED",
    "INVALID_TOOL_ARGUMENTS_TYPE",
    "INVALID_TOOL_ARGUMENTS",
    "SANDBOX_VIOLATION",
    "TOOL_FAILED",
    "TOOL_TIMEOUT",
    "TOOL_CANCELLED",
    "OVERLOADED",
    "INTERNAL",
]

FailureReason: TypeAlias = Literal[
    "NOT_FOUND",
    "NOT_FILE",
    "NOT_DIRECTORY",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "BINARY_NOT_SUPPORTED",
    "TOO_LARGE",
    "CONFLICT",
    "NO_MATCH",
    "AMBIGUOUS",
    "INVALID_PATCH",
    "COMMAND_NOT_FOUND",
    "NOT_EXECUTABLE",
    "NOT_GIT_REPOSITORY",
    "INVALID_REGEX",
    "NETWORK",
    "REMOTE",
    "IO",
    "SYSTEM",
    "INVALID_OUTPUT",
    "NO_HANDLER",
    "LLM_ASSIST_REQUIRED",
    "LANGCHAIN",
    "NOT_CONFIGURED",
    "SERVER_DIED",
    "SERVER_NOT_READY",
    "WORKER_DIED",
    "TOOL_ERROR",
]
"""Why a tool failed. A tool that was imported from an API also fails with ``HTTP_<status>``."""

ERROR_CODES: Final[tuple[ErrorCode, ...]] = get_args(ErrorCode)
FAILURE_REASONS: Final[tuple[FailureReason, ...]] = get_args(FailureReason)


class ToolkitError(Exception):
    """A call that has no result.

    The call path sets ``tool_name`` if the raiser (a guard, a handler) does not know it.

    >>> error = ToolNotFound("no tool is called 'read_flie'", tool_name="read_flie")
    >>> error.code, error.tool_name, error.retriable
    ('TOOL_NOT_FOUND', 'read_flie', False)
    """

    code: ClassVar[ErrorCode] = "INTERNAL"
    retriable: bool = False

    def __init__(
        self,
        message: str,
        *,
        tool_name: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.tool_name = tool_name
        self.details: dict[str, object] = dict(details or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt from its parts, because the constructors of subclasses take other arguments.
        return restore_error, (type(self), self.args, self.__dict__.copy())


def restore_error(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ToolNotFound(ToolkitError):
    """No tool of that name is in the catalog."""

    code = "TOOL_NOT_FOUND"


class ToolNotAllowed(ToolkitError):
    """The policy denies the call, or it needs an approval and has none."""

    code = "TOOL_NOT_ALLOWED"


class InvalidArgumentsType(ToolkitError):
    """The arguments are not an object."""

    code = "INVALID_TOOL_ARGUMENTS_TYPE"


class InvalidArguments(ToolkitError):
    """The arguments do not match the tool's schema; ``details["errors"]`` holds the errors of the validator."""

    code = "INVALID_TOOL_ARGUMENTS"


class SandboxViolation(ToolkitError):
    """A path, command or address outside the sandbox."""

    code = "SANDBOX_VIOLATION"


class ToolFailed(ToolkitError):
    """An expected failure, raised by handlers.

    The toolkit uses the closed list ``FailureReason``; your own handlers may add other reasons.

    >>> raise ToolFailed("NOT_FOUND", "no file 'a.py'", path="a.py")
    Traceback (most recent call last):
    toolkit.errors.ToolFailed: TOOL_FAILED: NOT_FOUND: no file 'a.py'
    """

    code = "TOOL_FAILED"

    def __init__(self, reason: FailureReason | str, message: str, **details: object) -> None:
        super().__init__(message, details={"reason": reason, **details})
        self.reason = reason
        self.retriable = reason in ("NETWORK", "REMOTE", "CONFLICT", "SYSTEM")

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}: {self.message}"

    def __repr__(self) -> str:
        return f"ToolFailed({self.reason!r}, {self.message!r})"


class ToolTimeout(ToolkitError):
    """The call's deadline passed; ``details["abandoned"]`` is true when the handler is still running."""

    code = "TOOL_TIMEOUT"
    retriable = True


class ToolCancelled(ToolkitError):
    """The caller cancelled the call."""

    code = "TOOL_CANCELLED"


class Overloaded(ToolkitError):
    """Too many calls at once: this one was not started. Nothing has happened, so it can be repeated later."""

    code = "OVERLOADED"
    retriable = True


class InternalError(ToolkitError):
    """Anything else: the message has a short id, under which the log (logger ``toolkit``) has the traceback.

    For programmers, ``__cause__`` is the error itself; models get only the message.
    """

    code = "INTERNAL"


class RunError(Exception):
    """A run that has no answer. ``conversation`` is what was said until then: running it again goes on from there.

    ``result`` is the answer that was not accepted, if there is one; its text and its calls are not in the conversation.
    """

    def __init__(self, message: str, conversation: Conversation, result: QueryResult | None = None) -> None:
        super().__init__(message)
        self.conversation: Final = conversation
        self.result: Final = result

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_error, (type(self), self.args, self.__dict__.copy())


class AnswerFailed(RunError):
    """The provider reported an error, or its stream was cut; the exception of a driver is the cause."""


class AnswerRefused(RunError):
    """The model declined to answer; ``result`` has what it said."""


class AnswerFiltered(RunError):
    """The provider's safety filter blocked the request, or stopped the answer."""


class AnswerCutOff(RunError):
    """The answer was cut at the token limit; its calls were not run, because the last one may be incomplete."""


class ActionNeeded(RunError):
    """The provider waits for an approval, or for an action of one of its own tools; ``result.metadata`` has the items.

    The answer is the last message of ``conversation``: add what the provider waits for, and run it again.
    """


class RunLimitReached(RunError):
    """The run has used up one of its ``RunLimits``; ``limit`` says which."""

    def __init__(self, limit: Literal["turns", "tokens", "seconds"], message: str, conversation: Conversation) -> None:
        super().__init__(message, conversation)
        self.limit: Final = limit


class RunCancelled(RunError):
    """The signal of the run was cancelled."""


class OutputError(Exception):
    """An answer has no value of the type that was asked for; ``result`` is the answer, with its text and calls."""

    def __init__(self, message: str, result: QueryResult) -> None:
        super().__init__(message)
        self.result: Final = result


class SetupError(ValueError):
    """The setup is wrong: raised before any tool is called.

    ``findings`` holds every mistake with its place, if the mistakes are in files; the text has one on each line.
    """

    def __init__(self, problem: str | Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = () if isinstance(problem, str) else tuple(problem)
        super().__init__(problem if isinstance(problem, str) else "\n".join(map(str, self.findings)))

    def replace_findings(self, findings: Iterable[Finding]) -> None:
        """Puts findings that say more, such as a line and a column, in the place of the old ones."""
        self.findings = tuple(findings)
        self.args = ("\n".join(map(str, self.findings)),)


class SpecError(SetupError):
    """Mistakes in tool specs; ``problems`` holds every one as ``file:line:column: message (pointer)``."""

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(map(str, self.findings))


class PolicyError(SetupError):
    """A policy that names something unknown, or contradicts itself."""


class GenerationError(SetupError):
    """The generator refuses to continue, or what it generated earlier cannot be used."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """``" Did you mean 'read_file'?"`` for a near miss, else an empty text; to be appended to a sentence.

    >>> nearest("read_flie", ["done", "read_file"])
    " Did you mean 'read_file'?"
    """
    close = find_near_miss(name, candidates)
    return "" if close is None else f" Did you mean {close!r}?"


def find_near_miss(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a misspelt name most likely stands for.

    >>> find_near_miss("pth", ["path", "cwd"])
    'path'
    >>> find_near_miss("find", ["finish"])
    """
    import difflib

    # Short words share most of their letters by chance: one wrong letter of three is the most.
    cutoff = 0.65 if len(name) <= _SHORT_NAME else 0.6
    # The comparison is quadratic, so the length of the name is limited.
    return next(iter(difflib.get_close_matches(name[:200], candidates, n=1, cutoff=cutoff)), None)


_SHORT_NAME: Final = 4
