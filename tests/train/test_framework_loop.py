"""The steps of a loop that a framework owns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spotladder.core.contract import Notice
from spotladder.errors import InvalidSpec
from spotladder.train import Interrupted, session
from spotladder.train.framework_loop import FrameworkLoop, loop_of_current
from spotladder.train.huggingface import link_own_files
from spotladder.train.shared_files import rank_in
from tests.train import builders

REMEDY = "pass the checkpoint"


class Tensor:
    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


METRICS: dict[str, Any] = {"loss": 0.5, "epoch": 2, "name": "x", "both": [1, 2], "tensor": Tensor(), "none": None}


def train(loop: FrameworkLoop, start: int, total: int, each: int = 1) -> int:
    """What the callback of a framework does, with `each` steps at a time. Returns the last step."""
    loop.resume()
    loop.begin(start, total, REMEDY)
    for step in range(start + each, total + 1, each):
        if loop.is_due(step):
            with loop.commit(step, METRICS) as folder:
                (folder / "step").write_text(str(step))
    return total


def test_a_notice_ends_the_loop_after_its_commit(tmp_path: Path) -> None:
    job = builders.job(tmp_path, interval="100steps")
    job._member.listener.hear(Notice())
    with pytest.raises(Interrupted) as ended:
        train(FrameworkLoop(job), 0, 9)
    assert (ended.value.code, ended.value.step) == (75, 1)
    job.close()
    again = FrameworkLoop(builders.job(tmp_path, attempt=2))
    found = again.resume()
    assert found is not None
    assert (found.path / "step").read_text() == "1"
    assert again.resume() is found
    assert train(again, 1, 9) == 9
    assert not found.path.exists(), "the files stay only until the first step has ended"


def test_a_start_that_is_not_the_commit_is_rejected(tmp_path: Path) -> None:
    first = builders.job(tmp_path)
    train(FrameworkLoop(first), 0, 5)
    first.close()
    with pytest.raises(
        InvalidSpec, match="starts after step 0, but the newest commit is of step 5: pass the checkpoint"
    ):
        train(FrameworkLoop(builders.job(tmp_path, attempt=2)), 0, 9)


def test_each_part_of_a_program_gets_the_same_loop(tmp_path: Path) -> None:
    try:
        session.adopt(builders.job(tmp_path / "one"))
        first = loop_of_current()
        assert loop_of_current() is first
        session.adopt(builders.job(tmp_path / "other"))
        assert loop_of_current() is not first
    finally:
        session.forget()


def test_a_loop_that_begins_again_owes_no_commit_of_the_one_before(tmp_path: Path) -> None:
    """As in a notebook, after a validation between the step and its commit was interrupted."""
    job = builders.job(tmp_path, interval="1steps")
    loop = FrameworkLoop(job)
    loop.begin(0, 9, REMEDY)
    assert loop.is_due(1)
    loop.begin(0, 9, REMEDY)
    assert not loop.due
    job.close()


def test_the_commit_of_a_later_hook_has_the_metrics_that_are_numbers(tmp_path: Path) -> None:
    job = builders.job(tmp_path, interval="1steps")
    loop = FrameworkLoop(job)
    loop.resume()
    loop.begin(0, 9, REMEDY)
    assert loop.is_due(1)
    assert loop.is_due(2)
    with loop.commit(2, METRICS) as folder:
        (folder / "step").write_text("2")
    assert not loop.due
    job.close()
    assert builders.newest_of(tmp_path).metrics == {"loss": 0.5, "epoch": 2.0}


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rng_state_1.pth", 1),
        ("zero_pp_rank_3_mp_rank_00_optim_states.pt", 3),
        ("__2_0.distcp", 2),
        ("checkpoint/rng_state_10.pth", 10),
        ("model.safetensors", None),
        ("rng_state.pth", None),
        ("model-00001-of-00002.safetensors", None),
        ("model__2_0.txt", None),
    ],
)
def test_the_rank_in_a_file_name(name: str, rank: int | None) -> None:
    assert rank_in(name) == rank


def test_a_file_with_the_number_of_no_rank_is_that_of_rank_0(tmp_path: Path) -> None:
    """Otherwise no rank committed it."""
    saved = tmp_path / "checkpoint-5"
    saved.mkdir()
    for name in ("lora_rank16.json", "rng_state_1.pth"):
        (saved / name).touch()
    for rank, name in enumerate(("lora_rank16.json", "rng_state_1.pth")):
        folder = tmp_path / f"rank-{rank}"
        folder.mkdir()
        link_own_files(saved, folder, rank, 2)
        assert [file.name for file in folder.iterdir()] == [name]
