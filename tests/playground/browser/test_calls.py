"""Calls on the page: results, refusals, approvals, progress, cancelling."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import Page, expect

from tests.builtin.commands import OPEN_LINE, line_in
from tests.playground.browser.conftest import OpenPage
from tests.playground.running import RunningPlayground

pytestmark = pytest.mark.xdist_group("browser")


def open_edit(shop: RunningPlayground, open_page: OpenPage) -> Page:
    """The page with a call of ``edit`` that waits for approval."""
    (shop.workspace / "page.py").write_text("a = 1\nb = 2\n")
    page = open_page(shop, "#/tools/edit")
    page.get_by_label("path string").fill("page.py")
    page.get_by_label("old_string string").fill("a = 1")
    page.get_by_label("new_string string").fill("a = 3")
    expect(page.locator("#verdict")).to_contain_text("asks The policy says ask for this tool.")
    page.locator("#run").click()
    expect(page.get_by_role("dialog", name="Approve edit?")).to_be_visible()
    return page


@pytest.mark.whole
def test_the_verdict_follows_the_typing(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, "#/tools/read_file")
    expect(page.locator("#verdict")).to_have_text("Not judged yet: the arguments are not complete.")
    path = page.get_by_label("path string")
    path.fill("README.md")
    expect(page.locator("#verdict .decision")).to_have_text("allowed")
    path.fill("secrets/key.txt")
    expect(page.locator("#verdict .decision")).to_have_text("denied")
    expect(page.locator(".rules .decides")).to_contain_text("secrets/**")
    expect(page.locator(".rules .decides")).to_contain_text("policy.toml:14:1")


@pytest.mark.whole
def test_the_typed_result_stands_beside_what_the_model_reads(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, "#/tools/read_file")
    page.get_by_label("path string").fill("README.md")
    expect(page.locator("#python pre")).to_have_text("tk.tools.read_file(path='README.md')")
    page.keyboard.press("Control+Enter")
    columns = page.locator("#result .column")
    expect(columns.nth(0)).to_contain_text("Typed result: ReadFileOutput")
    expect(columns.nth(0)).to_contain_text("total_lines=3")
    expect(columns.nth(1)).to_contain_text("1\t# Shop")
    left, right = columns.nth(0).bounding_box(), columns.nth(1).bounding_box()
    assert left is not None and right is not None and left["y"] == right["y"] and left["x"] < right["x"]


@pytest.mark.whole
def test_a_denied_call_says_why(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, "#/tools/read_file")
    page.get_by_label("path string").fill("secrets/key.txt")
    page.locator("#run").click()
    expect(page.locator("#status")).to_contain_text("Failed after")
    expect(page.locator(".error-line")).to_contain_text("TOOL_NOT_ALLOWED")
    expect(page.locator(".error-line")).to_contain_text("keys stay here")
    assert "hunter2" not in page.content()


def test_an_approved_edit_shows_its_diff_first(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_edit(shop, open_page)
    assert page.locator(".diff .removed").all_inner_texts() == ["-a = 1"]
    assert page.locator(".diff .added").all_inner_texts() == ["+a = 3"]
    expect(page.locator("dialog .touched")).to_contain_text("page.py")
    expect(page.locator("#approval-title")).to_be_focused()  # not a button: nothing is approved by accident
    assert (shop.workspace / "page.py").read_text() == "a = 1\nb = 2\n"
    page.locator("#approve").click()
    expect(page.locator("#status")).to_contain_text("Done in")
    expect(page.locator("dialog")).to_be_hidden()
    assert (shop.workspace / "page.py").read_text() == "a = 3\nb = 2\n"


@pytest.mark.parametrize("how", ["words", pytest.param("escape", marks=pytest.mark.whole)])
def test_a_denied_edit_changes_nothing(shop: RunningPlayground, open_page: OpenPage, how: str) -> None:
    page = open_edit(shop, open_page)
    if how == "words":
        page.get_by_label("If you deny it").fill("use b instead")
        page.locator("#deny").click()
    else:
        page.keyboard.press("Escape")
    expect(page.locator(".error-line")).to_contain_text(
        "use b instead" if how == "words" else "'edit' was not approved"
    )
    expect(page.locator("dialog")).to_be_hidden()
    assert (shop.workspace / "page.py").read_text() == "a = 1\nb = 2\n"


def test_edited_arguments_are_what_runs(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_edit(shop, open_page)
    page.locator("dialog summary").click()
    edited = page.locator("#edited")
    edited.fill("{")
    page.locator("#approve").click()
    expect(page.locator("dialog .problem[role=alert]")).to_contain_text("the arguments are not valid JSON")
    edited.fill('{"path": "page.py", "old_string": "b = 2", "new_string": "b = 4"}')
    page.get_by_role("button", name="Approve with these arguments").click()
    expect(page.locator("#status")).to_contain_text("Done in")
    assert (shop.workspace / "page.py").read_text() == "a = 1\nb = 4\n"


def test_a_command_is_shown_word_by_word(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, "#/tools/exec_command")
    for number, word in enumerate(("echo", "a b\u202e"), 1):
        page.get_by_role("button", name="Add to command").click()
        page.get_by_label(f"command {number} string").fill(word)
    page.locator("#run").click()
    expect(page.locator("dialog dd").first.locator("code")).to_have_text(["echo", "a b\\u202e"])
    page.locator("#approve").click()
    expect(page.locator("#result")).to_contain_text("exit_code=0")


@pytest.fixture
def silent_pipe(shop: RunningPlayground) -> str:
    """A pipe in the workspace that nobody writes to: reading it waits until the command is ended."""
    path = shop.workspace / "silence"
    if not path.exists():
        os.mkfifo(path)
    return path.name


@pytest.mark.whole
def test_a_long_command_shows_progress_and_can_be_cancelled(
    shop: RunningPlayground, open_page: OpenPage, silent_pipe: str
) -> None:
    page = open_page(shop, "#/tools/bash")
    with line_in(shop.workspace) as line:
        page.get_by_label("command string").fill(f"{OPEN_LINE} echo step one; echo oops >&2; cat {silent_pipe}")
        page.locator("#run").click()
        expect(page.locator("#log")).to_contain_text("step one")
        expect(page.locator("#log .stderr")).to_have_text("oops\n")
        expect(page.locator("#run")).to_be_disabled()
        expect(page.locator("#cancel")).to_be_focused()
        page.locator("#cancel").click()
        expect(page.locator(".error-line")).to_contain_text("TOOL_CANCELLED cancelled on the page")
        line.wait_until_nobody_holds_it()
    (shop.workspace / "line").unlink()
    expect(page.locator("#run")).to_be_focused()
    expect(page.locator("#cancel")).to_be_hidden()


@pytest.mark.whole
@pytest.mark.parametrize("how", [pytest.param("another view", marks=pytest.mark.whole), "closed tab"])
def test_leaving_ends_the_call(shop: RunningPlayground, open_page: OpenPage, silent_pipe: str, how: str) -> None:
    page = open_page(shop, "#/tools/bash")
    with line_in(shop.workspace) as line:
        page.get_by_label("command string").fill(f"{OPEN_LINE} echo started; cat {silent_pipe}")
        page.locator("#run").click()
        expect(page.locator("#log")).to_contain_text("started")
        if how == "closed tab":
            page.close()
        else:
            page.get_by_role("link", name="Timeline").click()
        line.wait_until_nobody_holds_it()
    (shop.workspace / "line").unlink()
