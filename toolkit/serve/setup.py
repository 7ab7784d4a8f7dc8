"""What is served: presets and policy files, the tools, a toolkit over them for each session, and what processes share."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError
from toolkit.guard.permission import ALL_PERMISSIONS, Mode, Permission, SandboxChoice

if TYPE_CHECKING:
    from toolkit.runtime.approvals import Approver
    from toolkit.runtime.catalog import Catalog, ToolInfo
    from toolkit.stores import RedisStores


# ----------------------------------------------------------------------------------------------------------------------
# Presets: policies for those who have not written one.

Preset: TypeAlias = Literal["read-only", "edit", "full"]

PRESETS: Final[tuple[Preset, ...]] = get_args(Preset)

GRANTED: Final[Mapping[Preset, frozenset[Permission]]] = {
    "read-only": frozenset({"read"}),
    "edit": frozenset({"read", "write"}),
    "full": ALL_PERMISSIONS,
}
"""A preset allows the tools that need no other permission than these, if they declare any."""

ALLOWS: Final[Mapping[Preset, str]] = {
    "read-only": "tools may read the workspace; nothing is written, no command runs, nothing is fetched",
    "edit": "tools may read and change files of the workspace; no command runs, nothing is fetched",
    "full": "tools may read and change the workspace, run commands in the sandbox and fetch public web pages",
}
"""What a preset allows, for people."""

_LOOP_TOOLS: Final = frozenset({"done", "task"})
"""Built-in tools that only make sense in a loop of the toolkit itself."""
_PROGRAM_TOOLS: Final = frozenset({"describe_tools", "search_tools"})
"""Built-in tools that tell about tools. Clients list all tools anyway; who writes programs needs the signatures."""
_BUILT_IN: Final = "toolkit.generated."


def allowed_tools(preset: Preset, catalog: Catalog) -> dict[str, Literal["allow"]]:
    """The tools that a preset allows, by name. Everything else is denied."""
    left_out = _LOOP_TOOLS if preset == "full" else _LOOP_TOOLS | _PROGRAM_TOOLS
    return {
        info.name: "allow"
        for info in catalog.tools.values()
        if GRANTED[preset].issuperset(info.required)
        and not (info.name in left_out and is_built_in(info))
        and (preset == "full" or says_what_it_does(info, catalog.annotations(info.name)))
    }


def is_built_in(info: ToolInfo) -> bool:
    return info.module.startswith(_BUILT_IN)


def says_what_it_does(info: ToolInfo, annotations: Mapping[str, Any]) -> bool:
    """Whether anything is known about a tool. One that declares neither permissions nor that it only reads may do anything:
    handlers are code of this process."""
    return is_built_in(info) or bool(info.required) or annotations.get("readOnlyHint") is True


def preset_mode(preset: Preset) -> Mode:
    """Whether the workspace may be written at all."""
    return "read-only" if preset == "read-only" else "workspace-write"


def preset_policy(preset: Preset, module: Any) -> Any:
    """The policy of a preset for the tools of a generated package."""
    return module.SecurityPolicy(default="deny", tools=allowed_tools(preset, module.CATALOG))


@dataclass(frozen=True, slots=True)
class ServedTools:
    """A generated package in a workspace, behind a preset or a policy file."""

    module: Any
    """The generated package."""
    workspace: Path
    preset: Preset | None = None
    policy_file: Path | None = None
    sandbox: SandboxChoice = "auto"
    audit: Path | None = None
    state_dir: Path | None = None
    shared: SharedState | None = None
    """What this process has in common with others that serve the same."""

    def __post_init__(self) -> None:
        if (self.preset is None) == (self.policy_file is None):
            raise SetupError(
                "nothing is allowed yet: choose --preset read-only, edit or full, or give --policy FILE"
                if self.preset is None
                else "a preset and a policy file were given; choose one of --preset and --policy"
            )
        if not self.workspace.is_dir():
            raise SetupError(
                f"the workspace {str(self.workspace)!r} is not a folder; give a different one with --workspace"
            )

    def load_policy(self) -> Any:
        """The policy as it is now: that of the preset, or what the file holds. Raises ``PolicyError``."""
        if self.preset is not None:
            return preset_policy(self.preset, self.module)
        return self.module.SecurityPolicy.load(self.policy_file)

    def make_context(self, policy: Any, *, approver: Approver | None, session_id: str | None = None) -> Any:
        """The context of one session."""
        preset = self.preset
        return self.module.ToolkitContext(
            self.workspace,
            policy,
            approver=approver,
            permissions=ALL_PERMISSIONS if preset is None else GRANTED[preset],
            mode="workspace-write" if preset is None else preset_mode(preset),
            sandbox=self.sandbox,
            audit=self.audit,
            state_dir=self.state_dir,
            session_id=session_id,
            overrides={} if self.shared is None else self.shared.overrides(),
        )

    def describe_to_clients(self) -> str:
        """The same for clients and their models, who need not know where files of this machine are."""
        if self.preset is not None:
            return f"{ALLOWS[self.preset].capitalize()}."
        return "A policy decides what is allowed; some calls may need the approval of a person."

    def describe(self) -> str:
        """What is allowed, as one sentence for whoever starts the server."""
        if self.preset is not None:
            return f"preset {self.preset}: {ALLOWS[self.preset]}"
        return f"policy {self.policy_file}"


# ----------------------------------------------------------------------------------------------------------------------
# What the processes of one server share, so that a client may talk to any of them.

_SHORTEST_SECRET: Final = 32


class SharedState:
    """A Redis server, where outputs, todos, approvals and locks are kept, and a secret that all processes know.

    From the secret they derive what must be the same in all of them: the name of the session, and the key that seals the
    state of approvals.
    """

    def __init__(self, redis_url: str, secret: str) -> None:
        if len(secret) < _SHORTEST_SECRET:
            raise SetupError(
                f"the secret must have at least {_SHORTEST_SECRET} characters; make one with"
                ' `python -c "import secrets; print(secrets.token_urlsafe(32))"`'
            )
        from toolkit.stores import RedisStores

        self.stores: Final[RedisStores] = RedisStores(redis_url)
        self._secret: Final = secret.encode()

    def overrides(self) -> dict[str, Callable[..., Any]]:
        """The stores for each toolkit. The processes work in one workspace, so they also share the locks of its files."""
        return self.stores.overrides(files=self.derive("the files of the workspace").hex())

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose; it reveals nothing about the others."""
        return hashlib.blake2b(purpose.encode(), key=hashlib.sha256(self._secret).digest(), digest_size=32).digest()


