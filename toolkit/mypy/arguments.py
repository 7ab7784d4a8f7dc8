"""What is wrong with the arguments of a tool: a key or a value, with its place inside nested objects and lists."""

from __future__ import annotations

from collections.abc import Iterable

from mypy.errorcodes import ErrorCode
from mypy.nodes import Context, DictExpr, Expression, IntExpr, ListExpr, StrExpr, UnaryExpr
from mypy.subtypes import is_subtype
from mypy.types import Instance, NoneType, Type, TypedDictType, UnionType, get_proper_type

from toolkit.mypy.checking import Checker
from toolkit.mypy.wording import did_you_mean, listed, literal_values, nearest, quoted, type_text

_LISTS = ("builtins.list", "typing.Sequence", "typing.Iterable", "typing.Collection")


class Complaints:
    """Reports mistakes in the arguments of one tool, and counts them."""

    def __init__(self, checker: Checker, tool: str) -> None:
        self._checker = checker
        self._tool = quoted(tool)
        self.count = 0

    def report(self, message: str, place: Context, code: ErrorCode) -> None:
        self._checker.fail(message, place, code)
        self.count += 1

    def about_keys(
        self,
        given: dict[str, Context],
        known: Iterable[str],
        required: Iterable[str],
        call: Context,
        code: ErrorCode,
        at: str = "",
    ) -> None:
        """Reports unknown and missing keys. A misspelt key counts as given, so that one typo is one line."""
        known, missing = list(known), [key for key in required if key not in given]
        for key, place in given.items():
            if key in known:
                continue
            meant = nearest(key, [name for name in known if name not in given])
            if meant is None:
                takes = [quoted(at + name) for name in sorted(known)]
                hint = f"; it takes {listed(takes, 'and')}" if takes else "; it takes none"
            else:
                hint = f"; did you mean {quoted(at + meant)}?"
                missing = [name for name in missing if name != meant]
            self.report(f"{self._tool} has no argument {quoted(at + key)}{hint}", place, code)
        if missing:
            names = listed([quoted(at + name) for name in missing], "and")
            self.report(f"{self._tool} needs the argument{'s' * (len(missing) > 1)} {names}", call, code)

    def about_value(self, value: Expression, wanted: Type, at: str, code: ErrorCode) -> None:
        """Reports why a value does not fit, as deep inside as it can be told."""
        if self._checker.fits(value, wanted):
            return
        before = self.count
        objects = [kind for kind in _alternatives(wanted) if isinstance(kind, TypedDictType)]
        if isinstance(value, DictExpr) and len(objects) == 1:
            self.about_object(value, objects[0], f"{at}.", code)
        items = [kind.args[0] for kind in _alternatives(wanted) if isinstance(kind, Instance) and _is_list(kind)]
        if isinstance(value, ListExpr) and len(items) == 1:
            for index, item in enumerate(value.items):
                self.about_value(item, items[0], f"{at}[{index}]", code)
        if self.count == before and not is_subtype(self._checker.infer(value, wanted).type, wanted):
            wanted_text = type_text(wanted, self._checker.options)
            given, hint = self._value_text(value, wanted)
            message = f"Argument {quoted(at)} of {self._tool} must be {wanted_text}, not {given}{hint}"
            self.report(message, value, code)

    def about_object(self, value: DictExpr, wanted: TypedDictType, at: str, code: ErrorCode) -> None:
        """Reports what is wrong with a dict that is written in the call. Says nothing if its keys are not."""
        keys = [(key, key.value) for key, _ in value.items if isinstance(key, StrExpr)]
        is_complete = len(keys) == len(value.items)
        required = wanted.required_keys if is_complete else ()
        self.about_keys(
            {name: key for key, name in keys},
            wanted.items,
            sorted(required),
            value,
            code,
            at,
        )
        for key, item in value.items:
            if isinstance(key, StrExpr) and key.value in wanted.items:
                self.about_value(item, wanted.items[key.value], f"{at}{key.value}", code)

    def _value_text(self, value: Expression, wanted: Type) -> tuple[str, str]:
        """What was given, and the nearest choice if there are choices: the value itself where it can be seen."""
        choices = [text for kind in _alternatives(wanted) for text in literal_values(kind) or ()]
        if isinstance(value, StrExpr) and choices:
            return quoted(value.value), did_you_mean(value.value, choices)
        if isinstance(value, UnaryExpr | IntExpr) and choices:
            return "int", ""
        return type_text(self._checker.infer(value).type, self._checker.options), ""


def _alternatives(wanted: Type) -> list[Type]:
    proper = get_proper_type(wanted)
    items = proper.items if isinstance(proper, UnionType) else [proper]
    return [kind for kind in map(get_proper_type, items) if not isinstance(kind, NoneType)]


def _is_list(kind: Instance) -> bool:
    return kind.type.fullname in _LISTS and len(kind.args) == 1
