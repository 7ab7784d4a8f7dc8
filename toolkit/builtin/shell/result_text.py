"""A command's end as a model reads it: how it ended only where that is news, its output, its errors, what to know."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from toolkit.generated import BashOutput, ExecCommandOutput

_LOOKED_AT: Final = 4096
"""How many characters at the end of each stream are searched for signs of the sandbox."""
_REFUSED: Final = re.compile(
    r"Read-only file system|Permission denied|Operation not permitted|Network is unreachable|[Cc]onnection refused|"
    r"[Cc]ould(?: not|n't) (?:resolve|connect)|[Ff]ailed to connect|[Nn]ame resolution|[Nn]ame or service not known|"
    r"E(?:ACCES|AI_AGAIN|NETUNREACH|NOTFOUND|PERM|ROFS)\b"
)

CommandOutput: TypeAlias = ExecCommandOutput | BashOutput


def report(output: CommandOutput) -> str:
    lines = _how_it_ended(output)
    if output.stdout:
        lines.append(output.stdout.removesuffix("\n"))
    if output.stderr:
        lines += ["[stderr]", output.stderr.removesuffix("\n")]
    if not output.stdout and not output.stderr:
        lines.append("[no output]")
    return "\n".join([*lines, *_about_the_sandbox(output)])


def _how_it_ended(output: CommandOutput) -> list[str]:
    if output.timed_out:
        return ["[timed out and killed; raise timeout_ms if it needs longer]"]
    if output.signal is not None:
        return [f"[ended by {output.signal}]"]
    return [f"[exit code {output.exit_code}]"] if output.exit_code else []


def _about_the_sandbox(output: CommandOutput) -> list[str]:
    """What may be the reason of a failure; where there is no sandbox, that."""
    if output.sandbox == "none":
        return ["[run without a sandbox]"]
    if not output.exit_code:
        return []
    last_words = f"{output.stdout[-_LOOKED_AT:]}\n{output.stderr[-_LOOKED_AT:]}"
    if not _REFUSED.search(last_words):
        return []
    offline = "" if output.network else "; there is no network"
    return [f"[sandbox: most places outside the workspace and $TMPDIR are read-only or hidden{offline}]"]
