"""A function that returns its own classes: its tool's output is these classes, for checkers and at run time."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests import command_line
from tests.projects import Project, run
from toolkit.codegen import check

pytestmark = pytest.mark.slow

ORDERS = """
from __future__ import annotations

import datetime
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypeAliasType, TypedDict

from acme.generated import AcmeToolkit, create_agent_toolkit
from acme.parts import Part
from toolkit import ContentOutput, Permissions, tool

T = TypeVar("T")


class Order(BaseModel):
    item: str

    class Line(BaseModel):
        count: int


class Page(BaseModel, Generic[T]):
    rows: list[T]


class Colour(enum.Enum):
    RED = "red"


class Row(TypedDict):
    a: int


class Size(NamedTuple):
    width: int


@dataclass
class Pair:
    left: Order


Functional = TypedDict("Functional", {"b": int})
OrderId = NewType("OrderId", int)
Orders = TypeAliasType("Orders", list[Order])
Made: Any = create_model("Made", a=(int, 1))
Made.__module__ = __name__


def hide() -> Any:
    class Hidden(BaseModel):
        a: int = 1

    return Hidden


Hidden = hide()


class Shown(ContentOutput):
    pass


@tool
def one() -> Order: return Order(item="a")
@tool
async def many() -> list[Order]: return [Order(item="a")]
@tool
def maybe(found: bool) -> Optional[Order]: return Order(item="a") if found else None
@tool
def by_name() -> dict[str, Order | Part]: return {"a": Order(item="a"), "b": Part(number=1)}
@tool
def nested() -> Order.Line: return Order.Line(count=1)
@tool
def page() -> Page[Order]: return Page[Order](rows=[Order(item="a")])
@tool
def colour() -> Colour: return Colour.RED
@tool
def red() -> Literal[Colour.RED, "none"]: return Colour.RED
@tool
def typed_dict() -> Row: return {"a": 1}
@tool
def functional() -> Functional: return {"b": 1}
@tool
def size() -> tuple[Size, ...]: return (Size(1),)
@tool
def pair() -> Annotated[Sequence[Pair], Field(max_length=1)]: return [Pair(Order(item="a"))]
@tool
def when() -> datetime.date | Path: return datetime.date(2024, 1, 2)
@tool
def number() -> OrderId: return OrderId(1)
@tool
def aliased() -> Orders: return [Order(item="a")]
@tool
def permissions() -> Permissions: return Permissions()
@tool
def loose() -> tuple[Order, Any]: return Order(item="a"), 1

@tool
def text() -> str: return "a"
@tool
def numbers() -> list[int]: return [1]
@tool
def shown() -> Shown: return Shown(text="a")
@tool
def made() -> Made: return Made()
@tool
def hidden() -> list[Hidden]: return [Hidden()]
"""

TYPES = {
    "one": "acme.orders.Order",
    "many": "list[acme.orders.Order]",
    "maybe": "acme.orders.Order | None",
    "by_name": "dict[str, acme.orders.Order | acme.parts.Part]",
    "nested": "acme.orders.Order.Line",
    "page": "acme.orders.Page[acme.orders.Order]",
    "colour": "acme.orders.Colour",
    "red": "typing.Literal[acme.orders.Colour.RED, 'none']",
    "typed_dict": "acme.orders.Row",
    "functional": "acme.orders.Functional",
    "size": "tuple[acme.orders.Size, ...]",
    "pair": "collections.abc.Sequence[acme.orders.Pair]",
    "when": "datetime.date | pathlib.Path",
    "number": "acme.orders.OrderId",
    "aliased": "acme.orders.Orders",
    "permissions": "toolkit.Permissions",
    "loose": "tuple[acme.orders.Order, typing.Any]",
    "text": None,
    "numbers": None,
    "shown": None,
    "made": None,
    "hidden": None,
}

CALLS = """
import sys
import acme.generated
from acme.generated import create_agent_toolkit, ToolkitContext, SecurityPolicy
assert "acme.orders" not in sys.modules
with create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow"))) as toolkit:
    for name in acme.generated.TOOL_NAMES:
        found = toolkit.invoke(name, {"found": True} if name == "maybe" else {})
        print(f"{name}: {found.content!r} {found.text()}")
    print(f"{toolkit.tools.maybe(found=False)!r}")
