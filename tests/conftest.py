"""Shared by all tests: the setting for the corpus and the option for slow tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.costs import Costs

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# Test runs must be repeatable: property tests use the same examples each time, and new ones under `make test-all`
# (see tests/examples.py). Their duration is not tested.
SAME = settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", SAME)
settings.register_profile("new examples", settings.get_profile("default"), deadline=None)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out whole files of slow tests, as `make quick` does")
    parser.addoption("--everything", action="store_true", help="run whole corpora instead of a fixed sample")
    parser.addoption("--costs", type=Path, metavar="FILE", help="write what each test costs into a new file")
    parser.addoption(
        "--update-snapshots", action="store_true", help="rewrite the committed snapshots and generated documents"
    )


MACHINE_LACKS = "this machine gives no"
"""How the reason of a skip begins where a sandbox is not available; see ``tests/guard/ways.py``."""

FOLDER_MARKS = {
    "tests/corpus": "corpus",
    "tests/typing": "checkers",
    "tests/wheel": "checkers",
    "tests/guard/process": "sandbox",
    "tests/git": "sandbox",
    "tests/guard/trusted": "sandbox",
    "tests/runtime/test_import_paths.py": "sandbox",
    "tests/runtime/test_late_imports.py": "sandbox",
    "tests/guard/fs/test_escapes.py": "slow",
    "tests/guard/fs/test_protect.py": "slow",
    "tests/guard/fs/test_write_escapes.py": "slow",
    "tests/packs": "sandbox",
    "tests/playground": "sandbox",
    "tests/programs": "sandbox",
    "tests/programs/test_check": "checkers",
    "tests/builtin/test_bash_tool.py": "sandbox",
    "tests/builtin/test_command_": "sandbox",
    "tests/builtin/test_exec_command_tool.py": "sandbox",
    "tests/builtin/test_git_status_tool.py": "sandbox",
}
"""What tests need, by where they are. Most `slow` ones are marked themselves; these are tables of thousands of rows."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No search for garbage while tens of thousands of tests are collected, nor among them while they run.

    None of them is ever freed, and searching took longer than collecting them. Tests that call ``gc.collect`` see what they made.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in _folder_marks(item.path):
            item.add_marker(mark)
    _group_items(config, items)
    if not config.getoption("--everything"):
        in_best_tier = {_test(item) for item in items if _is_best(_tier(item))}
        left_out = {item for item in items if _is_left_out(item, in_best_tier)}
        left_out |= _beyond_sample(item for item in items if item not in left_out)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    from tests.distribution import FilesTogether  # it imports much that a run in one process does not need

    return FilesTogether(config, log) if config.getoption("dist") == "loadgroup" else None


