"""Tools and choices that only one provider has: they are sent to that provider, and to no other."""

from __future__ import annotations

from typing import Any, Final

from toolkit.wire.choice import NativeChoice
from toolkit.wire.definition import NativeTool

_SHOWN: Final = 80


def own_native(native: NativeTool | NativeChoice, provider: str) -> Any:
    """What the provider itself wrote, or wants. A native of another provider is a ``ValueError``.

    >>> own_native(NativeChoice("anthropic", {"type": "any"}), "anthropic")
    {'type': 'any'}
    """
    if native.provider == provider:
        return dict(native.raw) if isinstance(native, NativeTool) else native.raw
    what, instead = (
        ("tool", f"leave it out, or use a native tool of {provider}")
        if isinstance(native, NativeTool)
        else ("tool choice", "use 'auto', 'none', 'required' or NamedTool")
    )
    shown = repr(native.raw)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    raise ValueError(f"the {what} {shown} belongs to {native.provider} and means nothing to {provider}; {instead}")
