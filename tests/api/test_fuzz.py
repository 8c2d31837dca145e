"""For any file content: the file is valid, or each error is one short printable line, without a traceback."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotladder.api.check import checked
from spotladder.api.document import documents_of
from spotladder.api.local_mode import local_program, local_spec
from spotladder.api.read import kind_of
from spotladder.api.review import review
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.errors import InvalidSpec
from tests.api.builders import JOB, WORLD

Json = Any
PATIENT = settings(deadline=5000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


def said(text: str) -> list[str]:
    """The error lines that a user sees; errors other than InvalidSpec propagate and fail the test."""
    try:
        for document in documents_of(text, "f.yaml"):
            model = checked(document, kind_of(document))
            if isinstance(model, TieredJob):
                local_spec(model, A_WORLD, submitted_at=0.0)
                local_program(model, model.spec.tiers[0].name)
    except InvalidSpec as error:
        return str(error).splitlines()
    return []


A_WORLD = World.model_validate(documents_of(WORLD, "w")[0].data)


def check(text: str) -> None:
    for line in said(text):
        assert line.isprintable(), repr(line)
        assert line.strip()
        assert len(line) < 1000, line


@PATIENT
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_rejected_in_one_line_each(tmp_path_factory: Any, raw: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(raw)
    for problem in review([file]).problems:
        assert str(problem).isprintable(), repr(str(problem))


YAML_PIECES = st.sampled_from(
    [
        *"[]{},:?-&*!|>'\"%@`#~=<. \n\t", "\n  ", "---\n", "...\n", "&a ", "*a", "<<: ", "!!str ", "!<x> ",
        "%TAG ! x\n", "%YAML 1.1\n", "? ", "- ", ": ", "a: ", "kind: TieredJob\n", "pools:\n", "spec:\n", "0x", "1e9",
        "\\x", "\\u12", "\ufeff", "\u2028", "\x85", "no", "|2-\n", ">+\n", "''",
    ],
)  # fmt: skip


@PATIENT
@given(st.lists(YAML_PIECES | st.text(max_size=3), max_size=40).map("".join))
def test_any_yaml_like_text_is_read_or_rejected_in_one_line_each(text: str) -> None:
    check(text)


@PATIENT
@given(st.integers(0, len(JOB)), st.integers(0, 12), st.text(max_size=8) | YAML_PIECES)
def test_a_job_with_replaced_text_is_read_or_rejected_in_one_line_each(start: int, length: int, piece: str) -> None:
    check(JOB[:start] + piece + JOB[start + length :])


WORDS = ["1h", "-1s", "5m", "s3://b/p", "no", "spot", "0.42", "2026-12-01T00:00:00Z", "50steps", "a" * 300]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70) | st.sampled_from(WORDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in entries for place in places(inner, (*path, key)))]


def replaced(value: Json, path: tuple[Any, ...], new: Json) -> Json:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


FULL_JOB = documents_of(JOB, "f")[0].data
FULL_JOB["spec"] |= {
    "recoveryTimeout": "90s", "stallTimeout": "10m", "hangTimeout": "2m", "startTimeout": "30m",
    "contactTimeout": "100s", "failureUnit": "Pod", "backoffLimit": 5,
    "applicationFailures": 0, "exhausted": "Fail", "deadline": "2026-12-01T00:00:00Z", "maxDuration": "6h",
    "budget": "250", "policy": "ordered",
}  # fmt: skip
FULL_JOB["spec"]["workload"]["ray"]["template"]["spec"]["runtimeEnvYAML"] = "env_vars: {A: '1'}"
FULL_WORLD = documents_of(WORLD, "f")[0].data


@PATIENT
@given(st.sampled_from(places(FULL_JOB)), VALUES)
def test_a_job_with_a_replaced_value_is_read_or_rejected_in_one_line_each(path: tuple[Any, ...], value: Json) -> None:
    check(json.dumps(replaced(FULL_JOB, path, value)))


@PATIENT
@given(st.sampled_from(places(FULL_WORLD)), VALUES)
def test_a_world_with_a_replaced_value_is_read_or_rejected_in_one_line_each(path: tuple[Any, ...], value: Json) -> None:
    check(json.dumps(replaced(FULL_WORLD, path, value)))


@PATIENT
@given(st.sampled_from([p for p in places(FULL_JOB) if p and isinstance(p[-1], str)]), st.text(max_size=70))
def test_a_job_with_a_renamed_key_is_read_or_rejected_in_one_line_each(path: tuple[Any, ...], name: str) -> None:
    around = FULL_JOB
    for part in path[:-1]:
        around = around[part]
    renamed = {(name if key == path[-1] else key): inner for key, inner in around.items()}
    check(json.dumps(replaced(FULL_JOB, path[:-1], renamed)))
