"""Tool specs: YAML or JSON files in, ``ToolSpec`` out, every mistake as ``file:line:column: message (pointer)``.

Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.schema.problems import Finding as Finding
    from toolkit.schema.spec import Json as Json
    from toolkit.schema.spec import Origin as Origin
    from toolkit.schema.spec import SpecExample as SpecExample
    from toolkit.schema.spec import ToolSpec as ToolSpec
    from toolkit.spec.lint import estimate_tokens as estimate_tokens
    from toolkit.spec.lint import lint_spec as lint_spec
    from toolkit.spec.load import load_spec_text as load_spec_text
    from toolkit.spec.load import load_specs as load_specs
    from toolkit.spec.tool_names import is_wire_name as is_wire_name
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".lint": "estimate_tokens lint_spec",
            ".load": "load_spec_text load_specs",
            "toolkit.schema.spec": "Json Origin SpecExample ToolSpec",
            ".tool_names": "is_wire_name",
            "toolkit.schema.problems": "Finding",
        },
    )
