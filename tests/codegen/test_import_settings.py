"""What may stand under ``[tool.toolkit.imports]``, and every mistake in it, told at once and at its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.findings import short_forms
from toolkit.codegen import ImportSettings, OAuthSettings, Settings, read_settings
from toolkit.errors import SetupError

START = 'specs = "acme/tools"\npackage = "acme.generated"\n'


def read(text: str, start: str = START) -> Settings:
    return read_settings(Path(), tomllib.loads(start + text))


def problems(text: str, start: str = START) -> list[str]:
    with pytest.raises(SetupError) as caught:
        read(text, start)
    return list(short_forms(caught.value))


def test_every_kind_is_read() -> None:
    settings = read(
        """
        [imports.files]
        command = ["npx", "-y", "server", "."]
        prefix = "fs_"
        env = ["GITHUB_TOKEN"]
        sandbox = false
        network = true
        timeout = 5
        [imports.search]
        url = "http://127.0.0.1:8000/mcp"
        headers = { Authorization = "Bearer ${SEARCH_TOKEN}" }
        [imports.pet-store]
        openapi = "petstore.yaml"
        url = "https://petstore.example.org/v1"
        operations = ["listPets"]
        [imports.legacy]
        tools = "openai_tools.json"
        without = ["old one"]
        [imports.maths]
        functions = ["acme.math", "acme.more:REGISTRY"]
        [imports.shapes]
        models = ["acme.shapes:Query -> acme.shapes:Answer", "acme.shapes:Outer.Inner"]
        """
    )
    files, search, store, legacy, maths, shapes = settings.imports
    assert files == ImportSettings(
        "files", "fs_", ("npx", "-y", "server", "."), env=("GITHUB_TOKEN",), sandbox=False, network=True, timeout=5.0
    )
    assert [item.kind for item in settings.imports] == ["mcp", "mcp", "openapi", "tools", "functions", "models"]
    assert (search.url, search.headers) == ("http://127.0.0.1:8000/mcp", {"Authorization": "Bearer ${SEARCH_TOKEN}"})
    assert (search.sandbox, search.network, search.timeout) == (True, False, 60.0)
    assert (store.identifier, store.url, store.operations) == (
        "PET_STORE",
        "https://petstore.example.org/v1",
        ("listPets",),
    )
    assert (legacy.tools, legacy.without) == ("openai_tools.json", ("old one",))
    assert maths.functions == ("acme.math", "acme.more:REGISTRY")
    assert len(shapes.models) == 2
    assert settings.import_file("files") == Path("acme/tools/files.json")


def test_servers_with_a_login_and_in_their_own_environment_are_read() -> None:
    settings = read(
        """
        [imports.one]
        url = "https://x.org"
        oauth = true
        startup_timeout = 90
        [imports.two]
        url = "https://x.org"
        oauth = { client_id = "me", client_secret = "${SECRET}", issuer = "https://login.x.org", redirect_port = 3000 }
        [imports.three]
        command = ["~/.local/bin/server"]
        env = { LEVEL = "debug", KEY = "Bearer ${TOKEN}" }
        read_roots = ["~/models", "/opt/data"]
        cwd = "below"
        """
    )
    one, two, three = settings.imports
    assert (one.oauth, one.startup_timeout) == (OAuthSettings(), 90.0)
    assert two.oauth == OAuthSettings("me", "${SECRET}", "", "https://login.x.org", 3000)
    assert (three.env, three.cwd) == ({"LEVEL": "debug", "KEY": "Bearer ${TOKEN}"}, "below")
    assert (three.read_roots, three.startup_timeout) == (("~/models", "/opt/data"), None)


def test_imported_files_go_to_the_first_folder() -> None:
    start = 'specs = ["one.yaml", "second", "third"]\npackage = "acme.generated"\n'
    settings = read('[imports.a]\ntools = "a.json"\n', start)
    assert settings.import_file("a") == Path("second/a.json")


def test_without_a_folder_there_is_no_place_for_them() -> None:
    (problem,) = problems('[imports.a]\ntools = "a.json"\n', 'specs = "one.yaml"\npackage = "acme.generated"\n')
    assert problem.endswith("@ pyproject.toml:/tool/toolkit/specs") and "folder" in problem


AT = "@ pyproject.toml:/tool/toolkit/imports"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("imports = 3", f"'imports' must be tables: write, for example, [tool.toolkit.imports.time] {AT}"),
        ("imports.a = 3", f"an import must be a table {AT}/a"),
        ("[imports.a]", f"the source of the tools is missing: an import has exactly one of command, url, openapi, tools, functions and models {AT}/a"),
        ('[imports.a]\ncommand = ["x"]\ntools = "y"', f"'command' and 'tools' are set together: an import has exactly one of command, url, openapi, tools, functions and models {AT}/a"),
        ('[imports.a]\ncommand = ["x"]\nurl = "https://x.org"', f"'url' has no effect with 'command'; remove it {AT}/a/url"),
        ('[imports.a]\nurl = "https://x.org"\nenv = ["A"]', f"'env' has no effect with 'url'; remove it {AT}/a/env"),
        ('[imports.a]\ncommand = ["x"]\nsandboxed = true', f"unknown key 'sandboxed'. Did you mean 'sandbox'? {AT}/a/sandboxed"),
        ('[imports.a]\ncommand = "npx server"', f"'command' must be a list of strings: the program, then its arguments {AT}/a/command"),
        ("[imports.a]\ncommand = []", f"'command' must name a program first {AT}/a/command"),
        ('[imports.a]\ncommand = ["x"]\nsandbox = "no"', f"'sandbox' must be true or false {AT}/a/sandbox"),
        ('[imports.a]\ncommand = ["x"]\nnetwork = "host"', f"'network' must be true, false or \"guarded\" {AT}/a/network"),
        ('[imports.a]\ncommand = ["x"]\nnetwork = "guarded"\nsandbox = false', f"'network = \"guarded\"' needs the sandbox: remove 'sandbox = false' {AT}/a/network"),
        ('[imports.a]\ncommand = ["x"]\ntimeout = 0', f"'timeout' must be a number of seconds greater than 0 {AT}/a/timeout"),
        ('[imports.a]\ncommand = ["x"]\ntimeout = inf', f"'timeout' must be a number of seconds greater than 0 {AT}/a/timeout"),
        ('[imports.a]\ncommand = ["x"]\nenv = ["A=1"]', f"'A=1' in 'env' is not the name of a variable {AT}/a/env"),
        ('[imports.a]\ncommand = ["x"]\nprefix = "!"', f"'prefix' must be the start of a tool name, such as 'fs_', with at most 64 characters {AT}/a/prefix"),
        ('[imports.a]\nurl = "ftp://x.org"', f"'url' is not an absolute http or https URL, such as https://example.org/mcp {AT}/a/url"),
        ('[imports.a]\nurl = "https://me:secret@x.org"', f"'url' contains credentials; send them in 'headers', as ${{NAME}} {AT}/a/url"),
        ('[imports.a]\nurl = "https://x.org/#top"', f"'url' has a fragment; remove what follows '#' {AT}/a/url"),
        ('[imports.a]\nurl = "https://[x"', f"'url' is not a URL {AT}/a/url"),
        ('[imports.a]\nurl = ""', f"'url' must be a non-empty string {AT}/a/url"),
        ('[imports.a]\nurl = "https://x.org"\nheaders = {A = 1}', f"'headers' must be a table of strings {AT}/a/headers"),
        ('[imports.a]\nurl = "https://x.org"\nheaders = {"A b" = "x"}', f"'A b' is not a header name {AT}/a/headers/A b"),
        ('[imports.a]\nurl = "https://x.org"\nheaders = {A = "x\\r\\nB: y"}', f"the header 'A' contains a character that is not allowed in headers {AT}/a/headers/A"),
        ('[imports.a]\nurl = "https://x.org"\nheaders = {A = "${B"}', f"the header 'A' has '${{' without the name of a variable and '}}' {AT}/a/headers/A"),
        ('[imports.a]\nopenapi = "x.yaml"\noperations = [1]', f"'operations' must be a list of strings {AT}/a/operations"),
        ('[imports.a]\nfunctions = ["acme/math.py"]', f"'acme/math.py' in 'functions' is not written 'acme.math' or 'acme.math:REGISTRY' {AT}/a/functions"),
        ('[imports.a]\nopenapi = "https://x.org/openapi.json"', f"'openapi' must be a file, because nothing is downloaded: download the document and name the file {AT}/a/openapi"),
        ('[imports.a]\ntools = "file:/tools.json"', f"'tools' must be a file, because nothing is downloaded: download the document and name the file {AT}/a/tools"),
        ('[imports.a]\ncommand = ["x"]\nwithout = [1]', f"'without' must be a list of strings {AT}/a/without"),
        ('[imports.a]\nurl = "https://x.org"\nwithout = [""]', f"'without' must not be empty or contain an empty string {AT}/a/without"),
        ('[imports.a]\nopenapi = "x.yaml"\nwithout = ["x"]', f"'without' has no effect with 'openapi'; remove it {AT}/a/without"),
        ('[imports.a]\nfunctions = "acme.math"\nwithout = ["x"]', f"'without' has no effect with 'functions'; remove it {AT}/a/without"),
        ("[imports.a]\nfunctions = []", f"'functions' must not be empty or contain an empty string {AT}/a/functions"),
        ('[imports.a]\nmodels = ["Query"]', f"'Query' in 'models' is not written 'acme.shapes:Query' or 'acme.shapes:Query -> acme.shapes:Answer' {AT}/a/models"),
        ('[imports.a]\ncommand = ["x"]\noauth = true', f"'oauth' has no effect with 'command'; remove it {AT}/a/oauth"),
        ('[imports.a]\nurl = "http://x.org"\noauth = true', f"'oauth' needs an https url: over http the token could be read on the way {AT}/a/url"),
        ('[imports.a]\nurl = "https://x.org"\noauth = {issuer = "http://y.org"}', f"'issuer' needs an https url: over http the token could be read on the way {AT}/a/oauth/issuer"),
        ('[imports.a]\nurl = "https://x.org"\noauth = "yes"', f"'oauth' must be true or a table {AT}/a/oauth"),
        ('[imports.a]\nurl = "https://x.org"\noauth = {scopes = "x"}', f"unknown key 'scopes'. Did you mean 'scope'? {AT}/a/oauth/scopes"),
        ('[imports.a]\nurl = "https://x.org"\noauth = {scope = 1}', f"'scope' of 'oauth' must be a non-empty string {AT}/a/oauth/scope"),
        ('[imports.a]\nurl = "https://x.org"\noauth = {issuer = "ftp://x"}', f"'issuer' is not an absolute http or https URL, such as https://example.org/mcp {AT}/a/oauth/issuer"),
        ('[imports.a]\nurl = "https://x.org"\noauth = {client_id = "x", client_secret = "${S}"}', f"'client_secret' needs 'client_id' and 'issuer': it is sent to that issuer only {AT}/a/oauth"),
        ('[imports.a]\nurl = "https://x.org"\noauth = {client_id = "x", client_secret = "s", issuer = "https://y.org"}', f"'client_secret' must be written '${{NAME}}': a secret does not belong in this file {AT}/a/oauth"),
        ('[imports.a]\nurl = "https://x.org"\noauth = true\nheaders = {authorization = "x"}', f"'oauth' sends the header 'Authorization' itself: remove one of the two {AT}/a/headers"),
        ('[imports.a]\ncommand = ["x"]\nread_roots = ["models"]', f"'models' in 'read_roots' must be an absolute path, or start with '~/' {AT}/a/read_roots"),
        ('[imports.a]\ncommand = ["x"]\nread_roots = ["/m"]\nsandbox = false', f"'read_roots' has no effect without the sandbox: remove one of the two lines {AT}/a/read_roots"),
        ('[imports.a]\ncommand = ["x"]\nenv = {A = 1}', f"'env' must be a list of names, or a table of texts {AT}/a/env"),
        ('[imports.a]\ncommand = ["x"]\nenv = {A = "${B"}', f"the variable 'A' has '${{' without the name of a variable and '}}' {AT}/a/env/A"),
        ('[imports.a]\ncommand = ["x"]\nstartup_timeout = 0', f"'startup_timeout' must be a number of seconds greater than 0 {AT}/a/startup_timeout"),
        ('[imports."../a"]\ntools = "a.json"', f"an import's name must be a letter followed by letters, digits, '_' or '-', not '../a' {AT}/..~1a"),
        ('[imports.a-b]\ntools = "x"\n[imports.A_b]\ntools = "y"', f"imports 'a-b' and 'A_b' both become A_B in Python; rename one {AT}/A_b"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_its_place(text: str, told: str) -> None:
    assert problems(text) == [told]


def test_all_mistakes_are_told_at_once() -> None:
    text = 'clas = "X"\n[imports.a]\ncommand = [""]\ntimeout = "1"\n[imports.b]\n[imports.c]\nurl = "x"\n'
    assert [problem.rpartition(":")[2] for problem in problems(text)] == [
        "/tool/toolkit/clas",
        "/tool/toolkit/imports/a/command",
        "/tool/toolkit/imports/a/timeout",
        "/tool/toolkit/imports/b",
        "/tool/toolkit/imports/c/url",
    ]
