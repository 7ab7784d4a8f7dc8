"""Who chose the address of a service: what a document names must be public after every lookup, what the settings name need not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.packs.petshop import DOCUMENT, SETTINGS
from tests.packs.service import Service
from toolkit import Network, SecurityPolicy, ToolkitContext
from toolkit.codegen import accept_configured, find_settings, generate, run_imports
from toolkit.errors import SandboxViolation

SECRET = "tok-4711-very-secret"
NAME = "shop.example.org"


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETSHOP_TOKEN", SECRET)


def make_shop(root: Path, *, document_url: str, settings_url: str) -> Path:
    """A generated project whose document and settings name these addresses."""
    (root / "petshop" / "tools").mkdir(parents=True)
    (root / "petshop" / "__init__.py").touch()
    (root / "shop.yaml").write_text(f"{DOCUMENT}servers: [{{url: '{document_url}'}}]\n")
    named = f'url = "{settings_url}"\n' if settings_url else ""
    (root / "pyproject.toml").write_text(SETTINGS.replace('url = "%s"\n', named))
    settings = find_settings(root)
    run_imports(settings, trust=accept_configured)
    generate(settings)
    return root


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "petshop"]:
            del sys.modules[name]

    def load(root: Path) -> Any:
        forget()
        monkeypatch.syspath_prepend(str(root))
        return importlib.import_module("petshop.generated")

    yield load
    forget()


def call(package: Any, workspace: Path, network: Network) -> int:
    context: Any = ToolkitContext(workspace, SecurityPolicy(default="allow"), network=network)
    with package.create_agent_toolkit(context) as toolkit:
        found: int = toolkit.invoke("showPet", {"petId": "1"}).content.id
        return found


def resolving(*addresses: str, **keys: Any) -> Network:
    return Network(resolve=lambda host, port: addresses, **keys)


INSIDE: dict[str, Sequence[str]] = {
    "loopback": ["127.0.0.1"],
    "loopback of IPv6": ["::1"],
    "loopback inside IPv6": ["::ffff:127.0.0.1"],
    "this host": ["0.0.0.0"],
    "a private network": ["10.0.0.1", "192.168.0.1"],
    "the cloud's metadata": ["169.254.169.254"],
}


@pytest.mark.parametrize("where", INSIDE)
def test_a_name_of_the_document_that_leads_inside(service: Service, tmp_path: Path, load: Any, where: str) -> None:
    root = make_shop(tmp_path / "project", document_url=f"http://{NAME}:{service.port}/v1", settings_url="")
    with pytest.raises(SandboxViolation) as refused:
        call(load(root), root, resolving(*INSIDE[where]))
    assert refused.value.message == (
        f"the host '{NAME}' has no permitted address: only public addresses may be reached; the service 'shop' has its"
        " address from its OpenAPI document: if it is the right one, set it as 'url' in the import's settings"
    )
    assert service.seen == []


def test_control_the_settings_name_it(service: Service, tmp_path: Path, load: Any) -> None:
    service.answer({"id": 7, "name": "Rex"})
    address = f"http://{NAME}:{service.port}/v1"
    root = make_shop(tmp_path / "project", document_url="https://elsewhere.example.org", settings_url=address)
    assert call(load(root), root, resolving("127.0.0.1")) == 7
    assert service.last.headers["authorization"] == f"Bearer {SECRET}"


def test_a_name_of_the_document_that_the_network_allows(service: Service, tmp_path: Path, load: Any) -> None:
    service.answer({"id": 7, "name": "Rex"})
    root = make_shop(tmp_path / "project", document_url=f"http://{NAME}:{service.port}/v1", settings_url="")
    package = load(root)
    assert call(package, root, resolving("127.0.0.1", allow_addresses=["127.0.0.1/32"])) == 7
    for network in (
        resolving("127.0.0.1", allow_addresses=["127.0.0.1/32"], deny_hosts=[NAME]),
        resolving("127.0.0.1", allow_addresses=["127.0.0.1/32"], allow_hosts=["other.example.org"]),
    ):
        with pytest.raises(SandboxViolation) as refused:
            call(package, root, network)
        assert "'url'" not in refused.value.message
    assert len(service.seen) == 1


def test_generated_code_says_who_chose(tmp_path: Path) -> None:
    by_document = make_shop(tmp_path / "a", document_url="https://shop.example.org", settings_url="")
    by_settings = make_shop(
        tmp_path / "b", document_url="https://shop.example.org", settings_url="https://shop.example.org"
    )
    texts = [(root / "petshop/generated/imported.py").read_text() for root in (by_document, by_settings)]
    assert [text.count("public_only=True") for text in texts] == [1, 0]
