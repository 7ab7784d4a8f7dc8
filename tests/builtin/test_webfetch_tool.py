"""``webfetch`` through the public entry point, with a real server; the numbers are those of the attack list.

The depth of these rows is in ``tests/guard/net/test_fetch.py``; here is how each class of them comes out of the tool.
"""

from __future__ import annotations

import base64
import gzip
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.builtin.site import INSIDE, Answer, Site, running_site, toolkit_on_the_web
from tests.builtin.snapshots import Snapshots
from tests.examples import tries
from toolkit import (
    ApprovalRequest,
    Approve,
    CancelSignal,
    SandboxViolation,
    ToolCall,
    ToolCancelled,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
    ToolTimeout,
)
from toolkit.generated import Rule, SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

D, A = "SANDBOX_VIOLATION", "INVALID_TOOL_ARGUMENTS"
Form: TypeAlias = Literal["markdown", "text", "html"]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Toolkit]:
    with toolkit_on_the_web(tmp_path) as toolkit:
        yield toolkit


def failure(toolkit: Toolkit, url: str, timeout_ms: int = 30_000, max_bytes: int = 1 << 20) -> ToolkitError:
    with pytest.raises(ToolkitError) as caught:
        toolkit.tools.webfetch(url=url, timeout_ms=timeout_ms, max_bytes=max_bytes)
    return caught.value


# -- what a page gives --------------------------------------------------------------------------------------------------

PAGE = """<!doctype html><html><head><title>Käse &amp; Co</title><script>evil()</script></head>
<body onload="evil()"><h1>Käse</h1><p>More at <a href="/shop?a=1">the <b>shop</b></a>.</p></body></html>"""


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("markdown", "# Käse\n\nMore at [the **shop**]({origin}/shop?a=1)."),
        ("text", "Käse\n\nMore at the shop."),
        ("html", '<h1>Käse</h1>\n<p>More at <a href="{origin}/shop?a=1">the <strong>shop</strong></a>.</p>'),
    ],
)
def test_a_page_in_every_format(site: Site, web: Toolkit, form: Form, content: str) -> None:
    url = site.serve(PAGE)
    output = web.invoke("webfetch", {"url": url, "format": form}).content
    assert output.content == content.format(origin=site.url("").rstrip("/"))
    assert (output.url, output.final_url, output.status) == (url, url, 200)
    assert (output.content_type, output.title) == ("text/html; charset=utf-8", "Käse & Co")
    assert (output.truncated, output.bytes, output.media_type) == (False, len(PAGE.encode()), None)


def test_markdown_is_what_comes_when_nothing_is_said(site: Site, web: Toolkit) -> None:
    assert web.tools.webfetch(url=site.serve("<h2>Hi</h2>")).content == "## Hi"


@pytest.mark.parametrize(
    ("form", "first"), [("markdown", "text/markdown"), ("text", "text/plain"), ("html", "text/html")]
)
def test_the_server_is_told_what_is_wanted(site: Site, web: Toolkit, form: Form, first: str) -> None:
    web.invoke("webfetch", {"url": site.serve("x"), "format": form})
    headers = site.asked[0][1]
    assert headers["accept"].startswith(f"{first},") and headers["accept"].endswith("*/*;q=0.5")
    assert headers.keys() == {"host", "accept", "accept-encoding", "connection", "user-agent"}, (
        "134: nothing that tells who asks"
    )


@pytest.mark.parametrize("status", [201, 403, 404, 418, 500, 503])
def test_an_error_status_is_a_result(site: Site, web: Toolkit, status: int) -> None:
    message = web.invoke("webfetch", {"url": site.serve("<h1>Sorry</h1>", status=status)})
    assert (message.content.status, message.content.content) == (status, "# Sorry")
    assert message.text() == f"[status {status}]\n# Sorry"


def test_an_empty_answer(site: Site, web: Toolkit) -> None:
    message = web.invoke("webfetch", {"url": site.serve("", status=204, content_type=None)})
    assert (message.content.content, message.content.bytes, message.content.content_type) == ("", 0, "")
    assert message.text() == "[status 204]\n[empty response]"


