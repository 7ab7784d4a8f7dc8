"""The files of an OpenAPI document, and what its references lead to. Nothing is fetched, and nothing is read that lies
outside the document's own folder."""

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
from toolkit.spec.files import read_below
from toolkit.spec.json_text import read_json
from toolkit.spec.model import Json
from toolkit.spec.problems import MAX_PROBLEMS, Problems, Unreadable, kind, pointer_of, shown
from toolkit.spec.yaml_text import read_yaml

MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
MAX_FILES: Final = 500
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: the file, relative to the document's folder, and the keys that lead to it."""

    value: Json
    file: str
    path: tuple[str, ...] = ()

    @property
    def pointer(self) -> str:
        return pointer_of(self.path)

    @property
    def mapping(self) -> dict[str, Json]:
        """The value, if it is an object, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    def text(self, key: str) -> str:
        value = self.mapping.get(key)
        return value if isinstance(value, str) else ""

    def is_set(self, key: str) -> bool:
        return self.mapping.get(key) is True

    def at(self, key: str | int) -> Node:
        """What stands under a key or an index that is there."""
        value = self.value[key] if isinstance(self.value, list) and isinstance(key, int) else self.mapping[str(key)]
        return Node(value, self.file, (*self.path, str(key)))

    def below(self, *keys: str) -> Node | None:
        """What these keys lead to, or None."""
        node = self
        for key in keys:
            if key not in node.mapping:
                return None
            node = node.at(key)
        return node

    def children(self) -> Iterator[tuple[str, Node]]:
        """The keys of an object or the items of a list."""
        keys: list[str | int] = list(range(len(self.value))) if isinstance(self.value, list) else [*self.mapping]
        return ((str(key), self.at(key)) for key in keys)


class Documents:
    """All files of one document, each read when something first refers to it; their mistakes gather here."""

    def __init__(self, document: Path, source: str) -> None:
        self._folder = document.parent
        self._source_folder = posixpath.dirname(source)
        self._texts: dict[str, Json] = {}
        self._problems: dict[str, Problems] = {}
        self._told: set[tuple[str, str, str]] = set()
        self._bytes_left = MAX_DOCUMENT_BYTES
        self.notes: Final[dict[str, None]] = {}
        """Sentences for the person who imports, each once."""
        self._full = False
        self.root: Final = Node(self._read(document.name), document.name)

    # -- mistakes ----------------------------------------------------------------------------------------------------

    def add(self, message: str, node: Node) -> None:
        """Puts a mistake on the list, once."""
        told = (message, node.file, node.pointer)
        if told in self._told or self._full:
            return
        self._told.add(told)
        try:
            self._of(node.file).add(message, node.pointer)
        except Unreadable as reason:
            self._of(node.file).stop(reason)
            self._full = True

    def note(self, message: str, node: Node) -> None:
        self.notes[f"{message} @ {self._of(node.file).source}:{node.pointer}"] = None

    def raise_problems(self) -> None:
        found = [str(finding) for problems in self._problems.values() for finding in problems.found]
        if found:
            raise SpecError(found)

    def _of(self, file: str) -> Problems:
        source = posixpath.normpath(posixpath.join(self._source_folder, file))
        return self._problems.setdefault(file, Problems(source))

    # -- files and references ----------------------------------------------------------------------------------------

    def _read(self, file: str) -> Json:
        problems = self._of(file)
        try:
            if len(self._texts) >= MAX_FILES:
                raise Unreadable(f"a document of more than {MAX_FILES} files is not read")
            text = read_below(self._folder, file, self._bytes_left)
            self._bytes_left -= len(text.encode())
            value = (
                read_json(text, problems) if file.endswith(".json") else read_yaml(text, problems, keys_as_text=True)
            )
        except Unreadable as reason:
            if len(problems.found) <= MAX_PROBLEMS:
                problems.stop(reason)
            value = None
        self._texts[file] = value
        return value

    def resolve(self, reference: Json, node: Node) -> Node | None:
        """What ``reference``, found in ``node``, leads to; None, and a mistake on the list, where that is nothing."""
        at = node.below("$ref") or node
        if not isinstance(reference, str):
            self.add(f"'$ref' must be a string, not {kind(reference)}", at)
            return None
        name, _, fragment = reference.partition("#")
        if _ELSEWHERE.match(name):
            self.add(
                f"{shown(reference)} is not followed: nothing is fetched, only files beside the document are read", at
            )
            return None
        file = node.file
        if name:
            file = posixpath.normpath(posixpath.join(posixpath.dirname(node.file), unquote(name)))
        if file == ".." or file.startswith("../"):
            self.add(f"{shown(reference)} is not followed: it leaves the document's folder", at)
            return None
        return self._pointed(reference, file, unquote(fragment), at)

    def _pointed(self, reference: str, file: str, fragment: str, at: Node) -> Node | None:
        if fragment and not fragment.startswith("/"):
            self.add(
                f"{shown(reference)} is not followed: write a JSON pointer, such as '#/components/schemas/Pet'", at
            )
            return None
        if file not in self._texts:
            self._read(file)
        if self._texts[file] is None:
            self.add(f"{shown(reference)} leads to a file that could not be read", at)
            return None
        found = Node(self._texts[file], file)
        for key in split_pointer(fragment) if fragment != "/" else ():
            is_index = isinstance(found.value, list) and key.isdecimal() and int(key) < len(found.value)
            if is_index:
                found = found.at(int(key))
            elif key in found.mapping:
                found = found.at(key)
            else:
                self.add(f"{shown(reference)} leads to nothing.{nearest(key, found.mapping)}", at)
                return None
        return found

    def target(self, node: Node) -> Node | None:
        """``node``, or what its reference leads to in the end; None, and a mistake on the list, where that is nothing."""
        passed = {(node.file, node.path)}
        while "$ref" in node.mapping:
            target = self.resolve(node.mapping["$ref"], node)
            if target is None:
                return None
            if (target.file, target.path) in passed:
                self.add("the reference leads back to itself", node)
                return None
            passed.add((target.file, target.path))
            node = target
        return node

    def followed(self, node: Node) -> Node | None:
        """As ``target``, where only an object will do."""
        found = self.target(node)
        if found is None or isinstance(found.value, dict):
            return found
        self.add(f"an object must stand here, not {kind(found.value)}", found)
        return None
