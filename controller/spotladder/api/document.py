"""YAML files with the line and column of every field, read within fixed bounds of size, depth and expansion.

This module builds the values from the parser's events itself. It can therefore report duplicate keys, alias bombs,
ambiguous words and unknown tags with their location, and it limits the time and memory that a file takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from spotladder.api.files import open_regular
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted, printable, quoted
from spotladder.api.scalars import Scalar, meaning
from spotladder.errors import InvalidSpec

LARGEST_FILE = 1024 * 1024
"""Maximum file size in bytes. Kubernetes rejects objects of about this size."""

DEEPEST = 64
MOST_NODES = 20_000
"""Maximum number of scalars, lists and mappings in one file, with aliases expanded."""

_TAGS = {"str", "int", "float", "bool", "null", "map", "seq"}
_MERGE = "<<"


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document. `keys` and `values` map each field to the location of its name and of its value."""

    file: str
    data: Any
    keys: Mapping[Path, str]
    values: Mapping[Path, str]

    @property
    def places(self) -> frozenset[str]:
        """All locations in the document."""
        return frozenset((*self.keys.values(), *self.values.values()))

    def where(self, path: Path, *, key: bool = False) -> str:
        """`file:line:column` of the field's value (or of its name), or of the nearest field around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path not in self.values and path:
            path = path[:-1]
        return self.values.get(path, self.file)

    def where_named(self, name: str) -> str:
        """`file:line:column` of a field in the notation of error messages: `spec.tiers[1].maxFailures`."""
        around = [
            path
            for path in self.values
            if name == dotted(path) or name.startswith((f"{dotted(path)}.", f"{dotted(path)}["))
        ]
        return self.where(max(around, key=len, default=()))


@dataclass(slots=True)
class _Node:
    """A parsed node before aliases are expanded. `content` is a scalar's text, a list, or a list of pairs."""

    kind: str
    content: Any
    where: str
    plain: bool = False
    tag: str = ""
    size: int = 1
    height: int = 1
    closed: bool = True


def read_documents(path: str | File, scalar: Callable[[str], Scalar] = meaning) -> list[Document]:
    """All non-empty documents of a file; `-` is standard input. `scalar` is the meaning of unquoted scalars. Raises
    InvalidSpec with every problem found."""
    name = file_name(path)
    return documents_of(_text(path, name), name, scalar)


def file_name(path: str | File) -> str:
    """The name of the file in error messages."""
    return "<stdin>" if str(path) == "-" else printable(str(path))


def documents_of(text: str, file: str, scalar: Callable[[str], Scalar] = meaning) -> list[Document]:
    """The non-empty documents in a text; `file` is its name in error messages."""
    problems: list[Problem] = []
    documents = []
    for root in _roots(text, file):
        builder = _Builder(file, problems, scalar)
        data = builder.build(root, ())
        if data is not None:
            documents.append(Document(file, data, builder.keys, builder.values))
    if problems:
        raise InvalidDocument(problems)
    return documents


def _text(path: str | File, name: str) -> str:
    try:
        if str(path) == "-" and sys.stdin is not None:
            raw = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with open_regular(path) as stream:
                raw = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidSpec(f"cannot be read: {reason}; specify the path of a YAML file", where=name) from None
    if len(raw) > LARGEST_FILE:
        raise InvalidSpec(
            "must be at most 1 MiB: specify a YAML file with TieredJobs, CapacityTiers or a world", where=name
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSpec(_not_text(error.start), where=name) from None
    if (nul := text.find("\0")) >= 0:
        raise InvalidSpec(_not_text(nul), where=name)
    return text


def _not_text(offset: int) -> str:
    return f"is not a YAML text file (binary data or not UTF-8 at byte {offset}); specify a YAML file in UTF-8"


# --- events to nodes -------------------------------------------------------------------------------------------------


def _roots(text: str, file: str) -> Iterator[_Node]:
    from ruamel.yaml import YAML, events
    from ruamel.yaml.error import YAMLError

    tree = _Tree()
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            mark = event.start_mark
            where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
            root: _Node | None = None
            if isinstance(event, events.DocumentStartEvent):
                tree.anchors.clear()
            elif isinstance(event, events.CollectionEndEvent):
                root = tree.close()
            elif isinstance(event, events.AliasEvent):
                root = tree.add(tree.aliased(str(event.anchor), where), where)
            elif isinstance(event, events.ScalarEvent):
                plain = event.style in (None, "")
                root = tree.add(_Node("scalar", event.value, where, plain, _tag(event)), where, event.anchor)
            elif isinstance(event, events.SequenceStartEvent):
                tree.open(_Node("list", [], where, tag=_tag(event)), where, event.anchor)
            elif isinstance(event, events.MappingStartEvent):
                tree.open(_Node("mapping", [], where, tag=_tag(event)), where, event.anchor)
            if root is not None:
                yield root
    except YAMLError as error:
        raise _syntax(error, file) from None
    except (ValueError, OverflowError, AttributeError, AssertionError, IndexError, KeyError) as error:
        # The YAML library leaks these for malformed directives and escapes.
        raise InvalidSpec(f"is not valid YAML: {printable(str(error))[:200]}", where=file) from None


def _tag(event: Any) -> str:
    return str(event.tag or "").removeprefix("tag:yaml.org,2002:").removeprefix("!!")


class _Tree:
    """Builds the nodes of one file from parser events and enforces the limits."""

    def __init__(self) -> None:
        self.anchors: dict[str, _Node] = {}
        self._open: list[_Node] = []
        self._size = 0

    def add(self, node: _Node, where: str, anchor: str | None = None) -> _Node | None:
        """Add a finished node to its parent. Returns the node if it is a complete document."""
        self._bound(node, where)
        if anchor:
            self.anchors[anchor] = node
        if not self._open:
            return node
        self._open[-1].content.append(node)
        self._open[-1].size += node.size
        self._open[-1].height = max(self._open[-1].height, node.height + 1)
        return None

    def open(self, node: _Node, where: str, anchor: str | None) -> None:
        """Begin a list or mapping, which contains the following nodes until `close`."""
        self._bound(node, where)
        node.closed = False
        if anchor:
            self.anchors[anchor] = node
        self._open.append(node)

    def close(self) -> _Node | None:
        """End the innermost list or mapping. Returns it if it is a complete document."""
        node = self._open.pop()
        node.closed = True
        self._size -= node.size
        return self.add(node, node.where)

    def aliased(self, name: str, where: str) -> _Node:
        """The node that an alias refers to."""
        node = self.anchors.get(name)
        if node is None:
            raise InvalidSpec(f"alias {quoted(name)} has no anchor before it", where=where)
        if not node.closed:
            raise InvalidSpec(f"alias {quoted(name)} contains itself; write the value out", where=where)
        return node

    def _bound(self, node: _Node, where: str) -> None:
        self._size += node.size
        if self._size > MOST_NODES:
            raise InvalidSpec(f"must have at most {MOST_NODES} values (with aliases expanded)", where=where)
        if len(self._open) + node.height > DEEPEST:
            raise InvalidSpec(f"must be nested at most {DEEPEST} levels deep", where=where)


def _syntax(error: Exception, file: str) -> InvalidSpec:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).split("\n")[0]
    if "\\t" in problem:
        return InvalidSpec("a tab is not allowed in YAML indentation: indent with spaces", where=where)
    if "mapping values are not allowed" in problem:
        problem += "; check the indentation, and put text that contains ': ' in quotes"
    return InvalidSpec(f"is not valid YAML: {printable(problem)[:200]}", where=where)


