"""The plugin for pytest, which finds it by itself; ``-p no:toolkit`` leaves it out.

Fixtures:

- ``toolkit``: a toolkit over a temporary workspace, closed after the test; ``async_toolkit``: the async one
- ``scripted_model``: makes a ``ScriptedModel`` and checks after the test that all its turns were played;
  ``async_scripted_model``: the async one
- ``transcript``: compares conversations with files next to the test; ``--update-transcripts`` writes them

What the toolkit is made of can be replaced in a ``conftest.py`` or a test module, each by a fixture of the same name:
``toolkit_package``, ``toolkit_packs``, ``toolkit_workspace``, ``toolkit_files``, ``toolkit_policy``, ``toolkit_context``. The
marker ``toolkit`` sets the same for a test, class or module, and wins over these fixtures:
``@pytest.mark.toolkit(files={"a.txt": "hello"}, policy={"read_file": "allow"})``.

This module is imported whenever pytest starts: it imports nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolkit.guard import Decision, SecurityPolicy
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.sync import Runner
    from toolkit.testing.scripted_model import (
        AsyncScriptedModel,
        AsyncTurn,
        MakeAsyncScriptedModel,
        MakeScriptedModel,
        ScriptedModel,
        Turn,
    )
    from toolkit.testing.transcript import Transcript


MARKER = "toolkit"
OWN_KEYS = ("files", "package", "packs", "policy")
"""Keywords of the marker that are not passed to the context."""
_SCRIPTS = pytest.StashKey[list[Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("toolkit")
    group.addoption("--update-transcripts", action="store_true", help="write transcripts instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(files={{}}, policy=..., package=..., **context): what the fixture `toolkit` is made of; "
        "other keywords go to ToolkitContext",
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Checks the scripts of a test that passed as a part of it: a turn that is left over is a failure, not an error."""
    outcome = yield
    for model in pyfuncitem.stash.get(_SCRIPTS, ()):
        model.check_finished()
    return outcome


# -- the toolkit ---------------------------------------------------------------------------------------------------------


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The keywords of the markers of a test; those of the test itself win over those of its class and module."""
    found: dict[str, Any] = {}
    for mark in request.node.iter_markers(MARKER):
        if mark.args:
            pytest.fail(f"the marker {MARKER} takes keywords only, not {mark.args[0]!r}", pytrace=False)
        found = {**mark.kwargs, **found}
    return found


def _check_keys(keys: Iterable[str], context: Callable[..., object]) -> None:
    from difflib import get_close_matches
    from inspect import signature

    known = {*OWN_KEYS, *signature(context).parameters} - {"workspace"}
    for key in keys:
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(sorted(known))}"
            pytest.fail(f"the marker {MARKER} has no keyword {key!r}{hint}", pytrace=False)


@pytest.fixture
def toolkit_package() -> str:
    """The generated package whose toolkit is made; by default the built-in tools."""
    return "toolkit.generated"


@pytest.fixture
def toolkit_packs() -> Any:
    """The packs that provide the handlers; None means those that the package was generated with."""
    return None


@pytest.fixture
def toolkit_files() -> Mapping[str, str | bytes]:
    """The files of the workspace: path -> content."""
    return {}


@pytest.fixture
def toolkit_workspace(request: pytest.FixtureRequest, tmp_path: Path, toolkit_files: Mapping[str, str | bytes]) -> Path:
    """The workspace, with its files: a folder of its own below ``tmp_path``."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    files: Mapping[str, str | bytes] = {**toolkit_files, **_marked(request).get("files", {})}
    for path, content in files.items():
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return workspace


@pytest.fixture
def toolkit_policy() -> Any:
    """The policy: by default everything is allowed."""
    from toolkit.guard import SecurityPolicy

    return SecurityPolicy[Any](default="allow")


