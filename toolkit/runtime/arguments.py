"""Validates values into one generated model; what does not change between calls is decided once."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator, core_schema, from_json

from toolkit.errors import InvalidArguments
from toolkit.schema.accepts import json_type
from toolkit.schema.enforce import require_validator
from toolkit.schema.exact import holds_scalars
from toolkit.schema.keywords import join_pointer
from toolkit.schema.models import ignoring_validator
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.schema.keywords import References


# ----------------------------------------------------------------------------------------------------------------------
# Reads the argument text that a model wrote: strict JSON that every parser reads the same way.

MAX_CHARACTERS: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 200
SHORT_TEXT: Final = 100_000
MANY_ARGUMENTS: Final = 1000
"""From so many arguments on, unknown ones are refused without the validator, which would make an error of each."""

_SPACED_COLONS: Final = (" :", "\t:", "\n:", "\r:")
# An unclosed string runs to the end, so that no input is scanned twice.
_BRACKET_OR_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{\]}]', re.DOTALL)


def is_plain(text: str, keys: int) -> bool:
    """Whether the text of a JSON object that has ``keys`` different keys has no key twice, no object inside, no NaN.

    Every key is followed by a colon. So as many colons as keys means that there is nothing else with a colon: no second
    key of the same name, and no object inside that could have one. If texts hold colons too, the quotation marks before
    those of the keys are counted; JSON allows white space between them, which is then left to the careful parser.
    """
    if text.count(":") != keys and (text.count('":') != keys or any(spaced in text for spaced in _SPACED_COLONS)):
        return False
    return "NaN" not in text and "Infinity" not in text


def is_long_but_flat(text: str) -> bool:
    """Whether a long text has few keys, as the arguments of a tool that writes a file: reading it makes few objects."""
    return len(text) <= MAX_CHARACTERS and text.count('":') < MANY_ARGUMENTS


def parse_arguments(text: object) -> Any:
    """Parses JSON text; refuses duplicate keys, NaN, trailing data, and text that is too deep or too long."""
    if not isinstance(text, str):
        raise InvalidArguments(f"the arguments must be JSON text, not {type(text).__name__}")
    try:
        value = from_json(text, allow_inf_nan=False) if len(text) < SHORT_TEXT else None
    except (ValueError, TypeError):
        # TypeError: lone surrogates
        value = None
    if type(value) is dict and is_plain(text, len(value)):
        return value
    return _parse_with_care(text)


def _parse_with_care(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise _json_error(f"longer than {MAX_CHARACTERS} characters")
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(text)
    import json

    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _json_error(f"{error.msg.removesuffix(' at')} at line {error.lineno} column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        # ValueError: an integer of thousands of digits
        raise _json_error(str(error).partition(";")[0] or "too deep") from None


def _json_error(why: str) -> InvalidArguments:
    return InvalidArguments(f"the arguments are not valid JSON: {why}. Send one JSON object.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _json_error(f"the key {twice[:100]!r} is duplicated")
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise _json_error(f"{word} is not a JSON number")


def _check_depth(text: str) -> None:
    depth = 0
    for token in _BRACKET_OR_TEXT.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _json_error(f"nested more than {MAX_DEPTH} levels deep")
        elif mark in "]}":
            depth -= 1


MANY_ERRORS: Final = 1000
"""From so many errors on, only those that are reported are made into objects: a value may be wrong in a million places."""
_MAX_NAMED: Final = 5
_MAX_KEY: Final = 100
_MAX_KEYS: Final = 20


class Reader:
    """Reads values into ``model``: from the wire by the names in the spec, from text, and from instances.

    ``validator`` is used instead of the model's own.
    """

    __slots__ = (
        "_check_fields",
        "_check_unset",
        "_is_root",
        "_omissible",
        "_required",
        "_wire_names",
        "from_dict",
        "from_text",
        "from_wire",
        "model",
    )

    def __init__(self, model: type[BaseModel], validator: SchemaValidator | None = None) -> None:
        require_validator(model)
        self.model: Final = model
        self._is_root = model.__pydantic_root_model__
        # Python names are not accepted on the wire. The option costs half a validation, so it is set only where they
        # differ from the wire names.
        aliased = validator is not None or _has_aliases(model)
        own = model.__pydantic_validator__
        self.from_wire: Final[Callable[[Any], Any]] = _by_wire_name((validator or own).validate_python, aliased=aliased)
        self._wire_names = (
            {name: field.alias or name for name, field in model.model_fields.items()} if aliased else None
        )
        ignoring = None if validator is not None else ignoring_validator(model)
        self.from_dict: Final = (
            _dict_reader(self.from_wire)
            if ignoring is None
            else _counting_reader(_by_wire_name(ignoring.validate_python, aliased=aliased))
        )
        """Reads the arguments of a call; None for those that must be read with care, right or not."""
        # Only generated models read JSON text exactly as they read what `json.loads` makes of it.
        from_json = None if validator is not None else _by_wire_name((ignoring or own).validate_json, aliased=aliased)
        self.from_text: Final = _never if from_json is None else _text_reader(from_json, is_scalar=holds_scalars(model))
        """Reads the JSON text of a flat object at once; None for text that must be read with care, right or not."""
        self._required = frozenset(name for name, field in model.model_fields.items() if field.is_required())
        self._omissible: frozenset[str] = getattr(model, "__omissible__", frozenset())
        self._check_fields = None if validator is not None else _fields_validator(model)
        self._check_unset = None
        if self._check_fields is not None:
            self._check_unset = _unset_validator(model, self._required, self._omissible)

    def from_instance(self, value: object) -> BaseModel | None:
        """Another instance, made from what is in this one. None for anything else, and for what must be read with care."""
        if type(value) is not self.model or self._is_root:
            return None
        return self.from_dict(self._content_of(value))

    def check(self, value: BaseModel) -> None:
        """Validates what is in an instance: it may have been made without validation (``model_construct``).

        Where a class checks nothing but its fields, no other instance is made, which takes a third of the time.
        """
        if value.__pydantic_fields_set__ == self._required and self._check_unset and not value.__pydantic_extra__:
            try:
                self._check_unset(value.__dict__)
                return
            except ValidationError:
                pass  # also where a default does not match the schema of its field
        if self._check_fields is None:
            self.revalidate(value)
        else:
            self._check_fields(self._content_of(value))

    def revalidate(self, value: BaseModel) -> BaseModel:
        """Makes another instance from what is in this one; it may have been made without validation."""
        if self._is_root:
            checked: BaseModel = self.from_wire(value.__dict__.get("root"))
            return checked
        checked = self.from_wire(self._content_of(value))
        return checked

    def _content_of(self, value: BaseModel) -> dict[str, Any]:
        """The given fields and extra properties of an instance, by their names on the wire. Nested instances are trusted."""
        fields, given, names = value.__dict__, value.__pydantic_fields_set__, self._wire_names
        content = fields
        if not given.issuperset(fields):
            # Unset fields are left out: they may be None where the schema refuses null. An omissible one that was changed
            # past pydantic is not None, and would be written.
            content = {name: fields[name] for name in given if name in fields}
            for name in self._omissible:
                if fields.get(name) is not None:
                    content[name] = fields[name]
        if names is not None:
            content = {names.get(key, key): item for key, item in content.items()}
        extra = value.__pydantic_extra__
        return {**content, **extra} if extra else content


def _by_wire_name(validate: Callable[..., Any], *, aliased: bool) -> Callable[[Any], Any]:
    return partial(validate, by_alias=True, by_name=False) if aliased else validate


def _never(value: object) -> Any:
    return None


def _dict_reader(validate: Callable[[Any], Any]) -> Callable[[dict[str, Any]], BaseModel | None]:
    def read(given: dict[str, Any]) -> BaseModel | None:
        return validate(given) if len(given) < MANY_ARGUMENTS else None

    return read


def _counting_reader(validate: Callable[[Any], Any]) -> Callable[[dict[str, Any]], BaseModel | None]:
    """For a validator that ignores what its class does not have."""

    def read(given: dict[str, Any]) -> BaseModel | None:
        if len(given) >= MANY_ARGUMENTS:
            return None
        model: BaseModel = validate(given)
        return model if len(model.__pydantic_fields_set__) == len(given) else None

    return read


def _text_reader(validate: Callable[[Any], Any], *, is_scalar: bool) -> Callable[[str], BaseModel | None]:
    def read(text: str) -> BaseModel | None:
        if len(text) > SHORT_TEXT and not is_long_but_flat(text):
            return None
        model: BaseModel = validate(text)
        keys = len(model.__pydantic_fields_set__)  # those of extra properties included
        if is_scalar and text.count(":") == keys and not model.__pydantic_extra__:
            return model  # the common case of `is_plain`: where single values are wanted, NaN was refused
        return model if is_plain(text, keys) else None

    return read


def describe_errors(error: ValidationError) -> str:
    """Each place that the schema of an output refuses, with the reason; the refused values are not repeated."""
    count = error.error_count()
    errors = first_errors(error, _MAX_NAMED)
    described = "; ".join(f"{shown_place(each['loc']) or 'the answer'}: {each['msg']}" for each in errors)
    return f"{described}; and {count - _MAX_NAMED} more" if count > _MAX_NAMED else described


def first_errors(error: ValidationError, limit: int) -> list[dict[str, Any]]:
    """The first ``limit`` errors as ``error.errors()`` has them, without the refused values; long keys are cut."""
    found: Iterable[Any]
    if error.error_count() <= MANY_ERRORS:
        found = error.errors(include_input=False, include_url=False)[:limit]
    else:
        # pydantic lists only all of them. As JSON that takes a quarter of the time and far less memory.
        text = error.json(include_input=False, include_url=False, include_context=False)
        found = islice(_read_items(text), limit)
    return [{**each, "loc": tuple(map(_cut_key, each["loc"]))} for each in found]


def _read_items(text: str) -> Iterator[Any]:
    """The items of a compact JSON array, one by one."""
    import json

    decode, at = json.JSONDecoder().raw_decode, 1
    while text[at] != "]":
        item, at = decode(text, at)
        at += text[at] == ","
        yield item


def _cut_key(key: int | str) -> int | str:
    return f"{key[:_MAX_KEY]}…" if isinstance(key, str) and len(key) > _MAX_KEY else key


def shown_place(keys: tuple[int | str, ...]) -> str:
    """A place in a value for a message: bounded, and without hidden characters.

    >>> shown_place(("lines", 3, "text"))
    'lines.3.text'
    """
    return ".".join(display(str(_cut_key(key))) for key in keys[:_MAX_KEYS])


def _fields_validator(model: type[BaseModel]) -> Callable[[Any], Any] | None:
    """Validates the fields of a class in a dict by their names on the wire.

    None for a class that is more than its fields: a root model, one with validators of its own, a recursive one.
    """
    schema: Any = model.__pydantic_core_schema__
    if schema["type"] != "model" or schema["schema"]["type"] != "model-fields" or "post_init" in schema:
        return None
    inner = schema["schema"]
    fields = {
        field.get("validation_alias", name): core_schema.typed_dict_field(
            field["schema"], required=field["schema"]["type"] != "default"
        )
        for name, field in inner["fields"].items()
    }
    extra: Any = schema.get("config", {}).get("extra_fields_behavior", "ignore")
    extras = inner.get("extras_schema") if extra == "allow" else None
    whole = core_schema.typed_dict_schema(
        fields, extra_behavior=extra, extras_schema=extras, config=schema.get("config")
    )
    return SchemaValidator(whole).validate_python


def _unset_validator(
    model: type[BaseModel], required: Collection[str], omissible: Collection[str]
) -> Callable[[Any], Any]:
    """Validates the attributes of an instance of which only the required fields are given: the others hold their defaults,
    unless something was changed past pydantic.

    It exists for speed: most outputs are such instances. Without it, ``execute_raw`` takes longer by almost half the limit
    of ``python -m benchmarks calls``.
    """
    schema: Any = model.__pydantic_core_schema__

    def check(name: str, field: Any) -> Any:
        if name in required:
            return field
        return core_schema.none_schema() if name in omissible else field.get("schema", field)

    fields = {
        name: core_schema.typed_dict_field(check(name, field["schema"]), required=True)
        for name, field in schema["schema"]["fields"].items()
    }
    whole = core_schema.typed_dict_schema(fields, extra_behavior="ignore", config=schema.get("config"))
    return SchemaValidator(whole).validate_python


def _has_aliases(model: type[BaseModel]) -> bool:
    """Whether any model of the same module has a field with another name on the wire."""
    neighbours = vars(sys.modules[model.__module__]).values()
    models = [found for found in neighbours if isinstance(found, type) and issubclass(found, BaseModel)]
    return any(field.alias is not None for found in models for field in found.model_fields.values())


# ----------------------------------------------------------------------------------------------------------------------
# Repair of what models commonly get wrong in arguments; used only with ``ToolkitContext(coerce=True)``.
#
# Three repairs, each only where the schema refuses the argument as it is and accepts what it becomes: a number or boolean
# written as text, JSON text where an object or array is wanted, null for an optional argument.

Failing: TypeAlias = Callable[[dict[str, Any]], frozenset[object]]
"""Which arguments of an object the tool's validator refuses, by name."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: where, and what was done."""

    pointer: str
    what: str

    def as_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "what": self.what}


