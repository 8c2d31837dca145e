"""Incidents: recorded replays that must take the same path again. `spotladder sim replay JOB --to FILE` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.planner.replay.incident import differences, read

INCIDENTS = sorted((Path(__file__).parent / "incidents").glob("*.json"))


@pytest.mark.parametrize("file", INCIDENTS, ids=lambda file: file.stem)
def test_the_incident_takes_the_same_path(file: Path) -> None:
    assert differences(read(file)) == []


def test_at_least_one_incident_is_recorded() -> None:
    assert INCIDENTS


def changed(tmp_path: Path, change: object) -> Path:
    document = json.loads(INCIDENTS[0].read_text())
    change(document)  # type: ignore[operator]
    file = tmp_path / "incident.json"
    file.write_text(json.dumps(document))
    return file


def test_another_decision_is_a_difference(tmp_path: Path) -> None:
    def tolerate(document: dict) -> None:  # type: ignore[type-arg]
        document["spec"]["tiers"][0]["max_failures"] = 5

    was, now = differences(read(changed(tmp_path, tolerate)))
    assert was.startswith("transition ")
    assert " was " in was
    assert " is " in now


def test_a_file_without_the_field_has_a_job_that_knows_its_work(tmp_path: Path) -> None:
    assert read(changed(tmp_path, lambda document: document.update(measured=True))).scenario.measured
    assert not read(changed(tmp_path, lambda document: document.pop("measured", None))).scenario.measured


def test_a_longer_path_is_a_difference(tmp_path: Path) -> None:
    (said,) = differences(read(changed(tmp_path, lambda document: document["path"].pop())))
    assert " is new: " in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document.update(format="spotladder.replay/v9"), "format: expected spotladder.replay/v1"),
        (lambda document: document.pop("spec"), "is damaged"),
        (lambda document: document["zones"].append(1), "is damaged"),
    ],
)
def test_bad_files(change: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=said):
        read(changed(tmp_path, change))


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "incident.json"
    with pytest.raises(InvalidSpec, match="cannot be read"):
        read(file)
    file.write_text("{")
    with pytest.raises(InvalidSpec, match="is not JSON"):
        read(file)
