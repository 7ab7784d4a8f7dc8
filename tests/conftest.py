"""Shared by all tests: the setting for the corpus and the option for slow tests."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Test runs must be repeatable: property tests use the same examples each time, and new ones under `make test-all`.
# Their duration is not tested.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out whole files of slow tests, as `make quick` does")
    parser.addoption("--everything", action="store_true", help="run whole corpora instead of a fixed sample")
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
    "tests/guard/git": "sandbox",
    "tests/guard/trusted": "sandbox",
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


SAMPLED = (
    "tests/adapters/strict/test_corpus.py::test_shared_specs",
    "tests/adapters/strict/test_hostile.py::test_hostile_schemas_are_told",
    "tests/adapters/test_malformed_streams.py::test_a_wrong_type_in_a_stream_is_one_error_and_nothing_else_is_lost",
    "tests/adapters/test_surrogates.py::test_halves_of_a_character_in_the_id_or_name_of_a_streamed_call",
    "tests/builtin/test_apply_patch_tool.py::test_hostile_patches_end_soon",
    "tests/builtin/test_command_attacks.py::test_an_attack_goes_through_only_without_a_sandbox",
    "tests/builtin/test_edit_tool.py::test_looks_in_vain_within_bounds",
    "tests/builtin/test_html_to_markdown.py::test_a_large_hostile_page_comes_to_an_end",
    "tests/builtin/test_html_to_markdown.py::test_twice_the_page_is_at_most_twice_the_work",
    "tests/builtin/test_ignore_rules.py::test_tree_keeps_what_git_keeps",
    "tests/cli/test_start.py::test_every_change_is_seen",
    "tests/cli/test_terminal.py::test_control_without_escaping_it_arrives",
    "tests/cli/test_terminal.py::test_what_is_printed_is_shown",
    "tests/codegen/test_hostile_specs.py::test_text_stays_text",
    "tests/codegen/test_import_trust.py::test_a_tool_whose_workspace_is_the_home_directory_cannot_confirm",
    "tests/codegen/test_import_trust.py::test_control_the_attack_would_have_run",
    "tests/guard/fs/test_protect.py::test_a_protected_place_is_never_changed",
    "tests/guard/fs/test_protect.py::test_what_is_denied_is_neither_read_nor_changed",
    "tests/guard/fs/test_write_escapes.py::test_every_change_answers_as_the_table_says_and_stays_inside",
    "tests/guard/git/test_status.py::test_a_repository_runs_nothing",
    "tests/guard/policy/test_allowed_arguments.py::test_and_would_have_written_or_run",
    "tests/guard/policy/test_looking_through.py::test_and_would_have_run",
    "tests/guard/process/test_attacks.py::test_an_attack_goes_through_only_unguarded",
    "tests/guard/process/test_attacks.py::test_the_legitimate_neighbour_works",
    "tests/guard/process/test_ends.py::test_82_a_command_past_its_time_is_killed_and_says_so",
    "tests/guard/process/test_ends.py::test_85_ignoring_every_signal_does_not_help",
    "tests/guard/process/test_ends.py::test_86_processes_are_bounded",
    "tests/guard/process/test_ends.py::test_nothing_survives_a_cancelled_call",
    "tests/guard/process/test_ends.py::test_nothing_survives_the_end_of_the_command",
    "tests/guard/process/test_ends.py::test_nothing_survives_when_the_caller_or_the_fork_server_is_killed",
    "tests/guard/process/test_fork_server.py::test_a_call_without_descriptors_fails_and_ends_nothing_else",
    "tests/guard/process/test_fork_server.py::test_no_signal_reaches_the_processes_around_a_command",
    "tests/guard/process/test_guarded_network.py::test_pip_install_over_http",
    "tests/guard/process/test_guarded_network.py::test_pip_install_over_https",
    "tests/guard/process/test_guarded_network.py::test_the_proxy_ends_with_its_command",
    "tests/guard/process/test_limits.py::test_89_a_command_that_uses_too_much_is_ended_and_says_why",
    "tests/guard/process/test_limits.py::test_the_legitimate_neighbour_gets_to_its_end",
    "tests/guard/process/test_limits.py::test_without_a_sandbox_it_gets_to_its_end",
    "tests/guard/process/test_long_process.py::test_nothing_survives_when_its_owner_is_killed",
    "tests/guard/process/test_runs.py::test_a_venv_with_pip",
    "tests/guard/process/test_runs.py::test_java",
    "tests/guard/process/test_runs.py::test_pytest",
    "tests/guard/process/test_runs.py::test_venv_and_pytest_in_it",
    "tests/guard/review/test_kept.py::test_it_is_put_back_and_the_result_says_so",
    "tests/guard/review/test_links.py::test_the_file_is_the_same_or_there_is_none",
    "tests/guard/review/test_neighbours.py::test_it_works_and_stays",
    "tests/guard/review/test_neighbours.py::test_read_only_repositories_are_read_and_not_changed",
    "tests/guard/review/test_review.py::test_permissions_hide_nothing",
    "tests/guard/review/test_takeover.py::test_under_the_guard_it_fails",
    "tests/guard/review/test_takeover.py::test_unguarded_it_succeeds",
    "tests/guard/trusted/test_commands.py::test_a_link_to_a_large_environment_stays",
    "tests/guard/trusted/test_commands.py::test_each_attack_succeeds_without_a_sandbox",
    "tests/guard/trusted/test_commands.py::test_no_command_changes_what_runs_outside_its_sandbox",
    "tests/guard/trusted/test_commands.py::test_what_people_do_all_day_works",
    "tests/guard/trusted/test_file_tools.py::test_no_tool_chooses_what_the_next_start_runs",
    "tests/guard/trusted/test_helper_processes.py::test_variables_and_the_current_directory_decide_nothing",
    "tests/guard/trusted/test_import_paths.py::test_the_workspace_is_recognised_however_it_is_spelled_on_the_path",
    "tests/guard/trusted/test_late_imports.py::test_a_generated_package_stays_what_it_was",
    "tests/guard/trusted/test_late_imports.py::test_no_module_that_a_tool_wrote_is_imported_as_ours",
    "tests/guard/trusted/test_late_imports.py::test_without_the_finder_it_is",
    "tests/models/test_plain_dumps.py::test_a_dump_reads_back",
    "tests/packs/conformance/test_conformance.py::test_a_required_scenario_passes",
    "tests/packs/test_mcp_floods.py::test_a_flood_over_http_ends_in_the_answer_and_a_short_log",
    "tests/packs/test_mcp_odd.py::test_what_cannot_be_is_an_error_in_words",
    "tests/packs/test_mcp_structured.py::test_what_is_not_json_is_refused_by_name_and_place",
    "tests/programs/hostile/test_ends.py::test_a_program_that_never_ends_leaves_nothing",
    "tests/programs/hostile/test_ends.py::test_killing_all_around_it_ends_only_itself",
    "tests/programs/hostile/test_ends.py::test_nothing_survives_when_the_agent_is_killed",
    "tests/programs/hostile/test_ends.py::test_what_a_program_leaves_behind_ends_with_it",
    "tests/programs/hostile/test_frames.py::test_a_forged_frame_gains_nothing",
    "tests/programs/hostile/test_inside.py::test_it_gains_nothing",
    "tests/programs/hostile/test_limits.py::test_it_is_ended",
    "tests/programs/hostile/test_texts.py::test_it_is_refused_or_checked_in_time",
    "tests/programs/test_check.py::test_a_right_program_passes",
    "tests/programs/test_check.py::test_it_is_refused_with_a_message_on_its_line",
    "tests/programs/test_tables.py::test_a_right_program_runs",
    "tests/programs/test_tables.py::test_a_wrong_program_has_no_effect",
    "tests/runtime/test_broken_packs.py::test_the_error_names_the_pack_and_the_line",
    "tests/runtime/test_consented_files.py::test_what_was_approved_while_a_program_runs_stays",
    "tests/runtime/test_local_types.py::test_annotations_mean_what_is_defined_around_the_tool",
    "tests/serve/conformance/test_conformance.py::test_a_scenario_passes",
    "tests/serve/test_client_snippets.py::test_the_command_of_a_snippet_serves_the_tools",
    "tests/serve/test_hostile.py::test_what_is_not_a_message_is_survived",
    "tests/serve/test_http.py::test_a_wrong_set_up_stops_before_anything_is_served",
    "tests/serve/test_http.py::test_wrong_options_are_answered_in_words",
    "tests/typing/test_plugin_cases.py::test_plugin_and_overloads_agree_on_every_line",
    "tests/typing/test_scale.py::test_many_tools_are_clean",
)
"""Tables of which `make test` runs all rows in the full tier and about every third of the others, and `make test-all` all."""
SAMPLE_EVERY = 4


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
        left_out = {item for item in items if not _is_in_sample(item)}
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


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


def _is_in_sample(item: pytest.Item) -> bool:
    """By the row's own name, so that other rows and the order of tests change nothing."""
    if item.get_closest_marker("whole"):
        return False
    name, _, parameters = item.name.partition("[")
    if f"{_place(item.path)}::{name}" not in SAMPLED or not isinstance(item, pytest.Function):
        return True
    way = item.callspec.params.get("way", "")
    row = parameters.replace(str(way), "")
    return way == "full" or zlib.crc32(row.encode()) % SAMPLE_EVERY == 0


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
        settings.load_profile("default")


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
