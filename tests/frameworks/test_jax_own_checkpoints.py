"""What Orbax writes is recognized as a checkpoint of a program's own folder, and Orbax reads it when it is put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.train.folder_watch import Watch
from spotladder.train.putback import put_back
from spotladder.train.saved import saved_in
from tests.train.builders import ManualClock, member

ocp = pytest.importorskip("orbax.checkpoint")
pytestmark = pytest.mark.frameworks


def test_a_manager_continues_from_what_was_put_back(tmp_path: Path) -> None:
    import numpy as np

    first, out, clock = member(tmp_path / "bucket"), tmp_path / "out", ManualClock()
    watch = Watch(out, first, first.commits, put_back(first, out), clock)
    manager = ocp.CheckpointManager(out)
    manager.save(7, args=ocp.args.StandardSave({"weight": np.arange(4)}))
    manager.wait_until_finished()
    assert [(saved.name, saved.step, saved.complete) for saved in saved_in(out)] == [("7", 7, True)]
    watch.look(ended=True)
    first.commits.wait()
    out.rename(tmp_path / "gone")
    put_back(member(tmp_path / "bucket", attempt=2), out)
    manager = ocp.CheckpointManager(out)
    assert manager.latest_step() == 7
    restored = manager.restore(7, args=ocp.args.StandardRestore({"weight": np.zeros(4, dtype=int)}))
    assert list(restored["weight"]) == [0, 1, 2, 3]


def test_a_single_checkpoint(tmp_path: Path) -> None:
    import numpy as np

    checkpointer = ocp.StandardCheckpointer()
    checkpointer.save(tmp_path / "step_9", {"weight": np.arange(4)})
    checkpointer.wait_until_finished()
    assert [(saved.name, saved.step, saved.complete) for saved in saved_in(tmp_path)] == [("step_9", 9, True)]


def test_the_checkpointer_of_maxtext_continues_from_what_was_put_back(tmp_path: Path) -> None:
    """MaxText saves several parts of a step in the background, with the second version of Orbax's interface."""
    import numpy as np
    from orbax.checkpoint import v1

    first, out, clock = member(tmp_path / "bucket"), tmp_path / "out", ManualClock()
    watch = Watch(out, first, first.commits, put_back(first, out), clock)
    with v1.training.Checkpointer(out) as checkpointer:
        for step in (0, 10):
            checkpointer.save_checkpointables_async(step, {"items": {"weight": np.arange(4) + step}}).result()
    assert [(saved.name, saved.step, saved.complete) for saved in saved_in(out)] == [("0", 0, True), ("10", 10, True)]
    watch.look(ended=True)
    first.commits.wait()
    out.rename(tmp_path / "gone")
    put_back(member(tmp_path / "bucket", attempt=2), out)
    with v1.training.Checkpointer(out) as checkpointer:
        assert checkpointer.latest is not None
        assert checkpointer.latest.step == 10
        restored = checkpointer.load_checkpointables(10, {"items": {"weight": np.zeros(4, dtype=int)}})
    assert list(restored["items"]["weight"]) == [10, 11, 12, 13]
