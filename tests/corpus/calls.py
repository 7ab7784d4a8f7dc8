"""Writes a program that calls every tool of a project through every entry point, for type checkers to check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.corpus.arguments import NoInstance, valid_arguments


def calls(rows: Sequence[dict[str, Any]], package: str, invoke_every: int = 1) -> tuple[str, list[str]]:
    """The program, and the tool that each of its lines is about; ``rows`` are those of the manifest.

    A checker needs seconds per call to find one of thousands of overloads: with ``invoke_every`` only some tools are
    invoked. The method of each tool is always called.
    """
    functions = [(row, _function(number, row, invoked=number % invoke_every == 0)) for number, row in enumerate(rows)]
    used = "\n".join(text for _, text in functions)
    models = (f"{row['prefix']}{suffix}" for row in rows for suffix in ("Args", "Input", "Output"))
    imports = ["AcmeToolkit", *(model for model in models if f" {model}" in used)]
    head = [
        "from typing import Literal, assert_type",
        "",
        f"from {package} import (",
        *(f"    {n}," for n in imports),
        ")",
    ]
    lines, about = head, [""] * len(head)
    for row, text in functions:
        body = ["", "", *text.splitlines()]
        lines, about = lines + body, about + [row["name"]] * len(body)
    return "\n".join([*lines, ""]), about


def _function(number: int, row: dict[str, Any], *, invoked: bool) -> str:
    """Calls with the smallest and the fullest arguments through each entry point, and checks the type of the result."""
    prefix, wire = row["prefix"], row["name"]
    try:
        made = valid_arguments(row["inputSchema"])
    except NoInstance:
        return _function_with_parameters(number, row, invoked=invoked)
    lines = [f"def call_{number}(toolkit: AcmeToolkit) -> None:"]
    for arguments in (made.minimal, made.full):
        keywords = ", ".join(f"{name}={value!r}" for name, value in _keywords(row, arguments))
        lines.append(f"    assert_type(toolkit.tools.{row['attribute']}({keywords}), {prefix}Output)")
        if invoked:
            lines.append(f"    assert_type(toolkit.invoke({wire!r}, {arguments!r}).content, {prefix}Output)")
    model = f"    model = {prefix}Input.model_validate({made.full!r})"
    message = f"    message = toolkit.invoke({wire!r}, model)"
    types = f"    assert_type(message.content, {prefix}Output)\n    assert_type(message.name, Literal[{wire!r}])"
    return "\n".join([*lines, model, message, types] if invoked else lines)


def _keywords(row: dict[str, Any], arguments: dict[str, Any]) -> list[tuple[str, Any]]:
    names = {parameter["wire"]: parameter["name"] for parameter in row["parameters"]}
    return [(names[wire], value) for wire, value in arguments.items()]


def _function_with_parameters(number: int, row: dict[str, Any], *, invoked: bool) -> str:
    """If no valid arguments were found, the function takes them as parameters."""
    prefix, wire = row["prefix"], row["name"]
    required = (parameter for parameter in row["parameters"] if parameter["required"])
    keywords = ", ".join(f"{parameter['name']}=args[{parameter['wire']!r}]" for parameter in required)
    lines = [
        f"def call_{number}(toolkit: AcmeToolkit, args: {prefix}Args, model: {prefix}Input) -> None:",
        f"    assert_type(toolkit.tools.{row['attribute']}({keywords}), {prefix}Output)",
    ]
    if invoked:
        lines += [
            f"    assert_type(toolkit.invoke({wire!r}, args).content, {prefix}Output)",
            f"    assert_type(toolkit.invoke({wire!r}, model).content, {prefix}Output)",
        ]
    return "\n".join(lines)
