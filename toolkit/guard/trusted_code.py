"""The places from which this interpreter and the toolkit load code. Tools may read them, and must not change them: what
is there runs outside every sandbox, in this process or when the interpreter starts next time.

Promise: the list covers every directory and file that Python reads code from when it starts (prefixes, standard library,
packages, ``.pth`` files, ``pyvenv.cfg``, ``sitecustomize``), the toolkit's own package and the packages it has loaded, by
every name and link that leads there, whether or not they exist yet. It also covers the user's confirmations of imports.

Limits: a project installed in editable mode stays writable, and so does whatever else is on ``sys.path`` inside a root:
people edit it all day. Libraries found through ``LD_LIBRARY_PATH`` are not considered.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import machinery
from typing import Final, NamedTuple

from toolkit.errors import SetupError
from toolkit.guard.files.place import Way, trace_links
from toolkit.guard.process.program import follow_links, helper_interpreter
from toolkit.user_state import confirmed_imports

DEPENDENCIES: Final = frozenset({
    "_cffi_backend", "_xxhash", "_yaml", "annotated_doc", "annotated_types", "anthropic", "anyio", "attr",
    "attrs", "certifi", "cffi", "charset_normalizer", "click", "cryptography", "distro", "docstring_parser",
    "google", "h11", "httpcore", "httpcore2", "httpx", "httpx2", "idna", "jiter", "jsonpatch", "jsonpointer",
    "jsonschema", "jsonschema_rs", "jsonschema_specifications", "jwt", "langchain_core", "langchain_protocol",
    "langsmith", "markdown_it", "mcp", "mcp_types", "mdurl", "multipart", "ollama", "openai", "opentelemetry",
    "orjson", "packaging", "pyasn1", "pyasn1_modules", "pycparser", "pydantic", "pydantic_core", "pygments",
    "python_multipart", "referencing", "requests", "requests_toolbelt", "rich", "rpds", "shellingham", "sniffio",
    "sse_starlette", "starlette", "tenacity", "truststore", "typer", "typing_extensions", "typing_inspection",
    "urllib3", "uuid_utils", "uvicorn", "websockets", "xxhash", "yaml", "zstandard",
})  # fmt: skip
"""Top-level modules of what the toolkit depends on at run time, its extras included."""

_STARTUP_MODULES: Final = ("sitecustomize", "usercustomize")
_ENVIRONMENT_FILE: Final = "pyvenv.cfg"
_CODE_BELOW_PREFIX: Final = ("bin", "include", "lib", "lib32", "lib64", "libexec", _ENVIRONMENT_FILE)


def trusted_code(roots: Sequence[str] = ()) -> list[str]:
    """The absolute paths that tools with these writable ``roots`` must not change; sorted, none below another.

    A prefix that is, or contains, a root is listed by the places in it that hold code, so that the root itself stays
    writable. Raises ``SetupError`` if a root is itself a directory that only holds code Python loads.

    >>> import os, sys
    >>> any(os.path.realpath(sys.prefix).startswith(place) for place in trusted_code())
    True
    """
    return find_trusted(RootSet(roots)).code


def startup_names() -> frozenset[str]:
    """The files, relative to a directory of ``sys.path``, that Python runs when it starts, whether or not they exist.

    >>> "sitecustomize.py" in startup_names()
    True
    """
    return frozenset(name for module in _STARTUP_MODULES for name in _files_of_module(module))


def places_to_put_back(roots: Sequence[str]) -> list[str]:
    """What no mount holds in ``roots``: files of ``trusted_code`` that do not exist, and the links that lead to code."""
    around = RootSet(roots)
    code, links = find_trusted(around)
    absent = [place for place in code if not os.path.lexists(place) and around.covers(place)]
    return sorted({*absent, *links})


def places_to_hold(roots: Sequence[str]) -> list[str]:
    """What a command that may write in ``roots`` must find unchanged when it ends: the files and directories of
    ``trusted_code`` that exist there, by their real paths, and the links that lead to them."""
    around = RootSet(roots)
    code, links = find_trusted(around)
    inside = [place for place in code if around.covers(place)]
    real = {place for place in inside if os.path.lexists(place) and os.path.realpath(place) == place}
    return sorted(real.union(links))


class Trusted(NamedTuple):
    """What ``trusted_code`` returns, and the links in the roots that lead there: replacing one replaces the code."""

    code: list[str]
    links: list[str]


def find_trusted(roots: RootSet) -> Trusted:
    """Both lists at once."""
    found: set[str] = set()
    links: set[str] = set()
    for way in _wanted_ways(roots, found):
        if not roots.has_at_or_below(way.forms[-1]):
            found.update(way.forms)
            links.update(way.links)
    inside = set(filter(roots.covers, links))
    return Trusted(_outermost(found, found), _outermost(inside, found))


def _wanted_ways(roots: RootSet, found: Collection[str]) -> Iterator[Way]:
    """The way to each place; ``found`` is what was listed so far. One that is, or contains, a root is not wanted."""
    for place in _prefixes():
        way = trace_links(place)
        yield way
        if roots.has_at_or_below(way.forms[-1]):
            yield from (trace_links(os.path.join(place, name)) for name in _CODE_BELOW_PREFIX)
    for place in _code_directories():
        way = trace_links(place)
        if way.forms[-1] in roots:
            raise SetupError(f"{place!r} cannot be a root that tools may write: Python loads code from it")
        yield way
    yield from map(trace_links, _files())
    for folder, names in _module_files():
        forms = trace_links(folder).forms
        if not all(_is_covered(form, found) for form in forms):
            yield from (_way_below(forms, name) for name in names)


def _prefixes() -> set[str]:
    return {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}


def _code_directories() -> Iterator[str]:
    """Directories that hold nothing but code; most are below a prefix."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for prefix in _prefixes():
        yield os.path.join(prefix, "lib", version)
        yield os.path.join(prefix, sys.platlibdir, version)
    yield os.path.dirname(os.__file__)
    yield from site.getsitepackages()
    yield site.getusersitepackages()
    if sys.pycache_prefix is not None:
        yield sys.pycache_prefix
    package = os.path.dirname(sys.modules["toolkit"].__file__ or "")
    yield package
    yield os.path.join(package, "codegen")  # links, in a source checkout
    yield os.path.join(package, "generated")
    for module in _loaded_dependencies():
        if os.path.basename(module).startswith("__init__."):
            yield os.path.dirname(module)


