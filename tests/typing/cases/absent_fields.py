"""Fields that may be left out but not be null: None in Python code means that they are not given."""

from typing import reveal_type

from toolkit.generated import BashInput, Toolkit
from toolkit.generated.models.grep import GrepOutputMatch


def none_means_not_given(given: BashInput) -> None:
    BashInput(command="x", description=None)
    BashInput(command=given.command, cwd=given.cwd, description=given.description)
    given.model_copy(update={"description": None})
    reveal_type(given.description)  # revealed: str | None
    reveal_type(BashInput(command="x", description=None))  # revealed: BashInput


def fields_that_are_required_or_have_a_default_take_no_none(match: GrepOutputMatch) -> None:
    BashInput(command=None)  # error
    BashInput(command="x", timeout_ms=None)  # error
    BashInput(command="x", description=7)  # error
    BashInput(command="x", descripton=None)  # error
    reveal_type(match.count)  # revealed: int | None
    print(match.count + 1)  # error


def null_is_not_an_argument(toolkit: Toolkit) -> None:
    toolkit.invoke("bash", BashInput(command="x", description=None))
    toolkit.invoke("bash", {"command": "x", "description": None})  # error
    toolkit.tools.bash(command="x", description=None)  # error
    toolkit.tools.bash(command="x")
