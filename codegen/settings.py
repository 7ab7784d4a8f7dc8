"""``[tool.toolkit]`` in a project's pyproject.toml: where the specs are and what is generated from them."""

from __future__ import annotations

import keyword
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.imports.settings import ImportSettings, read_imports
from toolkit.codegen.package.python_names import TAKEN_CLASSES
from toolkit.errors import SetupError
from toolkit.schema.problems import Finding, Unreadable, below, is_misspelt, unknown_key
from toolkit.schema.spec_files import SUFFIXES, decode

_KEYS: Final = ("specs", "functions", "package", "class", "include", "packs", "imports", "formats", "profiles")
_FORMATS: Final = ("text", "rich")
_FUNCTIONS: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")
_OUR_SPECS: Final = ("toolkit/builtin",)


class NoSettings(SetupError):
    """There is no ``[tool.toolkit]`` table here or above."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to generate.

    ``root`` is the project's folder; paths in ``specs`` are relative to it. ``functions`` are modules of code-first tools, or
    ``module:name`` of a registry or a pack. ``imports`` are tools described elsewhere. With ``rich_formats``, texts of a
    known ``format`` have a type such as ``datetime``. ``profiles`` are toolkits with some of the tools.
    """

    root: Path
    specs: tuple[str, ...]
    package: str
    class_name: str = "Toolkit"
    include: tuple[str, ...] = ()
    packs: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    imports: tuple[ImportSettings, ...] = ()
    rich_formats: bool = False
    profiles: tuple[ProfileSettings, ...] = ()

    @property
    def output(self) -> Path:
        """The folder of the generated package, below ``src`` if the project has that layout."""
        return self.import_root.joinpath(*self.package.split("."))

    @property
    def output_name(self) -> str:
        """The folder of the generated package, relative to the project."""
        return self.output.relative_to(self.root).as_posix()

    @property
    def import_root(self) -> Path:
        """The folder the project's packages are imported from."""
        source = self.root / "src"
        return source if (source / self.package.partition(".")[0]).is_dir() else self.root

    @property
    def all_packs(self) -> tuple[str, ...]:
        """The default packs of a toolkit: those in ``packs``, and the functions, which are their own handlers."""
        own = (entry if ":" in entry else f"{entry}:*" for entry in self.functions)
        return tuple(dict.fromkeys([*self.packs, *own]))

    def list_spec_paths(self) -> list[Path]:
        """The files and folders of ``specs``. Those that do not exist are mistakes in the settings."""
        # The first import creates the folder of its file.
        made_later = self.import_file("").parent if self.imports else None
        paths, problems = [], []
        for index, spec in enumerate(self.specs):
            path = self.root / spec
            if os.path.lexists(path):
                paths.append(path)
            elif path != made_later:
                key = f"specs/{index}" if len(self.specs) > 1 else "specs"
                message = f"'specs' names {spec!r}, which does not exist; create it, or correct the path"
                problems.append(Finding(message, "pyproject.toml", f"/tool/toolkit/{key}"))
        if problems:
            raise SetupError(problems)
        return paths

    def import_file(self, name: str) -> Path:
        """The file that holds the specs of an import, in the first folder of ``specs``."""
        folder = next(spec for spec in self.specs if not spec.endswith(SUFFIXES))
        return self.root / folder / f"{name}.json"

    def find_import(self, name: str) -> ImportSettings | None:
        return next((item for item in self.imports if item.name == name), None)


def find_settings(start: Path) -> Settings:
    """The settings of the nearest pyproject.toml, here or above, that has a ``[tool.toolkit]`` table."""
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            table = _read_table(file)
            if table is not None:
                return read_settings(folder, table)
    raise NoSettings(
        "found no pyproject.toml with a [tool.toolkit] table in this folder or above; go to the folder of your project, "
        "make a project with `toolkit init NAME`, or add a table with at least\n\n"
        '    [tool.toolkit]\n    specs = "acme/tools"\n    package = "acme.generated"'
    )


def list_missing_imports(settings: Settings) -> list[str]:
    """The imports of the settings that have no file yet."""
    return [item.name for item in settings.imports if not settings.import_file(item.name).is_file()]


def _read_table(file: Path) -> dict[str, Any] | None:
    text = _read_text(file)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise SetupError([_explain_mistake(file, text)]) from None
    tool = data.get("tool", {})
    if not isinstance(tool, dict) or not isinstance(tool.get("toolkit", {}), dict):
        from toolkit.schema.places import locate

        message = "'tool' and 'tool.toolkit' must be tables: write [tool.toolkit]"
        raise SetupError(locate([_mistake(message, pointer="/tool/toolkit")], file.parent))
    return tool.get("toolkit")


