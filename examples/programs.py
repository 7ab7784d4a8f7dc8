"""A model writes a program against the tools. It is type-checked before it runs, and what it reads stays out of the
conversation.

``python -m examples.programs`` does the same job twice, with one program and with single calls, and prints what each sent to
the model. The model is scripted, so the example needs no network.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkit import (
    QueryOptions,
    SecurityPolicy,
    ToolCall,
    Toolkit,
    ToolkitContext,
    ToolResult,
    create_agent_toolkit,
    run,
)
from toolkit.adapters.openai_chat import encode_messages, encode_tools
from toolkit.testing import ScriptedModel, call, turn

Show = Callable[[ToolCall, ToolResult], None]

QUESTION = "In which city is the customer who has ordered most?"
CITIES = {"Acme": "Phoenix", "Tyrell": "Los Angeles", "Umbrella": "Raccoon City"}
ORDERS = 24

PROGRAM = """\
import json

totals: dict[str, int] = {}
for path in tools.glob(pattern="orders/*.json").paths:
    order = json.loads(tools.read_file(path=path).text)
    totals[order["customer"]] = totals.get(order["customer"], 0) + order["total"]
best = max(totals, key=lambda customer: totals[customer])
json.loads(tools.read_file(path=f"customers/{best}.json").content)["city"]
"""
CORRECTED = PROGRAM.replace(".text", ".content")
ANSWER = "Tyrell has ordered most, and is in Los Angeles."


@dataclass(frozen=True)
class Cost:
    """What a model had to be sent, over all its turns, and what it answered in the end."""

    answer: str
    turns: int
    sent: int


def with_a_program(tk: Toolkit, show: Show) -> Cost:
    """The model knows the tools as signatures. Its first program asks for an attribute that does not exist."""
    model = ScriptedModel(
        call("run_program", source=PROGRAM),
        turn(call("run_program", source=CORRECTED), sees='ReadFileOutput has no attribute "text"'),
        turn(call("done", message=ANSWER), sees='value: "Los Angeles"'),
    )
    return _ask(tk, model, ["run_program", "done"], tk.signatures(["glob", "read_file"]), show)


def with_single_calls(tk: Toolkit, show: Show) -> Cost:
    """The same job without a program: every file goes through the conversation."""
    paths = tk.tools.glob(pattern="orders/*.json").paths
    model = ScriptedModel(
        call("glob", pattern="orders/*.json"),
        [call("read_file", path=path) for path in paths],
        turn(call("read_file", path="customers/Tyrell.json"), sees='"customer": "Tyrell"'),
        turn(call("done", message=ANSWER), sees="Los Angeles"),
    )
    return _ask(tk, model, ["glob", "read_file", "done"], None, show)


def _ask(tk: Toolkit, model: ScriptedModel, names: list[str], system: str | None, show: Show) -> Cost:
    tools = [definition for definition in tk.get_allowed_tools() if definition.name in names]
    with model:
        conversation = run(model, tk, QUESTION, options=QueryOptions(system=system, tools=tools), after_call=show)
    sent = [[system, encode_tools(tools), encode_messages(request.messages)] for request in model.requests]
    return Cost(conversation.answer, conversation.turns, sum(len(json.dumps(one)) for one in sent))


def open_toolkit(folder: Path) -> Toolkit:
    """A toolkit over some orders. ``run_program`` is off unless the policy names it."""
    workspace = folder / "workspace"
    for name in ("orders", "customers"):
        (workspace / name).mkdir(parents=True)
    for name, city in CITIES.items():
        (workspace / "customers" / f"{name}.json").write_text(json.dumps({"name": name, "city": city}))
    for number in range(ORDERS):
        (workspace / "orders" / f"{1000 + number}.json").write_text(json.dumps(_make_order(number), indent=1))
    policy = SecurityPolicy(
        default="deny", tools={"run_program": "allow", "glob": "allow", "read_file": "allow", "done": "allow"}
    )
    return create_agent_toolkit(ToolkitContext(workspace, policy, state_dir=folder / "state"))


def _make_order(number: int) -> dict[str, object]:
    customer = list(CITIES)[number % 3]
    price = 7 if customer == "Tyrell" else 5
    lines = [{"article": f"A-{number}{line}", "quantity": line, "price": price} for line in range(1, 9)]
    return {"customer": customer, "total": price * sum(range(1, 9)), "lines": lines}


def show_call(call: ToolCall, result: ToolResult) -> None:
    """Programs and their answers in full; of other calls, how many characters came back."""
    text = str(result.value)
    if call.name != "run_program":
        print(f"   {call.name}({', '.join(map(repr, call.arguments.values()))}): {len(text):,} characters")
        return
    print("\n".join(f"   | {line}" for line in str(call.arguments["source"]).splitlines()))
    print("\n".join(f"     > {line}" for line in text.splitlines()) + "\n")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, open_toolkit(Path(folder)) as tk:
        program = with_a_program(tk, show_call)
        single = with_single_calls(tk, lambda call, result: None)
    for name, cost in (("a wrong program and its correction", program), ("single calls", single)):
        print(f"   {name}: {cost.turns} turns, {cost.sent:,} bytes sent to the model")
    print(f"   answer: {program.answer}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
