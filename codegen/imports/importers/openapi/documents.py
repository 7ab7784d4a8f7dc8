"""The files of an OpenAPI document, and the targets of its references. Nothing is downloaded, and nothing outside the
document's folder is read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from toolkit.errors import SpecError, nearest
from toolkit.jsonschema.pointer import split_pointer
from toolkit.schema.problems import MAX_PROBLEMS, Finding, Problems, Unreadable, kind, pointer_of, quote
from toolkit.schema.spec import Json
from toolkit.schema.spec_files import read_below
from toolkit.schema.spec_text import read_yaml
from toolkit.spec.json_text import read_json

MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
MAX_FILES: Final = 500
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value and its place: the file, relative to the document's folder, and the keys that lead to it."""

    value: Json
    file: str
    path: tuple[str, ...] = ()

    @property
    def pointer(self) -> str:
        return pointer_of(self.path)

    @property
    def mapping(self) -> dict[str, Json]:
        """The value if it is an object, else an empty object."""
        return self.value if isinstance(self.value, dict) else {}

    def text(self, key: str) -> str:
        value = self.mapping.get(key)
        return value if isinstance(value, str) else ""

    def is_set(self, key: str) -> bool:
        return self.mapping.get(key) is True

    def at(self, key: str | int) -> DocumentNode:
        """The value at a key or an index, which must exist."""
        value = self.value[key] if isinstance(self.value, list) and isinstance(key, int) else self.mapping[str(key)]
        return DocumentNode(value, self.file, (*self.path, str(key)))

    def below(self, *keys: str) -> DocumentNode | None:
        """The value that these keys lead to, or None."""
        node = self
        for key in keys:
            if key not in node.mapping:
                return None
            node = node.at(key)
        return node

    def children(self) -> Iterator[tuple[str, DocumentNode]]:
        """The keys of an object or the items of a list."""
        keys: list[str | int] = list(range(len(self.value))) if isinstance(self.value, list) else [*self.mapping]
        return ((str(key), self.at(key)) for key in keys)


class Documents:
    """All files of one document, each read when something first refers to it, and their mistakes."""

    def __init__(self, document: Path, source: str) -> None:
        self._folder = document.parent
        self._source_folder = posixpath.dirname(source)
        self._values: dict[str, Json] = {}
        self._problems: dict[str, Problems] = {}
        self._reported: set[tuple[str, str, str]] = set()
        self._bytes_left = MAX_DOCUMENT_BYTES
        self.notes: Final[dict[Finding, None]] = {}
        """Notes for the person who imports, without repetitions."""
        self._full = False
        self.root: Final = DocumentNode(self._read(document.name), document.name)

    # -- mistakes ----------------------------------------------------------------------------------------------------

    def add(self, message: str, node: DocumentNode) -> None:
        """Reports a mistake once."""
        mistake = (message, node.file, node.pointer)
        if mistake in self._reported or self._full:
            return
        self._reported.add(mistake)
        try:
            self._problems_in(node.file).add(message, node.pointer)
        except Unreadable as reason:
            self._problems_in(node.file).add_unreadable(reason)
            self._full = True

    def note(self, message: str, node: DocumentNode) -> None:
        self.notes[self.finding(message, node)] = None

    def finding(self, message: str, node: DocumentNode) -> Finding:
        return Finding(message, self._problems_in(node.file).source, node.pointer)

    def raise_problems(self) -> None:
        found = [finding for problems in self._problems.values() for finding in problems.found]
        if found:
            raise SpecError(found)

    def _problems_in(self, file: str) -> Problems:
        source = posixpath.normpath(posixpath.join(self._source_folder, file))
        return self._problems.setdefault(file, Problems(source))

    # -- files and references ----------------------------------------------------------------------------------------

    def _read(self, file: str) -> Json:
        problems = self._problems_in(file)
        try:
            if len(self._values) >= MAX_FILES:
                raise Unreadable(f"the document has more than {MAX_FILES} files")
            text = read_below(self._folder, file, self._bytes_left)
            self._bytes_left -= len(text.encode())
            value = (
                read_json(text, problems) if file.endswith(".json") else read_yaml(text, problems, keys_as_text=True)
            )
        except Unreadable as reason:
            if len(problems.found) <= MAX_PROBLEMS:
                problems.add_unreadable(reason)
            value = None
        self._values[file] = value
        return value

    def resolve(self, reference: Json, node: DocumentNode) -> DocumentNode | None:
        """The target of ``reference``, which is in ``node``; None, and a mistake is reported, if there is none."""
        at = node.below("$ref") or node
        if not isinstance(reference, str):
            self.add(f"'$ref' must be a string, not {kind(reference)}", at)
            return None
        name, _, fragment = reference.partition("#")
        if _ELSEWHERE.match(name):
            self.add(
                f"{quote(reference)} is not followed: nothing is downloaded; save the file in the document's folder",
                at,
            )
            return None
        file = node.file
        if name:
            file = posixpath.normpath(posixpath.join(posixpath.dirname(node.file), unquote(name)))
        if file == ".." or file.startswith("../"):
            self.add(
                f"{quote(reference)} is not followed: it is outside the document's folder; move the file into it", at
            )
            return None
        return self._resolve_pointer(reference, file, unquote(fragment), at)

    def _resolve_pointer(self, reference: str, file: str, fragment: str, at: DocumentNode) -> DocumentNode | None:
        if fragment and not fragment.startswith("/"):
            self.add(
                f"{quote(reference)} is not followed: write a JSON pointer, such as '#/components/schemas/Pet'", at
            )
            return None
        if file not in self._values:
            self._read(file)
        if self._values[file] is None:
            self.add(f"{quote(reference)} is in a file that could not be read", at)
            return None
        found = DocumentNode(self._values[file], file)
        for key in split_pointer(fragment) if fragment != "/" else ():
            is_index = isinstance(found.value, list) and key.isdecimal() and int(key) < len(found.value)
            if is_index:
                found = found.at(int(key))
            elif key in found.mapping:
                found = found.at(key)
            else:
                near = nearest(key, found.mapping)
                self.add(f"{quote(reference)} does not exist{near and f'.{near}'}", at)
                return None
        return found

    def follow(self, node: DocumentNode) -> DocumentNode | None:
        """``node``, or the final target of its reference; None, and a mistake is reported, if there is none."""
        visited = {(node.file, node.path)}
        while "$ref" in node.mapping:
            target = self.resolve(node.mapping["$ref"], node)
            if target is None:
                return None
            if (target.file, target.path) in visited:
                self.add("the reference is circular", node)
                return None
            visited.add((target.file, target.path))
            node = target
        return node

    def follow_to_object(self, node: DocumentNode) -> DocumentNode | None:
        """As ``follow``, but the target must be an object."""
        found = self.follow(node)
        if found is None or isinstance(found.value, dict):
            return found
        self.add(f"this must be an object, not {kind(found.value)}", found)
        return None
