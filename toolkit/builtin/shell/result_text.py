"""A command's result as a model reads it: how it ended unless it succeeded, stdout, stderr, and a hint about the sandbox."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from toolkit.generated import BashOutput, ExecCommandOutput

_SEARCHED: Final = 4096
"""How many characters at the end of each stream are searched for signs of the sandbox."""
_REFUSED: Final = re.compile(r"Read-only file system|Permission denied|Operation not permitted|E(?:ACCES|PERM|ROFS)\b")
# Git goes on, and often succeeds, if it cannot write the settings of a branch.
_REFUSED_REPOSITORY: Final = re.compile(
    r"could not (?:write|lock) config file .{0,200}\.git/|\.git/.{0,200}: Read-only file system"
)
_UNREACHABLE: Final = re.compile(
    r"Network is unreachable|[Cc]onnection refused|[Cc]ould(?: not|n't) (?:resolve|connect)|[Ff]ailed to connect|"
    r"[Nn]ame resolution|[Nn]ame or service not known|E(?:AI_AGAIN|NETUNREACH|NOTFOUND)\b"
)
# How curl, git and Python report a tunnel that the proxy of the guarded network refused; they do not show its reason.
_REFUSED_HOST: Final = re.compile(r"CONNECT tunnel failed, response 403|Tunnel connection failed: 403")

CommandOutput: TypeAlias = ExecCommandOutput | BashOutput


def render_result(output: CommandOutput) -> str:
    """The text of a result."""
    lines = _exit_lines(output)
    if output.stdout:
        lines.append(output.stdout.removesuffix("\n"))
    if output.stderr:
        lines += ["[stderr]", output.stderr.removesuffix("\n")]
    if not output.stdout and not output.stderr:
        lines.append("[no output]")
    return "\n".join([*lines, *_sandbox_hints(output)])


def _exit_lines(output: CommandOutput) -> list[str]:
    if output.timed_out:
        return ["[timed out and killed; raise timeout_ms if it needs longer]"]
    if output.signal is not None:
        return [f"[ended by {output.signal}]"]
    return [f"[exit code {output.exit_code}]"] if output.exit_code else []


def _sandbox_hints(output: CommandOutput) -> list[str]:
    """A possible reason for a failure; or that there was no sandbox."""
    if output.sandbox == "none":
        return ["[ran without a sandbox]"]
    ends = f"{output.stdout[-_SEARCHED:]}\n{output.stderr[-_SEARCHED:]}"
    if _REFUSED_REPOSITORY.search(ends):
        return ["[sandbox: this part of .git is read-only for commands; the setting is ToolkitContext(git=...)]"]
    if not output.exit_code:
        return []
    if output.network and _REFUSED_HOST.search(ends):
        return [
            "[sandbox: this host is not allowed; Network(allow_hosts=[...]) and the policy decide what commands reach]"
        ]
    if _REFUSED.search(ends):
        offline = "" if output.network else "; there is no network beyond it"
        return [f"[sandbox: most places outside the workspace and $TMPDIR are read-only or hidden{offline}]"]
    if not output.network and _UNREACHABLE.search(ends):
        return ['[sandbox: there is no network beyond it; the setting is command_network="guarded"]']
    return []
