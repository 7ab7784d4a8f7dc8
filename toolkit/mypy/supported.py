"""Which versions of mypy the plugin works with. It uses parts of mypy that a release may move."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Final

OLDEST: Final = (2, 4)
TESTED: Final = "2.4"
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "mypy.checker": ("TypeChecker.fail", "TypeChecker.get_expression_type", "TypeChecker.local_type_map"),
    "mypy.erasetype": ("erase_type",),
    "mypy.errorcodes": ("ARG_TYPE", "CALL_ARG", "CALL_OVERLOAD", "DICT_ITEM", "LIST_ITEM", "UNION_ATTR"),
    "mypy.messages": ("MessageBuilder.filter_errors", "format_type_bare"),
    "mypy.nodes": ("MypyFile.plugin_deps",),
    "mypy.plugin": ("Plugin.get_customize_class_mro_hook", "Plugin.get_method_signature_hook"),
    "mypy.server.trigger": ("make_trigger",),
    "mypy.subtypes": ("find_member", "is_subtype"),
    "mypy.traverser": ("NameAndMemberCollector",),
    "mypy.typeops": ("make_simplified_union",),
    "mypy.types": ("TypedDictType", "UnboundType"),
}
"""What the plugin uses beyond mypy's interface for plugins."""


def refuse_unsupported_mypy() -> None:
    """Raises ImportError, with one line for the user, if this mypy is too old or lacks what the plugin uses."""
    try:
        installed = version("mypy")
    except PackageNotFoundError:
        raise ImportError("the plugin toolkit.mypy runs inside mypy, which is not installed") from None
    missing = [name for module, names in PARTS.items() for name in names if not _exists(module, name)]
    if _numbers(installed) < OLDEST or missing:
        lacks = f" (it has no {missing[0]})" if missing else ""
        raise ImportError(
            f"toolkit.mypy works with mypy {TESTED} and does not know mypy {installed}{lacks};"
            ' install another mypy, or remove "toolkit.mypy" from the plugins: everything works without it'
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def _exists(module: str, name: str) -> bool:
    try:
        found: object = importlib.import_module(module)
    except ImportError:
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None
