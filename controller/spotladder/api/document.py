"""YAML files with the line and column of every field, read within fixed bounds of size, depth and expansion.

This module builds the values from the nodes of the YAML library itself. It can therefore report duplicate keys, alias
bombs, ambiguous words and unknown tags, all at once and with their location, and it limits what aliases expand to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from spotladder.api.files import open_regular
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted, printable, quoted
from spotladder.api.scalars import Scalar, meaning
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

MAX_FILE_SIZE = 1024 * 1024
"""Maximum file size in bytes. Kubernetes rejects objects of about this size."""

MAX_DEPTH = 64
MAX_NODES = 20_000
"""Maximum number of scalars, lists and mappings in a user's file, with aliases expanded."""

MAX_NODES_OF_AN_ADMINISTRATOR = 200_000
"""The same for the file of an administrator, which has the rules of many namespaces."""

_STANDARD = "tag:yaml.org,2002:"
_TAGS = {"str", "int", "float", "bool", "null", "map", "seq", "timestamp", "merge", "value", "yaml"}
"""The tags that may be written, and those that the YAML library gives to plain scalars."""

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


def read_documents(
    path: str | File, scalar: Callable[[str], Scalar] = meaning, *, most: int = MAX_NODES
) -> list[Document]:
    """All non-empty documents of a file; `-` is standard input. `scalar` is the meaning of unquoted scalars, and `most`
    the maximum number of values. Raises InvalidSpec with every problem found."""
    name = file_name(path)
    return documents_of(_text(path, name), name, scalar, most=most)


def file_name(path: str | File) -> str:
    """The name of the file in error messages."""
    return "<stdin>" if str(path) == "-" else printable(str(path))


def documents_of(
    text: str, file: str, scalar: Callable[[str], Scalar] = meaning, *, most: int = MAX_NODES
) -> list[Document]:
    """The non-empty documents in a text; `file` is its name in error messages."""
    builder = _Builder(file, scalar, most)
    documents = [document for root in _roots(text, file) if (document := builder.document(root)) is not None]
    if builder.problems:
        raise InvalidDocument(builder.problems)
    return documents


