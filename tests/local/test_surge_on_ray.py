"""Surge in `spotladder run`: a replacement starts beside a worker whose node will be reclaimed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spotladder.core.reasons import Reason
from spotladder.local.reaper import members
from spotladder.records.model import Beat, Committed, Moved, NodeChange, NodeChanged
from tests.local.run_site import WORLD, RunSite

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

SURGES = """\
import json, pathlib, time
from spotladder import train

def loop(config):
    job = train.current()
    history, start = [], 0
    with job.resume() as found:
        if found:
            history, start = json.loads((found.path / "history.json").read_text()), found.step
    with pathlib.Path(config["out"], f"starts-{job.rank}").open("a") as starts:
        starts.write(f"{start}\\n")
    for step in job.steps(start, 500):
        time.sleep(0.05)
        history.append(step)
        if job.should_commit(step):
            with job.commit(step) as folder:
                (folder / "history.json").write_text(json.dumps(history))
    assert history == list(range(1, 501)), "a step was lost or done twice"

if __name__ == "__main__":
    from ray.train import ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    scaling, run = ScalingConfig(num_workers=2), train.ray_run_config()
    here = {"out": str(pathlib.Path.cwd())}
    DataParallelTrainer(loop, train_loop_config=here, scaling_config=scaling, run_config=run).fit()
"""


def test_a_noticed_worker_is_replaced_inside_the_attempt_while_the_program_trains(
    site: Callable[[str], RunSite],
) -> None:
    job = site("surge")
    job.lay_out(total=500)
    (job.folder / "train.py").write_text(SURGES)
    reclaimed = "nodes: 3, notice: 60s, interruptions: {atSteps: [60]}, "
    (job.folder / "world.yaml").write_text(WORLD.replace("nodes: 2, ", reclaimed, 1))
    text = (job.folder / "job.yaml").read_text()
    (job.folder / "job.yaml").write_text(text.replace("replicas: 1", "replicas: 2").replace("10steps", "1h"))
    code, said = job.end(job.start())
    assert code == 0, said
    (attempt,) = job.saved().history
    assert (attempt.tier, attempt.failures, job.saved().failures) == ("spot-a", 1, 1)
    moves = [record.move for record in job.records() if isinstance(record, Moved)]
    assert [move.reason for move in moves][-3:] == [Reason.REPLACING, Reason.HANDED_OVER, Reason.COMPLETED]
    changes = [record for record in job.records() if isinstance(record, NodeChanged)]
    noticed = next(change.at for change in changes if change.change is NodeChange.NOTICED)
    joined = max(change.at for change in changes if change.change is NodeChange.UP)
    beats = [record for record in job.records() if isinstance(record, Beat)]
    first, second = (int(line) for line in (job.folder / "starts-0").read_text().split())
    commits = [record for record in job.records() if isinstance(record, Committed)]
    assert [commit.step for commit in commits][1:] == [second, 500], "at the notice, at the handover, at the end"
    assert noticed <= commits[0].at < joined, "the program commits at the notice, not when the replacement is ready"
    trained = [beat for beat in beats if noticed < beat.at < joined]
    assert trained, "the program trains while the replacement starts"
    assert (first, second) == (0, max(beat.step for beat in beats if beat.step <= second)), "no step was done twice"
    handed_over = next(commit.at for commit in commits if commit.step == second)
    assert joined <= handed_over, "the program does not wait for a node, nor for Ray"
    assert members(job.mark(), set()) == []
