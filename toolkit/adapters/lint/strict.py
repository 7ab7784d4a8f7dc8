"""What strict mode does to a definition: the same for every provider that has one, by its own rules."""

from __future__ import annotations

from toolkit.adapters.lint.remark import SCHEMA, Remark, quote
from toolkit.adapters.strict import StrictReceipt
from toolkit.jsonschema.pointer import join_pointer


def strict_remarks(receipt: StrictReceipt) -> list[Remark]:
    """Why strict mode cannot carry the schema; else what becomes of it there."""
    if not receipt.is_strict:
        return [Remark("not strict", f"{SCHEMA}{pointer}", why) for pointer, why in receipt.problems]
    remarks = []
    for note in receipt.notes:
        place = join_pointer(note.pointer, note.keyword) if note.keyword else note.pointer
        effect = "lost" if note.effect == "dropped" else note.effect
        what = f"{quote(note.keyword)} in strict mode: {note.what}" if note.keyword else f"in strict mode, {note.what}"
        remarks.append(Remark(effect, f"{SCHEMA}{place}", what))
    return remarks
