"""Tools made from typed Python functions: they need no generated code, and can still be called as functions.

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

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import copy, deepcopy
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from toolkit.errors import SetupError
from toolkit.guard.permission import Permission, Permissions
from toolkit.guard.policy.preview import Preview
from toolkit.runtime.catalog.catalog import ToolInfo
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.arguments import Arguments
from toolkit.runtime.functions.docstrings import description_in, parameters_in
from toolkit.runtime.functions.local_names import find_local_names
from toolkit.runtime.functions.outputs import FunctionOutput
from toolkit.runtime.functions.signature import FunctionSignature, plain_function, qualified_name, read_signature
from toolkit.runtime.tool_context import ToolContext
from toolkit.spec.tool_names import NAME_RULE, attribute_name, is_wire_name
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from toolkit.runtime.functions.lazy import LazyTool

P = ParamSpec("P")
R = TypeVar("R")
InputT = TypeVar("InputT", bound=BaseModel)

PermissionNeeds: TypeAlias = Permissions | Iterable[Permission]
"""Permissions of a tool; a plain list means required ones."""
PreviewOf: TypeAlias = Callable[[Any, ToolContext], Preview]
"""Returns what a call would touch; its first parameter has the arguments as attributes."""


class FunctionTool(Generic[P, R]):
    """A tool made from a function. Calling it calls the function, with the function's own types."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input: type[BaseModel] | None = None,
        permissions: PermissionNeeds = (),
        parallel: bool | None = None,
        blocking: bool = True,
        preview: PreviewOf | None = None,
        text: Callable[[Any], str] | None = None,
        local_names: Mapping[str, object] | None = None,
    ) -> None:
        if not callable(function):
            raise SetupError(f"a tool is made from a function, not from {type(function).__name__}")
        if isinstance(function, FunctionTool):
            local_names = {**function.local_names, **(local_names or {})}
            function = function.function
        self.function: Final[Callable[P, R]] = function
        self.name: Final = check_name(name, function)
        self.title: Final = title
        self.permissions: Final = Permissions.normalize(permissions)
        self.blocking: Final = blocking
        self.preview: Final = preview
        self.text: Final = text
        self.local_names: Final[Mapping[str, object]] = dict(local_names or {})
        """What its annotations mean in the function or class around it."""
        self.long_description: Final[str | None] = None
        """A longer text for the model, from a file; a toolkit fills in the workspace."""
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

    # -- what a model sees -------------------------------------------------------------------------------------------

    @property
    def definition(self) -> ToolDefinition:
        """Name, description and schema. A toolkit fills in the workspace of a long description."""
        return ToolDefinition(self.name, self.long_description or self.description, deepcopy(self.arguments.schema))

    @property
    def owner(self) -> str:
        """Where it comes from: ``module.function``."""
        return qualified_name(self.function)

    @property
    def origin(self) -> str:
        """The same for the generator: ``module:function``."""
        plain = plain_function(self.function)
        return f"{plain.__module__}:{plain.__qualname__}"

    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult:
        """Runs the tool with argument text a model wrote, as the toolkit behind ``ctx`` would; never raises.

        Policy, permissions, validation and output check apply as in a call of that toolkit. A failure becomes
        ``kind="error"`` with the text ``CODE: message``. An async function is awaited in the toolkit's loop.
        With a ``ToolContext.standalone(...)``, a tool that is set up wrongly (an annotation that cannot be read, a parameter
        that cannot be injected) raises ``SetupError``, and the result says which permission a handler lacks.
        """
        from toolkit.runtime.functions.standalone import execute

        return execute(self, text, ctx)

    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        from toolkit.runtime.functions.standalone import execute_async

        return await execute_async(self, text, ctx)

    @property
    def parallel(self) -> bool:
        """Whether it may run at the same time as other calls."""
        return set(self.permissions.required) <= {"read"} if self._parallel is None else self._parallel

    # -- what the call path needs; found at first use, because types may be defined later in the module -----------------

    def as_pack(self) -> Pack:
        return Pack(tools=[self])

    @cached_property
    def signature(self) -> FunctionSignature:
        return read_signature(self.function, whole_input=self._input is not None, local_names=self.local_names)

    @cached_property
    def arguments(self) -> Arguments:
        """The parameters that a model fills in."""
        title = "".join(part.capitalize() for part in self.name.replace("-", "_").split("_")) + "Arguments"
        return Arguments(self.function, self.signature, model=self._input, title=title, described=self._described)

    @cached_property
    def output(self) -> FunctionOutput:
        """What it returns."""
        return FunctionOutput(self.signature.returns, self.owner)

    @cached_property
    def info(self) -> ToolInfo:
        """Its row in a toolkit's catalog."""
        return ToolInfo(
            name=self.name,
            attribute=attribute_name(self.name),
            module=plain_function(self.function).__module__,
            prefix="",
            required=self.permissions.required,
            optional=self.permissions.optional,
            resources=self.arguments.resources,
            parallel=self.parallel,
            blocking=self.blocking,
            function=self.origin,
        )

    def replace(
        self,
        *,
        name: str | None = None,
        permissions: PermissionNeeds | None = None,
        long_description: str | None = None,
    ) -> FunctionTool[P, R]:
        """A copy with another name, other permissions, or another long description."""
        if name is None and permissions is None and long_description is None:
            return self
        made = copy(self)
        changes: dict[str, object] = {}
        if name is not None:
            changes["name"] = check_name(name, self.function)
        if permissions is not None:
            changes["permissions"] = Permissions.normalize(permissions)
        if long_description is not None:
            changes["long_description"] = long_description
        vars(made).pop("info", None)
        vars(made).update(changes)
        return made


