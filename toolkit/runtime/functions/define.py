"""Tools made of typed Python functions: they run without generation, and stay the functions they are.

>>> from typing import Annotated
>>> from pydantic import Field
>>> from toolkit import ToolContext, tool
>>> @tool
... def repeat(text: Annotated[str, Field(description="What to say.")], times: int = 2) -> str:
...     "Say a text several times."
...     return " ".join([text] * times)
>>> repeat("hello")
'hello hello'
>>> repeat.definition.parameters["properties"]["text"]
{'description': 'What to say.', 'type': 'string'}
>>> with ToolContext.standalone(".") as ctx:
...     repeat.execute_raw('{"text": "hello", "times": 3}', ctx).value
...     repeat.execute_raw('{"text": 7}', ctx).value
'hello hello hello'
'INVALID_TOOL_ARGUMENTS: text: Input should be a valid string'
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from copy import copy, deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from toolkit.errors import SetupError
from toolkit.guard.permission import Permission, Permissions
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.catalog.catalog import ToolInfo
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.arguments import Arguments
from toolkit.runtime.functions.docstrings import description_in, parameters_in
from toolkit.runtime.functions.outputs import Output
from toolkit.runtime.functions.signature import ToolSignature, plain_function, qualified, read_signature
from toolkit.spec.names import NAME_RULE, is_wire_name
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from toolkit.runtime.functions.lazy import LazyTool

P = ParamSpec("P")
R = TypeVar("R")
InputT = TypeVar("InputT", bound=BaseModel)

Needs: TypeAlias = Permissions | Iterable[Permission]
"""Permissions of a tool; a plain list is the required ones."""
PreviewOf: TypeAlias = Callable[[Any, ToolContext], Preview]
"""Tells what a call would touch; the arguments are attributes of its first parameter."""


class FunctionTool(Generic[P, R]):
    """A tool made of a function. Calling it is calling the function, with the function's own types."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input: type[BaseModel] | None = None,
        permissions: Needs = (),
        parallel: bool | None = None,
        blocking: bool = True,
        preview: PreviewOf | None = None,
        text: Callable[[Any], str] | None = None,
    ) -> None:
        if not callable(function):
            raise SetupError(f"a tool is made of a function, not of {type(function).__name__}")
        if isinstance(function, FunctionTool):
            function = function.function
        self.function: Final[Callable[P, R]] = function
        self.name: Final = checked_name(name, function)
        self.title: Final = title
        self.permissions: Final = Permissions.of(permissions)
        self.blocking: Final = blocking
        self.preview: Final = preview
        self.text: Final = text
        self.long_description: Final[str | None] = None
        """A longer text for the model, from a file, in which the workspace is still to be filled in."""
        docstring = plain_function(function).__doc__
        self.description: Final = description_in(docstring) if description is None else description
        self._input = input
        self._parallel = parallel
        self._described = parameters_in(docstring)
        # So that help() and documentation see the function.
        self.__doc__ = docstring
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name!r}: {self.owner}>"

    # -- what a model is told ----------------------------------------------------------------------------------------

    @property
    def definition(self) -> ToolDefinition:
        """Name, description and schema. A toolkit fills the workspace into a long description."""
        return ToolDefinition(self.name, self.long_description or self.description, deepcopy(self.arguments.schema))

    @property
    def owner(self) -> str:
        """Who made it: ``module.function``."""
        return qualified(self.function)

    @property
    def origin(self) -> str:
        """The same for the generator: ``module:function``."""
        plain = plain_function(self.function)
        return f"{plain.__module__}:{plain.__qualname__}"

    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult:
        """Runs the tool with argument text a model wrote, as the toolkit behind ``ctx`` would; never raises.

        Policy, permissions, validation and the check of the output are those of a call of that toolkit; what fails
        becomes ``kind="error"`` with the text ``CODE: message``. An async function is waited for.
        """
        from toolkit.runtime.functions.standalone import execute

        return execute(self, text, ctx)

    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        from toolkit.runtime.functions.standalone import execute_async

        return await execute_async(self, text, ctx)

    @property
    def parallel(self) -> bool:
        """Whether it may run beside other calls."""
        return set(self.permissions.required) <= {"read"} if self._parallel is None else self._parallel

    # -- what the road needs of it; found out when it is first needed, as types may stand further down in a module ------

    def as_pack(self) -> Pack:
        return Pack(tools=[self])

    @cached_property
    def signature(self) -> ToolSignature:
        return read_signature(self.function, whole_input=self._input is not None)

    @cached_property
    def arguments(self) -> Arguments:
        """The parameters a model fills in."""
        title = "".join(part.capitalize() for part in self.name.replace("-", "_").split("_")) + "Arguments"
        return Arguments(self.function, self.signature, model=self._input, title=title, described=self._described)

    @cached_property
    def output(self) -> Output:
        """What it gives back."""
        return Output(self.function, self.signature.returns)

    @cached_property
    def info(self) -> ToolInfo:
        """Its row in a toolkit's catalog."""
        return ToolInfo(
            name=self.name,
            attribute=self.name,
            module=plain_function(self.function).__module__,
            prefix="",
            required=self.permissions.required,
            optional=self.permissions.optional,
            resources=self.arguments.resources,
            parallel=self.parallel,
            blocking=self.blocking,
            function=self.origin,
        )

    def changed(
        self, *, name: str | None = None, permissions: Needs | None = None, long_description: str | None = None
    ) -> FunctionTool[P, R]:
        """The same tool with another name, other permissions, or another text."""
        if name is None and permissions is None and long_description is None:
            return self
        made = copy(self)
        changes: dict[str, object] = {}
        if name is not None:
            changes["name"] = checked_name(name, self.function)
        if permissions is not None:
            changes["permissions"] = Permissions.of(permissions)
        if long_description is not None:
            changes["long_description"] = long_description
        vars(made).pop("info", None)
        vars(made).update(changes)
        return made