def test_a_redirect_is_followed_and_told(site: Site, web: Toolkit) -> None:
    site.serve("<title>T</title><a href=x>y</a>")
    site.pages["/new/place"] = site.pages["/"]
    message = web.invoke("webfetch", {"url": site.redirect("/old", "/new/place#part")})
    assert message.content.url == site.url("/old") and message.content.final_url == site.url("/new/place")
    assert message.content.content == f"[y]({site.url('/new/x')})", "links are seen from where the page really is"
    assert message.text().startswith(f"[now at {site.url('/new/place')}; title: T]\n")


def test_no_note_where_there_is_nothing_to_note(site: Site, web: Toolkit) -> None:
    url = site.serve("<title>Hello</title><h1>Hello, you</h1>")
    for asked in (url, url.rstrip("/"), f"{url}#there", url.replace("site.test", "SITE.test")):
        assert web.invoke("webfetch", {"url": asked}).text() == "# Hello, you"


# -- what is no page ----------------------------------------------------------------------------------------------------

TEXTS = {
    "json": ("application/json", '{"a": "<b>x</b>"}\n'),
    "json_of_a_kind": ("application/problem+json; charset=utf-8", '{"title": "no"}'),
    "plain": ("text/plain", "a\n\tb <b>c</b>\n"),
    "markdown": ("text/markdown", "# Title\n\n* <b>x</b>\n"),
    "xml": ("application/xml", '<?xml version="1.0"?><a><b/></a>'),
    "feed": ("application/rss+xml", "<rss><title>x</title></rss>"),
    "drawing": ("image/svg+xml", "<svg><text>x</text></svg>"),
    "program": ("text/x-python", "print('<p>')"),
    "script": ("application/javascript", "if (a < b) {}"),
    "unknown": ("application/octet-stream", "plain words"),
    "untyped": (None, "plain words, no <p> at the start"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("form", ["markdown", "text", "html"])
@pytest.mark.slow
def test_other_texts_come_as_they_are(site: Site, web: Toolkit, name: str, form: Form) -> None:
    content_type, text = TEXTS[name]
    output = web.invoke("webfetch", {"url": site.serve(text, content_type), "format": form}).content
    assert (output.content, output.title, output.content_type) == (text, None, content_type or "")


@pytest.mark.parametrize("start", ["<!DOCTYPE html>", "<html>", "  \n<head>", "<!-- hi --> <body>", "<title>t</title>"])
def test_a_page_without_a_type_is_known_by_its_beginning(site: Site, web: Toolkit, start: str) -> None:
    assert web.tools.webfetch(url=site.serve(f"{start}<p>a", None)).content == "a"


def test_xhtml_where_tags_close_themselves(site: Site, web: Toolkit) -> None:
    page = "<html><head><script src='x'/><title/></head><body><div/><p>seen</p></body></html>"
    assert web.tools.webfetch(url=site.serve(page, "application/xhtml+xml")).content == "seen"


@pytest.mark.parametrize(
    ("body", "media_type", "block"),
    [
        (PNG, "image/png", "image"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg", "image"),
        (b"%PDF-1.7\n%\xe2\xe3", "application/pdf", "document"),
        (b"OggS\0" + bytes(20), "audio/ogg", "audio"),
    ],
)
@pytest.mark.parametrize("content_type", ["application/octet-stream", "text/html", None])
def test_media_come_as_attachments_whatever_the_server_says(
    site: Site, web: Toolkit, body: bytes, media_type: str, block: str, content_type: str | None
) -> None:
    message = web.invoke("webfetch", {"url": site.serve(body, content_type)})
    output = message.content
    assert (output.content, output.media_type, output.bytes, output.truncated) == ("", media_type, len(body), False)
    (attachment,) = message.attachments
    assert (attachment.type, attachment.media_type) == (block, media_type)
    assert attachment.filename == (output.final_url.rpartition("/")[2] or None)
    assert base64.b64decode(attachment.data or "") == body
    assert message.text() == f"[attached: {media_type}, {len(body)} bytes]"
    assert message.to_result("1").kind == "multimodal"


def test_half_a_picture_is_none(site: Site, web: Toolkit) -> None:
    error = failure(web, site.serve(PNG, "image/png"), max_bytes=20)
    assert isinstance(error, ToolFailed) and error.reason == "TOO_LARGE"
    assert error.message == f"{site.url()} (image/png) has more than 20 bytes; max_bytes may be up to 10485760"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"PK\x03\x04" + bytes(30), "application/zip"),
        (b"\x7fELF\x02\x01\x01\0", "application/octet-stream"),
        (b"\0\x01\x02", "text/plain"),
        (b"\0\x01\x02", None),
        (b"no NUL in the beginning", "video/mp4"),
        (b"wOF2 font", "font/woff2"),
    ],
)
def test_135_binary_content_is_told(site: Site, web: Toolkit, body: bytes, content_type: str | None) -> None:
    error = failure(web, site.serve(body, content_type))
    assert isinstance(error, ToolFailed) and error.reason == "BINARY_NOT_SUPPORTED"
    assert (content_type or "content without a type") in error.message and f"{len(body)} bytes" in error.message
    assert error.details["status"] == 200


