"""Every test that takes ``resolver`` runs twice: once as the kernel does it, once name by name."""

from __future__ import annotations

import pytest

from toolkit.guard.resolve import ResolverName, has_openat2


@pytest.fixture(params=["openat2", "walk"])
def resolver(request: pytest.FixtureRequest) -> ResolverName:
    name: ResolverName = request.param
    if name == "openat2" and not has_openat2():
        pytest.skip("this kernel has no openat2")
    return name