def checked_name(name: str | None, function: Callable[..., Any]) -> str:
    """The name given, or the function's own."""
    found = name if name is not None else getattr(function, "__name__", None)
    if found is None or name is None and found == "<lambda>":
        raise SetupError(f"{qualified(function)} has no name of its own: give one with name=...")
    if not isinstance(found, str) or not is_wire_name(found):
        raise SetupError(f"{found!r} is no tool name: {NAME_RULE}")
    return found


class ToolMaker(Protocol):
    """What ``@tool(...)`` puts around a function."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: Needs = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> ToolMaker: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a typed function, sync or async.

    The docstring describes it, ``Annotated[str, Field(description=...)]`` or ``:param path: ...`` its parameters.
    A parameter of type ``ToolContext`` takes the context of the call; ``Annotated[Db, Depends(open_db)]`` is injected.
    Neither shows in the schema.

    :param name: what models call it; the function's name if not given.
    :param permissions: what it needs of the system: the ``fs``, ``process`` and ``net`` of its context.
    :param parallel: whether it may run beside other calls; if not given, where it needs nothing but ``read``.
    :param blocking: whether a sync function runs in a thread under an async toolkit.
    :param preview: tells what a call would touch, for rules on paths, commands and hosts, and for approvers.
    :param text: what the model reads of the function's result.

    >>> @tool(name="math.add", description="Add two numbers.")
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> add(1, 2), add.name
    (3, 'math.add')
    """
    if function is not None:
        return FunctionTool(function, **options)
    return lambda function: FunctionTool(function, **options)


@overload
def define_tool(
    execute: Callable[Concatenate[InputT, P], R],
    *,
    input: type[InputT],
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: Needs = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> FunctionTool[Concatenate[InputT, P], R]: ...
@overload
def define_tool(
    execute: Callable[P, R],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: Needs = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> FunctionTool[P, R]: ...
@overload
def define_tool(
    *, name: str, factory: Callable[[], Made] | Callable[[ToolkitContext[Any]], Made], permissions: Needs = ()
) -> LazyTool: ...
def define_tool(
    execute: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    factory: Callable[..., Any] | None = None,
    permissions: Needs = (),
    **options: Any,
) -> Any:
    """Makes a tool from data, or from a factory that is called when the tool is first needed.

    Without ``input``, the parameters of ``execute`` are those of the tool, as with ``@tool``. With ``input``, a pydantic
    model, its first parameter takes them all as one object. The other parameters here are those of ``@tool``.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> define_tool(name="plus", description="Add two numbers.", execute=add)(1, 2)
    3

    A factory gives a function or a tool, sync or async; it takes nothing, and is called once, or the ``ToolkitContext``,
    and is called once for each. What it needs must be said here, so that it is known before it is called.

    >>> def make(context: ToolkitContext[str]) -> FunctionTool[[], str]:
    ...     return define_tool(lambda: context.workspace, name="where", description="Tell the workspace.")
    >>> define_tool(name="where", factory=make)
    <lazy tool 'where': toolkit.runtime.functions.define.make>
    """
    if (execute is None) == (factory is None):
        raise SetupError("a tool is defined by what it executes or by a factory: give `execute` or `factory`")
    if factory is None:
        assert execute is not None
        return FunctionTool(execute, name=name, permissions=permissions, **options)
    from toolkit.runtime.functions.lazy import LazyTool

    if options or name is None:
        wrong = next(iter(options), "no name")
        raise SetupError(
            f"a factory is given with `name` and `permissions`, and says the rest itself; here there is {wrong!r}"
        )
    return LazyTool(factory, name=name, permissions=permissions)


Made: TypeAlias = "FunctionTool[..., Any] | Callable[..., Any] | Awaitable[FunctionTool[..., Any] | Callable[..., Any]]"
"""What a factory gives: a tool, or a function to make one of."""
