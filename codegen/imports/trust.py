"""Trust in imports, as direnv does it: a person confirms once what the settings run and reach.

``pyproject.toml`` is in the workspace, so a tool can edit it. Without trust, the next ``toolkit import`` would run what the
tool wrote there, often without a sandbox.

Promise: before an import starts a program, imports a module or reaches an address, and before it stores the address of a
service, somebody has confirmed on this machine exactly that: the command, its sandbox, network and variables; the address
and headers; the names of modules; all for this folder. Any change of these asks again.

Limits: what a command or a module loads is not part of it, because code is edited all day. ``functions`` at the top level of
the settings are not asked about: they are the project's own modules, which its agent imports anyway. Neither is what
``imported.py`` runs: it is generated code that is reviewed and committed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from toolkit.codegen.imports.settings import ImportSettings, OAuthSettings, ServerNetwork, placeholders
from toolkit.errors import SetupError
from toolkit.runtime.state_directory import CONFIRMED_IMPORTS, PrivateRecords
from toolkit.visible import escape_hidden

_MAX_SHOWN: Final = 2000
_NETWORKS: Final[Mapping[ServerNetwork, str]] = {
    False: "without the network",
    "guarded": "with the guarded network",
    True: "with the network of this machine",
}


@dataclass(frozen=True, slots=True)
class ImportEffect:
    """What one import runs or reaches. ``facts`` are for people, ``digest`` is over all of it."""

    name: str
    facts: Mapping[str, str]
    digest: str


@dataclass(frozen=True, slots=True)
class UntrustedImport:
    """An import that nobody has confirmed in its present form, and the facts that were confirmed last."""

    effect: ImportEffect
    before: Mapping[str, str] | None

    def explain(self) -> list[str]:
        """What it runs or reaches, a fact a line; what was confirmed before is below each fact that changed.

        >>> now = ImportEffect("time", {"runs": "sh -c x"}, "0f0f")
        >>> print(*UntrustedImport(now, before={"runs": "mcp-server-time"}).explain(), sep="\\n")
        'time' changed since it was confirmed:
          runs: sh -c x
            before: mcp-server-time
        """
        facts, before = self.effect.facts, self.before
        changed = "is new on this machine or in this folder" if before is None else "changed since it was confirmed"
        lines = [f"{self.effect.name!r} {changed}:"]
        for label in dict.fromkeys([*facts, *(before or ())]):
            old, new = (before or facts).get(label, "nothing"), facts.get(label, "nothing")
            lines += [f"  {label}: {new}", *([f"    before: {old}"] if old != new else [])]
        if before == facts:
            lines.append(
                "  what changed is not shown: it is too long, or it may be secret (the text of a header, a query);"
                " read it in pyproject.toml"
            )
        return lines


TrustDecision: TypeAlias = Callable[[Sequence[UntrustedImport]], None]
"""Returns to confirm all of these imports from now on; raises ``SetupError`` to refuse. Callers must always pass one, so no
program confirms anything by accident."""


def accept_configured(untrusted: Sequence[UntrustedImport]) -> None:
    """Confirms whatever the settings name now: for a program whose author has read them, and for CI (``--trust``)."""


def refuse_untrusted(untrusted: Sequence[UntrustedImport]) -> None:
    """Refuses, and says what would run: for programs without a person to ask."""
    lines = [line for item in untrusted for line in item.explain()]
    raise SetupError(
        "nobody has confirmed what these imports run or reach:\n"
        + "\n".join(lines)
        + "\nrun the command on a terminal to be asked, or with --trust if this is what pyproject.toml should say"
    )


def require_trust(root: Path, effects: Sequence[ImportEffect], decide: TrustDecision) -> None:
    """Returns if every effect was confirmed, earlier or by ``decide``, and remembers it."""
    if not effects:
        return
    try:
        _require_confirmed(TrustRecords(root), effects, decide)
    except RecordError:
        # A CI machine may have no place for records. Accepting everything needs none; any other decision does.
        if decide is not accept_configured:
            raise


def _require_confirmed(records: TrustRecords, effects: Sequence[ImportEffect], decide: TrustDecision) -> None:
    untrusted = [
        UntrustedImport(effect, records.last_confirmed(effect.name))
        for effect in effects
        if not records.is_confirmed(effect.name, effect.digest)
    ]
    if not untrusted:
        return
    decide(untrusted)
    for item in untrusted:
        records.confirm(item.effect.name, item.effect.digest, item.effect.facts)


def reads_files_only(item: ImportSettings) -> bool:
    """Whether importing it neither runs nor reaches anything."""
    return item.kind in ("openapi", "tools")


def describe_effect(item: ImportSettings, root: Path, document_url: str = "") -> ImportEffect | None:
    """What an import runs or reaches; None for a file of tools, which names neither.

    ``document_url``: the address of the service in an OpenAPI document.
    """
    if item.kind == "tools":
        return None
    decisive = {
        "folder": os.path.realpath(root),
        "kind": item.kind,
        "command": item.command,
        "env": sorted(item.env.items() if isinstance(item.env, Mapping) else item.env),
        "sandbox": item.sandbox,
        "network": item.network,
        "url": item.url or document_url,
        "from_document": not item.url and bool(document_url),
        "headers": sorted(item.headers.items()),
        "openapi": item.openapi,
        "functions": item.functions,
        "models": item.models,
    }
    # Only if they are set, so that what was confirmed before there were such keys stays confirmed.
    decisive |= {"read_roots": item.read_roots} if item.read_roots else {}
    decisive |= {"cwd": item.cwd} if item.cwd != "." else {}
    decisive |= {"oauth": item.oauth.given()} if item.oauth is not None else {}
    digest = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()
    facts = {label: _clip(escape_hidden(text)) for label, text in _facts(item, document_url).items()}
    return ImportEffect(item.name, facts, digest)


def _facts(item: ImportSettings, document_url: str) -> dict[str, str]:
    if item.command:
        place = f"in the sandbox, {_NETWORKS[item.network]}" if item.sandbox else "WITHOUT a sandbox"
        shown = _show_named(item.env) if isinstance(item.env, Mapping) else ", ".join(sorted(item.env))
        facts = {"runs": shlex.join(item.command), "where": place, "variables": shown or "none"}
        facts |= {"reads": ", ".join(item.read_roots)} if item.read_roots else {}
        return facts | ({"starts in": item.cwd} if item.cwd != "." else {})
    if item.functions or item.models:
        what = "modules" if item.functions else "models"
        names = ", ".join(item.functions or item.models)
        return {f"imports the Python {what}": names, "where": "WITHOUT a sandbox"}
    if item.openapi:
        chosen_by = "set by 'url'" if item.url else "named by the document"
        address = f"{show_address(item.url or document_url)} ({chosen_by})"
        return {"reads": item.openapi, "its tools call": address, "headers": _show_headers(item.headers)}
    facts = {"reaches": show_address(item.url), "headers": _show_headers(item.headers)}
    return facts | ({"logs in": _show_login(item.oauth)} if item.oauth is not None else {})


def show_address(url: str) -> str:
    """The address without its query, which may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:  # from a document; generation will refuse it
        return url
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?...' if parts.query else ''}"