def _read_text(file: Path) -> str:
    try:
        return decode(file.read_bytes())
    except Unreadable as error:
        from toolkit.schema.places import show_path

        raise SetupError([Finding(str(error), file.name, "", error.line, error.column, show_path(file))]) from None


def _explain_mistake(file: Path, text: str) -> Finding:
    from toolkit.schema.places import show_path
    from toolkit.toml_places import TomlMistake, TomlPlaces

    try:
        TomlPlaces.read(text)
    except TomlMistake as error:
        return Finding(str(error), file.name, "", error.line, error.column, show_path(file))
    raise AssertionError("tomllib refused this text before")


def _mistake(message: str, key: str = "", *, pointer: str = "/tool/toolkit") -> Finding:
    return Finding(message, "pyproject.toml", below(pointer, key) if key else pointer)


def read_settings(root: Path, table: dict[str, Any]) -> Settings:
    """The table as settings; all mistakes are reported at once."""
    problems = [_mistake(unknown_key(key, _KEYS), key) for key in table if key not in _KEYS]
    specs = _read_strings(table, "specs", problems)
    package = table.get("package", "")
    if "package" not in table:
        if not is_misspelt("package", table, _KEYS):
            problems.append(_mistake("'package' is missing; add, for example, package = \"acme.generated\""))
        package = "acme.generated"  # replaced, so that reading continues
    class_name = table.get("class", "Toolkit")
    functions = _read_strings(table, "functions", problems)
    if not specs and not functions and table.get("specs", []) in ([], "") and not is_misspelt("specs", table, _KEYS):
        problems.append(_mistake("'specs' must name at least one file or folder", "specs"))
    problems += [
        _mistake(f"'functions' entries have the form 'acme.math' or 'acme.math:REGISTRY', not {entry!r}", "functions")
        for entry in functions
        if not _FUNCTIONS.fullmatch(entry)
    ]
    problems += [_mistake(text, "package") for text in _mistakes_in_package(package, specs)]
    problems += [_mistake(text, "class") for text in _mistakes_in_class(class_name)]
    include, packs = _read_strings(table, "include", problems), _read_strings(table, "packs", problems)
    problems += [
        _mistake(f"'packs' entries have the form 'module:name', not {pack!r}", "packs")
        for pack in packs
        if pack.count(":") != 1
    ]
    formats = table.get("formats", "text")
    if formats not in _FORMATS:
        problems.append(_mistake("'formats' must be 'text' or 'rich'", "formats"))
    imports = read_imports(table.get("imports", {}), problems)
    if imports and all(spec.endswith(SUFFIXES) for spec in specs):
        problems.append(_mistake("'specs' must name a folder, because imported specs are stored there", "specs"))
    profiles = read_profiles(table.get("profiles", {}), class_name, problems)
    if problems:
        from toolkit.schema.places import locate

        raise SetupError(locate(problems, root))
    return Settings(root, specs, package, class_name, include, packs, functions, imports, formats == "rich", profiles)


def _mistakes_in_package(package: object, specs: tuple[str, ...]) -> list[str]:
    if not isinstance(package, str) or not all(map(_is_name, package.split("."))):
        return ["'package' must be a dotted module name, such as acme.generated"]
    if package.partition(".")[0] == "toolkit" and specs != _OUR_SPECS:
        return [
            f"'package' must not be {package!r}: it would hide a package of typed-toolkit; use, for example, acme.generated"
        ]
    return []


def _mistakes_in_class(name: object) -> list[str]:
    if not isinstance(name, str) or not _is_name(name) or name.startswith("_"):
        return ["'class' must be the name of a class, such as AcmeToolkit"]
    if name != "Toolkit" and {name, f"Async{name}"} & TAKEN_CLASSES:
        return [f"'class' must not be {name!r}: generated code uses that name; use, for example, AcmeToolkit"]
    return []


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _read_strings(table: dict[str, Any], key: str, problems: list[Finding]) -> tuple[str, ...]:
    value = table.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) and item for item in values):
        problems.append(_mistake(f"{key!r} must be a string or a list of strings", key))
        return ()
    problems += [
        _mistake(f"{key!r} contains {value!r} more than once; remove one", key)
        for value in dict.fromkeys(values)
        if values.count(value) > 1
    ]
    return tuple(values)


