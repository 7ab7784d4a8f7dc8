"""Finding a tool, and reading about it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.playground.browser.conftest import OpenPage
from tests.playground.running import RunningPlayground

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.whole
def test_the_search_finds_tools_by_their_words(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop)
    search = page.get_by_label("Search tools")
    search.fill("file edit")
    expect(page.locator("#tools .name")).to_have_text(["edit"])
    search.fill("FILE")
    names = page.locator("#tools .name").all_inner_texts()
    assert names[:2] == ["read_file", "write_file"] and "edit" in names  # those with the word in their name first
    expect(page.locator("#count")).to_have_text(f"{len(names)} of 21 tools")
    search.fill("no such tool")
    expect(page.locator("#count")).to_have_text("0 of 21 tools")
    search.fill("")
    expect(page.locator("#count")).to_have_text("21 tools")


@pytest.mark.whole
def test_a_tool_has_documentation_signature_and_schemas(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop)
    page.locator("#tools a", has_text="read_file").first.click()
    expect(page.get_by_role("heading", name="read_file")).to_be_focused()
    expect(page).to_have_title("read_file – Playground")
    expect(page.locator("#tools a[aria-current=page] .name")).to_have_text("read_file")
    page.evaluate("scrollTo(0, 9999)")
    page.evaluate("location.hash = '#/tools/edit'")
    expect(page.get_by_role("heading", name="edit")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.get_by_role("heading", name="read_file")).to_be_focused()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("Read")
    for title, text in (
        ("Signature", "tk.tools.read_file(\n    *,\n    path: str,"),
        ("Input schema", '"required": [\n    "path"'),
        ("Output schema", '"total_lines"'),
    ):
        page.get_by_role("tab", name=title).click()
        assert text in panel.inner_text()


@pytest.mark.whole
def test_what_is_not_allowed_is_listed_with_the_reason(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop)
    expect(page.locator("h2")).to_have_text("9 of 21 tools can be called")
    row = page.locator("#tools a", has_text="webfetch")
    expect(row.locator(".decision")).to_have_text("denied")
    row.click()
    expect(page.locator(".reason")).to_have_text("'webfetch' is not allowed: the policy's default is deny.")
    expect(page.locator("#verdict")).to_contain_text("denied")


def test_the_token_leaves_the_address_and_stays_with_the_tab(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop)
    assert page.url == f"{shop.address}/"
    page.goto(f"{shop.address}/#/tools/list")
    expect(page.get_by_role("heading", name="list")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="list")).to_be_visible()
    page.go_back()
    expect(page.locator(".welcome")).to_be_visible()
