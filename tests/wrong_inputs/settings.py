"""Settings in ``pyproject.toml``."""

from __future__ import annotations

from tests.wrong_inputs.rows import WrongInput

TOOL = {"acme/tools/add.yaml": "name: add\ninputSchema: {type: object}\n"}
GOOD = 'specs = "acme/tools"\npackage = "acme.generated"\n'


def _settings(title: str, table: str, command: str = "generate") -> WrongInput:
    return WrongInput(title, {"pyproject.toml": f"[tool.toolkit]\n{table}"}, (command,), TOOL)


ROWS = [
    WrongInput("no settings", {"pyproject.toml": '[project]\nname = "acme"\n'}, around={}),
    WrongInput("TOML with a missing quote", {"pyproject.toml": '[tool.toolkit]\nspecs = "acme/tools\n'}, around={}),
    WrongInput("a table that is not one", {"pyproject.toml": 'tool.toolkit = "acme"\n'}, around={}),
    _settings("a misspelt key", 'specs = "acme/tools"\npakage = "acme.generated"\n'),
    _settings("a misspelt key, for lint", f'{GOOD}fomats = "rich"\n', "lint"),
    _settings("an unknown key", f"{GOOD}colour = true\n"),
    _settings("settings of the wrong type", 'specs = 1\npackage = ["acme"]\nclass = 7\nformats = "fancy"\n'),
    _settings("a folder of specs that does not exist", 'specs = "acme/tolls"\npackage = "acme.generated"\n'),
    _settings("a package that is not a name", 'specs = "acme/tools"\npackage = "acme/generated"\n'),
    _settings("the package of the toolkit itself", 'specs = "acme/tools"\npackage = "toolkit.generated"\n'),
    _settings("a class that generated code uses", f'{GOOD}class = "Tools"\n'),
    _settings("a pack that is not module:name", f'{GOOD}packs = ["acme.tools"]\n'),
    _settings("a package to include that is not installed", f'{GOOD}include = ["nowhere.generated"]\n'),
    _settings("a module of functions that does not exist", f'{GOOD}functions = ["acme.missing"]\n'),
    _settings("a misspelt key of a profile", f'{GOOD}\n[tool.toolkit.profiles.reviewer]\ntols = ["add"]\n'),
    _settings("a profile with an unknown tool", f'{GOOD}\n[tool.toolkit.profiles.reviewer]\ntools = ["ad"]\n'),
    _settings(
        "a profile with a name that is not lower case", f'{GOOD}\n[tool.toolkit.profiles.Reviewer]\ntools = ["add"]\n'
    ),
    _settings(
        "a profile whose policy is missing", f'{GOOD}\n[tool.toolkit.profiles.reviewer]\npolicy = "review.toml"\n'
    ),
]
