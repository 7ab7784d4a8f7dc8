"""Takes the pictures of docs/playground.md: ``python -m docs.site.playground_pictures``. It needs Chromium.

Nobody compares them: fonts differ between machines. Look at them, and commit those that changed for a reason.
"""

from __future__ import annotations

import base64
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright

IMAGES: Final = Path(__file__).parents[1] / "images"
PLACE: Final = Path("/tmp/demo")
"""A short name, because the page shows it."""
POLICY: Final = """default = "deny"

[tools]
read_file = "allow"
list = "allow"
bash = "allow"
edit = "ask"

[[rules]]
decision = "deny"
path = "secrets/**"
justification = "keys stay here"
"""
PIXELS: Final = """async (encoded) => {
  const bytes = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, image.width, image.height);
  let text = "";
  for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""
CART: Final = "TAX = 0.19\n\n\ndef total(prices: list[float]) -> float:\n    return sum(prices)\n"


@contextmanager
def demo() -> Iterator[str]:
    """The URL of a playground over a small workspace."""
    workspace = PLACE / "shop"
    workspace.mkdir(parents=True)  # fails if somebody else uses the name
    try:
        (workspace / "cart.py").write_text(CART)
        (PLACE / "policy.toml").write_text(POLICY)
        command = [sys.executable, "-m", "toolkit", "playground", "--policy", "policy.toml", "--workspace", "shop"]
        with subprocess.Popen([*command, "--no-open"], cwd=PLACE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                found = (re.search(r"http://\S+", line) for line in process.stdout)
                yield next(match[0] for match in found if match)
            finally:
                process.terminate()
    finally:
        shutil.rmtree(PLACE)


def take_pictures(browser: Any, url: str) -> None:
    page = open_page(browser, url, 1180, 800, "light")
    open_tool(page, "bash")
    page.get_by_label("command string").fill("python3 -c 'import cart; print(cart.total([1, 2, 3]))'")
    page.locator("#run").click()
    page.wait_for_selector("#result .column")
    open_tool(page, "read_file")
    page.get_by_label("path string").fill("secrets/key.txt")
    page.wait_for_selector("#python pre")
    keep(page, "tool")
    page = open_page(browser, url, 1000, 700, "dark")
    fill_edit(page)
    page.locator("#run").click()
    page.wait_for_selector("dialog[open]")
    keep(page, "approval")
    page.locator("#approve").click()
    page.wait_for_selector("#result .column")
    open_tool(page, "read_file")
    page.get_by_label("path string").fill("secrets/key.txt")
    page.locator("#run").click()
    page.wait_for_selector(".error-line")
    page = open_page(browser, url, 1000, 420, "light")
    page.get_by_role("link", name="Timeline").click()
    page.wait_for_selector("#chain")
    keep(page, "timeline")
    page = open_page(browser, url, 360, 700, "light")
    open_tool(page, "read_file")
    page.get_by_label("path string").fill("cart.py")
    page.wait_for_selector("#python pre")
    page.locator("#run").click()
    page.wait_for_selector("#result .column")
    page.locator("#verdict-title").evaluate("title => title.scrollIntoView()")
    keep(page, "narrow")


def open_page(browser: Any, url: str, width: int, height: int, scheme: str) -> Page:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page: Page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".welcome")
    return page


def keep(page: Page, name: str) -> None:
    """Writes a picture with a palette of 256 colours, which makes it a third as large."""
    shown = base64.b64encode(page.screenshot(animations="disabled")).decode()
    blank = page.context.new_page()
    width, height, encoded = blank.evaluate(PIXELS, shown)
    blank.close()
    data = base64.b64decode(encoded)
    pixels = [(data[at], data[at + 1], data[at + 2]) for at in range(0, len(data), 4)]
    common = [colour for colour, _ in Counter(pixels).most_common(256)]
    palette = {colour: number for number, colour in enumerate(common)}
    for colour in set(pixels) - palette.keys():  # edges of letters: the nearest common colour
        nearest = min(common, key=lambda one: sum((a - b) ** 2 for a, b in zip(one, colour, strict=True)))
        palette[colour] = palette[nearest]
    rows = (pixels[at : at + width] for at in range(0, len(pixels), width))
    lines = b"".join(b"\0" + bytes(palette[pixel] for pixel in row) for row in rows)
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": bytes(channel for colour in common for channel in colour),
        b"IDAT": zlib.compress(lines, 9),
        b"IEND": b"",
    }
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts.items()
    )
    (IMAGES / f"playground-{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def open_tool(page: Page, name: str) -> None:
    page.evaluate("name => location.hash = `#/tools/${name}`", name)
    page.wait_for_selector(f".tool-head .name:text-is('{name}')")


def fill_edit(page: Page) -> None:
    open_tool(page, "edit")
    page.get_by_label("path string").fill("cart.py")
    page.get_by_label("old_string string").fill("    return sum(prices)\n")
    page.get_by_label("new_string string").fill("    return round(sum(prices) * (1 + TAX), 2)\n")


if __name__ == "__main__":
    # Text in shades of grey: smaller files, and no coloured fringes where a picture is scaled.
    with demo() as url, sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-lcd-text"])
        take_pictures(browser, url)
        browser.close()