def _text(path: str | File, name: str) -> str:
    try:
        if str(path) == "-" and sys.stdin is not None:
            raw = sys.stdin.buffer.read(MAX_FILE_SIZE + 1)
        else:
            with open_regular(path) as stream:
                raw = stream.read(MAX_FILE_SIZE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidSpec(f"cannot be read: {reason}; specify the path of a YAML file", where=name) from None
    if len(raw) > MAX_FILE_SIZE:
        raise InvalidSpec(
            f"has more than {MAX_FILE_SIZE:,} bytes (no setting raises this limit): specify a YAML file with "
            "TieredJobs, CapacityTiers or a world",
            where=name,
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


# --- text to nodes ---------------------------------------------------------------------------------------------------


def _roots(text: str, file: str) -> Iterator[Node]:
    """The root node of each document. An alias is the node that it refers to."""
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import MaxDepthExceededError
    from ruamel.yaml.error import YAMLError

    reader = YAML(typ="safe", pure=True)
    reader.max_depth = MAX_DEPTH
    reader.composer.warn_double_anchors = False
    try:
        yield from reader.compose_all(text)
    except MaxDepthExceededError as error:
        where = _location(error.problem_mark, file)
        raise InvalidSpec(f"must be nested at most {MAX_DEPTH} levels deep", where=where) from None
    except YAMLError as error:
        raise _syntax(error, file) from None
    except (ValueError, OverflowError, AttributeError, AssertionError, IndexError, KeyError) as error:
        # The YAML library leaks these for malformed directives and escapes.
        raise InvalidSpec(f"is not valid YAML: {printable(str(error))[:200]}", where=file) from None


_REMEDIES = {
    "mapping values are not allowed": "; check the indentation and the ':' of the line before, and put text that "
    "contains ': ' in quotes",
    "expected <block end>": "; check the indentation of this line, and the quotes of this and the lines before",
    "expected ',' or": "; close the bracket that is open here, or put text with special characters in quotes",
    "undefined alias": "; put text that begins with '*' in quotes, or define the anchor before it",
}
"""What to do, by a part of the YAML library's message."""


def _syntax(error: Exception, file: str) -> InvalidSpec:
    where = _location(getattr(error, "problem_mark", None) or getattr(error, "context_mark", None), file)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).split("\n")[0]
    if "\\t" in problem:
        return InvalidSpec("a tab is not allowed here: use spaces", where=where)
    remedy = next((remedy for text, remedy in _REMEDIES.items() if text in problem), "")
    return InvalidSpec(f"is not valid YAML: {printable(problem)[:200]}{remedy}", where=where)


def _location(mark: Any, file: str) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file


# --- nodes to values -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Builder:
    """Builds the values of one file from its nodes, with aliases expanded."""

    file: str
    scalar: Callable[[str], Scalar]
    most: int
    problems: list[Problem] = field(default_factory=list)
    keys: dict[Path, str] = field(default_factory=dict)
    values: dict[Path, str] = field(default_factory=dict)
    size: int = 0

    def document(self, root: Node) -> Document | None:
        """The document; None if it is empty."""
        self.keys, self.values = {}, {}
        data = self._build(root, (), 1)
        return None if data is None else Document(self.file, data, self.keys, self.values)

    def _build(self, node: Any, path: Path, depth: int) -> Any:
        self._bound(node, depth)
        self.values[path] = self._where(node)
        if (tag := node.tag.removeprefix(_STANDARD)) not in _TAGS:
            self._problem(node, path, f"tag {quoted(tag)} is not allowed; write the value without it")
            return None
        if node.id == "sequence":
            return [self._build(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        if node.id == "mapping":
            result: dict[str, Any] = {}
            self._fill(result, node, path, depth)
            return result
        try:
            return self.scalar(node.value) if _is_plain(node) else _joined(node.value)
        except ValueError as error:
            self._problem(node, path, str(error))
            return None

    def _fill(self, result: dict[str, Any], node: MappingNode, path: Path, depth: int, *, merged: bool = False) -> None:
        """Add the entries of a mapping, and then those of its `<<` that are missing. `merged`: the mapping is a `<<`
        itself, so its entries do not replace any."""
        others: list[Any] = []
        for key, value in node.value:
            if key.id != "scalar":
                self._problem(key, path, "a key must be a scalar, not a list or mapping; write a word")
            elif _is_plain(key) and key.value == _MERGE:
                others += value.value if value.id == "sequence" else [value]
            elif key.value not in result:
                if not merged:
                    self._check_key(key, path)
                self._entry(result, key, value, path, depth)
            elif not merged:
                first = self.keys[(*path, key.value)].removeprefix(f"{self.file}:")
                self._problem(key, (*path, key.value), f"appears twice (first at {first}); keep one")
        for other in others:
            self._bound(other, depth + 1)
            if other.id == "mapping":
                self._fill(result, other, path, depth + 1, merged=True)
            else:
                self._problem(other, path, "<< must be a mapping or a list of mappings")

    def _entry(self, result: dict[str, Any], key: ScalarNode, value: Node, path: Path, depth: int) -> None:
        at = (*path, key.value)
        self.keys[at] = self._where(key)
        result[key.value] = self._build(value, at, depth + 1)
        if _is_plain(value) and not value.value:
            self.values[at] = self.keys[at]  # A missing value has no location of its own.

    def _check_key(self, key: ScalarNode, path: Path) -> None:
        try:
            known = self.scalar(key.value) if _is_plain(key) else key.value
        except ValueError as error:
            self._problem(key, path, f"key {error}")
            return
        if known is None:
            self._problem(key, path, "a key is missing before the colon")

    def _bound(self, node: Node, depth: int) -> None:
        """Aliases repeat nodes, and may contain themselves."""
        self.size += 1
        message = ""
        if self.size > self.most:
            message = (
                f"must have at most {self.most} values, with aliases expanded, and has more (no setting raises this "
                "limit): split the file"
            )
        elif depth > MAX_DEPTH:
            message = f"must be nested at most {MAX_DEPTH} levels deep (with aliases expanded): write the values out"
        if message:
            raise InvalidSpec(message, where=self._where(node))

    def _problem(self, node: Node, path: Path, message: str) -> None:
        self.problems.append(Problem(self._where(node), dotted(path), message))

    def _where(self, node: Node) -> str:
        return _location(node.start_mark, self.file)


def _joined(text: str) -> str:
    """The text, with a character for each pair of escapes of JSON: `\\ud83d\\ude80`."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("has half of a character, such as \\ud83d: write the character itself") from None


def _is_plain(node: Any) -> bool:
    """Whether this is a scalar whose type depends on its text: without quotes and without the tag `!!str`."""
    if node.id != "scalar" or node.style:
        return False
    is_tagged = node.ctag.handle is not None
    return not is_tagged or node.tag != f"{_STANDARD}str"
