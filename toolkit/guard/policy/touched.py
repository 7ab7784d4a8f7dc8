"""What one call touches, in the form that the rules of a policy compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import ToolkitError
from toolkit.guard.network.hosts import Host, Url

if TYPE_CHECKING:
    from toolkit.guard.fs.consent import LocatedPath
    from toolkit.guard.policy.commands.touched_commands import TouchedCommands
    from toolkit.guard.policy.preview import Preview
    from toolkit.guard.policy.rule import Rule


class Touched(NamedTuple):
    """A preview in the form that rules compare: paths by the places they lead to, commands as words, URLs as hosts."""

    paths: tuple[str, ...]
    places: tuple[LocatedPath, ...] | None
    """Where the paths lead; None for a tool whose files only it can find. Then their text is compared."""
    commands: TouchedCommands | None
    """What is run; None if nothing is, or if no rule is about commands."""
    runs_something: bool
    hosts: tuple[Host, ...]
    opaque_url: bool
    """Whether there is a URL that cannot be read."""

    @staticmethod
    def from_preview(
        preview: Preview, *, need_commands: bool, places: tuple[LocatedPath, ...] | None = None
    ) -> Touched:
        """Commands are read only if a command rule covers the tool."""
        runs_something = preview.argv is not None or preview.shell is not None
        host = None if preview.url is None else _host_of(preview.url)
        return Touched(
            paths=preview.paths,
            places=places,
            commands=_touched_commands(preview) if runs_something and need_commands else None,
            runs_something=runs_something,
            hosts=() if host is None else (host,),
            opaque_url=preview.url is not None and host is None,
        )

    def covered_by(self, rules: Sequence[Rule[Any]]) -> Rule[Any] | None:
        """One of the rules that together cover everything the call touches; None if they do not cover everything."""
        if self.opaque_url or (self.runs_something and self.commands is None):
            return None
        if self.places is None:
            found = [next((rule for rule in rules if rule.allows_path(path)), None) for path in self.paths]
        else:
            reals = [place.real for place in self.places]
            found = [
                next((rule for rule in rules if real is not None and rule.allows_real(real)), None) for real in reals
            ]
        found += [next((rule for rule in rules if rule.allows_host(host)), None) for host in self.hosts]
        if self.commands is not None:
            cover = self.commands.find_cover([rule.words for rule in rules])
            found.append(None if cover.rule is None or cover.reason else rules[cover.rule])
        return found[0] if found and all(rule is not None for rule in found) else None

    def why_matched(self, rule: Rule[Any]) -> str:
        """Why a deny or ask rule on commands matches what does not look like it; else empty."""
        if rule.command is None or self.commands is None or not self.commands.run.is_unreadable:
            return ""
        return (
            " (it matches every command that cannot be read, as this one: use plain words without variables,"
            " substitutions, loops and uncommon wrappers)"
        )

    def why_uncovered(self, rules: Sequence[Rule[Any]]) -> str:
        """Why allow rules do not cover the call, if one of them begins like a command of it or covers a path as it is
        written; else empty. Where a path leads is not said: nobody may have allowed to look there."""
        for place in self.places or ():
            is_covered = place.real is not None and any(rule.allows_real(place.real) for rule in rules)
            if not is_covered and any(rule.allows_path(place.text) for rule in rules):
                return f"{place.text!r} leads to a place that no allow rule covers"
        if self.commands is None:
            return ""
        cover = self.commands.find_cover([rule.words for rule in rules])
        return cover.reason if cover.rule is None else f"{rules[cover.rule]!r}: {cover.reason}" if cover.reason else ""


def _host_of(url: str) -> Host | None:
    """The host of a URL; None if the URL cannot be read."""
    try:
        return Url.parse(url).host
    except ToolkitError:
        return None


def _touched_commands(preview: Preview) -> TouchedCommands:
    from toolkit.guard.policy.commands.touched_commands import TouchedCommands

    return TouchedCommands.from_preview(preview)
