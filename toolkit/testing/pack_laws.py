"""The laws of packs as a class of tests, for handlers of your own: errors, outputs, names, examples of specs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

from toolkit.errors import ERROR_CODES, ToolFailed, ToolkitError
from toolkit.runtime.signals import CancelSignal
from toolkit.testing.laws import Adapter, check_messages_are_json, check_tool_survives
from toolkit.wire import AssistantToolCallMessage, TextMessage, ToolCall, ToolResult, ToolResultMessage, alias, to_json

if TYPE_CHECKING:
    from toolkit.schema.spec import SpecExample, ToolSpec
    from toolkit.wire import ChatMessage, ToolDefinition

PROVIDERS: Final = ("openai_chat", "openai_responses", "anthropic", "gemini", "ollama", "bedrock", "cohere")
"""Adapters that need no package of the provider."""


class SyncToolkit(Protocol):
    """What the laws need of a toolkit. Every generated toolkit has it."""

    def get_allowed_tools(self) -> list[ToolDefinition]: ...

    def call(self, call: ToolCall, /) -> ToolResult: ...

    def execute_raw(self, name: str, text: str, /) -> Any: ...

    def with_options(self, *, signal: CancelSignal | None = None) -> SyncToolkit: ...


class PackLaws:
    """Tests that the tools of every pack must pass. Subclass it in a test module; its name starts with ``Test``.

    The fixture ``toolkit`` provides the toolkit: set ``toolkit_package`` and, if needed, ``toolkit_packs``. ``calls`` has
    arguments with which tools succeed, ``failing_calls`` those with which they fail, each by the name of the tool. ``specs``
    is the folder of the specs, whose examples then run, each in a workspace of its own. ``tools`` are the names of the tools
    to test; by default, those in ``calls``, ``failing_calls`` and ``specs``.

    >>> class TestFiles(PackLaws):
    ...     calls = {"write_file": [{"path": "a.txt", "content": "hello"}]}
    ...     failing_calls = {"read_file": [{"path": "missing.txt"}]}
    >>> TestFiles.names()
    ['read_file', 'write_file']
    """

    calls: Mapping[str, Sequence[Mapping[str, object]]] = {}
    failing_calls: Mapping[str, Sequence[Mapping[str, object]]] = {}
    specs: str | Path | None = None
    tools: Sequence[str] | None = None

    @classmethod
    def names(cls) -> list[str]:
        """The tools that are tested."""
        if cls.tools is not None:
            return list(cls.tools)
        return sorted({*cls.calls, *cls.failing_calls, *(spec.name for spec in cls._load_specs())})

    @classmethod
    def _load_specs(cls) -> list[ToolSpec]:
        from toolkit.schema.spec_files import load_specs

        return [] if cls.specs is None else list(load_specs([Path(cls.specs)], base=Path(cls.specs)))

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """One test for each tool, call and example."""
        if "tool_name" in metafunc.fixturenames:
            metafunc.parametrize("tool_name", cls.names())
        for parameter, given in (("succeeding_call", cls.calls), ("failing_call", cls.failing_calls)):
            if parameter in metafunc.fixturenames:
                calls = [ToolCall("call_1", name, one) for name, several in given.items() for one in several]
                metafunc.parametrize(parameter, calls, ids=[call.name for call in calls])
        if "example" in metafunc.fixturenames:
            examples = [(spec, example) for spec in cls._load_specs() for example in spec.examples]
            metafunc.parametrize(
                ("spec", "example"), examples, ids=[f"{spec.name}-{example.title}" for spec, example in examples]
            )

    def test_names_and_schemas_survive_every_provider(self, toolkit: SyncToolkit, tool_name: str) -> None:
        """A tool is offered to models, and comes back from each provider under a name that the toolkit resolves."""
        [definition] = _definitions(toolkit, tool_name)
        for adapter in _adapters():
            check_tool_survives(adapter, definition, keeps_schemas=False)
        result = toolkit.call(ToolCall("1", alias(tool_name), {}, None, "[]"))
        assert str(result.value).startswith("INVALID_TOOL_ARGUMENTS_TYPE"), result.value

    def test_wrong_arguments_are_refused(self, toolkit: SyncToolkit, tool_name: str) -> None:
        """Arguments that are not JSON, not an object, or lack what the schema requires never reach the handler."""
        wrong = {"{": "INVALID_TOOL_ARGUMENTS", "[]": "INVALID_TOOL_ARGUMENTS_TYPE"}
        [definition] = _definitions(toolkit, tool_name)
        if definition.parameters.get("required"):
            wrong["{}"] = "INVALID_TOOL_ARGUMENTS"
        for text, code in wrong.items():
            result = toolkit.call(ToolCall("1", tool_name, {}, None, text))
            assert (result.kind, str(result.value).partition(":")[0]) == ("error", code), f"{text}: {result.value}"

    def test_calls_succeed(self, toolkit: SyncToolkit, succeeding_call: ToolCall) -> None:
        """An output is what its schema says, survives JSON, and can be sent to every provider."""
        result = toolkit.call(succeeding_call)
        assert result.kind != "error", result.value
        check_output(result)
        _check_it_can_be_sent(succeeding_call, result)

    def test_calls_can_be_cancelled(self, toolkit: SyncToolkit, succeeding_call: ToolCall) -> None:
        """A call that was cancelled before it began does not run."""
        signal = CancelSignal()
        signal.cancel("the test cancelled it")
        result = toolkit.with_options(signal=signal).call(succeeding_call)
        assert str(result.value).startswith("TOOL_CANCELLED"), result.value

    def test_failing_calls_are_errors(self, toolkit: SyncToolkit, failing_call: ToolCall) -> None:
        """A failure is a ``ToolkitError`` with a code of ours, and not an unexpected exception."""
        result = toolkit.call(failing_call)
        assert result.kind == "error", f"the call succeeded: {result.value!r}"
        code = str(result.value).partition(":")[0]
        assert code in ERROR_CODES, result.value
        assert code != "INTERNAL", f"{result.value}; raise ToolFailed for what is expected to fail"
        _check_it_can_be_sent(failing_call, result)
        with pytest.raises(ToolkitError):
            toolkit.execute_raw(failing_call.name, json.dumps(failing_call.arguments))

    def test_examples_of_the_specs_hold(
        self, toolkit: SyncToolkit, toolkit_workspace: Path, spec: ToolSpec, example: SpecExample
    ) -> None:
        """A call of an example gives what the spec says."""
        check_example(toolkit, toolkit_workspace, spec, example)


def check_example(toolkit: SyncToolkit, workspace: Path, spec: ToolSpec, example: SpecExample) -> None:
    """Writes the files of an example into the workspace, makes its call, and compares the outcome with the spec."""
    for path, text in example.files.items():
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    try:
        message = toolkit.execute_raw(spec.name, json.dumps(example.arguments))
    except ToolkitError as error:
        expected = (error.code, error.reason if isinstance(error, ToolFailed) else None)
        assert example.error in expected, f"{example.title}: {error}"
        return
    assert example.error is None, f"{example.title}: {example.error} was expected, but there is no error: {message}"
    given: dict[str, Any] = message.content.model_dump(mode="json", by_alias=True, exclude_unset=True)
    found = {key: given.get(key) for key in example.output or {}}
    assert found == (example.output or {}), f"{example.title}: the output differs from the spec"
    assert message.text(), f"{example.title}: the model would get no text"


def check_output(result: ToolResult) -> None:
    """The typed output of a result that a toolkit made: written as JSON and read again, it is the same."""
    output: Any = result.output
    assert output is not None, "the result has no typed output"
    written = output.model_dump_json(by_alias=True)
    assert type(output).model_validate_json(written) == output, "the output read from its own JSON differs"
    json.dumps(to_json(result))


def _definitions(toolkit: SyncToolkit, name: str) -> list[ToolDefinition]:
    found = [one for one in toolkit.get_allowed_tools() if one.name == name]
    assert found, f"the toolkit does not offer {name!r}; check toolkit_package and toolkit_policy"
    return found


def _check_it_can_be_sent(call: ToolCall, result: ToolResult) -> None:
    messages: list[ChatMessage] = [
        TextMessage("user", "please"),
        AssistantToolCallMessage("", [call]),
        ToolResultMessage(result),
    ]
    for adapter in _adapters():
        check_messages_are_json(adapter, messages)


def _adapters() -> Iterator[Adapter]:
    for name in PROVIDERS:
        adapter: Any = import_module(f"toolkit.adapters.{name}")
        yield adapter
