"""``signatures.py``: what each tool takes and returns, as the mypy plugin ``toolkit.mypy`` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.codegen.package.modules import header, model_imports
from toolkit.codegen.package.render.literal import literal
from toolkit.codegen.package.rows import Row


@dataclass(frozen=True, slots=True)
class ToolkitSignatures:
    """The tools of one toolkit class, and the union of their messages: its module in the package, and its name."""

    class_name: str
    rows: Sequence[Row]
    module: str
    message: str


def render_signatures(tables: Sequence[ToolkitSignatures], package: str) -> str:
    """The module, with a table for each toolkit class; the keys of a table are the names on the wire."""
    rows = sorted({row.name: row for table in tables for row in table.rows}.values(), key=lambda row: row.name)
    models = model_imports(rows, package, ("Args", "Input", "Output"))
    messages = "\n".join(f"    from .{table.module} import {table.message}" for table in tables)
    texts = "\n".join(map(_table, tables))
    return f"""{header("What each tool takes and returns, for the mypy plugin `toolkit.mypy`.")}
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import TypedDict

    from toolkit.generated_support import Invoke, InvokeAsync, JsonObject, Signature

{f"{models}{chr(10)}" if rows else ""}{messages}

{texts}"""


def _table(table: ToolkitSignatures) -> str:
    class_name = table.class_name
    entries = "".join(f"            {literal(row.name)}: {_signature(row)},\n" for row in table.rows)
    tools = f"{{\n{entries}        }}" if table.rows else "{}"
    return f"""\
    {class_name}Tools = TypedDict(
        "{class_name}Tools",
        {tools},
    )

    class {class_name}Signatures:
        tools: {class_name}Tools
        known_at_run_time: Signature[JsonObject, {table.message}]

    {class_name}Invoke: TypeAlias = Invoke[{class_name}Signatures]
    Async{class_name}Invoke: TypeAlias = InvokeAsync[{class_name}Signatures]
"""


def _signature(row: Row) -> str:
    return f"Signature[{row.prefix}Input | {row.prefix}Args, {row.prefix}Output]"