def check_name(name: str | None, function: Callable[..., Any]) -> str:
    """The name given, or the function's own."""
    found = name if name is not None else getattr(function, "__name__", None)
    if found is None or name is None and found == "<lambda>":
        raise SetupError(f"{qualified_name(function)} has no name: set one with name=...")
    if not isinstance(found, str) or not is_wire_name(found):
        raise SetupError(f"{found!r} is not a tool name: {NAME_RULE}")
    return found


class ToolMaker(Protocol):
    """What ``@tool(...)`` returns: it makes a tool from a function."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


# Every overload lists the options: not all checkers refuse unknown ones in `**options: Unpack[...]`.
@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: PermissionNeeds = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> ToolMaker: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool from a typed function, sync or async.

    The docstring describes the tool; ``Annotated[str, Field(description=...)]`` or ``:param path: ...`` describes a
    parameter. A parameter of type ``ToolContext`` takes the context of the call, ``Annotated[Db, Depends(open_db)]`` is
    injected; neither is in the schema. Annotations may name what is defined before the tool in the same function or class.

    :param name: the name for models; by default the function's name.
    :param permissions: what it needs: ``ctx.fs``, ``ctx.process`` and ``ctx.net`` depend on them.
    :param parallel: whether it may run at the same time as other calls; by default if it needs at most ``read``.
    :param blocking: whether a sync function runs in a thread under an async toolkit, and in ``call_all``.
    :param preview: returns what a call would touch, for rules on paths, commands and hosts, and for approvers.
    :param text: turns the function's result into the text that the model reads.

    >>> @tool(name="math.add", description="Add two numbers.")
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> add(1, 2), add.name
    (3, 'math.add')
    """
    if function is not None:
        return _make_tool(function, sys._getframe(1), options)
    return lambda function: _make_tool(function, sys._getframe(1), options)


def _make_tool(function: Callable[..., Any], frame: FrameType, options: dict[str, Any]) -> FunctionTool[..., Any]:
    """A tool that is made in ``frame``: its annotations may mean what is defined there."""
    return FunctionTool(function, local_names=find_local_names(function, frame), **options)


@overload
def define_tool(
    execute: Callable[Concatenate[InputT, P], R],
    *,
    input: type[InputT],
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    permissions: PermissionNeeds = (),
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
    permissions: PermissionNeeds = (),
    parallel: bool | None = None,
    blocking: bool = True,
    preview: PreviewOf | None = None,
    text: Callable[[Any], str] | None = None,
) -> FunctionTool[P, R]: ...
@overload
def define_tool(
    *, name: str, factory: Callable[[], Made] | Callable[[ToolkitContext[Any]], Made], permissions: PermissionNeeds = ()
) -> LazyTool: ...
def define_tool(
    execute: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    factory: Callable[..., Any] | None = None,
    permissions: PermissionNeeds = (),
    **options: Any,
) -> Any:
    """Makes a tool from data, or from a factory that is called when the tool is first needed.

    Without ``input``, the tool has the parameters of ``execute``, as with ``@tool``. With ``input``, a pydantic model, the
    first parameter takes all arguments as one object. The other options are those of ``@tool``.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> define_tool(name="plus", description="Add two numbers.", execute=add)(1, 2)
    3

    A factory, sync or async, returns a function or a tool. It takes no parameters and is called once, or it takes the
    ``ToolkitContext`` and is called once for each. Its permissions must be given here: they are needed before it is called.

    >>> def make(context: ToolkitContext[str]) -> FunctionTool[[], str]:
    ...     return define_tool(lambda: context.workspace, name="where", description="Tell the workspace.")
    >>> define_tool(name="where", factory=make)
    <lazy tool 'where': toolkit.runtime.functions.define.make>
    """
    if (execute is None) == (factory is None):
        raise SetupError("a tool needs either `execute` or `factory`: give one of them")
    if factory is None:
        assert execute is not None
        return _make_tool(execute, sys._getframe(1), {"name": name, "permissions": permissions, **options})
    from toolkit.runtime.functions.lazy import LazyTool

    if options or name is None:
        wrong = next(iter(options), "no name")
        raise SetupError(
            f"with a factory, give only `name` and `permissions`: the tool that it makes has the rest; got {wrong!r}"
        )
    return LazyTool(factory, name=name, permissions=permissions)


Made: TypeAlias = "FunctionTool[..., Any] | Callable[..., Any] | Awaitable[FunctionTool[..., Any] | Callable[..., Any]]"
"""What a factory returns: a tool, or a function to make one from."""
