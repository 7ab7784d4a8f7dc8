"""The signatures of shared tools: they say what the generated models say, mypy accepts them, and they are short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.corpus.project import SharedProject, SharedTool, shared_tools
from tests.typing.checkers import mypy
from toolkit.runtime.catalog import Catalog
from toolkit.runtime.programs.check import write_prelude
from toolkit.runtime.signatures import CONTENT_OUTPUT, ShownType, ToolSignature, TypeTexts, prompt_text


def sample(tools: list[SharedTool]) -> list[SharedTool]:
    """Few shared tools describe their output, so most of the sample is of those."""
    with_output = [tool for tool in tools if "outputSchema" in tool.definition]
    return [*with_output[::4], *(tool for tool in tools[::60] if tool not in with_output)]


@pytest.fixture(scope="module")
def catalog(corpus: Path, tmp_path_factory: pytest.TempPathFactory, everything: bool) -> Iterator[Catalog]:
    root = tmp_path_factory.mktemp("signatures")
    tools = shared_tools(corpus)
    project = SharedProject(root, "described", tools if everything else sample(tools))
    project.generate()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        yield import_module(f"{project.package}.catalog").CATALOG


@pytest.fixture(scope="module")
def signatures(catalog: Catalog) -> list[ToolSignature]:
    return [catalog.signatures.of(name) for name in catalog.tools]


def test_mypy_accepts_what_it_reads_before_a_program(signatures: list[ToolSignature], tmp_path: Path) -> None:
    (tmp_path / "before.py").write_text(write_prelude(signatures), encoding="utf-8")
    assert mypy([tmp_path / "before.py"], tmp_path).errors == {}


def test_every_output_has_the_fields_and_types_of_its_model(catalog: Catalog) -> None:
    compared = 0
    for name, info in catalog.tools.items():
        signature = catalog.signatures.of(name)
        model = catalog.model(info, "Output")
        if signature.output == CONTENT_OUTPUT:
            assert list(model.model_fields) == ["text", "blocks", "structured"]
            continue
        texts = TypeTexts("")
        assert texts.write(model) == signature.output
        from_manifest, from_models = fields_in(signature.output_types), fields_in(texts.types)
        assert from_manifest == from_models, name
        compared += len(from_models)
    assert compared > 20


def test_every_parameter_is_a_field_of_the_input_model(catalog: Catalog) -> None:
    for name, info in catalog.tools.items():
        signature = catalog.signatures.of(name)
        function = ast.parse(f"def {signature.call}: ...").body[0]
        assert isinstance(function, ast.FunctionDef)
        names = [one.arg for one in function.args.args]
        required = names[: len(names) - len(function.args.defaults)]
        fields = catalog.model(info, "Input").model_fields
        assert set(names) == set(fields), name
        assert set(required) == {field for field, how in fields.items() if how.is_required()}, name
        wire = dict(signature.renamed)
        assert {wire.get(one, one) for one in names} == {how.alias or field for field, how in fields.items()}, name


def test_nested_arguments_have_the_keys_of_their_models(catalog: Catalog) -> None:
    """The typed dict ``XArgsPoint`` and the model ``XInputPoint`` are written by different parts of the generator."""
    compared = 0
    for name, info in catalog.tools.items():
        module: Any = import_module(info.module)
        for line, fields in fields_in(catalog.signatures.of(name).argument_types).items():
            model = getattr(module, line.replace(f"{info.prefix}Args", f"{info.prefix}Input", 1), None)
            if isinstance(model, type) and issubclass(model, BaseModel):
                assert set(fields) == {how.alias or key for key, how in model.model_fields.items()}, line
                compared += 1
    assert compared > 20


def test_arguments_have_the_types_of_their_typed_dicts(catalog: Catalog) -> None:
    """Both are written by the generator, each by a part of its own."""
    compared = 0
    for name, info in catalog.tools.items():
        texts = TypeTexts("", as_arguments=True)
        module: Any = import_module(info.module)
        texts.write(getattr(module, f"{info.prefix}Args"))
        expected = fields_in(texts.types)
        signature = catalog.signatures.of(name)
        for line, fields in fields_in(signature.argument_types).items():
            if line in expected:  # not the types that lead back to themselves, whose names are only known to checkers
                assert fields == expected[line], name
                compared += 1
    assert compared > 20


def test_texts_are_the_same_whatever_comes_first(signatures: list[ToolSignature]) -> None:
    assert prompt_text(reversed(signatures)) == prompt_text(signatures)


def test_another_tool_changes_no_line(signatures: list[ToolSignature]) -> None:
    """The lines of some tools stay as they are, and in their order, when the others join them."""
    some = prompt_text(signatures[::2]).splitlines()
    lines = iter(prompt_text(signatures).splitlines())
    assert all(line in lines for line in some)


@pytest.mark.parametrize("budget", [400, 2_000, 10_000, 20_000, 40_000])
def test_a_budget_is_kept(signatures: list[ToolSignature], budget: int) -> None:
    text = prompt_text(signatures, budget)
    assert len(text) <= budget
    assert text == prompt_text(signatures, budget)


def fields_in(types: tuple[ShownType, ...]) -> dict[str, dict[str, str]]:
    """Class -> field -> type, with aliases replaced by what they stand for."""
    statements = [ast.parse(one.line).body[0] for one in types]
    aliases = {
        ast.unparse(node.target): node.value
        for node in statements
        if isinstance(node, ast.AnnAssign) and node.value is not None
    }
    found: dict[str, dict[str, str]] = {}
    for node in statements:
        if isinstance(node, ast.ClassDef):
            fields = [member for member in node.body if isinstance(member, ast.AnnAssign)]
            found[node.name] = {ast.unparse(each.target): normal_form(each.annotation, aliases) for each in fields}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            keys = node.value.args[1]
            assert isinstance(keys, ast.Dict)
            found[ast.unparse(node.targets[0])] = {
                ast.literal_eval(key): normal_form(kind, aliases)
                for key, kind in zip(keys.keys, keys.values, strict=True)
                if key is not None
            }
    return found


def normal_form(node: ast.expr, aliases: dict[str, ast.expr], inside: tuple[str, ...] = ()) -> str:
    """A type as text; a type that leads back to itself ends with its name.

    The order of a union and of literals does not matter: `typing` hands out a `Literal` that was made before of equal values.
    """
    if isinstance(node, ast.Name) and node.id in aliases:
        return node.id if node.id in inside else normal_form(aliases[node.id], aliases, (*inside, node.id))
    if isinstance(node, ast.BinOp):
        sides = [normal_form(side, aliases, inside) for side in (node.left, node.right)]
        return " | ".join(sorted({part for side in sides for part in side.split(" | ")}))
    if isinstance(node, ast.Subscript):
        kind = ast.unparse(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        texts = [ast.unparse(part) if kind == "Literal" else normal_form(part, aliases, inside) for part in parts]
        return f"{kind}[{', '.join(sorted(texts) if kind == 'Literal' else texts)}]"
    return ast.unparse(node)
