"""JSON Schema in one room: values, pointers, references, keywords, types, walking, merging, judging, outlines.

Everything that reads a schema uses it: the generator, strict mode, the comparison of imports, the repair of arguments and
the audit log. It knows nothing of tools, providers or generated code, and fetches nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.schema.accepts import Judge as Judge
    from toolkit.schema.accepts import has_type as has_type
    from toolkit.schema.accepts import json_key as json_key
    from toolkit.schema.accepts import json_type as json_type
    from toolkit.schema.accepts import same_json as same_json
    from toolkit.schema.keywords import References as References
    from toolkit.schema.keywords import Schema as Schema
    from toolkit.schema.keywords import escape_key as escape_key
    from toolkit.schema.keywords import join_pointer as join_pointer
    from toolkit.schema.keywords import map_children as map_children
    from toolkit.schema.keywords import split_pointer as split_pointer
    from toolkit.schema.keywords import subschemas as subschemas
    from toolkit.schema.keywords import types_of as types_of
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