# ----------------------------------------------------------------------------------------------------------------------
# ``[tool.toolkit.profiles.<name>]``: toolkits with some of the tools, so that calling another one is a type error.

_PROFILES: Final = "/tool/toolkit/profiles"
_PROFILE_KEYS: Final = ("tools", "policy")
_PROFILE_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """One profile: either names of tools, or a policy file, relative to the project."""

    name: str
    tools: tuple[str, ...] = ()
    policy: str | None = None

    @property
    def stem(self) -> str:
        """How the names of its classes begin: ``code_reviewer`` -> ``CodeReviewer``."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def module(self) -> str:
        return f"profile_{self.name}"

    @property
    def constant(self) -> str:
        return f"{self.name.upper()}_PROFILE"

    def finding(self, message: str, key: str | None = None) -> Finding:
        """A mistake in its table, or at a key of it."""
        pointer = below(_PROFILES, self.name)
        return Finding(message, "pyproject.toml", pointer if key is None else below(pointer, key))

    @property
    def exports(self) -> dict[str, tuple[str, ...]]:
        """What the package exports for it, by module."""
        stem = self.stem
        return {
            self.module: (f"{stem}Context", f"{stem}Policy", f"{stem}Rule", f"{stem}ToolMessage", f"{stem}ToolName"),
            f"{self.module}_facade": (f"{stem}Toolkit", f"{stem}Tools", f"create_{self.name}_toolkit"),
            f"{self.module}_async_facade": (
                f"Async{stem}Toolkit", f"Async{stem}Tools", f"create_async_{self.name}_toolkit",
            ),
        }  # fmt: skip


def read_profiles(tables: object, class_name: object, problems: list[Finding]) -> tuple[ProfileSettings, ...]:
    """The profiles of the settings; adds what is wrong with them to ``problems``."""
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        message = "'profiles' must be tables: write [tool.toolkit.profiles.reviewer]"
        problems.append(Finding(message, "pyproject.toml", _PROFILES))
        return ()
    found: list[ProfileSettings] = []
    owners = dict.fromkeys(TAKEN_CLASSES, "generated code") | {
        str(class_name): "'class'",
        f"Async{class_name}": "'class'",
    }
    for name, table in tables.items():
        mistakes = _mistakes_in_profile(name, table)
        if not mistakes:
            profile = ProfileSettings(name, _tool_names(table), table.get("policy"))
            made = [word for names in profile.exports.values() for word in names]
            taken = next((word for word in made if word in owners), None)
            if taken is not None:
                message = f"the profile {name!r} makes {taken!r}, a name that {owners[taken]} has; choose another name"
                mistakes.append(profile.finding(message))
            owners |= dict.fromkeys(made, f"the profile {name!r}")
            found.append(profile)
        problems += mistakes
    return tuple(found)


def _mistakes_in_profile(name: str, table: dict[str, Any]) -> list[Finding]:
    at = ProfileSettings(name).finding
    mistakes = [at(unknown_key(key, _PROFILE_KEYS), key) for key in table if key not in _PROFILE_KEYS]
    if not _PROFILE_NAME.fullmatch(name):
        message = f"a profile's name is lower-case words joined by underscores, such as code_reviewer, not {name!r}"
        mistakes.append(at(message))
    misspelt = any(is_misspelt(key, table, _PROFILE_KEYS) for key in _PROFILE_KEYS)
    if ("tools" in table) == ("policy" in table) and not misspelt:
        mistakes.append(at("a profile needs either 'tools', a list of names, or 'policy', a policy file"))
    if table.get("tools") == []:
        mistakes.append(at("'tools' names no tool; name at least one, or remove the profile", "tools"))
    elif "tools" in table and not _tool_names(table):
        mistakes.append(at("'tools' must be a list of tool names, each one once", "tools"))
    policy = table.get("policy", "x.toml")
    if not isinstance(policy, str) or not policy.endswith(".toml"):
        mistakes.append(at("'policy' must be the path of a TOML file, relative to the project", "policy"))
    return mistakes


def _tool_names(table: dict[str, Any]) -> tuple[str, ...]:
    """The names of tools; empty if they are not a list of different names."""
    tools = table.get("tools", [])
    names = [tools] if isinstance(tools, str) else tools
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return ()
    return tuple(names) if len(set(names)) == len(names) else ()