Schema: TypeAlias = dict[str, Any]
Candidate: TypeAlias = tuple[Any, list[Repair]]


def repair_arguments(
    arguments: dict[str, Any], schema: Mapping[str, Any], failing: Failing
) -> tuple[dict[str, Any], list[Repair]]:
    """A repaired copy of the arguments, and the repairs; what is accepted as it is stays as it is."""
    from toolkit.schema.keywords import References  # few calls need it

    references = References(schema)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    made, repairs = dict(arguments), list[Repair]()
    refused = failing(arguments)
    for name in [name for name in arguments if name in refused]:
        nodes = _alternatives(properties.get(name), references)
        place = join_pointer("", name)
        if not nodes:
            continue
        if arguments[name] is None and name not in required:
            del made[name]
            repairs.append(Repair(place, "null read as omitted"))
            continue
        for value, done in _candidates(arguments[name], nodes, references, place):
            if done and name not in failing({**made, name: value}):
                made[name] = value
                repairs += done
                break
    return made, repairs


def _candidates(value: Any, nodes: list[Schema], references: References, pointer: str) -> Iterator[Candidate]:
    """What a value may have been meant as, each with the repairs it takes, for each of the schemas it may fit."""
    for node in nodes:
        for name in _own_types(node):
            if isinstance(value, str) and name != "string":
                yield from _read_text(value, name, node, references, pointer)
            elif isinstance(value, dict) and name == "object":
                yield _repair_object(value, node, references, pointer)
            elif isinstance(value, list) and name == "array":
                yield _repair_array(value, node, references, pointer)


