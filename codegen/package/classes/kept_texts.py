"""What datamodel-code-generator wrote for the tools of a package, kept in the user's cache folder.

It sees no prose. So after a change of a description, a setting or a branch its text is often known, and it is not even
imported, which would take longer than the rest of such a run. ``check`` does not read what is kept.
"""

from __future__ import annotations

import json
from typing import Final

from toolkit.codegen.package.classes.generator import OPTIONS, WrittenTexts
from toolkit.codegen.package.local_cache import TEXTS, cache_file, generator_version, replace_cache_file
from toolkit.codegen.package.manifest import digest
from toolkit.codegen.settings import Settings

_TEXTS_A_TOOL: Final = 2
"""How many are kept: what the tools of two branches need."""
_MIN_KEPT: Final = 100


def read_kept_texts(settings: Settings) -> WrittenTexts:
    """Nothing if the file is damaged, or if another version or other options wrote it."""
    file = cache_file(settings, TEXTS)
    try:
        head, _, data = (file.read_bytes() if file is not None else b"").partition(b"\n")
    except OSError:
        return {}
    return json.loads(data) if head.decode("latin-1") == _head(data) else {}


def keep_texts(settings: Settings, texts: WrittenTexts, tools: int) -> None:
    """Keeps the newest texts."""
    newest = list(texts.items())[-max(_MIN_KEPT, _TEXTS_A_TOOL * tools) :]
    data = json.dumps(dict(newest))
    replace_cache_file(cache_file(settings, TEXTS), f"{_head(data.encode())}\n{data}")


def _head(data: bytes) -> str:
    """The first line of the file: a digest of the rest and of what wrote the texts."""
    return digest(b"\0".join([json.dumps(OPTIONS).encode(), generator_version().encode(), data]))
