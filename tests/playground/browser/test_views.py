"""The timeline, the cost in tokens, and what the page says when it cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.playground.browser.conftest import OpenPage
from tests.playground.running import RunningPlayground, playground

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.whole
def test_the_timeline_shows_calls_and_the_state_of_the_chain(tmp_path: Path, open_page: OpenPage) -> None:
    workspace, log = tmp_path / "workspace", tmp_path / "audit.jsonl"
    workspace.mkdir()
    with playground(workspace, "--audit", str(log)) as running:
        page = open_page(running, "#/timeline")
        expect(page.locator("article")).to_contain_text("No calls yet.")
        running.run("list", path=".")
        running.run("read_file", path="nothing")
        page.locator("#refresh").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.locator("tbody tr").nth(0)).to_contain_text("TOOL_FAILED: NOT_FOUND")
        expect(page.locator("tbody tr").nth(1)).to_contain_text("ok")
        expect(page.locator("tbody tr").nth(1).locator(".duration")).to_contain_text(" ms")
        expect(page.locator("#chain")).to_have_text("chain intact 4 records.")
        log.write_text(log.read_text().replace('"tool":"list"', '"tool":"edit"'))
        page.locator("#refresh").click()
        expect(page.locator("#chain")).to_contain_text("chain broken")
        expect(page.locator("#chain")).to_contain_text("line 1 was changed")


@pytest.mark.whole
def test_a_temporary_log_is_called_temporary(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/timeline")
    expect(page.locator("article")).to_contain_text("This log is temporary: it is removed when the playground ends.")


@pytest.mark.whole
def test_the_cost_in_tokens_is_an_estimate_and_says_so(shop: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(shop, "#/tokens")
    expect(page.locator("article")).to_contain_text("Tokens are an estimate: bytes / 4.")
    told = {form["name"]: form["tokens"] for form in shop.get("/api/tokens")["forms"]}
    for name in ("OpenAI Chat Completions", "Anthropic Messages", "Gemini", "Python signatures (text)"):
        expect(page.locator("tr", has_text=name)).to_contain_text(f"≈ {told[name]:,}")


def test_without_the_token_the_page_says_where_to_find_it(shop: RunningPlayground, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        for fragment in ("", "#token=wrong"):
            page.goto("about:blank")
            page.goto(f"{shop.address}/{fragment}")
            expect(page.get_by_role("alert")).to_have_text(
                "The token is missing or wrong. Open the URL that `toolkit playground` printed."
            )
            assert "token" not in page.url and "read_file" not in page.content()


@pytest.mark.whole
def test_when_the_playground_has_ended_the_page_says_so(tmp_path: Path, browser: Browser) -> None:
    with playground(tmp_path) as running, browser.new_context() as context:
        page = context.new_page()
        page.goto(running.url)
        page.wait_for_selector(".welcome")
        assert running.stop() == 0
        page.get_by_role("link", name="Timeline").click()
        expect(page.get_by_role("alert")).to_contain_text("Is `toolkit playground` still running?")
