"""Several files checked together."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spotladder.api.review import Review, review
from tests.api.builders import JOB, WORLD, changed, written

TIERS = "".join(
    f"---\napiVersion: spotladder.io/v1alpha1\nkind: CapacityTier\nmetadata: {{name: {name}}}\nspec: {{}}\n"
    for name in ("g5-spot-use1a", "g5-od-use1")
)


def reviewed(folder: Path, *texts: str) -> Review:
    return review([written(folder, f"{index}.yaml", text) for index, text in enumerate(texts)])


def said(folder: Path, *texts: str) -> list[str]:
    return [str(problem).removeprefix(f"{folder}/") for problem in reviewed(folder, *texts).problems]


def test_a_job_without_capacity_files_is_valid(tmp_path: Path) -> None:
    assert said(tmp_path, JOB) == []


def test_a_job_and_its_capacity_tiers_may_be_in_one_file(tmp_path: Path) -> None:
    found = reviewed(tmp_path, JOB + TIERS)
    assert not found.problems
    assert [(entry.kind, entry.name, entry.valid) for entry in found.objects] == [
        ("TieredJob", "digits", True),
        ("CapacityTier", "g5-spot-use1a", True),
        ("CapacityTier", "g5-od-use1", True),
    ]


def test_a_tier_without_a_pool_is_reported(tmp_path: Path) -> None:
    job = changed(JOB, ("capacityTier: g5-od-use1", "capacityTier: g5-od"))
    assert said(tmp_path, WORLD, job) == [
        (
            '1.yaml:13:19: spec.tiers[1].capacityTier: "g5-od" is neither a pool of the world file nor a CapacityTier '
            "in these files; did you mean g5-od-use1?"
        )
    ]
    assert [entry.valid for entry in reviewed(tmp_path, WORLD, job).objects] == [True, False]


def test_a_pool_smaller_than_the_job_is_reported(tmp_path: Path) -> None:
    """A regression test: `validate` accepted such a pool, and `run` exhausted all tiers."""
    world = changed(WORLD, ("spot\n    nodes: 2", "spot\n    nodes: 1"))
    assert said(tmp_path, world, JOB) == [
        (
            '1.yaml:9:19: spec.tiers[0].capacityTier: the pool "g5-spot-use1a" has 1 node, but the job needs 2 workers '
            "at once: set pools.g5-spot-use1a.nodes to 2 or more in the world file, or lower replicas"
        )
    ]
    assert said(tmp_path, changed(WORLD, ("spot\n    nodes: 2", "spot\n    nodes: 0")), JOB) == [], (
        "a pool without capacity"
    )


def test_an_overlap_without_bound_on_a_tier_without_price_is_reported(tmp_path: Path) -> None:
    world = changed(WORLD, ('    price: {perNodeHour: "0.42", onDemandPerNodeHour: 1.41}\n', ""))
    job = changed(JOB, ("  grace: 90s\n", '  grace: 90s\n  overlap: {budget: "5"}\n'))
    assert said(tmp_path, world, job) == [
        "1.yaml:17:3: spec.overlap: has no bound, because no price is known for tier spot-a: set maxDuration"
    ]
    none = changed(world, ("    price: {perNodeHour: 1.41}\n", ""))
    what = "has no bound, because no price is known for tiers spot-a, on-demand: set maxDuration"
    assert said(tmp_path, none, job) == [f"1.yaml:17:3: spec.overlap: {what}"]
    assert said(tmp_path, WORLD, job) == []


def test_a_hedge_on_a_tier_without_price_is_reported(tmp_path: Path) -> None:
    job = changed(JOB, ("  grace: 90s\n", '  grace: 90s\n  overlap: {maxDuration: 30m, budget: "5", hedgeAfter: 5m}\n'))
    what = "has no bound, because no price is known for tier on-demand: set the price"
    unpriced = changed(WORLD, ("    price: {perNodeHour: 1.41}\n", ""))
    assert said(tmp_path, unpriced, job) == [f"1.yaml:17:44: spec.overlap.hedgeAfter: {what}"]


def test_a_problem_at_the_name_of_a_field_makes_its_object_invalid(tmp_path: Path) -> None:
    unpriced = changed(
        WORLD,
        ('    price: {perNodeHour: "0.42", onDemandPerNodeHour: 1.41}\n', ""),
        ("    price: {perNodeHour: 1.41}\n", ""),
    )
    job = changed(JOB, ("  grace: 90s", "  overlap: {}"))
    found = review([written(tmp_path, "world.yaml", unpriced), written(tmp_path, "job.yaml", job)])
    assert [problem.path for problem in found.problems] == ["spec.overlap"]
    assert {entry.kind: entry.valid for entry in found.objects} == {"World": True, "TieredJob": False}


def test_an_invalid_world_adds_no_errors_to_the_job(tmp_path: Path) -> None:
    lines = said(tmp_path, WORLD.replace("notice", "notise"), JOB)
    assert lines == ["0.yaml:7:5: pools.g5-spot-use1a.notise: is not a known field; did you mean notice?"]


def test_two_jobs_with_the_same_name_are_reported(tmp_path: Path) -> None:
    assert said(tmp_path, f"{JOB}---\n{JOB}") == [
        f'0.yaml:35:9: metadata.name: "digits" is already the name of the TieredJob at {tmp_path}/0.yaml:4:9'
    ]
    elsewhere = changed(JOB, ("namespace: team-a", "namespace: team-b"))
    assert said(tmp_path, JOB, elsewhere) == []


def test_the_same_file_given_twice_is_valid(tmp_path: Path) -> None:
    file = written(tmp_path, "job.yaml", JOB)
    assert review([file, file]).problems == ()


def test_problems_of_all_files_are_reported(tmp_path: Path) -> None:
    lines = said(tmp_path, "a: [", "", changed(JOB, ("grace: 90s", "grace: 90")), "kind: Pod")
    assert [line.split(":")[0] for line in lines] == ["0.yaml", "1.yaml", "2.yaml", "3.yaml"]
    assert lines[1] == "1.yaml: is empty; specify a TieredJob, CapacityTier or world file"


DEADLINE = changed(JOB, ("  grace: 90s", "  deadline: 2026-12-01T00:00:00Z"))


@pytest.mark.parametrize(("day", "late"), [(1, True), (2, True), (30, False)])
def test_a_deadline_in_the_past_is_reported(tmp_path: Path, day: int, late: bool) -> None:
    now = datetime(2026, 11 if day == 30 else 12, day, tzinfo=UTC).timestamp()
    found = review([written(tmp_path, "job.yaml", DEADLINE)], now=now)
    assert [entry.valid for entry in found.objects] == [not late]
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in found.problems] == [
        "job.yaml:16:13: spec.deadline: is in the past (2026-12-01 00:00:00 UTC): set a later time, or remove it"
    ][: int(late)]


TRACED = changed(WORLD, ("{at: [20s, 45s]}", "{trace: trace.json}"))
AT = "0.yaml:8:28: pools.g5-spot-use1a.interruptions.trace"


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", 'is empty: expected {"metadata": {"gap_seconds": 600}'),
        ('{"metadata": {"gap_sec', "is not valid JSON (Unterminated string"),
        ('{"metadata": {"gap_seconds": 0}, "data": [0]}', "metadata.gap_seconds must be a number of seconds above 0"),
        ('{"metadata": {"gap_seconds": NaN}, "data": [0]}', "metadata.gap_seconds must be a number of seconds above 0"),
        ('{"metadata": {}, "data": [0]}', "metadata.gap_seconds is missing: expected {"),
        ('{"metadata": {"gap_seconds": 60}, "data": []}', "data must be a list of at least one sample"),
        ('{"metadata": {"gap_seconds": 60}}', "data must be a list of at least one sample"),
        ('{"metadata": {"gap_seconds": 60}, "data": [0, 2]}', "data[1] must be 0 (available) or 1 (taken away)"),
        ('{"metadata": {"gap_seconds": 60}, "data": ["1"]}', "data[0] must be 0 (available) or 1 (taken away)"),
        ("[]", "metadata.gap_seconds is missing"),
        ('{"metadata": {"gap_seconds": 60}, "data": [0, 1]}', ""),
    ],
)
def test_an_invalid_trace_of_a_world_is_reported(tmp_path: Path, trace: str | None, message: str) -> None:
    if trace is not None:
        written(tmp_path, "trace.json", trace)
    lines = said(tmp_path, TRACED)
    if not message:
        assert lines == []
        return
    (line,) = lines
    assert line.startswith(f"{AT}: {tmp_path}/trace.json ")
    assert message in line
    assert [entry.valid for entry in reviewed(tmp_path, TRACED).objects] == [False]


@pytest.mark.timeout(20)
def test_a_named_pipe_is_rejected_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.yaml")
    (problem,) = review([tmp_path / "job.yaml"]).problems
    assert problem.message == (
        "cannot be read: it is a named pipe, not a file; use - to read standard input; specify the path of a YAML file"
    )
    os.mkfifo(tmp_path / "trace.json")
    assert ["trace.json cannot be read: it is a named pipe" in line for line in said(tmp_path, TRACED)] == [True]


def test_a_shell_process_substitution_is_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, JOB.encode())
    os.close(writer)
    found = review([f"/dev/fd/{reader}"])
    os.close(reader)
    assert (found.problems, [entry.name for entry in found.objects]) == ((), ["digits"])
