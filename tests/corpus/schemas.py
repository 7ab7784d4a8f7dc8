"""Random schemas: every keyword of JSON Schema combined with every other, as unseen specs may have them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeAlias

Node: TypeAlias = dict[str, Any]

_NAMES: Final = (
    "id", "name", "class", "_id", "$meta", "a.b", "a-b", "a_b", "x y", "größe", "self", "schema", "model_config", "list",
    "type", "from", "Name", "3d", "root",
)  # fmt: skip
_PATTERNS: Final = ("^[a-z]+$", "a", "^\\d{2,3}$", "^(x|y)-", "[^0-9]", "^$|b", "^\\S+@\\S+$", "^.{1,3}$")
_CONSTANTS: Final[tuple[Any, ...]] = ("a", "b", "", "1", 1, 2, 1.5, 0, -2.0, True, False, None, [], [1], {}, {"a": 1})
_DIALECTS: Final = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", None)


def schema(seed: str) -> Node:
    """One schema; the same seed returns the same schema."""
    return _Maker(Random(seed)).root()


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.chosen: Callable[[Any], Any] = random.choice
        self.dialect = self.chosen(_DIALECTS)
        self.definitions = ["node", "leaf", "a/b"][: random.randint(0, 3)]
        self.below = 0  # how many objects and arrays enclose the node: a reference outside of any may recurse forever
        self.word = "definitions" if self.dialect == _DIALECTS[1] else "$defs"

    def root(self) -> Node:
        made = self.objects(0) if self.maybe(0.85) else self.node(0)
        made = made if isinstance(made, dict) else {}
        if self.definitions:
            made[self.word] = {name: self.node(1) for name in self.definitions}
        return {"$schema": self.dialect, **made} if self.dialect else made

    def maybe(self, chance: float = 0.3) -> bool:
        return self.random.random() < chance

    def node(self, depth: int) -> Any:
        kinds: list[Callable[[int], Any]] = [self.strings, self.numbers, self.constants, self.loose]
        if depth < 3:
            kinds += [
                self.objects,
                self.objects,
                self.arrays,
                self.arrays,
                self.unions,
                self.combined,
                self.conditional,
            ]
        if self.definitions and self.below:
            kinds += [self.reference, self.reference]
        made = self.chosen(kinds)(depth)
        if isinstance(made, dict) and self.maybe(0.1):
            made["default"] = self.chosen(_CONSTANTS)
        if isinstance(made, dict) and self.maybe(0.06) and depth < 3:
            made["not"] = self.node(depth + 2)
        return made

    def reference(self, depth: int) -> Any:
        name = self.chosen(self.definitions).replace("/", "~1")
        made: Node = {"$ref": "#" if self.maybe(0.1) else f"#/{self.word}/{name}"}
        if self.maybe(0.15):
            made["description"] = "words"
        if self.maybe(0.1):
            made |= self.chosen([{"minLength": 1}, {"type": "object"}, {"minimum": 1}, {"required": ["id"]}])
        return made

    def strings(self, depth: int) -> Any:
        made: Node = {"type": "string"}
        if self.maybe():
            made["pattern"] = self.chosen(_PATTERNS)
        if self.maybe():
            made["minLength"] = self.random.randint(0, 3)
        if self.maybe():
            made["maxLength"] = self.random.randint(1, 6)
        if self.maybe(0.2):
            made["format"] = self.chosen(["date", "uri", "made-up"])
        return self.untyped(made)

    def numbers(self, depth: int) -> Any:
        made: Node = {"type": self.chosen(["integer", "number"])}
        for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if self.maybe(0.2):
                made[word] = self.chosen([-1, 0, 1, 2.5, 10, 2**53 + 1])
        if self.maybe(0.15):
            made["multipleOf"] = self.chosen([1, 2, 0.5, 3])
        return self.untyped(made)

    def untyped(self, made: Node) -> Node:
        """Sometimes removes the type or adds another one."""
        if self.maybe(0.08):
            del made["type"]
        elif self.maybe(0.12):
            others = [kind for kind in ("null", "boolean", "array", "object") if kind != made["type"]]
            made["type"] = [made["type"], self.chosen(others)]
        return made

    def constants(self, depth: int) -> Any:
        if self.maybe():
            return {"const": self.chosen(_CONSTANTS)}
        text = [value for value in _CONSTANTS if isinstance(value, str)]
        values = text if self.maybe(0.5) else _CONSTANTS
        made: Node = {"enum": self.random.sample(values, self.random.randint(1, min(4, len(values))))}
        if self.maybe(0.4):
            made["type"] = self.chosen(["string", "integer", "number", "boolean", ["string", "null"]])
        return made

    def loose(self, depth: int) -> Any:
        return self.chosen(
            [True, {}, {"type": "boolean"}, {"type": "null"}, {"type": "object"}, {"type": "array"}, False]
        )

    def inner(self, depth: int) -> Any:
        """A schema for a part of the value, not for the value itself."""
        self.below += 1
        made = self.node(depth)
        self.below -= 1
        return made

    def objects(self, depth: int) -> Any:
        names = self.random.sample(_NAMES, self.random.randint(0, 4))
        made: Node = {"type": "object", "properties": {name: self.inner(depth + 1) for name in names}}
        made["required"] = self.random.sample(names, self.random.randint(0, len(names)))
        if self.maybe(0.1):
            made["required"].append("elsewhere")
        if self.maybe(0.5):
            made["additionalProperties"] = self.chosen([False, False, True, self.inner(depth + 2)])
        if self.maybe(0.08):
            made["patternProperties"] = {self.chosen(_PATTERNS): self.inner(depth + 2)}
        if self.maybe(0.06):
            made["propertyNames"] = self.chosen(
                [{"pattern": "^[a-z_]+$"}, {"maxLength": 4}, {"enum": ["id", "name", "z"]}]
            )
        if self.maybe(0.06):
            made[self.chosen(["minProperties", "maxProperties"])] = self.random.randint(1, 2)
        if self.maybe(0.05) and len(names) > 1:
            word = "dependencies" if self.dialect == _DIALECTS[1] else "dependentRequired"
            made[word] = {names[0]: [names[1]]}
        if self.maybe(0.05):
            made["unevaluatedProperties"] = self.chosen([False, {"type": "string"}])
        return self.untyped(made)

    def arrays(self, depth: int) -> Any:
        made: Node = {"type": "array"}
        if self.maybe(0.8):
            made["items"] = self.inner(depth + 1)
        if self.maybe(0.2):
            made["minItems"] = self.random.randint(0, 2)
        if self.maybe(0.2):
            made["maxItems"] = self.random.randint(1, 3)
        if self.maybe(0.15):
            made["uniqueItems"] = True
        if self.maybe(0.1):
            made["contains"] = self.inner(depth + 2)
        if self.maybe(0.15):
            word = "items" if self.dialect == _DIALECTS[1] else "prefixItems"
            made[word] = [self.inner(depth + 1) for _ in range(self.random.randint(1, 2))]
        return self.untyped(made)

    def unions(self, depth: int) -> Any:
        branches = [self.node(depth + 1) for _ in range(self.random.randint(1, 3))]
        made: Node = {self.chosen(["anyOf", "anyOf", "oneOf"]): branches}
        if self.maybe():
            branches.append({"type": "null"})
        if self.maybe(0.15):
            made |= self.chosen([{"type": "object"}, {"type": "string"}, {"maxLength": 3}, {"required": ["id"]}])
        return made

    def combined(self, depth: int) -> Any:
        made: Node = {"allOf": [self.node(depth + 1) for _ in range(self.random.randint(1, 2))]}
        return {**made, **self.objects(depth + 1)} if self.maybe() else made

    def conditional(self, depth: int) -> Any:
        made = self.objects(depth + 1)
        made["if"] = {"properties": {"id": {"const": 1}}, "required": ["id"]}
        made[self.chosen(["then", "else"])] = self.chosen([{"required": ["name"]}, self.node(depth + 2)])
        return made
