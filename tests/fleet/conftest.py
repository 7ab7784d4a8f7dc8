"""A small Ray cluster on loopback, started once, and a fleet of two workers in it."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fleet.agents import WATCHDOG, Meeting

if TYPE_CHECKING:
    from toolkit.fleet import Fleet


@pytest.fixture(scope="session")
def ray_cluster(_separate_state_directories: None) -> Iterator[None]:
    """Two CPUs, no dashboard, and no socket but on loopback."""
    # Sockets below it have short names only, so it is not one of pytest's directories.
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    with pytest.MonkeyPatch.context() as patch:
        # Ray reads these when it is imported. The third is what makes it use 127.0.0.1 on this system, too.
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))  # otherwise it writes one into the user's home
        import ray

        ray.init(
            num_cpus=2,
            object_store_memory=80 << 20,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            _temp_dir=folder,
        )
        try:
            yield
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def session_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="session")
def fleet(ray_cluster: None, session_workspace: Path) -> Iterator[Fleet]:
    """Shared: a worker that a test ends is replaced for the next."""
    from toolkit.fleet import Fleet

    setup = (str(session_workspace), dict[str, object]())
    with Fleet(
        "tests.fleet.agents:make_toolkit",
        setup=setup,
        make_driver="tests.fleet.agents:make_driver",
        workers=2,
        max_result_bytes=100_000,
        grace=WATCHDOG,  # a slow machine must not look like a worker that hangs
    ) as fleet:
        yield fleet


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Meeting]:
    folder = tmp_path / "meeting"
    folder.mkdir()
    made = Meeting(folder)
    yield made
    made.close()
