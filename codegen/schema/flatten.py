"""One spec's schema -> its own document: flat, with a stable name for every object, ready for datamodel-code-generator.

Every object with properties moves to ``$defs``, first under a provisional name made of the tool and the place. When all of
them are known, equal types become one and each gets its name (``naming``). Nothing is shared between tools. The types of a
document accept at least what its schema accepts; where they would accept more, ``Document.enforced`` holds the schema to be
judged at run time. Every mistake is reported at its pointer, all at once; an inconsistency that leaves the meaning clear is
a finding.

How one node is flattened is in ``shapes``.
"""

from __future__ import annotations

from toolkit.codegen.package.formats import RICH, with_rich_types
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.enforced import enforced_text, mistake_in, usual_mistakes
from toolkit.codegen.schema.naming.class_names import name_types
from toolkit.codegen.schema.naming.sharing import share_equal_types
from toolkit.codegen.schema.report import Notes, TooManySteps
from toolkit.codegen.schema.shapes.flattener import Flattener
from toolkit.codegen.schema.simplify import simplify
from toolkit.codegen.schema.tolerate import mend
from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.pointer import escape_key, find_at, split_pointer


def flatten(
    schema: Schema, name: str, *, is_input: bool = False, rich_formats: bool = False
) -> tuple[Document, list[tuple[str, str]]]:
    """The document for ``schema`` with classes named ``name``, ``name + word``; and its mistakes with their pointers.

    Arguments are always an object, so the root of an input becomes one class, however its schema is put together.
    With ``rich_formats``, texts of a known format have a type of their own; else a format is only a word.
    """
    notes = Notes()
    written = schema
    schema = mend(schema, notes)
    flattener = Flattener(schema, name, notes)
    root: Schema = {"type": "object"}
    try:
        root = flattener.flatten_root(is_input=is_input)
    except RecursionError:
        notes.problem("its references are nested too deeply to be followed; use fewer of them", "")
    except TooManySteps:
        assert notes.problems
    document = Document(name, root, flattener.objects, flattener.aliases, set(flattener.recursive.values()))
    document.hints = flattener.hints
    simplify(document, RICH if rich_formats else ())
    if not notes.problems:
        document = name_types(share_equal_types(document))
    document.findings = list(dict.fromkeys((text, _existing(pointer, written)) for text, pointer in notes.findings))
    document.losses = list(dict.fromkeys((loss, _existing(pointer, written)) for loss, pointer in notes.losses))
    if rich_formats:
        document = with_rich_types(document)
    problems = flattener.notes.problems
    if flattener.notes.enforced and not problems:
        mistake = mistake_in(schema)
        if mistake is None:
            document.enforced = enforced_text(schema)
        else:
            word, pointer = flattener.notes.enforced[0]
            general = f"{word!r} is checked at run time, but the validator refuses this schema: {mistake}"
            problems = usual_mistakes(schema) or [(general, pointer)]
    return document, problems


def _existing(pointer: str, schema: object) -> str:
    """The pointer, or as much of it as leads to something: merged schemas have places that are in no file."""
    keys = split_pointer(pointer)
    _, count = find_at(schema, keys)
    return "".join(f"/{escape_key(key)}" for key in keys[:count])
