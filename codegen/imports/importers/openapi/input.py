"""The input of one operation while it is being built."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.codegen.imports.openapi_schema import Schema
from toolkit.schema.problems import Finding
from toolkit.schema.spec import Json


@dataclass(slots=True)
class OperationInput:
    """The input schema of a tool and how values are sent; ``notes`` are for the person who imports."""

    properties: Schema = field(default_factory=dict)
    required: list[Json] = field(default_factory=list)
    parameters: Schema = field(default_factory=dict)
    body: Schema | None = None
    notes: list[Finding] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        required: Schema = {"required": self.required} if self.required else {}
        return {"type": "object", "properties": self.properties, **required, "additionalProperties": False}

    def choose_name(self, *names: str) -> str:
        """The first of these names that is free."""
        for name in names:
            if name not in self.properties:
                return name
        return self.choose_name(f"{names[-1]}_")
