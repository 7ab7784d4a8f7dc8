"""``signatures.py``: what each tool takes and returns, as the mypy plugin ``toolkit.mypy`` reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolkit.codegen.package.render.literal import literal
from toolkit.codegen.package.render.modules import header, model_imports
from toolkit.codegen.package.rows import Row


def render_signatures(toolkits: Mapping[str, Sequence[Row]], package: str) -> str:
    """The module, with a table for each toolkit class; the keys of a table are the names on the wire."""
    rows = sorted({row.name: row for rows in toolkits.values() for row in rows}.values(), key=lambda row: row.name)
    models = model_imports(rows, package, ("Args", "Input", "Output"))
    tables = "\n".join(_table(class_name, rows) for class_name, rows in toolkits.items())
    return f"""{header("What each tool takes and returns, for the mypy plugin `toolkit.mypy`.")}
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import TypedDict

    from toolkit.generated_support import Invoke, InvokeAsync, JsonObject, Signature

{f"{models}{chr(10)}" if rows else ""}    from .unions import AnyToolMessage

{tables}"""


def _table(class_name: str, rows: Sequence[Row]) -> str:
    entries = "".join(f"            {literal(row.name)}: {_signature(row)},\n" for row in rows)
    tools = f"{{\n{entries}        }}" if rows else "{}"
    return f"""\
    {class_name}Tools = TypedDict(
        "{class_name}Tools",
        {tools},
    )

    class {class_name}Signatures:
        tools: {class_name}Tools
        known_at_run_time: Signature[JsonObject, AnyToolMessage]

    {class_name}Invoke: TypeAlias = Invoke[{class_name}Signatures]
    Async{class_name}Invoke: TypeAlias = InvokeAsync[{class_name}Signatures]
"""


def _signature(row: Row) -> str:
    return f"Signature[{row.prefix}Input | {row.prefix}Args, {row.prefix}Output]"
