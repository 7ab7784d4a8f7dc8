"""How URLs and host names are read, and how patterns compare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolkitError
from toolkit.guard import Host, HostPattern, Url

ACCEPTED = {
    "http://example.org": "http://example.org/",
    "HTTPS://Example.ORG:443/A?b#c": "https://example.org/A?b",
    "http://example.org:8080": "http://example.org:8080/",
    "http://example.org:080/": "http://example.org/",
    "http://example.org?q=1": "http://example.org/?q=1",
    "http://example.org#@127.0.0.1/": "http://example.org/",
    "http://example.org/?u=http://127.0.0.1/@x": "http://example.org/?u=http://127.0.0.1/@x",
    "http://example.org/a/../b%2e": "http://example.org/a/../b%2e",
    "https://de.example.org/wiki/Käse": "https://de.example.org/wiki/K%C3%A4se",
    'http://example.org/"<>^`{|}': "http://example.org/%22%3C%3E%5E%60%7B%7C%7D",
    "http://Bücher.example/": "http://xn--bcher-kva.example/",
    "http://日本語.example/": "http://xn--wgv71a119e.example/",
    "http://xn--bcher-kva.example/": "http://xn--bcher-kva.example/",
    "http://my_bucket.example.org/": "http://my_bucket.example.org/",
    "http://r3---sn-a.example.org/": "http://r3---sn-a.example.org/",
    "http://1.example/": "http://1.example/",
    "http://0x7f.example/": "http://0x7f.example/",
    "http://localhost/": "http://localhost/",
    "http://203.0.114.10:1/": "http://203.0.114.10:1/",
    "http://[2606:2800:220:1:0:0:0:10]/": "http://[2606:2800:220:1::10]/",
    "http://[2606:2800:220:1::10]:65535/": "http://[2606:2800:220:1::10]:65535/",
}

MALFORMED = (
    "", "example.org", "//example.org/", "/path", "http", "http:", "http:/", "http://", "http:///", "http:example.org",
    "http:/example.org", "http:///example.org", "http://?q", "http://#f", " http://example.org/", "http://example.org/ ",
    "http://exam ple.org/", "http://example.org/a b", "http://example.org/\t", "ht\ttp://example.org/", "http:\t//example.org/",
    "http://exam\tple.org/", "http://example.org/\r\nX: y", "http://example.org\r\nX: y/", "http://example.org/\n",
    "http://example.org/\0", "http://example.org/?\0", "http://example.org/\x7f", "http://example.org/\x85",
    "http://example.org\\@127.0.0.1/", "http:\\\\example.org\\", "http://example.org/\\", "http://example.org/\udc80",
    "http://user@example.org/", "http://user:pass@example.org/", "http://@example.org/", "http://example.org:80@127.0.0.1/",
    "http://example.org:/", "http://example.org:0/", "http://example.org:65536/", "http://example.org:99999999/",
    "http://example.org:-1/", "http://example.org:+80/", "http://example.org:8o/", "http://example.org:８0/", "http://::1/",
    "http://[::1/", "http://[::1]x/", "http://[::1]:/", "http://a[::1]/", "http://:80/", "http://example.org/" + "x" * 9000,
    None, 7, b"http://example.org/",
)  # fmt: skip

FORBIDDEN = (
    # 117 odd spellings of IPv4
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://017700000001/", "http://0177.0.0.1/",
    "http://127.1/", "http://127.0.1/", "http://0/", "http://127.0.0.01/", "http://127.0.0.0x1/", "http://1.2.3.4.5/",
    "http://256.0.0.1/", "http://0x/", "http://example.0x7f/", "http://example.1/", "http://00000127.0.0.1/",
    # 122 digits and dots of other scripts, trailing dots, zones
    "http://①②⑦.⓪.⓪.①/", "http://１２７.0.0.1/", "http://127。0。0。1/", "http://127．0．0．1/", "http://127｡0｡0｡1/",
    "http://127.0.0.1./", "http://127.0.0.1../", "http://127.1./", "http://example.org./", "http://localhost./",
    "http://[fe80::1%25lo]/", "http://[fe80::1%lo]/", "http://[::1%1]/", "http://ⓛocalhost/", "http://example。org/",
    "http://[127.0.0.1]/", "http://[]/", "http://[v1.x]/", "http://[::１]/", "http://[:::1]/", "http://[1::2::3]/",
    # 124 schemes
    "file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "data:text/plain,x", "javascript:x", "ws://example.org/",
    "FILE:///x", "view-source:http://example.org/", "mailto:a@example.org", "localhost:80/", "h2c://example.org/",
    # 129 and what else no name may hold
    "http://allowed.example\0.evil.example/", "http://\0/", "http://a..b/", "http://.a/", "http://-a.example/",
    "http://a-.example/", "http://%31%32%37.0.0.1/", "http://example.org%00.evil.example/", "http://a,b.example/",
    "http://*.example.org/", "http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "example/",
    "http://" + "ü" * 60 + ".example/", "http://straße.example/", "http://a\u200db.example/", "http://a\u00ad.example/",
    "http://☃.example/", "http://\u202eexample.org/", "http://\uff41.example/", "http://\u2024.example/",
)  # fmt: skip


@pytest.mark.parametrize(("text", "canonical"), ACCEPTED.items())
def test_accepted(text: str, canonical: str) -> None:
    url = Url.parse(text)
    assert url.text == canonical
    assert Url.parse(canonical) == url


@pytest.mark.every_row
@pytest.mark.parametrize("text", MALFORMED, ids=ascii)
def test_malformed(text: object) -> None:
    with pytest.raises(InvalidArguments):
        Url.parse(text)


@pytest.mark.every_row
@pytest.mark.parametrize("text", FORBIDDEN, ids=ascii)
def test_forbidden(text: str) -> None:
    with pytest.raises(SandboxViolation) as caught:
        Url.parse(text)
    assert "127" not in caught.value.message and "passwd" not in caught.value.message


HARD = "\0\t\r\n \\/@:?#[]%.-_*0x7f①１。ßüa\udc80\u200d\u202e"


@given(
    st.text(st.sampled_from(HARD) | st.characters(), max_size=40),
    st.sampled_from(["", "http:", "http://", "https://a", "http://["]),
)
def test_any_text_has_one_reading_or_is_refused(text: str, beginning: str) -> None:
    try:
        url = Url.parse(beginning + text)
    except ToolkitError:
        return
    assert url.text.isascii() and url.text.isprintable() and " " not in url.text
    assert Url.parse(url.text) == url


@given(st.text(st.sampled_from(HARD) | st.characters(), max_size=40))
def test_any_reference_leads_to_one_url_or_is_refused(text: str) -> None:
    try:
        url = Url.parse("https://[2606:2800:220:1::10]:8080/a/b?c").join(text)
    except ToolkitError:
        return
    assert Url.parse(url.text) == url


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("", "https://example.org/a/b?c"),
        ("x", "https://example.org/a/x"),
        ("../x", "https://example.org/x"),
        ("../../../x", "https://example.org/x"),
        ("/x?y#z", "https://example.org/x?y"),
        ("?y", "https://example.org/a/b?y"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example:8080", "http://other.example:8080/"),
        ("Käse", "https://example.org/a/K%C3%A4se"),
    ],
)
def test_join(reference: str, joined: str) -> None:
    assert Url.parse("https://example.org/a/b?c").join(reference).text == joined


@pytest.mark.parametrize(
    "reference", ["x y", "\t//127.0.0.1/", "/\\127.0.0.1/", "http:x", "//user@example.org/", "//[::1/", "\nx"]
)
def test_join_malformed(reference: str) -> None:
    with pytest.raises(InvalidArguments):
        Url.parse("https://example.org/a/b?c").join(reference)


@pytest.mark.parametrize("reference", ["file:///x", "//127.1/", "//①②⑦.⓪.⓪.①/", "javascript:x", "//localhost%2f/"])
def test_join_forbidden(reference: str) -> None:
    with pytest.raises(SandboxViolation):
        Url.parse("https://example.org/a/b?c").join(reference)


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("example.org", "example.org", True),
        ("Example.ORG", "example.org", True),
        ("example.org", "EXAMPLE.org", True),
        ("bücher.example", "xn--bcher-kva.example", True),
        ("example.org", "www.example.org", False),
        ("example.org", "evilexample.org", False),
        ("example.org", "example.org.evil.test", False),
        ("example.org", "example.orgs", False),
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("*.example.org", "www.example.org.evil.test", False),
        ("*.org", "example.org", True),
        ("203.0.114.10", "203.0.114.10", True),
        ("203.0.114.1", "203.0.114.10", False),
        ("[2606:2800:220:1::10]", "[2606:2800:220:1:0::10]", True),
        ("[::1]", "1", False),
    ],
)
def test_patterns(pattern: str, host: str, matches: bool) -> None:
    try:
        parsed = Host.parse(host)
    except SandboxViolation:
        assert not matches
    else:
        assert HostPattern.parse(pattern).matches(parsed) is matches


@pytest.mark.parametrize(
    "pattern",
    ["", "*", "*.", ".example.org", "example.org.", "*.*.example.org", "exa*ple.org", "http://example.org", "example.org:80",
     "example.org/", "*.127.0.0.1", "*.[::1]", "127.1", "::1", "a b", "a\0b", None, 7],
)  # fmt: skip
def test_what_is_no_pattern_is_a_mistake_of_the_set_up(pattern: object) -> None:
    with pytest.raises(SetupError, match="host pattern"):
        HostPattern.parse(pattern)