# --- nodes to values -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Builder:
    file: str
    problems: list[Problem]
    scalar: Callable[[str], Scalar]
    keys: dict[Path, str] = field(default_factory=dict)
    values: dict[Path, str] = field(default_factory=dict)

    def build(self, node: _Node, path: Path) -> Any:
        self.values[path] = node.where
        if node.tag and node.tag not in _TAGS:
            self._problem(node, path, f"tag {quoted(node.tag)} is not allowed; write the value without it")
            return None
        if node.kind == "list":
            return [self.build(item, (*path, index)) for index, item in enumerate(node.content)]
        if node.kind == "mapping":
            return self._mapping(node, path)
        if not node.plain or node.tag == "str":
            return node.content
        try:
            return self.scalar(node.content)
        except ValueError as error:
            self._problem(node, path, str(error))
            return None

    def _mapping(self, node: _Node, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: list[_Node] = []
        for key_node, value_node in zip(node.content[::2], node.content[1::2], strict=True):
            if key_node.kind != "scalar":
                self._problem(key_node, path, "a key must be a scalar, not a list or mapping; write a word")
            elif key_node.plain and key_node.content == _MERGE:
                merged += value_node.content if value_node.kind == "list" else [value_node]
            elif key_node.content in result:
                first = self.keys[(*path, key_node.content)].removeprefix(f"{self.file}:")
                self._problem(key_node, (*path, key_node.content), f"appears twice (first at {first}); keep one")
            else:
                self._check_key(key_node, path)
                self._entry(key_node, value_node, path, result)
        for other in merged:
            self._merge(other, path, result)
        return result

    def _entry(self, key_node: _Node, value_node: _Node, path: Path, result: dict[str, Any]) -> None:
        key = key_node.content
        self.keys[(*path, key)] = key_node.where
        result[key] = self.build(value_node, (*path, key))
        if value_node.plain and not value_node.content:
            self.values[(*path, key)] = key_node.where  # a missing value has no location of its own

    def _merge(self, other: _Node, path: Path, result: dict[str, Any]) -> None:
        """Add the entries of a `<<` that the mapping itself does not define."""
        if other.kind != "mapping":
            self._problem(other, path, "<< must be a mapping or a list of mappings")
            return
        nested: list[_Node] = []
        for key_node, value_node in zip(other.content[::2], other.content[1::2], strict=True):
            if key_node.plain and key_node.content == _MERGE:
                nested += value_node.content if value_node.kind == "list" else [value_node]
            elif key_node.kind == "scalar" and key_node.content not in result:
                self._entry(key_node, value_node, path, result)
        for inner in nested:
            self._merge(inner, path, result)

    def _check_key(self, node: _Node, path: Path) -> None:
        if not node.plain:
            return
        try:
            known = self.scalar(node.content)
        except ValueError as error:
            self._problem(node, path, f"key {error}")
            return
        if known is None:
            self._problem(node, path, "a key is missing before the colon")

    def _problem(self, node: _Node, path: Path, message: str) -> None:
        self.problems.append(Problem(node.where, dotted(path), message))
