"""A document becomes a typed project whose tools call the service: the whole road, policy and audit included."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packs.petshop import make_petshop
from tests.packs.service import Answer, Service
from tests.projects import run
from toolkit import (
    CancelSignal,
    Network,
    Rule,
    SecurityPolicy,
    ToolFailed,
    ToolkitContext,
    ToolkitError,
    ToolNotAllowed,
)
from toolkit.errors import InvalidArguments, SandboxViolation, ToolCancelled, ToolTimeout

REX = {"id": 1, "name": "Rex", "weight": None}
SECRET = "tok-4711-very-secret"


@pytest.fixture(scope="session")
def project(one_service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("petshop")
    make_petshop(root, f"{one_service.url}/v1")
    sys.path.insert(0, str(root))
    yield root
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == "petshop"]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETSHOP_TOKEN", SECRET)


@pytest.fixture
def toolkit(project: Path, tmp_path: Path) -> Iterator[Any]:
    with made(tmp_path) as toolkit:
        yield toolkit


def made(workspace: Path, policy: Any = None, **keys: Any) -> Any:
    generated = importlib.import_module("petshop.generated")
    context: Any = ToolkitContext(workspace, policy or SecurityPolicy(default="allow"), **keys)
    return generated.create_agent_toolkit(context)


def test_a_typed_answer(service: Service, toolkit: Any) -> None:
    service.answer([REX, {**REX, "kind": "dog"}])
    message = toolkit.invoke("listPets", {"tags": ["a", "b"]})
    assert [pet.name for pet in message.content.root] == ["Rex", "Rex"]
    assert (message.title, message.metadata) == ("GET /pets", {"status": 200})
    assert json.loads(message.text())[0] == REX
    assert service.last.line == "GET /v1/pets?tags=a&tags=b HTTP/1.1"
    assert service.last.headers["authorization"] == f"Bearer {SECRET}"


def test_a_body_without_what_only_the_service_gives(service: Service, toolkit: Any) -> None:
    service.answer(REX, status=201)
    assert toolkit.tools.addPet(body={"name": "Rex"}).id == 1
    assert (service.last.line, service.last.body) == ("POST /v1/pets HTTP/1.1", b'{"name":"Rex"}')
    with pytest.raises(InvalidArguments):
        toolkit.invoke("addPet", {"body": {"kind": "cow", "name": "x"}})


def test_text_and_nothing(service: Service, toolkit: Any) -> None:
    service.usual = Answer("Rëx".encode("latin-1"), content_type="text/plain; charset=latin-1")
    assert toolkit.tools.get_pets_petId_card(petId="1").text == "Rëx"
    service.usual = Answer(b"", status=204, content_type=None)
    message = toolkit.invoke("sellPet", {"petId": "1"})
    assert (message.content.text, service.last.line) == ("", "DELETE /v1/pets/1 HTTP/1.1")


def failure(toolkit: Any, name: str = "showPet", **arguments: Any) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        toolkit.invoke(name, {"petId": "1", **arguments})
    assert SECRET not in str(caught.value) and SECRET not in repr(caught.value.details)
    return caught.value


# Each row: the answer, the reason, what is said, whether to try again.
FAILURES: dict[str, tuple[Answer, str, str, bool]] = {
    "not found": (Answer(b'{"error": "no such pet"}', 404), "HTTP_404", 'the service \'shop\' answered 404 Not Found: {"error": "no such pet"}', False),
    "busy": (Answer(b"", 503), "HTTP_503", "the service 'shop' answered 503 Service Unavailable", True),
    "a status nobody knows": (Answer(b"x", 599), "HTTP_599", "the service 'shop' answered 599: x", False),
    "the token sent back": (Answer(f"bad token {SECRET}".encode(), 401), "HTTP_401", "the service 'shop' answered 401 Unauthorized: bad token [secret]", False),
    "bytes": (Answer(b"\x00\x01", 500), "HTTP_500", "the service 'shop' answered 500 Internal Server Error: 2 bytes that are not text", True),
    "a redirect": (Answer(b"", 302, headers={"Location": "http://127.0.0.1:1/"}), "HTTP_302", "the service 'shop' answered 302 Found: redirects are not followed; if it has moved, change its url in the settings", False),
    "a page": (Answer(b"<p>hello", content_type="text/html"), "REMOTE", "the service 'shop' answered with text/html, but its OpenAPI document declares JSON: <p>hello", True),
    "the token as a type": (Answer(b"x", content_type=f"text/{SECRET}"), "REMOTE", "the service 'shop' answered with text/[secret], but its OpenAPI document declares JSON: x", True),
    "broken JSON": (Answer(b'{"id": 1'), "REMOTE", "the service 'shop' answered with text that is not JSON", True),
    "NaN": (Answer(b'{"id": NaN}'), "REMOTE", "the service 'shop' answered with text that is not JSON", True),
    "an infinite number": (
        Answer(b'{"id": 1, "more": [1e999]}'),
        "REMOTE",
        "the service 'shop' sent an answer that has Infinity at 'more.0', which is not JSON",
        True,
    ),
    "JSON without end": (Answer(b"[" * 100_000), "REMOTE", "the service 'shop' answered with text that is not JSON", True),
    "a lie": (Answer(b'{"name": 7}'), "INVALID_OUTPUT", "the service 'shop' sent an answer that its OpenAPI document does not allow: id: Field required; name: Input should be a valid string", False),
    "nothing": (Answer(b"", content_type=None), "INVALID_OUTPUT", "the service 'shop' sent an answer that its OpenAPI document does not allow: the answer: ", False),
    "too much": (Answer(b"[" + b"1," * (6 << 20) + b"1]"), "TOO_LARGE", "the service 'shop' answered with more than 10485760 bytes", False),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_failures(service: Service, toolkit: Any, case: str) -> None:
    service.usual, reason, words, retriable = FAILURES[case]
    failed = failure(toolkit)
    assert failed.message.startswith(words)
    assert (failed.reason, failed.retriable, failed.tool_name) == (reason, retriable, "showPet")


def test_long_words_of_a_service_are_cut(service: Service, toolkit: Any) -> None:
    service.usual = Answer(b"x" * 50_000, 500)
    message = failure(toolkit).message
    assert len(message) < 2200 and message.endswith("... (50000 characters)")


def test_a_service_that_lies_may_be_believed(service: Service, project: Path, tmp_path: Path) -> None:
    service.answer({"name": 7})
    with made(tmp_path, output_check="warn") as toolkit:
        assert toolkit.invoke("showPet", {"petId": "1"}).content == {"name": 7}


def test_a_variable_that_is_not_set(service: Service, toolkit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("PETSHOP_TOKEN", raising=False)
        if value is not None:
            monkeypatch.setenv("PETSHOP_TOKEN", value)
        failed = failure(toolkit)
        assert failed.reason == "NOT_CONFIGURED"
        words = "the service 'shop' needs the environment variable PETSHOP_TOKEN; set it where this toolkit runs"
        assert failed.message == words
    assert service.seen == []


def test_a_token_with_a_line_break_is_not_shown(
    service: Service, toolkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PETSHOP_TOKEN", f"{SECRET}\r\nX: 1")
    with pytest.raises(InvalidArguments, match="the header 'authorization' must not contain") as caught:
        toolkit.invoke("showPet", {"petId": "1"})
    assert SECRET not in str(caught.value)
    assert service.seen == []


@pytest.mark.parametrize("value", ["..", "../../admin", "a/../b", ""])
def test_values_that_would_lead_elsewhere(service: Service, toolkit: Any, value: str) -> None:
    with pytest.raises(InvalidArguments):
        toolkit.invoke("showPet", {"petId": value})
    assert service.seen == []


def test_rules_on_hosts(service: Service, project: Path, tmp_path: Path) -> None:
    allow: Any = SecurityPolicy(default="deny", rules=[Rule(decision="allow", host="127.0.0.1")])
    deny: Any = SecurityPolicy(default="allow", rules=[Rule(decision="deny", host="127.0.0.1")])
    service.answer([])
    with made(tmp_path, allow) as toolkit:
        assert toolkit.invoke("listPets", {}).content.root == []
    with made(tmp_path, deny) as toolkit, pytest.raises(ToolNotAllowed):
        toolkit.invoke("listPets", {})
    with made(tmp_path, permissions=["read"]) as toolkit, pytest.raises(ToolNotAllowed):
        toolkit.invoke("listPets", {})
    with made(tmp_path, network=Network(deny_hosts=["127.0.0.1"])) as toolkit, pytest.raises(SandboxViolation):
        toolkit.invoke("listPets", {})
    assert len(service.seen) == 1


def test_an_approver_sees_where_a_call_goes(service: Service, project: Path, tmp_path: Path) -> None:
    asked: list[Any] = []

    def approver(request: Any) -> Any:
        asked.append(request)
        from toolkit import Deny

        return Deny("no")

    policy: Any = SecurityPolicy(default="ask")
    with made(tmp_path, policy, approver=approver) as toolkit:
        for value in ("a/b", ".."):  # a preview never fails
            with pytest.raises(ToolkitError):
                toolkit.invoke("showPet", {"petId": value})
    assert [request.preview.url for request in asked] == [f"{service.url}/v1/pets/a%2Fb", f"{service.url}/v1"]
    assert SECRET not in repr(asked)
    assert service.seen == []


def test_the_audit_log_holds_no_secret(service: Service, project: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    log = tmp_path / "audit.jsonl"
    service.answer([])
    with made(tmp_path / "work", audit=log) as toolkit:
        toolkit.invoke("listPets", {})
        service.usual = Answer(SECRET.encode(), 500)
        failure(toolkit)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line.get("reason", line["event"]) for line in lines] == ["start", "end", "start", "HTTP_500"]
    assert SECRET not in log.read_text()


def test_a_deadline_ends_a_call(service: Service, toolkit: Any) -> None:
    with pytest.raises(ToolTimeout):
        toolkit.with_options(deadline=0.3).invoke("showPet", {"petId": "wait"})


def test_awaited(service: Service, project: Path, tmp_path: Path) -> None:
    generated = importlib.import_module("petshop.generated")
    context: Any = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))

    async def both() -> list[str]:
        async with generated.create_async_agent_toolkit(context) as toolkit:
            pets = await asyncio.gather(toolkit.tools.showPet(petId="1"), toolkit.tools.showPet(petId="2"))
            return [pet.name for pet in pets]

    service.answer(REX)
    assert asyncio.run(both()) == ["Rex", "Rex"]
    assert sorted(seen.line for seen in service.seen) == ["GET /v1/pets/1 HTTP/1.1", "GET /v1/pets/2 HTTP/1.1"]


def test_a_call_is_cancelled(service: Service, toolkit: Any) -> None:
    service.waiting.clear()
    signal = CancelSignal()

    def stop() -> None:
        service.waiting.wait(60)
        signal.cancel()

    threading.Thread(target=stop).start()
    with pytest.raises(ToolCancelled):
        toolkit.with_options(signal=signal).invoke("showPet", {"petId": "wait"})


def test_many_threads(service: Service, toolkit: Any) -> None:
    service.answer(REX)
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(toolkit.tools.showPet(petId="1").name)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["Rex"] * 8


USE = """
from petshop.generated import ShopToolkit, SecurityPolicy, ToolkitContext, create_agent_toolkit

toolkit: ShopToolkit = create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow", tools={"listPets": "allow"})))
pets = toolkit.invoke("listPets", {"limit": 3}).content.root
name: str = pets[0].name
weight: float | None = pets[0].weight
made: int = toolkit.tools.addPet(body={"name": "Rex", "kind": "cat"}).id
card: str = toolkit.tools.get_pets_petId_card(petId="1").text
toolkit.invoke("listPet", {})  # type: ignore[arg-type]
toolkit.invoke("showPet", {"petId": 1})  # type: ignore[arg-type]
"""


def test_the_generated_project_type_checks(project: Path) -> None:
    (project / "use.py").write_text(USE)
    done = run([sys.executable, "-m", "mypy", "--strict", "use.py", "petshop"], project, check=False)
    assert done.stdout.startswith("Success"), done.stdout
