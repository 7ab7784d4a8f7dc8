"""What a program may import, and what to use instead of what it may not.

The list is for the reader of an error, not a boundary: a program that gets past it is still in the sandbox.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from toolkit.runtime.signatures.errors_stub import error_names

ALLOWED_IMPORTS: Final = frozenset([
    "abc", "array", "ast", "asyncio", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys",
    "contextlib", "contextvars", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch",
    "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac", "html", "io", "ipaddress", "itertools", "json",
    "keyword", "math", "mimetypes", "numbers", "operator", "posixpath", "pprint", "queue", "random", "re", "secrets",
    "shlex", "statistics", "string", "struct", "textwrap", "time", "tomllib", "traceback", "types", "typing",
    "typing_extensions", "unicodedata", "urllib.parse", "uuid", "warnings", "weakref", "xml.etree.ElementTree",
    "zlib", "zoneinfo",
])  # fmt: skip
"""The parts of the standard library that compute; what is below one of these modules may be imported as well."""

ERROR_CLASSES: Final = frozenset(error_names())
"""What ``from toolkit import ...`` may name."""

ONLY_COMPUTES: Final = (
    "a program may import the modules of the standard library that only compute, such as json, re and datetime"
)
_MAX_TOOLS: Final = 3
_MAX_PARTS: Final = 50
_FILES: Final = ("read_file", "list", "grep", "glob", "write_file", "edit")
_COMMANDS: Final = ("exec_command", "bash")
_WEB: Final = ("webfetch",)
_TOOLS_INSTEAD: Final = {
    "codecs": _FILES, "fileinput": _FILES, "glob": _FILES, "linecache": _FILES, "os": _FILES, "pathlib": _FILES,
    "shutil": _FILES, "tempfile": _FILES, "zipfile": _FILES, "tarfile": _FILES, "mmap": _FILES,
    "subprocess": _COMMANDS, "pty": _COMMANDS, "sh": _COMMANDS,
    "aiohttp": _WEB, "ftplib": _WEB, "http": _WEB, "httpx": _WEB, "requests": _WEB, "socket": _WEB, "ssl": _WEB,
    "urllib": _WEB, "urllib3": _WEB,
}  # fmt: skip
_INSTEAD: Final = {
    "argparse": "values come in `inputs`",
    "concurrent": "run calls in parallel with asyncio.gather and `atools`",
    "importlib": "import what you need by name",
    "logging": "print what you want to see",
    "multiprocessing": "run calls in parallel with asyncio.gather and `atools`",
    "pickle": "use json",
    "sys": "values come in `inputs`; raise an exception to stop early",
    "threading": "run calls in parallel with asyncio.gather and `atools`",
}


def is_allowed_import(module: str, imports: Collection[str]) -> bool:
    """Whether a program may import ``module``: it is in ``imports``, or below one that is.

    >>> is_allowed_import("collections.abc", {"collections"}), is_allowed_import("urllib", {"urllib.parse"})
    (True, False)
    """
    place = -1
    for _ in range(_MAX_PARTS):  # of a name with thousands of parts, each beginning would be as long as a program
        place = module.find(".", place + 1)
        if place < 0:
            return module in imports
        if module[:place] in imports:
            return True
    return False


def suggest_instead(module: str, tools: Collection[str]) -> str | None:
    """What to do instead of importing ``module``, as the end of a sentence; None if it is not a well-known one."""
    top = module.partition(".")[0]
    here = [f"tools.{name}" for name in _TOOLS_INSTEAD.get(top, ()) if name in tools]
    if here:
        return f"use {' or '.join(here[:_MAX_TOOLS])}"
    return ONLY_COMPUTES if top in _TOOLS_INSTEAD else _INSTEAD.get(top)
