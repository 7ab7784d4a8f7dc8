"""Stands in for pip where there is no registry: everything that a page installs must be there, with its extras."""

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def is_installed(wanted: Requirement) -> bool:
    try:
        found = distribution(wanted.name)
    except PackageNotFoundError:
        return False
    return wanted.specifier.contains(found.version, prereleases=True)


def missing(wanted: Requirement) -> list[str]:
    """What the requirement names and the environment lacks, the extras and what they need included."""
    if not is_installed(wanted):
        return [str(wanted)]
    found = distribution(wanted.name)
    offered = {canonicalize_name(extra) for extra in found.metadata.get_all("Provides-Extra") or ()}
    unknown = [f"{wanted.name}[{extra}]" for extra in wanted.extras if canonicalize_name(extra) not in offered]
    needs = [Requirement(text) for text in found.requires or ()]
    needed = [one for one in needs for extra in wanted.extras if one.marker and one.marker.evaluate({"extra": extra})]
    return unknown + [str(one) for one in needed if not is_installed(one)]


SERVERS = ("mcp-server-time",)
"""Servers that have a stand-in of their own."""

words = [word for word in sys.argv[1:] if not word.startswith("-")]
names = words[1:] if words[:1] == ["install"] else []
if not names:
    sys.exit(f"this stand-in knows `pip install`, not {sys.argv[1:]}")
lacking = [text for word in names if word not in SERVERS for text in missing(Requirement(word))]
if lacking:
    sys.exit(f"not installed: {re.sub('[[]]', '', ', '.join(lacking))}")
