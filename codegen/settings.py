"""``[tool.toolkit]`` in a project's pyproject.toml: where specs are and what is made of them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.errors import SetupError, nearest

_KEYS: Final = ("specs", "package", "class", "include", "packs")


@dataclass(frozen=True, slots=True)
class Settings:
    """What to generate.

    ``root`` is the project's folder; paths in ``specs`` are below it.
    """

    root: Path
    specs: tuple[str, ...]
    package: str
    class_name: str = "Toolkit"
    include: tuple[str, ...] = ()
    packs: tuple[str, ...] = ()

    @property
    def output(self) -> Path:
        """The folder of the generated package, below ``src`` in a project laid out that way."""
        parts = self.package.split(".")
        base = self.root / "src" if (self.root / "src" / parts[0]).is_dir() else self.root
        return base.joinpath(*parts)

    @property
    def spec_paths(self) -> list[Path]:
        return [self.root / spec for spec in self.specs]


def find_settings(start: Path) -> Settings:
    """The settings of the nearest pyproject.toml, here or above, that has a ``[tool.toolkit]`` table."""
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return read_settings(folder, table)
    raise SetupError(
        "no pyproject.toml here or above has a [tool.toolkit] table; add one with at least\n\n    [tool.toolkit]\n"
        '    specs = "acme/tools"\n    package = "acme.generated"'
    )


def _table(file: Path) -> dict[str, Any] | None:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(f"cannot be read as TOML: {error} @ {file.name}") from None
    found = data.get("tool", {}).get("toolkit")
    return found if isinstance(found, dict) else None


def read_settings(root: Path, table: dict[str, Any]) -> Settings:
    """The table as settings; every mistake in it is reported at once."""
    problems = [
        f"unknown key {key!r}.{nearest(key, _KEYS)} @ pyproject.toml:/tool/toolkit/{key}"
        for key in table
        if key not in _KEYS
    ]
    specs = _texts(table, "specs", problems)
    package = table.get("package", "")
    class_name = table.get("class", "Toolkit")
    if not specs:
        problems.append("'specs' must name at least one file or folder @ pyproject.toml:/tool/toolkit/specs")
    if not isinstance(package, str) or not all(part.isidentifier() for part in package.split(".")):
        problems.append(
            "'package' must be a dotted module name, such as acme.generated @ pyproject.toml:/tool/toolkit/package"
        )
    if not isinstance(class_name, str) or not class_name.isidentifier() or class_name.startswith("_"):
        problems.append("'class' must be a class name @ pyproject.toml:/tool/toolkit/class")
    include, packs = _texts(table, "include", problems), _texts(table, "packs", problems)
    problems += [
        f"a pack is written 'module:name', not {pack!r} @ pyproject.toml:/tool/toolkit/packs"
        for pack in packs
        if pack.count(":") != 1
    ]
    if problems:
        raise SetupError("\n".join(problems))
    return Settings(root, specs, package, class_name, include, packs)


def _texts(table: dict[str, Any], key: str, problems: list[str]) -> tuple[str, ...]:
    value = table.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) and item for item in values):
        problems.append(f"{key!r} must be text or a list of texts @ pyproject.toml:/tool/toolkit/{key}")
        return ()
    return tuple(values)
