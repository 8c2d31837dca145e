"""Every example runs on Ray with lost nodes as its README describes, and has the result of an uninterrupted run."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.core.model import Stage
from spotladder.core.reasons import Reason
from spotladder.records.model import Beat, Moved, Resized
from tests.examples.demo import EXAMPLES, LIMIT, Demo, accuracy
from tests.frameworks.test_same_weights import newest, run, weights

pytestmark = [pytest.mark.ray, pytest.mark.timeout(LIMIT + 300)]

OPTIONS = {"steps": 500, "batch": 64, "width": 1024, "workers": 2}
"""The defaults of the digits' options."""

DIGITS = [("tensorflow", "digits-tensorflow"), ("torch", "digits-pytorch"), ("jax", "digits-jax")]


@pytest.mark.frameworks
@pytest.mark.parametrize(("framework", "name"), DIGITS)
def test_digits(framework: str, name: str, tmp_path: Path) -> None:
    if framework != "tensorflow":
        pytest.importorskip(framework)
    demo = Demo.copied(name, tmp_path / "demo")
    if framework == "tensorflow":
        demo.make()
        assert (demo.folder / "report" / "report.html").stat().st_size > 0
    else:
        demo.run()
    state = demo.state()
    assert state.stage == Stage.SUCCEEDED
    assert [(attempt.tier, attempt.reason) for attempt in state.history] == [
        ("spot-a", Reason.EVICTION_NOTICE),
        ("spot-b", Reason.INSUFFICIENT_CAPACITY),
        ("spot-c", Reason.MAX_FAILURES_EXCEEDED),
        ("on-demand", Reason.COMPLETED),
    ]
    assert accuracy(demo.driver_logs()) >= 0.95
    if framework == "tensorflow":
        takes_over_inside_the_first_attempt(demo)
    facts = demo.facts()
    assert facts.recomputed, "the kill without notice must lose steps"
    assert facts.uninterrupted is not None
    assert facts.spent < facts.uninterrupted / 2, "the demo must be cheaper than an uninterrupted run"

    # The same loop, uninterrupted, on two processes that are connected without Ray.
    assert run(framework, 2, tmp_path / "whole", **OPTIONS) == 0
    expected = newest(tmp_path / "whole")
    assert demo.last().step == expected.step == OPTIONS["steps"]
    assert accuracy(demo.driver_logs()) == accuracy((tmp_path / "whole" / "rank-0.log").read_text())
    assert weights(framework, demo.last(), demo.files) == weights(framework, expected, tmp_path / "whole" / "digits")


def takes_over_inside_the_first_attempt(demo: Demo) -> None:
    """A replacement took over from the first noticed worker, and no step was repeated."""
    records = demo.timeline().records
    moves = [record.move.reason for record in records if isinstance(record, Moved)]
    assert Reason.HANDED_OVER in moves[: moves.index(Reason.EVICTION_NOTICE)]
    steps = [record.step for record in records if isinstance(record, Beat) and record.attempt == 1]
    assert steps == sorted(steps)


@pytest.mark.frameworks
def test_elastic_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    demo = Demo.copied("elastic", tmp_path / "demo")
    demo.run()
    state = demo.state()
    assert [(attempt.number, attempt.reason) for attempt in state.history] == [(1, Reason.COMPLETED)]
    assert state.failures == 1
    assert [record.workers for record in demo.timeline().records if isinstance(record, Resized)] == [3, 2, 3]
    assert demo.last().step == 300

    # The same loop with a fixed number of processes that are connected without Ray, uninterrupted.
    assert run("elastic", 2, tmp_path / "whole", steps=300, batch=96) == 0
    fixed = newest(tmp_path / "whole")
    assert fixed.step == 300
    changed, uninterrupted = (
        torch.load(states(path)) for path in (demo.files / demo.last().path, tmp_path / "whole" / "digits" / fixed.path)
    )
    assert changed["model"].keys() == uninterrupted["model"].keys()
    for name, value in changed["model"].items():
        assert torch.allclose(value, uninterrupted["model"][name], rtol=0, atol=1e-9), name


def states(commit: Path) -> Path:
    """The file of a commit with the model."""
    (file,) = commit.rglob("state.pt")
    return file


@pytest.mark.frameworks
def test_digits_lightning_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    demo = Demo.copied("digits-lightning", tmp_path / "demo")
    demo.run()
    assert [(attempt.tier, attempt.reason) for attempt in demo.state().history] == [
        ("spot", Reason.EVICTION_NOTICE),
        ("spot", Reason.EVICTION_NOTICE),
        ("on-demand", Reason.COMPLETED),
    ]
    assert not demo.facts().recomputed
    assert accuracy(demo.driver_logs()) >= 0.95


@pytest.mark.frameworks
def test_tune_sweep(tmp_path: Path) -> None:
    demo = Demo.copied("tune-sweep", tmp_path)
    demo.ray["runtimeEnvYAML"] = 'env_vars: {PACE: "0.3", EPOCHS: "15"}'
    demo.run()
    assert len(demo.state().history) > 1
    assert (demo.last().step, demo.last().total) == (6, 6)
    assert accuracy(demo.driver_logs()) >= 0.95


@pytest.mark.parametrize(
    "folder", sorted(file.parent for file in EXAMPLES.glob("*/job.yaml")), ids=lambda folder: str(folder.name)
)
def test_an_example_is_short_and_has_a_readme(folder: Path) -> None:
    assert len((folder / "train.py").read_text().splitlines()) <= 80
    assert f"examples/{folder.name}/job.yaml" in (folder / "README.md").read_text()
