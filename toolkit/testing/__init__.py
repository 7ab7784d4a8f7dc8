"""For tests of agents and of what you add to the toolkit: fixtures for pytest, scripted models, transcripts, laws.

>>> from toolkit.testing import ScriptedModel, call
>>> from toolkit import QueryOptions
>>> model = ScriptedModel(call("read_file", path="notes.txt"), "It says hello.")
>>> [one.name for one in model.query("What do my notes say?", QueryOptions()).tool_calls]
['read_file']

- ``ScriptedModel``, ``AsyncScriptedModel``: drivers for ``toolkit.run`` that play the turns they are given
- ``turn``, ``call``, ``refusal``, ``cut_off``, ``failure``: turns of a script
- ``Transcript``, ``render_transcript``: a conversation as a readable text, compared with a file next to the test
- ``AdapterLaws``, ``PackLaws``: tests that every adapter and every pack must pass; subclass them
- ``OutputCacheLaws``, ``TodoStoreLaws``, ``ApprovalStoreLaws``, ``WriteLockLaws``: the same for stores
- ``StandaloneContext``: what ``ToolContext.standalone()`` returns, to call a tool without a toolkit
- ``toolkit.testing.laws``: the laws of adapters one by one, as functions

The fixtures (``toolkit``, ``async_toolkit``, ``scripted_model``, ``transcript``) are in ``toolkit.testing.plugin``, which
pytest finds by itself. Everything here is loaded when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.registry import StandaloneContext as StandaloneContext
    from toolkit.testing.adapter_laws import AdapterLaws as AdapterLaws
    from toolkit.testing.pack_laws import PackLaws as PackLaws
    from toolkit.testing.scripted_model import AsyncScriptedModel as AsyncScriptedModel
    from toolkit.testing.scripted_model import MakeAsyncScriptedModel as MakeAsyncScriptedModel
    from toolkit.testing.scripted_model import MakeScriptedModel as MakeScriptedModel
    from toolkit.testing.scripted_model import ModelRequest as ModelRequest
    from toolkit.testing.scripted_model import ScriptedModel as ScriptedModel
    from toolkit.testing.scripted_model import Turn as Turn
    from toolkit.testing.scripted_model import call as call
    from toolkit.testing.scripted_model import cut_off as cut_off
    from toolkit.testing.scripted_model import failure as failure
    from toolkit.testing.scripted_model import refusal as refusal
    from toolkit.testing.scripted_model import turn as turn
    from toolkit.testing.store_laws import ApprovalStoreLaws as ApprovalStoreLaws
    from toolkit.testing.store_laws import OutputCacheLaws as OutputCacheLaws
    from toolkit.testing.store_laws import TodoStoreLaws as TodoStoreLaws
    from toolkit.testing.store_laws import WriteLockLaws as WriteLockLaws
    from toolkit.testing.transcript import Transcript as Transcript
    from toolkit.testing.transcript import render_transcript as render_transcript
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(submodules="laws")
