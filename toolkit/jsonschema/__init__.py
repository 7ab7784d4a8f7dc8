"""JSON Schema in one room: values, pointers, references, keywords, types, walking, merging, judging, outlines.

Everything that reads a schema uses it: the generator, strict mode, the comparison of imports, the repair of arguments and
the audit log. It knows nothing of tools, providers or generated code, and fetches nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.jsonschema.keywords import Schema as Schema
    from toolkit.jsonschema.pointer import escape_key as escape_key
    from toolkit.jsonschema.pointer import join_pointer as join_pointer
    from toolkit.jsonschema.pointer import split_pointer as split_pointer
    from toolkit.jsonschema.types import types_of as types_of
    from toolkit.jsonschema.values import has_type as has_type
    from toolkit.jsonschema.values import json_key as json_key
    from toolkit.jsonschema.values import json_type as json_type
    from toolkit.jsonschema.values import same_json as same_json
    from toolkit.jsonschema.walk import map_children as map_children
    from toolkit.jsonschema.walk import subschemas as subschemas
    from toolkit.schema.accepts import Judge as Judge
    from toolkit.schema.keywords import References as References
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.schema.accepts": "Judge",
            ".keywords": "Schema",
            ".pointer": "escape_key join_pointer split_pointer",
            "toolkit.schema.keywords": "References",
            ".types": "types_of",
            ".values": "has_type json_key json_type same_json",
            ".walk": "map_children subschemas",
        },
    )
