"""The SDK of Gemini has invalid escapes, and Python warns where it compiles them. Our tests must run there all the same."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.mark.slow
def test_compiling_its_types_is_no_error() -> None:
    """As the first import does on a machine that has no bytecode of it yet; warnings are errors in this test, too."""
    package = find_spec("google.genai")
    assert package is not None and package.origin is not None
    file = Path(package.origin).with_name("types.py")
    compile(file.read_bytes(), str(file), "exec")
