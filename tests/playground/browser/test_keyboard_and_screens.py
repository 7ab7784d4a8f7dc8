"""The page without a mouse, on narrow screens, in both colour schemes, and as axe sees it."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.playground.browser.conftest import OpenPage
from tests.playground.running import RunningPlayground

pytestmark = pytest.mark.xdist_group("browser")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, selector: str) -> None:
    """Presses Tab until this element has the focus, which must happen before the focus comes round."""
    for _ in range(60):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


@pytest.mark.whole
def test_everything_works_by_keyboard(shop: RunningPlayground, open_page: OpenPage) -> None:
    (shop.workspace / "keys.py").write_text("a = 1\n")
    page = open_page(shop)
    press(page, "/")
    page.keyboard.type("edit")
    press(page, "ArrowDown")
    expect(page.locator("#tools a").first).to_be_focused()
    press(page, "ArrowUp")
    expect(page.locator("#search")).to_be_focused()
    press(page, "ArrowDown", "Enter")
    expect(page.get_by_role("heading", name="edit")).to_be_focused()
    tab_to(page, "[role=tab]")
    press(page, "ArrowRight")
    expect(page.get_by_role("tab", name="Signature")).to_be_focused()
    expect(page.get_by_role("tabpanel")).to_contain_text("tk.tools.edit(")
    for label, text in (("path", "keys.py"), ("old_string", "a = 1"), ("new_string", "a = 2")):
        field = page.get_by_label(f"{label} string").get_attribute("id")
        tab_to(page, f"#{field}")
        page.keyboard.type(text)
    tab_to(page, "#run")
    press(page, "Enter")
    expect(page.locator("#approval-title")).to_be_focused()
    tab_to(page, "#deny")
    press(page, "Shift+Tab")
    expect(page.locator("#approve")).to_be_focused()
    press(page, "Enter")
    expect(page.locator("#status")).to_contain_text("Done in")
    expect(page.locator("#run")).to_be_focused()
    assert (shop.workspace / "keys.py").read_text() == "a = 2\n"


@pytest.mark.whole
def test_the_focus_can_be_seen_and_the_skip_link_skips(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, "#/tools/list")
    page.evaluate("document.activeElement.blur()")
    page.locator("#skip").focus()
    assert page.locator("#skip").bounding_box()
    press(page, "Enter")
    expect(page.locator("main")).to_be_focused()
    page.locator("#run").focus()
    press(page, "Tab", "Shift+Tab")
    assert page.locator("#run").evaluate("element => getComputedStyle(element).outlineStyle") == "solid"


VIEWS = ("", "#/tools/edit", "#/tools/todowrite", "#/timeline", "#/tokens")


@pytest.mark.whole
def test_nothing_is_wider_than_a_narrow_screen(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, width=360, height=740)
    wide = "element => element.getBoundingClientRect().right > 361 && !element.closest('.scroll, pre, .skip')"
    for view in VIEWS:
        if view:
            page.evaluate("view => location.hash = view", view)
            expect(page.locator("h2")).to_be_focused()
        if "todowrite" in view:
            page.locator("#example").click()
            expect(page.locator("#python pre")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, view
        assert page.evaluate(f"[...document.querySelectorAll('body *')].filter({wide}).map(one => one.outerHTML)") == []


@pytest.mark.whole
def test_a_narrow_screen_shows_the_list_or_the_tool(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, width=360, height=740)
    page.locator("#tools a", has_text="read_file").first.click()
    expect(page.locator("#sidebar")).to_be_hidden()
    page.get_by_label("path string").fill("README.md")
    page.locator("#run").click()
    expect(page.locator("#result")).to_contain_text("# Shop")
    page.get_by_role("link", name="All tools").click()
    expect(page.locator("#sidebar")).to_be_visible()


def violations(page: Page) -> list[Any]:
    found = Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found]


@pytest.mark.whole
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), pytest.param("dark", 360, marks=pytest.mark.whole)])
def test_axe_finds_nothing(shop: RunningPlayground, open_page: OpenPage, scheme: str, width: int) -> None:
    (shop.workspace / "axe.py").write_text("a = 1\n")
    page = open_page(shop, width=width, color_scheme=scheme, reduced_motion="reduce")
    assert violations(page) == []
    for view in VIEWS[2:]:
        page.evaluate("view => location.hash = view", view)
        expect(page.locator("h2")).to_be_focused()
        assert violations(page) == []
    page.evaluate("location.hash = '#/tools/edit'")
    page.get_by_label("path string").fill("axe.py")
    expect(page.locator(".problem:visible").first).to_be_visible()
    assert violations(page) == []
    page.get_by_label("old_string string").fill("1")
    page.get_by_label("new_string string").fill("2")
    page.locator("#run").click()
    expect(page.locator("#approval-title")).to_be_focused()
    assert violations(page) == []
    page.locator("#approve").click()
    expect(page.locator("#result .column")).to_have_count(2)
    assert violations(page) == []