def _files() -> Iterator[str]:
    """Files, and directories that hold more than code."""
    for program in {*follow_links(sys.executable), *follow_links(helper_interpreter())}:
        folder = os.path.dirname(os.path.abspath(program))
        yield program
        yield folder  # Python looks for its standard library from there
        yield os.path.join(folder, _ENVIRONMENT_FILE)
        yield os.path.join(os.path.dirname(folder), _ENVIRONMENT_FILE)
    if startup := os.environ.get("PYTHONSTARTUP"):
        yield startup
    yield from confirmed_imports()


def _module_files() -> Iterator[tuple[str, Collection[str]]]:
    """Directories, and the names in them that must not change; for modules that are single files."""
    names = startup_names()
    yield from ((folder, names) for folder in sys.path)
    for module in _loaded_dependencies():
        folder, name = os.path.split(module)
        if not name.startswith("__init__."):
            yield folder, list(_files_of_module(name.partition(".")[0]))


def _loaded_dependencies() -> Iterator[str]:
    """The files of the modules in ``DEPENDENCIES`` that are in use."""
    for name in DEPENDENCIES:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            yield file


def _files_of_module(name: str) -> Iterator[str]:
    """Everything in one directory that could be the module of that name."""
    yield name  # a package
    for suffix in (*machinery.SOURCE_SUFFIXES, *machinery.EXTENSION_SUFFIXES, *machinery.BYTECODE_SUFFIXES):
        yield name + suffix
    for level in ("", ".opt-1", ".opt-2"):
        yield f"__pycache__/{name}.{sys.implementation.cache_tag}{level}.pyc"


def _way_below(forms: list[str], name: str) -> Way:
    """The way to a name in a directory. The links that lead to the directory are not part of it: people work there."""
    place = os.path.join(forms[-1], name)
    links, further = trace_links(place) if os.path.islink(place) else ([], [])
    return Way(links, [*(os.path.join(form, name) for form in forms), *further])


def _is_covered(path: str, found: Collection[str]) -> bool:
    return path in found or any(parent in found for parent in above(path))


def _outermost(paths: Collection[str], found: set[str]) -> list[str]:
    return sorted(path for path in paths if found.isdisjoint(above(path)))


class RootSet:
    """Directories by their real paths. A lookup costs the same for thousands of workspaces as for one.

    >>> roots = RootSet(["/srv/a/work"])
    >>> roots.covers("/srv/a/work/x.py"), roots.has_at_or_below("/srv"), roots.names_in("/srv")
    (True, True, {'a'})
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots: set[str] = set()
        # For each directory above a root: the names in it that lead to one.
        self._names: dict[str, set[str]] = {}
        for root in roots:
            self.add(os.path.realpath(root))

    def __contains__(self, path: str) -> bool:
        return path in self._roots

    def add(self, root: str) -> bool:
        """Adds a real path; whether it is new."""
        if root in self._roots:
            return False
        self._roots.add(root)
        for folder in above(root):
            names = self._names.setdefault(folder, set())
            if os.path.basename(root) in names:
                break  # and so are the ones further up
            names.add(os.path.basename(root))
            root = folder
        return True

    def covers(self, path: str) -> bool:
        """Whether a path is one of the directories, or below one."""
        return path in self._roots or any(folder in self._roots for folder in above(path))

    def has_at_or_below(self, path: str) -> bool:
        """Whether a path is one of the directories, or above one."""
        return path in self._roots or path in self._names

    def names_in(self, folder: str) -> set[str]:
        """The names in a directory that are one of the directories, or lead to one."""
        return self._names.get(folder, set())


def above(path: str) -> Iterator[str]:
    """The directories above an absolute path, the nearest first."""
    while path != (path := os.path.dirname(path)):
        yield path
