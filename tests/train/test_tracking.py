"""The identifier of a job's run in an experiment tracker."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.train import tracking
from tests.train.builders import log_of, variables


@pytest.fixture(autouse=True)
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("WANDB_RUN_ID", "WANDB_RESUME"):
        monkeypatch.setenv(name, "")


def test_each_attempt_and_rank_gets_the_same_identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    first = tracking.run_id()
    monkeypatch.setenv("SPOTLADDER_ATTEMPT", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert tracking.run_id() == first


def test_only_rank_0_continues_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    assert tracking.wandb() == os.environ["WANDB_RUN_ID"] == tracking.run_id()
    assert os.environ["WANDB_RESUME"] == "allow"
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert tracking.wandb() is None


def test_a_foreign_object_in_its_place_is_named(tmp_path: Path) -> None:
    log_of(tmp_path).store.put_if_absent(tracking.RUN_ID_KEY, b"\x1b[2J")
    with pytest.raises(InvalidSpec, match=tracking.RUN_ID_KEY):
        tracking.run_id()