# -- charsets and what cannot be seen -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "content"),
    [
        ("<p>Käse".encode("latin-1"), "text/html; charset=ISO-8859-1", "Käse"),
        ('<meta charset="windows-1251"><p>Сыр'.encode("cp1251"), "text/html", "Сыр"),
        ("<META content='text/html; charset=koi8-r' http-equiv=x><p>Сыр".encode("koi8-r"), "text/html", "Сыр"),
        ('<meta charset="shift_jis"><p>チーズ'.encode("shift_jis"), "text/html", "チーズ"),
        ('<meta charset="koi8-r"><p>Käse'.encode(), "text/html; charset=utf-8", "Käse"),
        ('<meta charset="utf-16"><p>Käse'.encode(), "text/html", "Käse"),
        ("\ufeff<p>Käse".encode(), "text/html; charset=latin-1", "Käse"),
        ("<p>Käse".encode("utf-16"), "text/html; charset=utf-8", "Käse"),
        (b"<p>K\xe4se", "text/html", "K\ufffdse"),
        ("<p>Käse".encode(), "text/html; charset=nonsense", "Käse"),
        ("<p>Käse".encode(), "text/html; charset=rot13", "Käse"),
        (
            '<?xml version="1.0" encoding="iso-8859-1"?><a>Käse</a>'.encode("latin-1"),
            "text/xml",
            '<?xml version="1.0" encoding="iso-8859-1"?><a>Käse</a>',
        ),
    ],
)
def test_135_charsets(site: Site, web: Toolkit, body: bytes, content_type: str, content: str) -> None:
    assert web.tools.webfetch(url=site.serve(body, content_type)).content == content


def test_what_cannot_be_seen_is_removed_from_pages(site: Site, web: Toolkit) -> None:
    page = "<title>a\x1b]0;x\x07\u202eb</title><p>red\x1b[31m \0 so\u00adft \u202eevil\u202c \u200bx\u2060 \U000e0041 family: 👨\u200d👩<pre>a\x08b\r\n\tc\u2028</pre>"
    output = web.tools.webfetch(url=site.serve(page))
    assert output.title == "a]0;xb"
    assert output.content == "red[31m soft evil x family: 👨\u200d👩\n\n```\nab\n\tc\n```"


def test_what_cannot_be_seen_is_escaped_in_other_texts(site: Site, web: Toolkit) -> None:
    output = web.tools.webfetch(url=site.serve("a\x1b[31m\r\nb\u202ec\td\rlast\x9b", "text/plain; charset=utf-8"))
    assert output.content == "a\\x1b[31m\nb\\u202ec\td\nlast\\x9b"


def test_the_server_s_words_about_itself_are_short_and_visible(site: Site, web: Toolkit) -> None:
    output = web.tools.webfetch(url=site.serve("<p>x", "text/html; x=\x1b[31m" + "y" * 500))
    assert output.content_type.startswith("text/html; x=\\x1b[31myyy") and len(output.content_type) < 250