def _group_items(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let ``--dist loadgroup`` run the tests of an ``xdist_group`` in one process.

    pytest-xdist reads the group from the end of a test's id. Its 3.8 writes it into an attribute that pytest 9.2 no longer
    reads (pytest-dev/pytest-xdist#1386), so it is written here where that attribute moved to.
    """
    if not config.getoption("loadgroup", default=False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None:
            item._id = type(item.id).parse(f"{item.nodeid}@{mark.args[0]}")


def _is_left_out(item: pytest.Item, in_best_tier: set[str]) -> bool:
    """Whether only ``make test-all`` runs it. Rows are chosen by their own name: other rows and the order change nothing."""
    if item.get_closest_marker("whole") or _is_other_twin(item):
        return True
    tier, sample = _tier(item), item.get_closest_marker("sample")
    if tier and item.get_closest_marker("every_tier"):
        return False
    if _is_best(tier) and not (sample and sample.kwargs.get("of_each_tier")):
        return False
    if sample is not None:
        row = item.name.partition("[")[2].replace(tier, "")
        every: int = sample.kwargs.get("every", 4)
        return zlib.crc32(row.encode()) % every != 0
    return bool(tier) and _test(item) in in_best_tier


MOST_ROWS = 16
"""How many rows of a table ``make test`` runs, unless each of them is a promise of its own."""


def _beyond_sample(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The rows of long tables that only ``make test-all`` runs. The others are chosen by their names."""
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not _is_best(_tier(item)) and item.get_closest_marker("every_row") is None:
            tables[_test(item)].append(item)
    left_out = set[pytest.Item]()
    for rows in tables.values():
        rows.sort(key=lambda row: zlib.crc32(row.name.encode()))
        seen = set[object]().union(*map(_named_values, rows[:MOST_ROWS]))
        for row in rows[MOST_ROWS:]:
            if _named_values(row) <= seen:
                left_out.add(row)
            seen |= _named_values(row)
    return left_out


def _named_values(item: pytest.Item) -> set[object]:
    """Which values of the parameters that ``each`` names this row has: ``make test`` runs a row with each of them."""
    mark = item.get_closest_marker("each")
    if mark is None or not isinstance(item, pytest.Function):
        return set()
    return {(name, id(item.callspec.params[name])) for name in mark.args}  # rows share their objects


def _is_other_twin(item: pytest.Item) -> bool:
    """Whether ``make test`` runs the same test in the other flavour; see ``TWINS`` in ``tests/examples.py``."""
    mark = item.get_closest_marker("twin")
    if mark is None or item.get_closest_marker("sample"):
        return False
    name = f"{_place(item.path)} {item.name}".replace("async", "sync")
    return bool(zlib.crc32(name.encode()) % 2 != mark.args[0])


TIERS = {"full", "bubblewrap", "reduced", "unsafe-none"}


def _tier(item: pytest.Item) -> str:
    """The tier of a row of a test of commands, or an empty text; see ``tests/guard/ways.py``."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return next((value for value in parameters.values() if isinstance(value, str) and value in TIERS), "")


def _is_best(tier: str) -> bool:
    if not tier:
        return False
    from tests.guard.ways import best_way  # tries a sandbox: only where a test needs one

    return tier == best_way()


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--quick``, files whose tests all have a mark are not even imported."""
    return True if config.getoption("--quick") and _place(collection_path).startswith(tuple(FOLDER_MARKS)) else None


@cache
def _folder_marks(path: Path) -> tuple[str, ...]:
    return tuple(mark for folder, mark in FOLDER_MARKS.items() if _place(path).startswith(folder))


@cache
def _place(path: Path) -> str:
    return path.relative_to(Path(__file__).parents[1]).as_posix()


def pytest_configure(config: pytest.Config) -> None:
    # Shells start background jobs with SIGINT ignored. Our tests of Ctrl-C start processes, which would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--everything"):
        settings.load_profile("new examples")
    costs: Path | None = config.getoption("--costs")
    if costs is not None:
        if not hasattr(config, "workerinput"):
            costs.parent.mkdir(parents=True, exist_ok=True)
            costs.write_text("")
        config.pluginmanager.register(Costs(costs))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many cases were skipped because this machine lacks a sandbox, and why; also with ``--quiet``."""
    reasons = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    lacking = Counter(reason.removeprefix("Skipped: ") for reason in reasons if MACHINE_LACKS in reason)
    for reason, count in sorted(lacking.items()):
        terminalreporter.write_line(f"{count} cases are skipped: {reason}")


@pytest.fixture(autouse=True, scope="session")
def _separate_state_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test leaves anything in the state or cache directory of the user who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="module")
def _forgotten_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the tests of a file wrote and imported is not there for the next file, which may give a package the same name."""
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.items()):
        places = (getattr(module, "__file__", None), *getattr(module, "__path__", ()))
        if any(isinstance(place, str) and place.startswith(written) for place in places):
            del sys.modules[name]


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether to use whole corpora (``make test-all``)."""
    return bool(request.config.getoption("--everything"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of the shared corpus: real specs, traffic and schemas. TOOLKIT_CORPUS overrides it."""
    folder = Path(os.environ.get("TOOLKIT_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
    if not folder.is_dir():
        if os.environ.get("TOOLKIT_CORPUS_REQUIRED"):
            pytest.fail("the shared corpus is required but was not found; set TOOLKIT_CORPUS to its folder")
        pytest.skip("the shared corpus was not found; set TOOLKIT_CORPUS to its folder to run these tests")
    return folder
