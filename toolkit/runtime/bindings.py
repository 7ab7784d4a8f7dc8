"""Where each rule of a policy, and each limit of its context, holds: rule by door, as data.

A door is a way to touch something: a file tool, a fetch, a command, a program, a local or a remote server. At each of
them a limit is enforced by the kernel, checked by us before or while a call runs, without meaning there, or it cannot bind.
``toolkit policy show`` prints the table; ``policy check``, ``explain`` and the playground say what cannot bind.

``tests/runtime/test_bindings.py`` holds the table to what really happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolkit.guard.permission import PERMISSIONS
from toolkit.guard.policy.policy import Binding, BoundRule, Door, How, SecurityPolicy
from toolkit.guard.policy.rule import Rule
from toolkit.runtime.boundary import RUN_PROGRAM

if TYPE_CHECKING:
    from toolkit.guard.permission import Permission
    from toolkit.runtime.catalog import ToolInfo
    from toolkit.runtime.toolkit import Core

_STRONGEST: Final[dict[How, int]] = {"cannot bind": 0, "kernel": 1, "checked": 2, "-": 3}
_FILES: Final = frozenset({"read", "write"})


def list_bindings(core: Core) -> tuple[BoundRule, ...]:
    """The limits of the context and every rule of the policy, each with what it means at every door."""
    table = _Table(core)
    return (*table.rows_of_context(), *table.rows_of_policy())


def find_unbound(core: Core, name: str) -> tuple[str, ...]:
    """What the rules of the policy cannot keep a tool from, as sentences with the way out."""
    return tuple(
        binding.unbound[name]
        for row in _Table(core).rows_of_policy()
        for binding in row.doors.values()
        if name in binding.unbound
    )


class _DoorTool(NamedTuple):
    """A tool behind a door."""

    info: ToolInfo
    place: str
    """Where the work is done: ``toolkit``, ``local server`` or ``remote``."""
    is_sandboxed: bool
    network: str
    """What its commands or its server reach."""

    @property
    def name(self) -> str:
        return self.info.name


class _Table:
    """Says for each rule how it binds the tools behind each door."""

    def __init__(self, core: Core) -> None:
        self._core: Final = core
        self._context: Final = core.context
        self._policy: Final = core.policy
        self._doors: Final[dict[Door, list[_DoorTool]]] = {}
        for info in core.catalog.tools.values():
            door = None if info.name not in core.handlers else self._door_of(info)
            if door is not None:
                self._doors.setdefault(door, []).append(self._tool(info))
        runs_something = not {"commands", "local servers", "programs"}.isdisjoint(self._doors)
        self._tier: Final = core.guards.process.tier if runs_something else "none"

    def _door_of(self, info: ToolInfo) -> Door | None:
        """The door of a tool; None if it touches nothing outside the toolkit."""
        permissions = {*info.required, *info.optional}
        place = self._core.handlers.place(info.name)
        if place != "toolkit":
            return "local servers" if place == "local server" else "remote servers"
        if info.name == RUN_PROGRAM:
            return "programs"
        if "execute" in permissions:
            return "commands"
        if not _FILES.isdisjoint(permissions):
            return "file tools"
        return "fetches" if "network" in permissions else None

    def _tool(self, info: ToolInfo) -> _DoorTool:
        handlers = self._core.handlers
        place = handlers.place(info.name)
        network = handlers.network(info.name)
        if place == "toolkit" and "network" in self._core.boundary.granted(info):
            network = self._context.command_network
        return _DoorTool(info, place, handlers.is_sandboxed(info.name), network)

    # -- the rules of the policy ---------------------------------------------------------------------------------------

    def rows_of_policy(self) -> Iterator[BoundRule]:
        for policy in self._policy._parts():
            for index, rule in enumerate(policy.rules):
                doors = self._programs_like_others({door: self._bind(policy, rule, door) for door in self._doors})
                yield BoundRule(policy._locate(("rules", index)), repr(rule), doors)
            if policy.tools or not policy.rules:
                yield BoundRule(
                    None, "decisions by tool, and the default", dict.fromkeys(self._doors, Binding("checked"))
                )

    def _programs_like_others(self, doors: dict[Door, Binding]) -> dict[Door, Binding]:
        """A program acts through calls of tools, so what is checked there is checked for it as well."""
        if doors.get("programs") == Binding("-") and any(
            binding.how in ("checked", "kernel") for door, binding in doors.items() if door != "programs"
        ):
            doors["programs"] = Binding("checked")
        return doors

    def _bind(self, policy: SecurityPolicy[Any], rule: Rule[Any], door: Door) -> Binding:
        found: list[How] = []
        unbound: dict[str, str] = {}
        for tool in self._doors[door]:
            how, reason = self._bind_tool(policy, rule, door, tool)
            found.append(how)
            if how == "cannot bind":
                unbound[tool.name] = f"{rule!r} cannot bind {tool.name!r}: {reason}"
        return Binding(min(found, key=_STRONGEST.__getitem__, default="-"), unbound)

    def _bind_tool(self, policy: SecurityPolicy[Any], rule: Rule[Any], door: Door, tool: _DoorTool) -> tuple[How, str]:
        declared = tool.info.required
        is_declared = rule in policy._covering_rules(tool.name, declared)
        if rule.condition is None:
            if is_declared:
                return "checked", ""
            return self._bind_withheld(policy, rule, door, tool)
        if rule.condition == "path":
            return self._bind_path(policy, rule, door, tool, is_declared=is_declared)
        if rule.condition == "command":
            return ("checked" if is_declared and self._may_touch(tool, "command") else "-"), ""
        return self._bind_host(policy, rule, door, tool)

    def _may_touch(self, tool: _DoorTool, condition: str) -> bool:
        return condition in self._policy._known.get(tool.name, ())

    def _bind_withheld(
        self, policy: SecurityPolicy[Any], rule: Rule[Any], door: Door, tool: _DoorTool
    ) -> tuple[How, str]:
        """A rule on a permission that the tool does not require, but that its commands or its server may use."""
        word = rule.permission
        if (
            word is None
            or word == "execute"
            or rule.decision == "allow"
            or door in ("file tools", "fetches", "programs")
        ):
            return "-", ""
        if rule not in policy._covering_rules(tool.name, (word,)):
            return "-", ""
        if door == "remote servers":
            return ("-", "") if word == "network" else ("cannot bind", _REMOTE)
        if word == "network" and tool.network == "none" and self._holds(tool):
            return "kernel", ""
        return self._bind_in_sandbox(tool, hides=word == "read")

    def _bind_path(
        self, policy: SecurityPolicy[Any], rule: Rule[Any], door: Door, tool: _DoorTool, *, is_declared: bool
    ) -> tuple[How, str]:
        if door in ("file tools", "fetches", "programs"):
            return ("checked" if is_declared and self._may_touch(tool, "path") and door != "programs" else "-"), ""
        marked = any(kind in ("read-path", "write-path") for _, kind in tool.info.resources)
        if rule.decision == "allow":
            return ("checked" if is_declared and marked else "-"), ""
        words: tuple[Permission, ...] = (*tool.info.required, *tool.info.optional, "read", "write")
        if rule not in policy._covering_rules(tool.name, words):
            return "-", ""
        if door == "remote servers":
            return ("checked", "") if marked else ("cannot bind", _REMOTE)
        return self._bind_in_sandbox(tool, hides=True)

    def _bind_host(self, policy: SecurityPolicy[Any], rule: Rule[Any], door: Door, tool: _DoorTool) -> tuple[How, str]:
        words: tuple[Permission, ...] = (*tool.info.required, *tool.info.optional)
        if rule not in policy._covering_rules(tool.name, words):
            return "-", ""
        if door in ("fetches", "remote servers"):
            return "checked", ""
        if rule.decision == "allow" or door not in ("commands", "local servers"):
            return "-", ""
        if not self._holds(tool):
            return "cannot bind", _UNSANDBOXED if tool.is_sandboxed else _OPTED_OUT
        if tool.network == "host":
            return "cannot bind", _HOST_NETWORK
        return ("kernel" if tool.network == "none" else "checked"), ""

    def _holds(self, tool: _DoorTool) -> bool:
        """Whether what the tool starts is in a sandbox."""
        return tool.is_sandboxed and self._tier != "none"

    def _bind_in_sandbox(self, tool: _DoorTool, *, hides: bool) -> tuple[How, str]:
        if not tool.is_sandboxed:
            return "cannot bind", _OPTED_OUT
        if self._tier == "none":
            if self._context.sandbox != "unsafe-none":
                return "checked", ""  # without a sandbox, nothing runs
            return "cannot bind", _UNSANDBOXED
        if self._tier == "full" or not hides:
            return "kernel", ""
        if self._context.unenforced_rules == "accept":
            return "cannot bind", _ACCEPTED
        return "checked", ""  # what could open it does not run

    # -- the limits of the context -------------------------------------------------------------------------------------

    def rows_of_context(self) -> Iterator[BoundRule]:
        context = self._context
        yield self._row("files outside the roots", "checked", self._in_sandbox, programs="kernel", remote="cannot bind")
        for word, text in self._withheld():
            limit: SecurityPolicy[Any] = SecurityPolicy(default="allow", rules=[Rule("deny", permission=word)])
            doors = {door: self._bind(limit, limit.rules[0], door) for door in self._doors}
            yield BoundRule(None, text, self._programs_like_others(doors))
        if context.ask_before_writing and context.mode == "workspace-write":
            yield self._row("ask_before_writing", "checked", self._put_back, programs="checked", remote="cannot bind")
        if {"commands", "local servers", "fetches", "remote servers"} & self._doors.keys():
            text = "network=" + ("Network()" if context.network is None else repr(context.network))
            yield self._row(text, "-", self._on_the_network, fetches="checked", programs="kernel", remote="checked")

    def _withheld(self) -> Iterator[tuple[Permission, str]]:
        """The permissions that the context does not grant."""
        for word in PERMISSIONS:
            if word not in self._context.permissions:
                yield word, f"permissions= without {word!r}"
            elif word == "write" and self._context.mode == "read-only":
                yield word, "mode='read-only'"

    def _row(
        self,
        text: str,
        files: How,
        commands: Callable[[_DoorTool], How],
        *,
        programs: How,
        remote: How,
        fetches: How = "-",
    ) -> BoundRule:
        fixed: dict[Door, How] = {
            "file tools": files, "fetches": fetches, "programs": programs, "remote servers": remote,
        }  # fmt: skip
        doors = {
            door: Binding(fixed[door] if door in fixed else min(map(commands, tools), key=_STRONGEST.__getitem__))
            for door, tools in self._doors.items()
        }
        return BoundRule(None, text, doors)

    def _in_sandbox(self, tool: _DoorTool) -> How:
        return self._bind_in_sandbox(tool, hides=False)[0]

    def _put_back(self, tool: _DoorTool) -> How:
        """What a command changes there is put back when it ends."""
        return "checked" if self._holds(tool) else "cannot bind"

    def _on_the_network(self, tool: _DoorTool) -> How:
        if not self._holds(tool) or tool.network == "host":
            return "cannot bind"
        return "kernel" if tool.network == "none" else "checked"


_REMOTE: Final = (
    "the server works on files of its own; deny the tool, or mark the argument that names a path ('resources' of its"
    " import)"
)
_OPTED_OUT: Final = "its server runs outside the sandbox; deny the tool, or remove sandbox = false"
_UNSANDBOXED: Final = "with sandbox='unsafe-none' nothing holds its commands; deny the tool, or use a sandbox"
_ACCEPTED: Final = (
    "the reduced sandbox hides no paths, and unenforced_rules='accept' runs commands all the same; deny the tool"
)
_HOST_NETWORK: Final = "its network is 'host', which nothing filters; use 'guarded', or deny the tool"
