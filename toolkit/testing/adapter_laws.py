"""The laws of adapters as a class of tests, for an adapter of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from toolkit.testing import laws
from toolkit.testing.laws import Adapter

if TYPE_CHECKING:
    from toolkit.wire import ChatMessage, ToolChoice, ToolDefinition


class AdapterLaws:
    """Tests that every adapter must pass. Subclass it in a test module; the name of the subclass starts with ``Test``.

    ``adapter`` is a module or object with the names that the packages of ``toolkit.adapters`` have. ``answers`` are whole
    answers of the provider and ``streams`` lists of events, as JSON; streams under the name of an answer must say the same.
    The more of them, the better: with a call, several calls, reasoning, an error.

    >>> from toolkit.adapters import ollama
    >>> hello = {"message": {"role": "assistant", "content": "hello"}, "done": True, "done_reason": "stop"}
    >>> class TestOllama(AdapterLaws):
    ...     adapter = ollama
    ...     keeps_ids = False
    ...     answers = {"hello": hello}
    ...     streams = {"hello": [{"message": {"content": "hel"}}, {"message": {"content": "lo"}}, {**hello, "message": {}}]}
    >>> TestOllama().test_streams_say_what_whole_answers_say()
    """

    adapter: Adapter
    answers: Mapping[str, object] = {}
    streams: Mapping[str, Sequence[object]] = {}
    keeps_ids: bool = True
    """Whether the provider has ids of calls."""
    keeps_schemas: bool = True
    """Whether the provider takes schemas as they are."""

    @pytest.mark.parametrize("messages", laws.CONVERSATIONS.values(), ids=laws.CONVERSATIONS)
    def test_messages_survive(self, messages: list[ChatMessage]) -> None:
        """What is written is JSON, can be read, and loses nothing: ids, names, arguments, results."""
        laws.check_messages_are_json(self.adapter, messages)
        laws.check_messages_round_trip(self.adapter, messages)
        laws.check_calls_survive(self.adapter, messages, keeps_ids=self.keeps_ids)

    @pytest.mark.parametrize("tool", laws.TOOLS.values(), ids=laws.TOOLS)
    def test_tools_survive(self, tool: ToolDefinition) -> None:
        """Definitions come back with names that the toolkit resolves."""
        laws.check_tool_survives(self.adapter, tool, keeps_schemas=self.keeps_schemas)

    @pytest.mark.parametrize("choice", laws.CHOICES.values(), ids=laws.CHOICES)
    def test_choices_survive(self, choice: ToolChoice) -> None:
        """A choice comes back, or is refused with a ``ValueError``; it is never ignored."""
        laws.check_choice_survives(self.adapter, choice)

    def test_answers_are_results(self) -> None:
        """Whole answers are results of the right types that can be stored and sent back."""
        assert self.answers, f"{type(self).__name__}.answers is empty; give it answers of the provider"
        for answer in self.answers.values():
            laws.check_answer(self.adapter, answer)

    def test_streams_say_what_whole_answers_say(self) -> None:
        """A stream and the whole answer of the same name are the same result."""
        for name in self.streams.keys() & self.answers.keys():
            laws.check_stream_equals_answer(self.adapter, self.streams[name], self.answers[name])

    def test_events_of_streams_add_up(self) -> None:
        """The events of a stream are its result, piece by piece."""
        assert self.streams, f"{type(self).__name__}.streams is empty; give it streams of the provider"
        for stream in self.streams.values():
            laws.check_events_add_up(self.adapter, stream)

    def test_streams_can_be_cut_anywhere(self) -> None:
        """A stream that breaks is a result with what came, and an empty one is an error."""
        laws.check_empty_stream_is_an_error(self.adapter)
        for stream in self.streams.values():
            laws.check_stream_can_be_cut(self.adapter, stream)

    def test_malformed_streams_are_results(self) -> None:
        """A wrong type in a stream never raises, and nothing is lost without an error."""
        for name, stream in self.streams.items():
            laws.check_malformed_streams(self.adapter, stream, name=name)
            laws.check_events_that_are_not_objects(self.adapter, stream)

    def test_malformed_answers_are_results(self) -> None:
        """A wrong type in an answer never raises."""
        for name, answer in self.answers.items():
            laws.check_malformed_answers(self.adapter, answer, name=name)

    @pytest.mark.parametrize("message", laws.ODD_HISTORIES, ids=repr)
    def test_malformed_histories_are_read(self, message: object) -> None:
        """A message of a wrong shape never raises."""
        laws.check_malformed_history(self.adapter, message)
