"""Run as a program: one target under atheris, which ends the process. See ``tests/fuzz/__main__.py``."""

from __future__ import annotations

import sys

import atheris


def main(target: str, arguments: list[str]) -> None:
    with atheris.instrument_imports(include=["toolkit"]):
        from tests.fuzz.targets import load_target

        check = load_target(target)
    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
