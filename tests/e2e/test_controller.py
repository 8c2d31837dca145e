"""The controller and the library are upgraded and rolled back: no action is repeated or lost."""

from __future__ import annotations

from pathlib import Path

from spotladder.core.model import codec
from tests.e2e import image as images
from tests.e2e.conftest import controller
from tests.e2e.world import E2eCluster
from tests.released import later


def test_a_job_trains_while_its_controller_and_its_library_are_upgraded_and_rolled_back(
    alone: E2eCluster, tmp_path: Path
) -> None:
    """Each controller follows programs of both versions, and each library resumes from the other one's commits."""
    upgraded = later.environment(later.make(tmp_path / "later"))
    tiers = ["spot-before", "spot-later", "on-demand"]
    for tier in tiers:
        alone.pool(tier, 2)
    library = {"name": "spot-later", "overrides": {"env": {"PYTHONPATH": images.LATER}}}
    alone.submit("spot-before", library, "on-demand", program="chain.py --steps 100000")
    with controller(alone, tmp_path):
        alone.runs("spot-before")
        before = attempts(alone)
    with controller(alone, tmp_path, version=upgraded):
        alone.until("the later version has written the state", lambda: later.FIELD in state(alone))
        alone.runs("spot-before", past=alone.steps())
        assert attempts(alone) == before, "the upgrade ends no attempt and counts no failure"
        assert later.FIELD not in alone.commits()[-1].more
        alone.cluster.kill(alone.worker_node())
        alone.runs("spot-later")
        before = attempts(alone)
    with controller(alone, tmp_path):
        alone.runs("spot-later", past=alone.steps())
        assert attempts(alone) == before, "nor does the rollback"
        assert later.FIELD in alone.commits()[-1].more
        alone.cluster.kill(alone.worker_node())
        alone.runs("on-demand")
        assert later.FIELD not in alone.commits()[-1].more
        alone.suspend()
    lost = "MaxFailuresExceeded"
    ended = [("spot-before", lost), ("spot-later", lost), ("on-demand", "SuspendRequested")]
    assert alone.last_on_each_tier() == ended
    assert later.FIELD in state(alone), "it is kept for the next upgrade"
    recorded = alone.records()
    assert (recorded.damaged, recorded.gaps) == (0, ())
    alone.is_the_uninterrupted_result(steps=alone.steps())


def attempts(e2e: E2eCluster) -> tuple[int, int, list[tuple[str, str]]]:
    """The current attempt, the failures so far, and the ended attempts."""
    status = e2e.status()
    return status["attempt"], status["failures"], e2e.path()


def state(e2e: E2eCluster) -> str:
    """The stored state, with the fields that this version does not know."""
    return codec.dump(codec.load_state(e2e.status()["state"]))
