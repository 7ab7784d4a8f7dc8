"""Small schemas, schemas near to them, and values, for judging proofs by trial."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([0.5, 1.0, -1.5]),
    st.sampled_from(["", "a", "ab", "abc"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
small = st.integers(0, 3)
_coin: st.SearchStrategy[Any] = st.booleans()


def words(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    """A value for each word of a schema."""
    named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    listed = st.lists(inner, min_size=1, max_size=2)
    return {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(scalars | values, min_size=1, max_size=3),
        "const": scalars,
        "minimum": small, "maximum": small, "exclusiveMinimum": small, "exclusiveMaximum": small,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": small, "maxLength": small, "pattern": st.sampled_from(["^a", "b"]),
        "items": inner, "prefixItems": listed, "minItems": small, "maxItems": small, "uniqueItems": st.booleans(),
        "contains": inner, "minContains": small, "maxContains": small,
        "properties": named, "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "additionalProperties": st.booleans() | inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=1),
        "minProperties": small, "maxProperties": small,
        "dependentRequired": st.dictionaries(st.sampled_from(NAMES), st.just(["a"]), max_size=1),
        "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
        "propertyNames": inner, "unevaluatedProperties": st.booleans(), "unevaluatedItems": st.booleans(),
        "anyOf": listed, "oneOf": listed, "allOf": listed, "not": inner, "if": inner, "then": inner, "else": inner,
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
        "title": st.just("a title"),
    }  # fmt: skip


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    table = words(inner)
    # More than a few words at once accept nothing, and prove everything.
    chosen = st.lists(st.sampled_from(sorted(table)), max_size=3, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: table[name] for name in names}))


nodes: st.SearchStrategy[Any] = st.recursive(st.booleans() | _schema(st.booleans()), _schema, max_leaves=4)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A schema with definitions that refer to nothing, so that none contains itself without end."""
    node = draw(nodes)
    root = node if isinstance(node, dict) else {"allOf": [node]}
    plain = st.sampled_from(
        [{"type": "string"}, {"type": "object", "properties": {"a": {"$ref": "#"}}}, {"minimum": 1}, True]
    )
    return {**root, "$defs": {"one": draw(plain), "two": draw(plain)}}


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema, and the same with one place of it changed."""
    root = draw(schemas())
    return root, _changed(draw, root)


def _changed(draw: st.DrawFn, node: dict[str, Any]) -> dict[str, Any]:
    table: dict[str, st.SearchStrategy[Any]] = words(nodes)
    inside = [
        word
        for word, value in node.items()
        if word in table and isinstance(value, dict) and word not in ("enum", "const")
    ]
    if inside and draw(_coin):
        word = draw(st.sampled_from(inside))
        value = node[word]
        if word in ("properties", "patternProperties", "dependentSchemas", "dependentRequired"):
            keys = [key for key, item in value.items() if isinstance(item, dict)]
            if keys:
                key = draw(st.sampled_from(keys))
                return {**node, word: {**value, key: _changed(draw, value[key])}}
        else:
            return {**node, word: _changed(draw, value)}
    word = draw(st.sampled_from(sorted(table)))
    if word in node and draw(_coin):
        return {key: value for key, value in node.items() if key != word}
    return {**node, word: draw(table[word])}