def _read_text(text: str, name: str, schema: Schema, references: References, pointer: str) -> Iterator[Candidate]:
    try:
        value = parse_arguments(text)
    except InvalidArguments:
        return
    found = json_type(value)
    if found == name or (found == "integer" and name == "number"):
        note = Repair(pointer, f"string read as {found}")
        yield value, [note]
        for inner, done in _candidates(value, [schema], references, pointer) if name in ("object", "array") else ():
            yield inner, [note, *done]


def _repair_object(value: dict[str, Any], schema: Schema, references: References, pointer: str) -> Candidate:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    made, repairs = dict(value), list[Repair]()
    for key, item in value.items():
        nodes = _alternatives(properties.get(key, schema.get("additionalProperties")), references)
        place = join_pointer(pointer, key)
        types = {name for node in nodes for name in _own_types(node)}
        if not nodes:
            continue
        if item is None and key in properties and key not in required and "null" not in types:
            del made[key]
            repairs.append(Repair(place, "null read as omitted"))
        elif not _is_one_of(item, types) or isinstance(item, dict | list):
            made[key], done = next(_candidates(item, nodes, references, place), (item, []))
            repairs += done
    return made, repairs


def _repair_array(value: list[Any], schema: Schema, references: References, pointer: str) -> Candidate:
    nodes = _alternatives(schema.get("items"), references)
    made, repairs = list[Any](), list[Repair]()
    for index, item in enumerate(value):
        found, done = next(_candidates(item, nodes, references, join_pointer(pointer, index)), (item, []))
        made.append(found)
        repairs += done
    return made, repairs


def _alternatives(schema: Any, references: References) -> list[Schema]:
    """The schema behind references and those of its unions, innermost first; none where anything goes."""
    found: list[Schema] = []
    seen: set[int] = set()

    def add(node: Any) -> None:
        node = references.follow(node)
        if not isinstance(node, dict) or id(node) in seen:
            return
        seen.add(id(node))
        for word in ("anyOf", "oneOf"):
            branches = node.get(word)
            for branch in branches if isinstance(branches, list) else ():
                add(branch)
        found.append(node)

    add(schema)
    return found


def _own_types(schema: Schema) -> list[str]:
    """The types that a schema names itself, not those of its branches."""
    from toolkit.schema.keywords import types_of

    types = types_of(schema)
    if types is not None:
        return types
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return list(dict.fromkeys(map(json_type, values)))


def _is_one_of(value: Any, types: set[str]) -> bool:
    return json_type(value) in types or json_type(value) == "integer" and "number" in types
