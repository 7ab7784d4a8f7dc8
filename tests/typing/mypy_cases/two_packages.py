"""Half of the names imported from `toolkit`, half from one's own package: one line that says what to import."""

import toolkit
from acme import generated as acme
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit


def wrong_tools() -> None:
    toolkit.SecurityPolicy(tools={"add": "allow"})  # error: No tool of toolkit is called "add": import SecurityPolicy from acme.generated, which has it
    toolkit.Rule("deny", tools=["add"])  # error: No tool of toolkit is called "add": import Rule from acme.generated, which has it
    toolkit.SecurityPolicy(tools={"raed_file": "allow"})  # error: No tool is called "raed_file"; did you mean "read_file"?
    toolkit.SecurityPolicy(tools={"xyz": "allow"})  # error: No tool is called "xyz"; for a tool of your own, import SecurityPolicy from your generated package
    SecurityPolicy(tools={"xyz": "allow"})  # error: No tool is called "xyz"


def wrong_policies(ours: SecurityPolicy, theirs: toolkit.SecurityPolicy) -> None:
    ToolkitContext(workspace=".", policy=theirs)  # error: The SecurityPolicy is of toolkit, but ToolkitContext is of acme.generated: import SecurityPolicy from acme.generated
    toolkit.ToolkitContext(workspace=".", policy=ours)  # error: The SecurityPolicy is of acme.generated, but ToolkitContext is of toolkit: import ToolkitContext from acme.generated
    ToolkitContext(workspace=".", policy=toolkit.SecurityPolicy(default="deny"))  # error: The SecurityPolicy is of toolkit, but ToolkitContext is of acme.generated: import SecurityPolicy from acme.generated


def wrong_contexts(ours: ToolkitContext, theirs: toolkit.ToolkitContext) -> None:
    create_agent_toolkit(theirs)  # error: The ToolkitContext is of toolkit, but create_agent_toolkit is of acme.generated: import ToolkitContext from acme.generated
    create_async_agent_toolkit(theirs, packs=[])  # error: The ToolkitContext is of toolkit, but create_async_agent_toolkit is of acme.generated: import ToolkitContext from acme.generated
    toolkit.create_agent_toolkit(ours)  # error: The ToolkitContext is of acme.generated, but create_agent_toolkit is of toolkit: import create_agent_toolkit from acme.generated
    acme.create_agent_toolkit(context=theirs)  # error: The ToolkitContext is of toolkit, but create_agent_toolkit is of acme.generated: import ToolkitContext from acme.generated
    create_agent_toolkit(None)  # error: create_agent_toolkit takes a ToolkitContext, not None
    create_agent_toolkit(toolkit.SecurityPolicy())  # error: create_agent_toolkit takes a ToolkitContext, not SecurityPolicy
    create_agent_toolkit(SecurityPolicy())  # error: create_agent_toolkit takes a ToolkitContext, not SecurityPolicy
    create_agent_toolkit(ours).tools.add(a=1, b=2)
    toolkit.create_agent_toolkit(theirs).tools.todoread()
