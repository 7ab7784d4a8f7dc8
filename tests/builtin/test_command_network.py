"""What the commands of a toolkit reach: its settings, its permissions and its rules on hosts."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.commands import NO_NETWORK
from tests.builtin.site import HERE, Site, running_site
from toolkit import Network, ToolContext
from toolkit.generated import Rule, SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.guard.process.tier import pick_tier

FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


@pytest.fixture(autouse=True)
def _full_tier() -> None:
    choice = pick_tier("auto")
    if choice.name != "full":
        pytest.skip(f"this machine gives no full tier: {choice.reason}")


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        site.serve("from the site", "text/plain")
        yield site


def toolkit_with(root: Path, *rules: Rule, **context: Any) -> Toolkit:
    """Commands have the guarded network, in which ``*.test`` is allowed and is this machine."""
    network = Network(allow_hosts=["*.test"], allow_addresses=[HERE], resolve=lambda host, port: [HERE])
    policy = SecurityPolicy(default="allow", rules=rules)
    settings = {"network": network, "command_network": "guarded", **context}
    return create_agent_toolkit(ToolkitContext(root, policy, **settings))


def fetch(toolkit: Toolkit, url: str) -> str:
    return toolkit.invoke("exec_command", {"command": [sys.executable, "-c", FETCH, url]}).text()


DENY = Rule("deny", host="denied.test", justification="not this one")
ASK = Rule("ask", host="*.asked.test")


@pytest.mark.parametrize(
    ("host", "rules", "expected"),
    [
        ("site.test", [], "from the site"),
        ("site.test", [DENY, ASK], "from the site"),
        ("denied.test", [], "from the site"),
        ("denied.test", [DENY], "HTTP Error 403: the request to http://denied.test"),
        ("DENIED.test", [DENY], "is denied: decided by Rule('deny', host='denied.test') (not this one)"),
        ("a.asked.test", [], "from the site"),
        ("a.asked.test", [ASK], "needs approval (ask), which a running command cannot get"),
        ("site.test", [Rule("allow", host="other.test")], "from the site"),
        ("other.example", [Rule("allow", host="other.example")], "403: the host 'other.example' is not one of the allowed"),
    ],
)  # fmt: skip
def test_rules_on_hosts_bind_the_guarded_network(
    tmp_path: Path, site: Site, host: str, rules: list[Rule], expected: str
) -> None:
    with toolkit_with(tmp_path, *rules) as toolkit:
        assert expected in fetch(toolkit, site.url(host=host))
    assert len(site.asked) == (expected == "from the site")


def test_a_rule_binds_a_handler_that_knows_nothing_of_it(tmp_path: Path, site: Site) -> None:
    policy = SecurityPolicy(default="allow", rules=[DENY])
    network = Network(allow_addresses=[HERE], resolve=lambda host, port: [HERE])
    with ToolContext.standalone(ToolkitContext(tmp_path, policy, network=network)) as ctx:
        for host, code in (("denied.test", 1), ("other.test", 0)):
            argv = [sys.executable, "-c", FETCH, site.url(host=host)]
            assert ctx.process.run(argv, network="guarded").exit_code == code
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "context",
    [{"permissions": NO_NETWORK}, {"command_network": "none"}, {"rules": [Rule("deny", permission="network")]}],
)
def test_without_the_word_or_the_permission_there_is_no_proxy(
    tmp_path: Path, site: Site, context: dict[str, Any]
) -> None:
    with toolkit_with(tmp_path, *context.pop("rules", []), **context) as toolkit:
        output = toolkit.tools.exec_command(command=[sys.executable, "-c", FETCH, site.url()])
        assert (output.network, output.exit_code) == (False, 1)
        assert "PROXY" not in toolkit.tools.exec_command(command=["env"]).stdout.upper()
    assert site.asked == []


def test_nothing_is_reached_unless_somebody_said_so(tmp_path: Path) -> None:
    """The default, with every permission granted; the control is the word ``host``."""
    code = "import socket, sys; print(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))))"
    everything = SecurityPolicy(default="allow")
    with socket.create_server((HERE, 0)) as server:
        command = [sys.executable, "-c", code, str(server.getsockname()[1])]
        with create_agent_toolkit(ToolkitContext(tmp_path, everything)) as toolkit:
            output = toolkit.tools.exec_command(command=command)
            assert not output.network and int(output.stdout) != 0
        with create_agent_toolkit(ToolkitContext(tmp_path, everything, command_network="host")) as toolkit:
            output = toolkit.tools.exec_command(command=command)
            assert output.network and int(output.stdout) == 0


def test_the_text_says_which_setting_helps(tmp_path: Path) -> None:
    with toolkit_with(tmp_path) as toolkit:
        text = toolkit.invoke("bash", {"command": f"{sys.executable} -c '{FETCH}' https://other.example/"}).text()
        assert text.endswith("[sandbox: this host is not allowed; Network(allow_hosts=[...]) and the policy decide what commands reach]")  # fmt: skip
    with toolkit_with(tmp_path, command_network="none") as toolkit:
        text = toolkit.invoke("bash", {"command": "echo > /dev/tcp/127.0.0.1/9"}).text()
        assert text.endswith('[sandbox: there is no network beyond it; the setting is command_network="guarded"]')
