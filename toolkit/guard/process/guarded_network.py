"""The guarded network of commands: where it can be had, and the proxy of each command. Runs in the agent's process.

Promise: a command that asks for it gets exactly it, or does not run.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Self

from toolkit.errors import ToolNotAllowed
from toolkit.guard.network.network import Network
from toolkit.guard.permission import CommandNetwork
from toolkit.guard.process.command import StartProxy
from toolkit.guard.process.tier import TierChoice

if TYPE_CHECKING:
    from toolkit.guard.network.proxy import UrlJudge


class GuardedNetwork:
    """What commands with the guarded network reach: what ``network`` permits, and the judge of a view does not refuse."""

    def __init__(self, network: Network | None) -> None:
        self._network = network or Network()
        self._judge: UrlJudge | None = None

    def with_judge(self, judge: UrlJudge) -> Self:
        """The same network, where ``judge`` raises a ``ToolkitError`` to refuse a URL."""
        view = copy.copy(self)
        view._judge = judge
        return view

    def proxy_for(self, wanted: CommandNetwork, choice: TierChoice, *, unsandboxed: bool) -> StartProxy | None:
        """What starts the proxy of a command; None for other networks. Refused where a command has no network of its own."""
        if wanted != "guarded":
            return None
        if unsandboxed or choice.name != "full":
            why = "it runs without a sandbox" if unsandboxed else choice.reason
            raise ToolNotAllowed(
                "the command was not run: command_network='guarded' needs the full sandbox tier, which it does not have"
                f" ({why}); set it to 'none', or to 'host' to give commands the whole network of this machine"
            )
        # Now, and not when the command runs already: it may be able to write where modules are looked up.
        from toolkit.guard.network.proxy import CommandProxy

        return partial(CommandProxy, network=self._network, judge=self._judge)
