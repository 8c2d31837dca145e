"""Reading YAML: locations, limits and rejected syntax."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path

import pytest

from spotladder.api.document import MAX_DEPTH, MAX_FILE_SIZE, MAX_NODES, documents_of, read_documents
from spotladder.errors import InvalidSpec
from tests.api.builders import written


def refusal(text: str) -> str:
    with pytest.raises(InvalidSpec) as caught:
        documents_of(text, "f.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_values_and_keys_have_locations() -> None:
    document = documents_of("a:\n  b: [1, {c: 2}]\n", "f.yaml")[0]
    assert document.data == {"a": {"b": [1, {"c": 2}]}}
    assert document.where(("a", "b")) == "f.yaml:2:6"
    assert document.where(("a", "b"), key=True) == "f.yaml:2:3"
    assert document.where(("a", "b", 1, "c")) == "f.yaml:2:14"
    assert document.where(("a", "b", 1, "missing", "deeper")) == "f.yaml:2:10", "the nearest field around it"


def test_scalars_follow_yaml_1_2() -> None:
    text = "[1, -2, 0x1F, 0o17, 1.5, 1e3, .inf, true, False, ~, null, '', \"no\", 1.2.3, a b, 2026-12-01, !!str 5]"
    expected = [1, -2, 31, 15, 1.5, 1e3, float("inf"), True, False, None, None, "", "no", "1.2.3", "a b", "2026-12-01"]
    assert documents_of(text, "f")[0].data == [*expected, "5"]


def test_a_character_that_json_writes_as_two_escapes_is_one() -> None:
    assert documents_of(json.dumps({"x": "🚀 go"}), "f")[0].data == {"x": "🚀 go"}
    assert refusal('x: "\\ud83d"').startswith("f.yaml:1:4: x: has half of a character")


def test_anchors_and_merge_keys_are_resolved() -> None:
    text = "base: &b {k: 1, m: 2}\njob: {<<: *b, m: 3}\nmore: {<<: [*b, {z: 4}]}\n"
    assert documents_of(text, "f")[0].data == {
        "base": {"k": 1, "m": 2},
        "job": {"k": 1, "m": 3},
        "more": {"k": 1, "m": 2, "z": 4},
    }


def test_empty_documents_are_ignored() -> None:
    assert [document.data for document in documents_of("---\n---\na: 1\n---\n", "f")] == [{"a": 1}]
    assert documents_of("# only a comment\n", "f") == []


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 2 * MAX_DEPTH))
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40))
MERGE_CHAIN = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 2 * MAX_DEPTH))

HOSTILE = {
    "alias bomb": (BOMB, f"must have at most {MAX_NODES} values"),
    "merge bomb": (MERGE_BOMB, f"must have at most {MAX_NODES} values"),
    "merges nested deeper than any stack": (MERGE_CHAIN, f"must be nested at most {MAX_DEPTH} levels deep"),
    "aliases nested deeper than any stack": (CHAIN, f"must be nested at most {MAX_DEPTH} levels deep"),
    "flow nesting": ("[" * 100_000, f"must be nested at most {MAX_DEPTH} levels deep"),
    "block nesting": ("- " * 100_000, f"must be nested at most {MAX_DEPTH} levels deep"),
    "too many values": ("- a\n" * (MAX_NODES + 1), f"must have at most {MAX_NODES} values"),
    "too many documents": ("--- a\n" * (MAX_NODES + 1), f"must have at most {MAX_NODES} values"),
    "self-containing": ("a: &a [*a]", f"must be nested at most {MAX_DEPTH} levels deep (with aliases expanded)"),
    "alias of nothing": ("a: *b", "found undefined alias 'b'"),
    "a list as a key": ("? [a]\n: b", "a key must be a scalar, not a list or mapping"),
    "key missing": (": a", "a key is missing before the colon"),
    "merge of a word": ("<<: word", "<< must be a mapping"),
    "future YAML": ("%YAML 9.1\n--- a", "not valid YAML"),
    "impossible character": ('"\\UFFFFFFFF"', "not valid YAML"),
    "control character": ("a: \x07", "special characters are not allowed"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_malicious_text_is_rejected_quickly(name: str) -> None:
    text, said = HOSTILE[name]
    started = time.process_time()
    assert said in refusal(text)
    assert time.process_time() - started < 10


def test_a_very_long_number_is_read_as_text() -> None:
    assert documents_of("9" * 5000, "f")[0].data == "9" * 5000


# --- files -----------------------------------------------------------------------------------------------------------


def refused_file(path: str | Path) -> str:
    with pytest.raises(InvalidSpec) as caught:
        read_documents(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_error_for_a_missing_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "no.yaml"
    assert refused_file(file) == f"{file}: cannot be read: No such file or directory; specify the path of a YAML file"


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    assert "cannot be read: Is a directory" in refused_file(tmp_path)


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    said = "is not a YAML text file (binary data or not UTF-8 at byte 0); specify a YAML file in UTF-8"
    assert said in refused_file(written(tmp_path, "job.yaml", bytes(range(128, 256))))
    assert "at byte 1)" in refused_file(written(tmp_path, "job.yaml", b"a\0b"))
    assert "not UTF-8" in refused_file(written(tmp_path, "job.yaml", "a: ü".encode("utf-16")))


def test_a_file_above_the_size_limit_is_rejected_without_reading_it(tmp_path: Path) -> None:
    file = written(tmp_path, "job.yaml", b"- a\n" * (10 * MAX_FILE_SIZE // 4))
    started = time.monotonic()
    assert refused_file(file) == (
        f"{file}: has more than 1,048,576 bytes (no setting raises this limit): specify a YAML file with TieredJobs, "
        "CapacityTiers or a world"
    )
    assert time.monotonic() - started < 2


def test_an_endless_file_is_rejected() -> None:
    assert "has more than 1,048,576 bytes" in refused_file("/dev/zero")


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    assert read_documents(written(tmp_path, "job.yaml", b"\xef\xbb\xbfa: 1"))[0].data == {"a": 1}


def test_windows_line_endings_are_accepted(tmp_path: Path) -> None:
    document = read_documents(written(tmp_path, "job.yaml", b"a: 1\r\nb: 2\r\n"))[0]
    assert document.data == {"a": 1, "b": 2}
    assert document.where(("b",)).endswith(":2:4")


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1")))
    document = read_documents("-")[0]
    assert (document.data, document.where(("a",))) == ({"a": 1}, "<stdin>:1:4")


def test_control_characters_in_a_file_name_are_escaped(tmp_path: Path) -> None:
    file = written(tmp_path, "a\n\x1b[31mb.yaml", b"\0")
    assert os.linesep not in refused_file(file)
    assert "\x1b" not in refused_file(file)
