"""`spotladder run` as a user runs it: a separate process, real Ray, real node losses, a real checkpoint folder."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.core.model import Stage
from spotladder.core.reasons import Reason
from spotladder.local.reaper import members
from spotladder.records.model import Beat, Began, Committed, Moved
from tests.local.run_site import PROGRAM, WORLD, RunSite

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]


def impatient(runner: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Send SIGINT until the runner ends: neither the cleanup nor the exit code may be affected."""
    deadline = time.monotonic() + 30
    while runner.poll() is None and time.monotonic() < deadline:
        runner.send_signal(signal.SIGINT)
        time.sleep(0.02)
    return runner


def committed(site: RunSite) -> int:
    return max((record.step for record in site.records() if isinstance(record, Committed)), default=0)


def test_a_stopped_or_killed_run_is_resumed_without_losing_steps(site: Callable[[str], RunSite]) -> None:
    """kill -9, then Ctrl-C, then Ctrl-C twice: --continue resumes it each time; no step is lost or done twice."""
    job = site("stubborn")
    job.lay_out(total=300)
    runner = job.start()
    job.until(lambda: committed(job) >= 20)
    second = job.start("--continue")
    code, said = job.end(second, 30)
    assert code == 5
    assert f"process {runner.pid} is running this job" in said
    mark = job.mark()
    runner.kill()
    runner.wait()
    job.until(lambda: members(mark, set()) == [], 10)

    code, said = job.end(job.start(), 30)
    assert code == 2
    assert "--continue resumes it from its newest commit" in said

    newest = CommitLog(open_store(job.folder / "checkpoints"), "stubborn").newest()
    assert newest is not None
    runner = job.start("--continue")
    before = newest.step
    job.until(lambda: committed(job) > before)
    assert before in [record.step for record in job.records() if isinstance(record, Committed)], "even if unrecorded"
    runner.send_signal(signal.SIGINT)
    code, said = job.end(runner, 60)
    assert code == 75, said
    assert "to continue: spotladder run job.yaml --world world.yaml" in said
    state = job.saved()
    assert state.stage is Stage.SUSPENDED
    assert state.failures == 0, "a killed runner is no failure of the tier"
    assert state.history[-1].end_step > before
    assert state.history[-1].reason is Reason.STOP_REQUESTED
    assert members(job.mark(), set()) == []

    runner = job.start("--continue")
    before = committed(job)
    job.until(lambda: committed(job) > before)
    (job.folder / "train.py").write_text("never read again by this attempt")
    code, said = job.end(impatient(runner), 30)
    assert code == 75, said
    assert "to continue: spotladder run" in said
    assert members(job.mark(), set()) == []

    (job.folder / "train.py").write_text(PROGRAM.format(total=300, pause="0"))
    code, said = job.end(job.start("--continue"))
    assert code == 0, said
    log = job.state / "attempts" / f"{job.saved().history[-1].number:04d}" / "driver.log"
    assert "all steps in their order" in log.read_text()
    assert [record.resumed for record in job.records() if isinstance(record, Began)] == [False, True, True, True]


def test_a_failing_job_does_not_affect_a_job_that_runs_at_the_same_time(site: Callable[[str], RunSite]) -> None:
    good, bad = site("good"), site("bad")
    good.lay_out(total=60)
    bad.lay_out(total=60)
    (bad.folder / "train.py").write_text("print('on the way', flush=True)\nraise ValueError('no such layer')\n")
    first, second = good.start("--continue", world=False), bad.start()
    code, said = bad.end(second)
    assert code == 1, said
    assert "ValueError: no such layer" in said
    assert str(bad.state / "attempts" / "0001" / "driver.log") in said.replace("\n", "")
    assert bad.saved().reason is Reason.APPLICATION_FAILED
    assert bad.saved().record("spot-a").failures == 0
    code, said = good.end(first)
    assert code == 0, said
    assert "there is nothing to resume" in said
    assert not [record for record in good.records() if isinstance(record, Moved) and record.move.reason == "HeadLost"]
    assert len(good.saved().history) == 1, "without a world no node is ever lost"


RETURNING = """\
from spotladder.core.model import TierChoice

class Returning:
    def choose(self, view):
        back = [outlook.name for outlook in view.outlooks if outlook.overlaps]
        return TierChoice(back[0] if back else view.current or "on-demand", why="spot is cheaper")
"""


def test_a_move_to_a_cheaper_tier_trains_until_the_next_attempt_stands_by(
    site: Callable[[str], RunSite], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = site("overlap")
    job.lay_out(total=900, pause="0.05 if job.attempt == 1 else 0.01")
    info = job.folder / "returning-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: returning\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[spotladder.policies]\nreturning = returning:Returning\n")
    (job.folder / "returning.py").write_text(RETURNING)
    monkeypatch.setenv("PYTHONPATH", str(job.folder))
    text = (job.folder / "job.yaml").read_text()
    bounds = "  grace: 20s\n  policy: returning\n  overlap: {maxDuration: 3m}\n"
    (job.folder / "job.yaml").write_text(text.replace("  grace: 20s\n", bounds))
    (job.folder / "world.yaml").write_text(WORLD.replace("b: {", 'b: {price: {perNodeHour: "0.42"}, '))
    code, said = job.end(job.start())
    assert code == 0, said
    assert "attempt 2 on spot-a starts beside attempt 1" in said
    state, records = job.saved(), job.records()
    ended, last = state.history
    assert (ended.tier, ended.reason, last.tier, state.failures) == ("on-demand", Reason.POLICY, "spot-a", 0)
    assert last.start_step == ended.end_step, "no step was done twice"
    assert state.surplus.overlap > 0
    beats = [record for record in records if isinstance(record, Beat)]
    stopped = max(beat.at for beat in beats if beat.attempt == 1)
    went_on = min(beat.at for beat in beats if beat.attempt == 2)
    print(f"last step before to first step after the move: {went_on - stopped:.1f} s")
    assert went_on - stopped < 15
    assert "all steps in their order" in (job.state / "attempts" / "0002" / "driver.log").read_text()
    assert members(job.mark(), set()) == []
