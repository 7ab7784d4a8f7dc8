"""Servers that misbehave: whatever they write, the call ends with a result or a clear error, and nothing hangs."""

from __future__ import annotations

import pytest

from tests.packs.conftest import Doors
from tests.packs.test_mcp_endings import odd
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.packs import McpServer, McpTool, mcp_pack


@pytest.mark.parametrize(
    ("habit", "number"), [("banner", 42), ("wrong id", 7), ("odd ids", 9), ("big", 8), ("JSON as text", 3)]
)
def test_what_can_be_understood_is(make_sync: Doors, habit: str, number: int) -> None:
    door = make_sync(odd(habit))
    assert door.tool("odd").n == number
    assert door.tool("odd_text").text


def test_text_that_says_more_than_the_structure_is_kept_beside_it(make_sync: Doors) -> None:
    message = make_sync(odd("big")).invoke("odd", {})
    assert message.content.n == 8 and message.text() == '{"n":8}'
    assert message.metadata["text"] == "y" * (8 << 20)


def test_very_many_media_are_read_up_to_a_limit(make_sync: Doors) -> None:
    message = make_sync(odd("many blocks")).invoke("odd", {})
    assert message.content.n == len(message.attachments) == 10_000


REFUSED = {
    "long line": ("SERVER_DIED", "a line of more than 32 MiB"),
    "garbage": ("SERVER_DIED", "10001 lines in a row that are not JSON-RPC"),
    "no result": ("REMOTE", "sent an answer that is not valid in the protocol: "),
    "refuses": ("REMOTE", r"refused the request: no such tool\u202e here"),
    "refuses with a code of clients": ("REMOTE", "refused the request: no such account"),
    "half a character": ("REMOTE", "' sent an answer that cannot be read: "),
    "fails": ("TOOL_ERROR", "it is broken"),
    "fails telling": ("TOOL_ERROR", "the token is ${TOKEN}"),
    "forges": ("REMOTE", r"refused the request: the token is ${TOKEN}\x1b"),
    "too many blocks": ("TOO_LARGE", "the server's answer has more than 10000 parts of content; no more are read"),
    "asks without listening": ("SERVER_DIED", "it sent more than 1000 requests without reading the answers"),
    "dies": ("SERVER_DIED", "the token is ${TOKEN}"),
    "text only": (
        "INVALID_OUTPUT",
        "declares structured content for 'ask' but returned only text that is not such JSON",
    ),
    "wrong JSON as text": (
        "INVALID_OUTPUT",
        "declares structured content for 'ask' but returned only text that is not such JSON",
    ),
    "wrong structure": (
        "INVALID_OUTPUT",
        "does not match the tool's output schema: n: Input should be a valid integer",
    ),
    "dies at once": (
        "SERVER_DIED",
        "ended before it was ready (exit code 1; the end of its stderr: cannot find my config",
    ),
}


IN_EVERY_RUN = {"long line", "fails telling", "forges", "asks without listening"}


@pytest.mark.parametrize(
    "habit", [pytest.param(habit, marks=[] if habit in IN_EVERY_RUN else [pytest.mark.whole]) for habit in REFUSED]
)
def test_what_cannot_be_is_an_error_in_words(make_sync: Doors, habit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-t0ken")
    reason, words = REFUSED[habit]
    with pytest.raises(ToolFailed) as caught:
        make_sync(odd(habit, env=("TOKEN",))).tool("odd")
    assert caught.value.reason == reason
    assert words in caught.value.message
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        ("never ready", "was not ready within 1 s; raise its 'startup_timeout' if it needs longer"),
        ("speaks nonsense", "it wrote something that is not JSON-RPC: 'what?'"),
    ],
)
def test_one_that_never_answers_is_given_up(make_sync: Doors, habit: str, words: str) -> None:
    door = make_sync(odd(habit, timeout=1))
    for _ in range(2):  # the next call gives it another chance, and gets an error of its own
        with pytest.raises(ToolFailed) as caught:
            door.tool("odd")
        assert caught.value.reason == "SERVER_NOT_READY" and words in caught.value.message


def test_nothing_is_offered_to_a_server_that_asks_back(make_sync: Doors) -> None:
    said = make_sync(odd("asks back")).tool("odd_text").text
    assert said == "sampling/createMessage! roots/list! elicitation/create! ping+ no/such!"


def test_outputs_are_checked_as_the_context_says(make_sync: Doors) -> None:
    loose = make_sync(odd("wrong structure"), output_check="off")
    assert loose.invoke("odd", {}).content == {"n": "three"}


def test_a_variable_that_is_not_set_is_named(make_sync: Doors) -> None:
    with pytest.raises(ToolFailed, match="needs the environment variable NO_SUCH_VARIABLE; set it") as caught:
        make_sync(odd("banner", env=("NO_SUCH_VARIABLE",))).tool("odd")
    assert caught.value.reason == "NOT_CONFIGURED"


def test_a_program_that_is_not_there_is_told(make_sync: Doors) -> None:
    server = McpServer(name="none", command=("no-such-server",))
    door = make_sync(mcp_pack(server, {"odd": McpTool("ask", "served.generated.models.odd:OddOutput")}))
    with pytest.raises(ToolkitError, match="'no-such-server' does not exist"):
        door.tool("odd")
