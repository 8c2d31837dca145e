"""Several files checked together."""

from __future__ import annotations

from pathlib import Path

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


def test_a_job_alone_is_not_asked_for_its_capacity(tmp_path: Path) -> None:
    assert said(tmp_path, JOB) == []


def test_a_job_and_its_capacity_in_one_file(tmp_path: Path) -> None:
    found = reviewed(tmp_path, JOB + TIERS)
    assert not found.problems
    assert [(entry.kind, entry.name, entry.valid) for entry in found.objects] == [
        ("TieredJob", "digits", True),
        ("CapacityTier", "g5-spot-use1a", True),
        ("CapacityTier", "g5-od-use1", True),
    ]


def test_a_tier_without_pool(tmp_path: Path) -> None:
    job = changed(JOB, ("capacityTier: g5-od-use1", "capacityTier: g5-od"))
    assert said(tmp_path, WORLD, job) == [
        (
            '1.yaml:13:19: spec.tiers[1].capacityTier: "g5-od" is neither a pool of the world file nor a CapacityTier '
            "here; did you mean g5-od-use1?"
        )
    ]
    assert [entry.valid for entry in reviewed(tmp_path, WORLD, job).objects] == [True, False]


def test_an_invalid_world_is_not_held_against_the_job(tmp_path: Path) -> None:
    lines = said(tmp_path, WORLD.replace("notice", "notise"), JOB)
    assert lines == ["0.yaml:7:5: pools.g5-spot-use1a.notise: is not a known field; did you mean notice?"]


def test_two_jobs_of_one_name(tmp_path: Path) -> None:
    assert said(tmp_path, f"{JOB}---\n{JOB}") == [
        f'0.yaml:35:9: metadata.name: "digits" is taken by the TieredJob at {tmp_path}/0.yaml:4:9'
    ]
    elsewhere = changed(JOB, ("namespace: team-a", "namespace: team-b"))
    assert said(tmp_path, JOB, elsewhere) == []


def test_the_same_file_twice(tmp_path: Path) -> None:
    file = written(tmp_path, "job.yaml", JOB)
    assert review([file, file]).problems == ()


def test_problems_of_all_files_are_said(tmp_path: Path) -> None:
    lines = said(tmp_path, "a: [", "", changed(JOB, ("grace: 90s", "grace: 90")), "kind: Pod")
    assert [line.split(":")[0] for line in lines] == ["0.yaml", "1.yaml", "2.yaml", "3.yaml"]
    assert lines[1] == "1.yaml: is empty; give a TieredJob, CapacityTier or world file"