def read_secret(file: Path, workspace: Path) -> str:
    """The secret in a file, which tools must not be able to read."""
    if file.resolve().is_relative_to(workspace.resolve()):
        raise SetupError(f"the file {str(file)!r} is inside the workspace, where tools can read it; move it out")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SetupError(f"the file {str(file)!r} cannot be read: {reason}") from None


# ----------------------------------------------------------------------------------------------------------------------
# Watching the policy file.

_SECONDS_BETWEEN_LOOKS: Final = 0.5
FileState: TypeAlias = tuple[int, int, int] | None
logger: Final = logging.getLogger("toolkit.serve")


async def watch_policy(file: Path, known: FileState, on_change: Callable[[str | None], Awaitable[None]]) -> None:
    """Calls ``on_change`` whenever the file has changed, with a sentence if it is gone.

    A change counts when the file has stayed the same for one more look: a file that is just being written may hold the
    first rules only, and so allow more than it will.
    """
    seen = known
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        now = file_state(file)
        if now != known and now == seen:
            known = now
            try:
                await on_change(None if now is not None else f"{file} is gone")
            except Exception:  # the next change is noticed all the same
                logger.exception("a changed policy could not be used")
        seen = now


def file_state(file: Path) -> FileState:
    """What differs when a file was written or replaced; None without a file."""
    try:
        info = os.stat(file)
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino


# ----------------------------------------------------------------------------------------------------------------------
# What a server tells its operator.

_MAX_LINES: Final = 1000
_LAST_SECONDS: Final = 5.0
"""How long the end waits for a reader."""


class OperatorLog(logging.Handler):
    """Lines for people, and warnings of every logger. A thread of its own writes them: a client that starts a server need not
    read what it says, and a full pipe must not stop it. What finds no room meanwhile is dropped and counted."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """``write`` writes one line, and may wait as long as it likes."""
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        self._write: Final = write
        self._lines: Final[Queue[str | None]] = Queue(_MAX_LINES)
        self._dropped = 0
        self._thread: Final = threading.Thread(target=self._write_all, name="toolkit-operator-log", daemon=True)

    def __enter__(self) -> OperatorLog:
        logging.getLogger().addHandler(self)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        logging.getLogger().removeHandler(self)
        try:
            self._lines.put(None, timeout=_LAST_SECONDS)
        except Full:
            return
        self._thread.join(_LAST_SECONDS)

    def tell(self, line: str) -> None:
        """Says one line. Never waits."""
        try:
            self._lines.put_nowait(line)
        except Full:
            self._dropped += 1

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            self.tell(line)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)
            dropped, self._dropped = self._dropped, 0
            if dropped:
                self._write(f"[{dropped} lines were dropped, because nobody read them]")
