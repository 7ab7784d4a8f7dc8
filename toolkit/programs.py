"""Programs that a model writes against the typed tools: what they may use, what they give, and sessions of them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.programs.result import ProgramCall as ProgramCall
    from toolkit.runtime.programs.result import ProgramError as ProgramError
    from toolkit.runtime.programs.result import ProgramResult as ProgramResult
    from toolkit.runtime.programs.result import ProgramSettings as ProgramSettings
    from toolkit.runtime.programs.sessions import AsyncProgramSession as AsyncProgramSession
    from toolkit.runtime.programs.sessions import ProgramSession as ProgramSession
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.programs.result": "ProgramResult ProgramError ProgramCall ProgramSettings",
            "toolkit.runtime.programs.sessions": "ProgramSession AsyncProgramSession",
        },
    )
