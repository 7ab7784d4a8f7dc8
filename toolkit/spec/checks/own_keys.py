"""The two structured keys that we add to MCP's: ``permissions`` and ``examples``."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from toolkit.errors import nearest
from toolkit.guard.permission import PERMISSIONS, Permission
from toolkit.schema.problems import below, kind, quote
from toolkit.schema.spec import SpecExample
from toolkit.spec.checks.fields import Fields

_EXAMPLE_KEYS = ("title", "arguments", "files", "output", "error")
_ERROR_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def check_permissions(fields: Fields) -> tuple[tuple[Permission, ...], tuple[Permission, ...]]:
    """Required and optional permissions; a plain list holds the required ones."""
    value = fields.value.get("permissions")
    if not isinstance(value, dict):
        return _check_permission_list(fields, "permissions", others=()), ()
    parts = Fields(value, fields.at("permissions"), fields.problems)
    parts.refuse_unknown(("required", "optional"))
    required = _check_permission_list(parts, "required", others=())
    return required, _check_permission_list(parts, "optional", others=required)


def _check_permission_list(fields: Fields, key: str, *, others: Collection[Permission]) -> tuple[Permission, ...]:
    """The permissions listed under ``key``, in the order of ``PERMISSIONS``."""
    found: set[Permission] = set()
    for index, word in enumerate(fields.items(key)):
        permission = next((known for known in PERMISSIONS if known == word), None)
        pointer = below(fields.at(key), index)
        if permission is None:
            text = word if isinstance(word, str) else ""
            given = quote(text) if text else kind(word)
            message = f"unknown permission {given}: the four are {', '.join(PERMISSIONS)}.{nearest(text, PERMISSIONS)}"
            fields.problems.add(message, pointer)
        elif permission in found:
            fields.problems.add(f"the permission {permission!r} is duplicated", pointer)
        elif permission in others:
            fields.problems.add(f"the permission {permission!r} is both required and optional", pointer)
        else:
            found.add(permission)
    return tuple(permission for permission in PERMISSIONS if permission in found)


def check_examples(fields: Fields) -> tuple[SpecExample, ...]:
    examples: list[SpecExample] = []
    for index, value in enumerate(fields.items("examples")):
        pointer = below(fields.at("examples"), index)
        if isinstance(value, dict):
            examples.append(_check_example(Fields(value, pointer, fields.problems)))
        else:
            fields.problems.add(f"an example must be an object, not {kind(value)}", pointer)
    return tuple(examples)


def _check_example(fields: Fields) -> SpecExample:
    fields.refuse_unknown(_EXAMPLE_KEYS)
    fields.require("title", "it identifies the example when it fails")
    if ("output" in fields.value) == ("error" in fields.value):
        fields.problems.add("an example needs either 'output' or 'error'", fields.pointer)
    error = fields.string("error")
    if error is not None and not _ERROR_NAME.fullmatch(error):
        fields.add(f"{quote(error)} is not an error code or reason: write it like 'NOT_FOUND'", "error")
    return SpecExample(
        title=fields.string("title") or "",
        arguments=fields.mapping("arguments") or {},
        files=_check_files(fields),
        output=fields.mapping("output"),
        error=error,
    )


def _check_files(fields: Fields) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path, text in (fields.mapping("files") or {}).items():
        pointer = below(fields.at("files"), path)
        parts = PurePosixPath(path).parts
        # Whoever runs the example writes these into a fresh workspace: none may be outside it.
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            fields.problems.add(f"{quote(path)} is not a relative file name without '..'", pointer)
        elif isinstance(text, str):
            texts[path] = text
        else:
            fields.problems.add(f"the text of a file must be a string, not {kind(text)}", pointer)
    return texts
