"""`message.content.<attribute>` of a message whose tool is not known: one line, not one for each tool that lacks it."""

from __future__ import annotations

from mypy.checker import TypeChecker
from mypy.errorcodes import UNION_ATTR
from mypy.nodes import Context, MemberExpr, Node
from mypy.plugin import AttributeContext, CheckerPluginInterface
from mypy.traverser import NameAndMemberCollector
from mypy.types import Instance, Type, UnionType, get_proper_type

from toolkit.mypy.checking import Checker, anything
from toolkit.mypy.wording import listed, literal_values, quoted

CONTENT = "toolkit.runtime.output.message.ToolMessage.content"


class ContentHook:
    """Called for each message of a union in turn. The first one decides for all, so that a thousand tools stay cheap."""

    def __init__(self) -> None:
        self._refused: tuple[Context, Type] | None = None

    def __call__(self, ctx: AttributeContext) -> Type:
        if not isinstance(ctx.type, UnionType) or not isinstance(ctx.context, MemberExpr):
            return ctx.default_attr_type
        first = get_proper_type(ctx.type.items[0])
        if isinstance(first, Instance) and first.args[-1:] == (ctx.default_attr_type,):
            self._refused = (ctx.context, ctx.type) if _refuses(ctx.type, ctx.context, ctx.api) else None
        if self._refused is None or self._refused[0] is not ctx.context or self._refused[1] is not ctx.type:
            return ctx.default_attr_type
        return anything()


def _refuses(messages: UnionType, content: MemberExpr, api: CheckerPluginInterface) -> bool:
    """Whether an attribute is read that not every output has; then it is reported here."""
    assert isinstance(api, TypeChecker)
    read = _find_read(api, content)
    if read is None:
        return False
    having: list[str] = []
    lacking = False
    for message in map(get_proper_type, messages.items):
        output = get_proper_type(message.args[1]) if isinstance(message, Instance) and len(message.args) == 2 else None
        if not isinstance(message, Instance) or not isinstance(output, Instance) or output.type.fallback_to_any:
            return False  # not a union of messages
        if output.type.get(read.name) is None:
            lacking = True
        else:
            having += literal_values(message.args[0]) or ()
    if lacking:
        attribute, names = quoted(read.name), listed(list(map(quoted, having)), "and")
        some = f"Not every tool's output has {attribute}, only that of {names}: compare .name first"
        Checker(api).fail(some if having else f"No tool's output has {attribute}", read, UNION_ATTR)
    return lacking


def _find_read(checker: TypeChecker, content: MemberExpr) -> MemberExpr | None:
    """The expression that reads an attribute of this one."""
    collected = NameAndMemberCollector()
    scope: Node = checker.scope.top_level_function() or checker.tree
    scope.accept(collected)
    return next((read for read in collected.member_exprs if read.expr is content), None)