def _show_headers(headers: Mapping[str, str]) -> str:
    return _show_named(headers) or "none"


def _show_named(texts: Mapping[str, str]) -> str:
    """The names of headers or variables, and of the variables in them. Other text may be secret."""
    shown = []
    for name, text in sorted(texts.items()):
        variables = ", ".join(f"${{{variable}}}" for variable in placeholders(text))
        shown.append(f"{name} with {variables}" if variables else name)
    return "; ".join(shown)


def _show_login(oauth: OAuthSettings) -> str:
    place = f"at {show_address(oauth.issuer)}" if oauth.issuer else "where the server says"
    return "; ".join([place, *(f"{name} {value}" for name, value in oauth.given().items() if name != "issuer")])


def _clip(text: str) -> str:
    hidden = len(text) - _MAX_SHOWN
    return text if hidden <= 0 else f"{text[:_MAX_SHOWN]}... ({hidden} more characters: read them in pyproject.toml)"


# ----------------------------------------------------------------------------------------------------------------------
# The records: one file for each import of a project, in the user's state directory.
#
# Promise: records are outside the project, in a directory that only this user may enter, and are replaced as a whole. A
# record that cannot be read, or is not this user's own file, confirms nothing. Tools whose workspace contains that
# directory, such as a home directory, cannot change it (``guard/trusted_code.py``).

_MAX_KEPT: Final = 20
"""More than one, so that switching branches does not ask each time."""


class RecordError(SetupError):
    """Confirmed imports cannot be kept."""


class TrustRecords:
    """The confirmed imports of one project."""

    def __init__(self, root: Path) -> None:
        self._root: Final = os.path.realpath(root)
        try:
            self._records: Final = PrivateRecords(CONFIRMED_IMPORTS, [self._root])
            self._folder: Final = self._records.folder
        except SetupError as error:
            reason = str(error).rpartition("; give ")[0]
            raise RecordError(
                f"confirmed imports cannot be kept: {reason}; set XDG_STATE_HOME to a folder of yours outside the project"
            ) from None

    def is_confirmed(self, name: str, digest: str) -> bool:
        return any(entry["digest"] == digest for entry in self._read(name))

    def last_confirmed(self, name: str) -> Mapping[str, str] | None:
        """The facts of the import when it was last confirmed."""
        entries = self._read(name)
        return entries[-1]["facts"] if entries else None

    def confirm(self, name: str, digest: str, facts: Mapping[str, str]) -> None:
        others = [entry for entry in self._read(name) if entry["digest"] != digest]
        entries = [*others, {"digest": digest, "facts": dict(facts)}][-_MAX_KEPT:]
        record = {"project": self._root, "import": name, "confirmed": entries}
        try:
            self._records.write(self._key(name), record)
        except OSError as error:
            raise RecordError(
                f"the confirmed import {name!r} cannot be kept in {self._folder!r}: {error.strerror}; make room or set"
                " XDG_STATE_HOME to another folder"
            ) from None

    def _key(self, name: str) -> str:
        return f"{self._root}\0{name}"

    def _read(self, name: str) -> list[dict[str, Any]]:
        """The entries of a record, oldest first; none if anything about it is wrong."""
        record = self._records.read(self._key(name))
        try:
            if (record["project"], record["import"]) != (self._root, name):
                return []
            return [{"digest": str(entry["digest"]), "facts": _texts(entry["facts"])} for entry in record["confirmed"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []


def _texts(value: Mapping[str, Any]) -> dict[str, str]:
    return {str(label): str(text) for label, text in value.items()}
