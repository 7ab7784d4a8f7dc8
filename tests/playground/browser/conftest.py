"""Debian's Chromium, driven by Playwright. A test fails if the page writes an error to the console."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.playground.running import RunningPlayground, playground
from tests.projects import Project, tool

OpenPage: TypeAlias = Callable[..., Page]
"""Opens the page of a playground: ``open_page(shop, "#/timeline", width=360)``."""

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
TIMEOUT_MS = 20_000


# Not for the session: while Playwright runs, nothing else in this thread can start an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for all tests of this folder."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("TOOLKIT_CORPUS_REQUIRED"):
            pytest.fail("Chromium is required but was not found; .ci/install-chromium installs it")
        pytest.skip("Chromium was not found; install Debian's package `chromium` to run these tests")
    expect.set_options(timeout=TIMEOUT_MS)  # other tests run beside these
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    contexts: list[Any] = []
    wrong: list[str] = []

    def note(message: Any) -> None:
        is_refusal = "status of 400" in message.text  # what the test sent is wrong on purpose
        if message.type in ("error", "warning") and not is_refusal:
            wrong.append(message.text)

    def open(
        running: RunningPlayground, view: str = "", *, width: int = 1280, height: int = 860, **options: Any
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(running.url)
        page.wait_for_selector(".welcome")
        if view:
            page.evaluate("view => location.hash = view", view)
            page.wait_for_selector("article:not(.welcome)")
        return page

    yield open
    for context in contexts:
        context.close()
    assert wrong == []


EVERYTHING = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "level"],
    "properties": {
        "name": {"type": "string", "maxLength": 40, "description": "A short text."},
        "level": {"enum": ["low", "high"], "description": "A choice."},
        "text": {"type": "string", "description": "Several lines."},
        "sure": {"type": "boolean", "default": False},
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "big": {"type": "integer"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}},
        "owner": {"$ref": "#/$defs/owner"},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "A text or a number."},
    },
    "$defs": {
        "owner": {
            "type": "object",
            "required": ["id"],
            "properties": {"id": {"type": "integer"}, "mail": {"type": "string", "format": "email"}},
        }
    },
}
HOSTILE = "<img src=x onerror=\"document.title='owned'\"> [x](javascript:1) </script> \u202egnp.exe\u2066"
HANDLERS = """
import json

from acme.generated import EverythingInput, EverythingOutput, HostileInput, HostileOutput, bind
from toolkit import ToolContext


def everything(args: EverythingInput, ctx: ToolContext) -> EverythingOutput:
    return EverythingOutput(got=json.dumps(args.model_dump(mode="json", by_alias=True, exclude_unset=True)))


def hostile(args: HostileInput, ctx: ToolContext) -> HostileOutput:
    ctx.progress(title=args.text)
    ctx.progress(stream="stdout", text=args.text)
    return HostileOutput(got=args.text)


PACK = bind(everything=everything, hostile=hostile)
"""


@pytest.fixture(scope="package")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    """A project with a tool that has every kind of field, and one whose texts attack the page."""
    output = {"type": "object", "required": ["got"], "properties": {"got": {"type": "string"}}}
    attack = {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string", "description": HOSTILE}},
    }
    tools = [
        tool("everything", description="Every kind of field.", inputSchema=EVERYTHING, outputSchema=output),
        tool("hostile", description=f"Attacks. {HOSTILE}", title=HOSTILE, inputSchema=attack, outputSchema=output),
    ]
    project = Project(tmp_path_factory.mktemp("project"), tools, packs=["acme.handlers:PACK"])
    project.write("acme/handlers.py", HANDLERS)
    project.generate()
    workspace = tmp_path_factory.mktemp("work")
    policy = tmp_path_factory.mktemp("policy") / "policy.toml"
    policy.write_text('default = "deny"\n\n[tools]\neverything = "allow"\nhostile = "ask"\n')
    with playground(workspace, folder=project.root, allowing=("--policy", str(policy))) as running:
        yield running


def result_of(page: Page) -> Any:
    """What the tool ``everything`` got."""
    typed = page.locator("#result pre").nth(1).inner_text()
    return json.loads(json.loads(typed)["got"])
