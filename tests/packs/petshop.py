"""A user's project in miniature whose tools are a web service: a document, imported, generated and importable."""

from __future__ import annotations

from pathlib import Path

from toolkit.codegen.imports.run import run_imports
from toolkit.codegen.imports.trust import accept_configured
from toolkit.codegen.run import generate
from toolkit.codegen.settings import find_settings

DOCUMENT = """
openapi: 3.0.3
info: {title: Pet shop, version: "1.0"}
paths:
  /pets:
    get:
      operationId: listPets
      summary: List pets
      parameters:
        - {name: limit, in: query, schema: {type: integer, minimum: 1, maximum: 100, default: 20}, description: At most.}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
      responses:
        200: {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}}
    post:
      operationId: addPet
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses:
        201: {description: made, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: string}}
    get:
      operationId: showPet
      responses:
        200: {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
    delete:
      operationId: sellPet
      responses: {204: {description: gone}}
  /pets/{petId}/card:
    get:
      parameters:
        - {name: petId, in: path, required: true, schema: {type: string}}
      responses: {200: {description: ok, content: {text/plain: {schema: {type: string}}}}}
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string}
        weight: {type: number, nullable: true}
        kind: {type: string, enum: [cat, dog]}
"""
SETTINGS = """
[tool.toolkit]
specs = "petshop/tools"
package = "petshop.generated"
class = "ShopToolkit"

[tool.toolkit.imports.shop]
openapi = "shop.yaml"
url = "%s"
headers = { Authorization = "Bearer ${PETSHOP_TOKEN}" }
timeout = 20
"""


def make_petshop(root: Path, url: str) -> None:
    """Writes the project and what is generated for it."""
    (root / "petshop" / "tools").mkdir(parents=True)
    (root / "petshop" / "__init__.py").touch()
    (root / "shop.yaml").write_text(DOCUMENT)
    (root / "pyproject.toml").write_text(SETTINGS % url)
    settings = find_settings(root)
    run_imports(settings, trust=accept_configured)
    generate(settings)
