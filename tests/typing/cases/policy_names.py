"""A policy that names what is no tool is a type error."""

from typing import assert_type

import toolkit
import toolkit.generated
from toolkit.generated import Rule, SecurityPolicy, ToolkitContext
from toolkit import ToolDefinition, create_agent_toolkit


def takes_known_names() -> None:
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow"}, rules=[Rule("deny", tools=["tree"])])
    made = create_agent_toolkit(ToolkitContext(workspace=".", policy=policy))
    assert_type(made, toolkit.generated.Toolkit)
    assert_type(made.get_allowed_tools(), list[ToolDefinition])
    toolkit.create_agent_toolkit(
        toolkit.ToolkitContext(workspace=".", policy=toolkit.SecurityPolicy(default="deny", tools={"read_file": "allow"}))
    )


def refuses_unknown_names() -> None:
    SecurityPolicy(tools={"read_flie": "allow"})  # error
    SecurityPolicy(tools={"read_file": "alow"})  # error
    SecurityPolicy(default="maybe")  # error
    Rule("deny", tools=["read_flie"])  # error
    Rule("deny", permission="reed")  # error
    toolkit.SecurityPolicy(tools={"read_flie": "allow"})  # error
    ToolkitContext(workspace=".", policy=None)  # error
    ToolkitContext(workspace=".", policy=SecurityPolicy(), output_check="never")  # error


def takes_settings_in_groups(policy: SecurityPolicy, approver: toolkit.Approver) -> None:
    commands = toolkit.CommandSettings(network="guarded", git="write", limits=toolkit.CommandLimits(processes=8))
    calls = toolkit.CallSettings(deadline=5, concurrency=toolkit.Concurrency(calls=2))
    ToolkitContext(".", policy, approver=approver, commands=commands, calls=calls, mode="read-only")
    ToolkitContext(".", policy, files=toolkit.FileSettings(ask_before_writing=()), command_network="host", deadline=None)


def refuses_wrong_settings(policy: SecurityPolicy) -> None:
    toolkit.FileSettings(mode="sometimes")  # error
    toolkit.CommandSettings(network="everything")  # error
    toolkit.CallSettings(deadline="soon")  # error
    ToolkitContext(".", policy, mode="sometimes")  # error
    ToolkitContext(".", policy, files=toolkit.CallSettings())  # error
