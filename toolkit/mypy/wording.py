"""How mistakes are worded: nearest names, lists, types."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from mypy.messages import format_type_bare
from mypy.options import Options
from mypy.typeops import make_simplified_union
from mypy.types import Instance, LiteralType, NoneType, Type, UnionType, get_proper_type

_LISTED = 8


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    # The comparison is quadratic, so the length of the name is limited.
    close = difflib.get_close_matches(name[:200], list(candidates), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``; did you mean "read_file"?`` for a near miss, else nothing; to be appended."""
    close = nearest(name, candidates)
    return "" if close is None else f"; did you mean {quoted(close)}?"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


def listed(names: Sequence[str], last: str) -> str:
    """``a, b or c``; long lists are cut."""
    if len(names) > _LISTED:
        return f"{', '.join(names[:_LISTED])}, … ({len(names)} in all)"
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def literal_values(kind: Type) -> list[str] | None:
    """The texts of a Literal, or of a union of them (None may be among them); else nothing."""
    proper = get_proper_type(kind)
    if isinstance(proper, Instance) and proper.last_known_value is not None:
        proper = proper.last_known_value
    if isinstance(proper, LiteralType):
        is_text = proper.fallback.type.fullname == "builtins.str" and isinstance(proper.value, str)
        return [str(proper.value)] if is_text else None
    if not isinstance(proper, UnionType):
        return None
    found = []
    for item in proper.items:
        if isinstance(get_proper_type(item), NoneType):
            continue
        values = literal_values(item)
        if values is None:
            return None
        found += values
    return found


def type_text(kind: Type, options: Options) -> str:
    """A type as a person writes it: the choices of a Literal, no markers of ours."""
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        kept = [item for item in proper.items if not _is_omit(item)]
        kind = make_simplified_union(kept) if len(kept) < len(proper.items) else kind
        proper = get_proper_type(kind)
    values = literal_values(proper)
    if values and isinstance(proper, LiteralType | UnionType):
        none = isinstance(proper, UnionType) and any(isinstance(get_proper_type(i), NoneType) for i in proper.items)
        return listed([*map(quoted, values), *(["None"] if none else [])], "or")
    return format_type_bare(kind, options)


def _is_omit(kind: Type) -> bool:
    proper = get_proper_type(kind)
    return isinstance(proper, Instance) and proper.type.fullname == "toolkit.runtime.surface.Omit"
