"""The laws of adapters as functions: each takes an adapter and data, and raises an ``AssertionError`` if the law is broken.

``toolkit.testing.AdapterLaws`` runs all of them; call single ones for recorded traffic of your own.

>>> from toolkit.adapters import openai_chat
>>> from toolkit.testing.laws import CONVERSATIONS, check_messages_round_trip
>>> check_messages_round_trip(openai_chat, CONVERSATIONS["parallel calls"])
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.testing.laws.adapter import Adapter as Adapter
    from toolkit.testing.laws.adapter import StreamAccumulator as StreamAccumulator
    from toolkit.testing.laws.answers import check_answer as check_answer
    from toolkit.testing.laws.answers import check_empty_stream_is_an_error as check_empty_stream_is_an_error
    from toolkit.testing.laws.answers import check_events_add_up as check_events_add_up
    from toolkit.testing.laws.answers import check_result as check_result
    from toolkit.testing.laws.answers import check_stream_can_be_cut as check_stream_can_be_cut
    from toolkit.testing.laws.answers import check_stream_equals_answer as check_stream_equals_answer
    from toolkit.testing.laws.conversations import CHOICES as CHOICES
    from toolkit.testing.laws.conversations import CONVERSATIONS as CONVERSATIONS
    from toolkit.testing.laws.conversations import TOOLS as TOOLS
    from toolkit.testing.laws.malformed import ODD_HISTORIES as ODD_HISTORIES
    from toolkit.testing.laws.malformed import check_events_that_are_not_objects as check_events_that_are_not_objects
    from toolkit.testing.laws.malformed import check_malformed_answers as check_malformed_answers
    from toolkit.testing.laws.malformed import check_malformed_history as check_malformed_history
    from toolkit.testing.laws.malformed import check_malformed_streams as check_malformed_streams
    from toolkit.testing.laws.requests import check_calls_survive as check_calls_survive
    from toolkit.testing.laws.requests import check_choice_survives as check_choice_survives
    from toolkit.testing.laws.requests import check_messages_are_json as check_messages_are_json
    from toolkit.testing.laws.requests import check_messages_round_trip as check_messages_round_trip
    from toolkit.testing.laws.requests import check_tool_survives as check_tool_survives
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".adapter": "Adapter StreamAccumulator",
            ".answers": """check_answer check_empty_stream_is_an_error check_events_add_up check_result
                check_stream_can_be_cut check_stream_equals_answer""",
            ".conversations": "CHOICES CONVERSATIONS TOOLS",
            ".malformed": """ODD_HISTORIES check_events_that_are_not_objects check_malformed_answers
                check_malformed_history check_malformed_streams""",
            ".requests": """check_calls_survive check_choice_survives check_messages_are_json check_messages_round_trip
                check_tool_survives""",
        },
    )