@pytest.fixture
def toolkit_context(
    request: pytest.FixtureRequest, tmp_path: Path, toolkit_workspace: Path, toolkit_policy: Any
) -> Any:
    """The context. By default tools are not granted the network, and what outlives a call is kept below ``tmp_path``."""
    from toolkit.runtime.context import ToolkitContext

    marked = _marked(request)
    _check_keys(marked, ToolkitContext)
    policy = _read_policy(marked["policy"]) if "policy" in marked else toolkit_policy
    settings = {
        "permissions": ("read", "write", "execute"),
        "session_id": "test",
        "state_dir": tmp_path / "toolkit-state",
        **{key: value for key, value in marked.items() if key not in OWN_KEYS},
    }
    return ToolkitContext[Any](toolkit_workspace, policy, **settings)


def _read_policy(given: SecurityPolicy[Any] | Mapping[str, Decision] | Decision) -> SecurityPolicy[Any]:
    """The policy of a marker: a policy, a decision for every tool, or decisions by name."""
    from toolkit.guard import SecurityPolicy

    if isinstance(given, str):
        return SecurityPolicy[Any](default=given)
    return SecurityPolicy[Any](tools=given) if isinstance(given, Mapping) else given


@pytest.fixture
def toolkit(
    request: pytest.FixtureRequest, toolkit_package: str, toolkit_packs: Any, toolkit_context: Any
) -> Iterator[Runner]:
    """A toolkit over a temporary workspace. Annotate it with the class of your package, ``AcmeToolkit`` for example."""
    with _create("create_agent_toolkit", request, toolkit_package, toolkit_packs, toolkit_context) as made:
        yield made


@pytest.fixture
def async_toolkit(
    request: pytest.FixtureRequest, toolkit_package: str, toolkit_packs: Any, toolkit_context: Any
) -> Iterator[AsyncRunner]:
    """The async toolkit over a temporary workspace, for tests that are async or call ``asyncio.run``."""
    import asyncio

    made: AsyncRunner = _create("create_async_agent_toolkit", request, toolkit_package, toolkit_packs, toolkit_context)
    yield made
    asyncio.run(made.close())


def _create(function: str, request: pytest.FixtureRequest, package: str, packs: Any, context: Any) -> Any:
    from importlib import import_module

    marked = _marked(request)
    create = getattr(import_module(marked.get("package", package)), function)
    handlers = marked.get("packs", packs)
    return create(context) if handlers is None else create(context, packs=handlers)


# -- models and transcripts ----------------------------------------------------------------------------------------------


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> MakeScriptedModel:
    """Makes a ``ScriptedModel`` from turns: ``scripted_model("hello")``. All its turns must be played by the test."""
    from toolkit.testing.scripted_model import ScriptedModel

    def make(*turns: Turn) -> ScriptedModel:
        made = ScriptedModel(*turns)
        request.node.stash.setdefault(_SCRIPTS, []).append(made)
        return made

    return make


@pytest.fixture
def async_scripted_model(request: pytest.FixtureRequest) -> MakeAsyncScriptedModel:
    """Makes an ``AsyncScriptedModel`` from turns. All its turns must be played by the test."""
    from toolkit.testing.scripted_model import AsyncScriptedModel

    def make(*turns: AsyncTurn) -> AsyncScriptedModel:
        made = AsyncScriptedModel(*turns)
        request.node.stash.setdefault(_SCRIPTS, []).append(made)
        return made

    return make


@pytest.fixture
def transcript(request: pytest.FixtureRequest, tmp_path: Path) -> Transcript:
    """Compares conversations with ``transcripts/<test module>/<test>.txt`` next to the test module."""
    from toolkit.testing.transcript import Transcript

    module = request.path
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    places = {re.escape(str(tmp_path / "workspace")): "<workspace>", re.escape(str(tmp_path)): "<tmp>"}
    update = bool(request.config.getoption("--update-transcripts"))
    return Transcript(module.parent / "transcripts" / module.stem, name, update=update, replace=places)
