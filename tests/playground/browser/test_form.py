"""The form that is made from a schema: every kind of field, what is left out, and JSON beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.playground.browser.conftest import HOSTILE, OpenPage, result_of
from tests.playground.running import RunningPlayground

pytestmark = pytest.mark.xdist_group("browser")

WHOLE = {
    "name": "a", "level": "high", "text": "one\ntwo", "sure": False, "count": 3, "big": 2**63 + 1, "ratio": 0.5,
    "tags": ["x", "z"], "owner": {"id": 7}, "either": 12,
}  # fmt: skip


def fill_whole_form(page: Page) -> None:
    page.get_by_label("name string").fill("a")
    page.get_by_label("level one of these").select_option(label="high")
    page.locator("details.optional summary").click()
    page.get_by_label("text string").fill("one\ntwo")
    page.get_by_label("sure boolean").select_option(label="false")
    page.get_by_label("count integer").fill("3")
    page.get_by_label("big integer").fill(str(2**63 + 1))
    page.get_by_label("ratio number").fill("0.5")
    for number, text in enumerate("xyz", 1):
        page.get_by_role("button", name="Add to tags").click()
        expect(page.get_by_label(f"tags {number} string")).to_be_focused()
        page.keyboard.type(text)
    page.get_by_role("button", name="Remove tags 2").click()
    page.get_by_label("id integer").fill("7")
    page.get_by_label("either one of several").fill("12")


@pytest.mark.whole
def test_every_kind_of_field_arrives_as_its_type(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/tools/everything")
    fill_whole_form(page)
    page.locator("#run").click()
    expect(page.locator("#status")).to_contain_text("Done in")
    assert result_of(page) == WHOLE


@pytest.mark.whole
def test_what_nobody_filled_in_is_not_sent(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/tools/everything")
    expect(page.locator(".problem", has_text="This is required.")).to_have_count(2)
    page.get_by_label("name string").fill("a")
    page.get_by_label("level one of these").select_option(label="low")
    expect(page.locator("#python pre")).to_have_text("tk.tools.everything(name='a', level='low')")
    expect(page.locator(".problem:visible")).to_have_count(0)
    page.locator("#run").click()
    expect(page.locator("#status")).to_contain_text("Done in")
    assert result_of(page) == {"name": "a", "level": "low"}


@pytest.mark.whole
def test_form_and_json_hold_the_same_value(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/tools/everything")
    fill_whole_form(page)
    page.get_by_label("JSON", exact=True).check()
    raw = page.get_by_label("Arguments as JSON")
    text = raw.input_value()
    assert f'"big": {2**63 + 1}' in text and '"tags": [\n    "x",\n    "z"\n  ]' in text
    raw.fill(text.replace('"name": "a"', '"name": "b", "other": 1'))
    expect(page.locator("#verdict")).to_contain_text("other: There is no argument of this name.")
    page.get_by_label("JSON", exact=True).uncheck()
    expect(page.get_by_label("name string")).to_have_value("b")
    expect(page.get_by_label("big integer")).to_have_value(str(2**63 + 1))
    expect(page.locator(".form")).to_contain_text("Also sent, from the JSON view: other")
    page.get_by_label("JSON", exact=True).check()
    raw.fill('{"name": ')
    page.get_by_label("JSON", exact=True).click()
    expect(page.get_by_label("JSON", exact=True)).to_be_checked()
    expect(page.locator("#raw-problem")).to_contain_text("Correct the JSON first.")
    page.locator("#clear").click()
    page.get_by_label("JSON", exact=True).uncheck()
    expect(page.get_by_label("name string")).to_have_value("")


@pytest.mark.whole
def test_a_problem_stands_at_its_field(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/tools/everything")
    page.locator("details.optional summary").click()
    count = page.get_by_label("count integer")
    count.fill("11")
    expect(count).to_have_attribute("aria-invalid", "true")
    expect(count).to_have_accessible_description("(1 to 10) Input should be less than or equal to 10.")
    count.fill("many")
    expect(count).to_have_accessible_description("(1 to 10) This is not a number.")
    page.get_by_label("either one of several").fill("{")
    expect(page.locator(".problem", has_text="This is not valid JSON")).to_be_visible()


@pytest.mark.whole
def test_an_example_fills_the_form(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/tools/everything")
    page.locator("#example").click()
    expect(page.locator("#python pre")).to_have_text("tk.tools.everything(name='text', level='low')")


def test_foreign_text_is_only_ever_text(forms: RunningPlayground, open_page: OpenPage) -> None:
    page = open_page(forms, "#/tools/hostile")
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066")
    expect(page.locator("h2")).to_contain_text(shown)
    expect(page.locator(".prose")).to_contain_text(shown)
    page.get_by_label("text string").fill(HOSTILE)
    expect(page.locator("#python pre")).to_contain_text("\\u202egnp.exe")
    page.keyboard.press("Control+Enter")
    expect(page.locator("dialog[open] #edited")).to_have_value('{\n  "text": ' + _json(HOSTILE) + "\n}")
    page.locator("#approve").click()
    expect(page.locator("#log")).to_have_text(shown)
    expect(page.locator("#status")).to_contain_text("Done in")
    assert page.locator("img").count() == 1  # the icon of the page
    assert page.title() == "hostile – Playground"
    text = page.locator("body").inner_text()
    assert "\u202e" not in text and "\u2066" not in text


def _json(text: str) -> str:
    import json

    return json.dumps(text)