def test_a_long_title_is_cut(site: Site, web: Toolkit) -> None:
    assert web.tools.webfetch(url=site.serve(f"<title>{'x' * 5000}</title>")).title == "x" * 300


# -- limits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["markdown", "text", "html"])
@pytest.mark.slow
def test_a_cut_page_ends_in_a_whole_character_and_without_half_a_tag(site: Site, web: Toolkit, form: Form) -> None:
    page = "<p>äöü€<b class='ß'>日本</b> &amp; <a href='/é'>x</a> tail"
    url = site.serve(page)
    size = len(page.encode())
    for length in range(1, size + 1):
        output = web.invoke("webfetch", {"url": url, "format": form, "max_bytes": length}).content
        assert output.bytes == length and (output.truncated or length == size)
        assert "\ufffd" not in output.content and "class" not in output.content
        assert len(output.content.encode()) <= length


def test_a_whole_page_is_not_called_cut(site: Site, web: Toolkit) -> None:
    url = site.serve("x" * 1000, "text/plain")
    assert not web.tools.webfetch(url=url, max_bytes=1000).truncated
    message = web.invoke("webfetch", {"url": url, "max_bytes": 999})
    assert message.content.truncated and message.content.content == "x" * 999
    assert message.text().endswith("x\n[cut at max_bytes; max_bytes may be up to 10485760]")


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_page_that_grows_when_it_is_written_is_cut(site: Site, web: Toolkit, form: Form) -> None:
    """Short links become long ones: no more comes out than may go in."""
    site.pages["/" + "deep/" * 1000] = Answer(b"<a href=x>y</a> <a href=z>y</a> " * 1000)
    url = site.url("/" + "deep/" * 1000)
    output = web.invoke("webfetch", {"url": url, "format": form, "max_bytes": 100_000}).content
    assert output.truncated and output.bytes == 32_000 and 90_000 < len(output.content) <= 100_000


@pytest.mark.slow
def test_131_a_bomb_is_cut(site: Site, web: Toolkit) -> None:
    site.pages["/bomb"] = Answer(gzip.compress(b"<p>boom " * 1_000_000), headers={"Content-Encoding": "gzip"})
    output = web.tools.webfetch(url=site.url("/bomb"), max_bytes=80_000)
    assert output.truncated and output.bytes == 80_000 and output.content.startswith("boom\n\nboom")


def test_132_an_endless_answer_is_cut_by_size(site: Site, web: Toolkit) -> None:
    def endless() -> Iterator[bytes]:
        while not site.closing.is_set():
            yield b"<p>more and more"

    site.pages["/endless"] = endless
    output = web.tools.webfetch(url=site.url("/endless"), max_bytes=50_000)
    assert output.truncated and output.bytes == 50_000


def silent(site: Site) -> str:
    """The address of a page that never comes to its end."""

    def wait() -> Iterator[bytes]:
        yield b"<p>just a moment"
        site.closing.wait()

    site.pages["/silent"] = wait
    return site.url("/silent")


@pytest.mark.slow
def test_132_a_silent_answer_is_ended_by_its_own_limit(site: Site, web: Toolkit) -> None:
    error = failure(web, silent(site), timeout_ms=300)
    assert isinstance(error, ToolFailed) and error.reason == "NETWORK" and error.details["timed_out"] is True
    assert error.message == "no complete response within 0.3 s; timeout_ms may be up to 120000"
    assert error.retriable


@pytest.mark.slow
def test_132_a_silent_answer_is_ended_by_the_call_s_deadline(site: Site, web: Toolkit) -> None:
    with pytest.raises(ToolTimeout):
        web.with_options(deadline=0.3).tools.webfetch(url=silent(site), timeout_ms=120_000)


@pytest.mark.slow
def test_the_shorter_of_the_two_limits_counts(site: Site, web: Toolkit) -> None:
    assert isinstance(failure(web.with_options(deadline=600), silent(site), timeout_ms=300), ToolFailed)