"""
ANSWERS = """
None
aliased: [Order(item='a')] [{"item":"a"}]
by_name: {'a': Order(item='a'), 'b': Part(number=1)} {"a":{"item":"a"},"b":{"number":1}}
colour: <Colour.RED: 'red'> "red"
functional: {'b': 1} {"b":1}
hidden: HiddenOutput(root=[HiddenOutputHidden(a=1)]) [{"a":1}]
loose: (Order(item='a'), 1) [{"item":"a"},1]
made: MadeOutput(a=1) {"a":1}
many: [Order(item='a')] [{"item":"a"}]
maybe: Order(item='a') {"item":"a"}
nested: Line(count=1) {"count":1}
number: 1 1
numbers: NumbersOutput(root=[1]) [1]
one: Order(item='a') {"item":"a"}
page: Page[Order](rows=[Order(item='a')]) {"rows":[{"item":"a"}]}
pair: [Pair(left=Order(item='a'))] [{"left":{"item":"a"}}]
permissions: Permissions(required=(), optional=()) {"required":[],"optional":[]}
red: <Colour.RED: 'red'> "red"
shown: ShownOutput(text='a', blocks=(), structured=None) a
size: (Size(width=1),) [[1]]
text: TextOutput(text='a', blocks=(), structured=None) a
typed_dict: {'a': 1} {"a":1}
when: datetime.date(2024, 1, 2) "2024-01-02"
"""


def project_of_orders(root: Path, text: str = ORDERS) -> Project:
    project = Project(root, (), functions=["acme.orders"])
    project.write("acme/parts.py", "from pydantic import BaseModel\nclass Part(BaseModel):\n    number: int\n")
    project.write("acme/orders.py", text)
    project.generate()
    return project


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_of_orders(tmp_path_factory.mktemp("orders"))


def test_the_output_is_the_functions_own_type_where_it_can_be_imported(orders: Project) -> None:
    rows = json.loads(orders.files()["manifest.json"])["tools"]
    assert {row["name"]: row["ownOutput"] and row["ownOutput"]["type"] for row in rows} == TYPES
    assert check(orders.settings) == ""


def test_the_content_is_what_the_function_returned(orders: Project) -> None:
    assert sorted(command_line.python(orders.root, CALLS).stdout.splitlines()) == ANSWERS.strip().splitlines()


def test_checkers_see_the_functions_own_type(orders: Project) -> None:
    tools = sorted(name for name in TYPES if name != "maybe")
    lines = [f"    reveal_type(toolkit.tools.{name}())" for name in tools]
    orders.write(
        "use.py", "from acme.generated import AcmeToolkit\ndef use(toolkit: AcmeToolkit) -> None:\n" + "\n".join(lines)
    )
    done = run(
        [str(Path(sys.executable).parent / "mypy"), "--strict", "use.py", "acme/generated"], orders.root, check=False
    )
    found = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert [name for name, text in zip(tools, found, strict=True) if "acme.generated" in text] == [
        *("hidden", "made", "numbers", "shown", "text")
    ]
    assert found[tools.index("pair")] == "typing.Sequence[acme.orders.Pair]"
    assert ": error: " not in "\n".join(line for line in done.stdout.splitlines() if "generated" in line)


def test_the_alias_is_the_type_at_run_time_too(orders: Project) -> None:
    code = (
        "import sys\n"
        "from acme.generated.models import many\n"
        "assert 'acme.orders' not in sys.modules\n"
        "import acme.orders\n"
        "from acme.generated import ManyOutput, NestedOutput, OneOutput\n"
        "assert OneOutput is acme.orders.Order and NestedOutput is acme.orders.Order.Line\n"
        "assert ManyOutput == list[acme.orders.Order] and many.ManyOutput is ManyOutput\n"
        "try:\n"
        "    many.Nothing\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
    )
    assert (
        command_line.python(orders.root, code).stdout
        == "module 'acme.generated.models.many' has no attribute 'Nothing'\n"
    )


STRICT = """
from acme.generated import create_agent_toolkit, ToolkitContext, SecurityPolicy
from toolkit import Pack, ToolCall
context = ToolkitContext(".", SecurityPolicy(default="allow"))
with create_agent_toolkit(context) as toolkit:
    print(repr(toolkit.tools.one()))
    print(toolkit.call(ToolCall("1", "pair", {})).value)
with create_agent_toolkit(context, packs=[Pack({"one": lambda args, ctx: {"item": "fake"}})]) as toolkit:
    print(repr(toolkit.tools.one()))
with create_agent_toolkit(context, packs=[]) as toolkit:
    print(toolkit.call(ToolCall("1", "one", {})).value)
"""


def test_the_output_is_checked_as_the_function_declares_it(tmp_path: Path) -> None:
    """What matches only on the wire becomes the function's class, whoever handles the tool."""
    text = ORDERS.replace('return Order(item="a")\n@tool\nasync', 'return {"item": "a"}\n@tool\nasync').replace(
        'return [Pair(Order(item="a"))]', 'return [Pair(Order(item="a"))] * 2'
    )
    project = project_of_orders(tmp_path, text)
    printed = command_line.python(project.root, STRICT).stdout.splitlines()
    assert printed[0] == "Order(item='a')"
    assert printed[1].startswith("TOOL_FAILED: INVALID_OUTPUT: ")
    assert printed[2] == "Order(item='fake')"
    assert printed[3].startswith("TOOL_FAILED: NO_HANDLER")


def test_either_module_may_be_imported_first(orders: Project) -> None:
    """The functions use the toolkit that is generated from them."""
    for first in ("import acme.orders", "import acme.generated", "from acme.generated import ManyOutput"):
        assert (
            command_line.python(orders.root, f"{first}\nimport acme.orders, acme.generated.facade\nprint(1)").stdout
            == "1\n"
        )


LOSSY = """
from typing import Annotated, Any
from pydantic import BaseModel, WithJsonSchema, create_model
from toolkit import tool

Odd = Annotated[Any, WithJsonSchema({"allOf": [{"type": "string"}, {"type": "integer"}]})]

class Own(BaseModel):
    odd: Odd

Made: Any = create_model("Made", odd=(Odd, ...))

@tool
def own() -> Own:
    "Return a class of its own."
    return Own(odd=1)

@tool
def copied() -> Made:
    "Return a class that is copied."
    return Made(odd=1)
"""


def test_lint_looks_only_at_outputs_that_become_types(tmp_path: Path) -> None:
    project = Project(tmp_path, (), functions=["acme.orders"])
    project.write("acme/orders.py", LOSSY)
    done = command_line.toolkit(tmp_path, "lint", "--json")
    found = [item["pointer"] for item in json.loads(done.stdout)]
    assert [pointer for pointer in found if "outputSchema" in pointer] == ["copied/outputSchema/properties/odd"]
