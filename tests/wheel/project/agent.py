# ruff: noqa: T201
"""A user's program: it runs where only the wheel is installed, and is type-checked there."""

from __future__ import annotations

import sys
from typing import assert_type

import toolkit
import toolkit.codegen
import toolkit.generated
from acme.generated import (
    AcmeToolkit,
    AddOutput,
    DescribePictureOutput,
    SecurityPolicy,
    ToolkitContext,
    create_agent_toolkit,
)
from toolkit import InvalidArguments
from toolkit.generated import ReadFileOutput


def work(acme: AcmeToolkit) -> None:
    added = acme.invoke("add", {"a": 2, "b": 3}).content
    assert_type(added, AddOutput)
    read = acme.tools.read_file(path="note.txt")
    assert_type(read, ReadFileOutput)
    picture = acme.tools.describe_picture(url="https://example.org/cat.png", detail="high")
    assert_type(picture, DescribePictureOutput)
    print(added.sum, read.content.strip(), acme.tools.quote(lines=[{"item": "pear", "count": 2}]).total, picture.words)
    try:
        acme.tools.describe_picture(url="https://example.org/cat.png", size=3)
    except InvalidArguments as error:
        print(error.code)


def main() -> None:
    context = ToolkitContext(workspace=sys.argv[1], policy=SecurityPolicy(default="allow"))
    with create_agent_toolkit(context) as acme:
        work(acme)
    print(*(module.__file__ for module in (toolkit, toolkit.codegen, toolkit.generated)), sep="\n")
    print(*sys.path, sep="\n")


if __name__ == "__main__":
    main()