@pytest.mark.parametrize("form", ["markdown", "text", "html"])
def test_the_limit_also_holds_while_the_page_is_converted(
    site: Site, web: Toolkit, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the tool jumps when the page has come, as if its conversion took a minute."""
    url = site.serve("<table>" + "<tr><td>x<td>y" * 1000)
    assert web.tools.webfetch(url=url, format=form).content  # the control: in time it is converted
    site.asked.clear()

    class JumpingClock:
        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + 60 * len(site.asked)

    monkeypatch.setattr("toolkit.builtin.web.webfetch.time", JumpingClock)
    with pytest.raises(ToolFailed) as caught:
        web.tools.webfetch(url=url, format=form, timeout_ms=50_000)
    assert caught.value.reason == "NETWORK" and caught.value.details["timed_out"] is True
    assert f"converting them to {form} took longer than the 50 s of this fetch" in caught.value.message
    assert "ask for fewer max_bytes, or raise timeout_ms (up to 120000)" in caught.value.message
    site.asked.clear()
    assert web.tools.webfetch(url=url, format=form, timeout_ms=120_000).content


def test_a_cancelled_call_asks_nobody(site: Site, web: Toolkit) -> None:
    signal = CancelSignal()
    signal.cancel()
    with pytest.raises(ToolCancelled):
        web.with_options(signal=signal).tools.webfetch(url=site.serve("x"))
    assert site.asked == []


def test_a_call_cancelled_while_it_waits(site: Site, web: Toolkit) -> None:
    signal = CancelSignal()

    def cancel_and_wait() -> Iterator[bytes]:
        yield b"<p>half"
        signal.cancel("the user pressed stop")
        site.closing.wait()

    site.pages["/cancel"] = cancel_and_wait
    with pytest.raises(ToolCancelled, match="the user pressed stop"):
        web.with_options(signal=signal).tools.webfetch(url=site.url("/cancel"))


def test_arguments_out_of_range(web: Toolkit) -> None:
    for arguments in (
        {"timeout_ms": 0},
        {"timeout_ms": 120_001},
        {"max_bytes": 0},
        {"max_bytes": 10_485_761},
        {"format": "pdf"},
    ):
        result = web.call(ToolCall("1", "webfetch", {"url": "http://site.test/", **arguments}))
        assert result.kind == "error" and str(result.value).startswith(f"{A}: {next(iter(arguments))}: ")


# -- the attack list ----------------------------------------------------------------------------------------------------

REFUSED = [
    *((115, f"http://{host}/", D) for host in ("127.0.0.1", "127.8.9.1", "[::1]", "inside.test")),
    *((116, f"http://{host}/", D) for host in ("0.0.0.0", "[::]", "0")),
    *((117, f"http://{host}/", D) for host in ("2130706433", "0x7f.1", "017700000001", "127.1")),
    *((118, f"http://{host}/", D) for host in ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]")),
    *((119, f"http://{host}/", D) for host in ("[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::1]")),
    *((120, f"http://{host}/", D) for host in ("169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "168.63.129.16")),
    *((121, f"http://{host}/", D) for host in ("10.1.2.3", "192.168.7.7", "172.16.5.4", "100.64.1.1", "224.0.0.1", "240.0.0.7", "[fe80::1]", "[fc00::7]")),
    *((122, f"http://{host}/", D) for host in ("①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "127.0.0.1.", "[::1%251]")),
    *((123, url, A) for url in ("http://site.test@127.0.0.1/", "http://127.0.0.1\\@site.test/", "http://127.0.0.1\t/", "http:127.0.0.1/", "site.test", "", "//site.test/")),
    *((124, url, D) for url in ("file:///etc/passwd", "ftp://site.test/", "gopher://site.test/", "data:text/html,x", "javascript:x")),
    (129, "http://site.test\0.example.org/", D),
    *((130, url, A) for url in ("http://site.test/\r\nX: y", "http://site.test\r\n/", "http://site.test/?\nx")),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("number", "url", "code"), REFUSED, ids=lambda value: ascii(value))
@pytest.mark.slow
def test_115_to_130_refused_before_anybody_is_asked(
    site: Site, tmp_path: Path, number: int, url: str, code: str
) -> None:
    with toolkit_on_the_web(tmp_path, names={"inside.test": ["127.0.0.1"]}, allow_addresses=()) as toolkit:
        error = failure(toolkit, url)
    assert error.code == code and error.tool_name == "webfetch" and not error.retriable
    assert site.asked == []


@pytest.mark.parametrize(
    "target", ["http://inside.test/", "http://[::1]/", f"//{INSIDE}/", "file:///etc/passwd", "http://2130706433/"]
)
def test_125_a_redirect_to_the_inside(site: Site, tmp_path: Path, target: str) -> None:
    with toolkit_on_the_web(tmp_path, names={"inside.test": [INSIDE]}) as toolkit:
        error = failure(toolkit, site.redirect("/", target))
    assert isinstance(error, SandboxViolation) and site.paths == ["/"]


def test_126_a_redirect_loop(site: Site, web: Toolkit) -> None:
    error = failure(web, site.redirect("/", "/"))
    assert isinstance(error, ToolFailed) and (error.reason, error.message) == (
        "REMOTE",
        "the server sent more than 5 redirects",
    )
    assert len(site.asked) == 6


def test_128_mixed_answers_lead_to_the_permitted_one(site: Site, tmp_path: Path) -> None:
    site.serve("<p>here")
    with toolkit_on_the_web(tmp_path, names={"mixed.test": [INSIDE, "127.0.0.1", "::1"]}) as toolkit:
        assert toolkit.tools.webfetch(url=site.url(host="mixed.test")).content == "here"


@pytest.mark.parametrize("host", ["evilsite.test", "site.test.evil.test", "a.site.test"])
def test_129_an_allow_list_compares_labels(site: Site, tmp_path: Path, host: str) -> None:
    site.serve("<p>here")
    with toolkit_on_the_web(tmp_path, allow_hosts=["site.test"]) as toolkit:
        assert isinstance(failure(toolkit, site.url(host=host)), SandboxViolation)
        assert toolkit.tools.webfetch(url=site.url()).content == "here"
    with toolkit_on_the_web(tmp_path) as toolkit:
        assert toolkit.tools.webfetch(url=site.url(host=host)).content == "here"


def test_133_proxy_variables_are_ignored(site: Site, web: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    assert web.tools.webfetch(url=site.serve("<p>here")).content == "here"


def test_134_cookies_are_not_kept(site: Site, web: Toolkit) -> None:
    site.pages["/"] = Answer(status=302, headers={"Location": "/next", "Set-Cookie": "a=secret"})
    site.pages["/next"] = Answer(b"<p>here")
    web.tools.webfetch(url=site.url())
    web.tools.webfetch(url=site.url("/next"))
    assert site.paths == ["/", "/next", "/next"]
    assert not any("cookie" in headers or "referer" in headers for _, headers in site.asked)


def test_what_goes_wrong_on_the_way_is_told_without_addresses(tmp_path: Path, site: Site) -> None:
    site.pages["/broken"] = Answer(b"not gzip", headers={"Content-Encoding": "gzip"})
    with toolkit_on_the_web(tmp_path, names={"nowhere.test": []}) as toolkit:
        rows = {
            site.url("/broken"): "REMOTE",
            "http://nowhere.test/": "NETWORK",
            "http://site.test:1/": "NETWORK",
            site.url().replace("http:", "https:"): "NETWORK",
        }
        for url, reason in rows.items():
            error = failure(toolkit, url)
            assert isinstance(error, ToolFailed) and error.reason == reason and error.retriable
            assert "127.0.0.1" not in error.message


# -- policy -------------------------------------------------------------------------------------------------------------


def test_a_rule_allows_some_hosts_only(site: Site, tmp_path: Path) -> None:
    site.serve("<p>here")
    policy = SecurityPolicy(default="deny", rules=[Rule("allow", tools=["webfetch"], host="*.example.test")])
    with toolkit_on_the_web(tmp_path, policy) as toolkit:
        assert toolkit.tools.webfetch(url=site.url(host="docs.example.test")).content == "here"
        for host in ("site.test", "example.test", "evilexample.test", "example.test.evil.test"):
            assert isinstance(failure(toolkit, site.url(host=host)), ToolNotAllowed)
    assert len(site.asked) == 1


def test_a_rule_denies_a_host(site: Site, tmp_path: Path) -> None:
    site.serve("<p>here")
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", host="site.test", justification="not this one")])
    with toolkit_on_the_web(tmp_path, policy) as toolkit:
        error = failure(toolkit, site.url(host="SITE.test"))
        assert isinstance(error, ToolNotAllowed) and "not this one" in error.message
        assert isinstance(failure(toolkit, "http://"), ToolNotAllowed), "what cannot be read is denied, too"
        assert toolkit.tools.webfetch(url=site.url(host="other.test")).content == "here"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (SecurityPolicy(default="allow", rules=[Rule("deny", host="evil.test", justification="known")]), "(known)"),
        (
            SecurityPolicy(default="deny", rules=[Rule("allow", tools=["webfetch"], host="site.test")]),
            "default is deny",
        ),
        (
            SecurityPolicy(default="allow", rules=[Rule("ask", host="evil.test")]),
            "call the tool with that URL to request approval",
        ),
    ],
)
def test_a_redirect_to_a_host_that_is_not_allowed(
    site: Site, tmp_path: Path, policy: SecurityPolicy, words: str
) -> None:
    target = site.url("/there", host="evil.test")
    with toolkit_on_the_web(tmp_path, policy) as toolkit:
        error = failure(toolkit, site.redirect("/", target))
    assert isinstance(error, ToolNotAllowed) and words in error.message and target in error.message
    assert site.paths == ["/"]


def test_a_redirect_inside_what_is_allowed(site: Site, tmp_path: Path) -> None:
    policy = SecurityPolicy(
        default="deny",
        rules=[Rule("allow", tools=["webfetch"], host=host) for host in ("site.test", "www.site.test")],
    )
    site.pages["/there"] = Answer(b"<p>there")
    with toolkit_on_the_web(tmp_path, policy) as toolkit:
        for target in ("/there", site.url("/there", host="www.site.test")):
            assert toolkit.tools.webfetch(url=site.redirect("/", target)).content == "there"


def test_an_approval_is_for_the_host_that_was_shown(site: Site, tmp_path: Path) -> None:
    asked: list[str | None] = []

    def approver(request: ApprovalRequest) -> Approve:
        asked.append(request.preview.url)
        return Approve()

    site.pages["/there"] = Answer(b"<p>there")
    policy = SecurityPolicy(tools={"webfetch": "ask"})
    with toolkit_on_the_web(tmp_path, policy, approver=approver) as toolkit:
        assert toolkit.tools.webfetch(url=site.redirect("/", "/there")).content == "there"
        elsewhere = site.url("/there", host="other.test")
        error = failure(toolkit, site.redirect("/", elsewhere))
        assert isinstance(error, ToolNotAllowed) and elsewhere in error.message
        assert toolkit.tools.webfetch(url=elsewhere).content == "there"
    assert asked == [site.url(), site.url(), elsewhere]


def test_without_the_permission_there_is_no_web(tmp_path: Path) -> None:
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), permissions=["read"])
    with create_agent_toolkit(context) as toolkit:
        assert isinstance(failure(toolkit, "http://site.test/"), ToolNotAllowed)


# -- anything a server may say ------------------------------------------------------------------------------------------

BODIES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(str.encode),
    st.lists(st.sampled_from([b"<p>", b"</", b"<b ", b"'", b"&#", b"x", b"\xff", b"\0", b"<!--", b"<pre>\n"])).map(
        b"".join
    ),
)
TYPES = st.sampled_from(
    [
        "text/html",
        "text/plain",
        "application/xhtml+xml",
        "text/html; charset=utf-16",
        "image/png",
        "x",
        "text/html; charset=gbk",
    ]
)


@tries(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, content_type=TYPES, form=st.sampled_from(["markdown", "text", "html"]), size=st.integers(1, 300))
@pytest.mark.slow
def test_every_answer_has_a_defined_outcome(
    site: Site, web: Toolkit, body: bytes, content_type: str, form: Form, size: int
) -> None:
    url = site.serve(body, content_type)
    result = web.call(ToolCall("1", "webfetch", {"url": url, "format": form, "max_bytes": size}))
    if result.kind == "error":
        assert str(result.value).startswith(("TOOL_FAILED: BINARY_NOT_SUPPORTED: ", "TOOL_FAILED: TOO_LARGE: "))
    elif result.kind == "text":
        seen = str(result.value)
        hidden = {letter for letter in seen if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert seen and hidden <= set("\n\t\u200c\u200d")


# -- what a model reads -------------------------------------------------------------------------------------------------

ARTICLE = (Path(__file__).parent / "pages" / "article.html").read_text()


def shown(site: Site, text: str) -> str:
    """The text as if the site had the port that needs no saying."""
    return text.replace(f":{site.port}", "")


@pytest.mark.parametrize(("form", "budget"), [("markdown", 3000), ("text", 2000), ("html", 4000)])
def test_text_of_an_article(site: Site, web: Toolkit, snapshots: Snapshots, form: Form, budget: int) -> None:
    url = site.serve(ARTICLE)
    text = web.invoke("webfetch", {"url": url, "format": form}).text()
    snapshots.check(f"webfetch/article_{form}", shown(site, text), budget=budget)


def test_text_of_short_answers(site: Site, web: Toolkit, snapshots: Snapshots) -> None:
    site.serve("<title>Moved here</title><p>Some words, and <a href='more'>more</a>.")
    texts = [web.invoke("webfetch", {"url": site.redirect("/old", "/")}).text()]
    for answer in (
        Answer(b"<h1>Not found</h1>", status=404),
        Answer(b'{"ok": true}', "application/json"),
        Answer(b"<script>app()</script><div id=root></div>"),
        Answer(status=204, content_type=None),
        Answer(PNG, "image/png"),
    ):
        site.pages["/"] = answer
        texts.append(web.invoke("webfetch", {"url": site.url()}).text())
    site.serve("word " * 10, "text/plain")
    texts.append(web.invoke("webfetch", {"url": site.url(), "max_bytes": 14}).text())
    snapshots.check("webfetch/short_answers", shown(site, "\n----\n".join(texts)), budget=1000)


@pytest.mark.slow
def test_text_of_failures(site: Site, tmp_path: Path, snapshots: Snapshots) -> None:
    site.serve(b"PK\x03\x04\0", "application/zip")
    site.pages["/big.png"] = Answer(PNG)
    site.redirect("/loop", "/loop")
    site.redirect("/away", "http://evil.test/")
    deny = SecurityPolicy(default="allow", rules=[Rule("deny", host="evil.test")])
    ask = SecurityPolicy(default="allow", rules=[Rule("ask", host="evil.test")])
    urls = (
        "example.org", "http://user@example.org/", "http://exa mple.org/", "http://127.0.0.2/", "http://0x7f.1/", "http://inside.test/",
        "file:///etc/passwd", "http://nowhere.test/", "http://site.test:1/", site.url("/loop"), site.url(),
    )  # fmt: skip
    calls: list[tuple[SecurityPolicy | None, dict[str, object]]] = [(None, {"url": url}) for url in urls]
    calls += [
        (None, {"url": site.url("/big.png"), "max_bytes": 20}),
        (None, {"url": silent(site), "timeout_ms": 200}),
        (deny, {"url": "http://evil.test/"}),
        (deny, {"url": site.url("/away")}),
        (ask, {"url": site.url("/away")}),
    ]
    texts = []
    for policy, arguments in calls:
        with toolkit_on_the_web(tmp_path, policy, names={"nowhere.test": [], "inside.test": [INSIDE]}) as toolkit:
            texts.append(str(toolkit.call(ToolCall("1", "webfetch", arguments)).value))
    snapshots.check("webfetch/failures", shown(site, "\n".join(texts)), budget=2500)
