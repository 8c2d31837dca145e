"""What to do about an earlier run of the job: there must be none, or forget it, or go on with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from spotladder.checkpoints.progress import progress_of, went_back
from spotladder.checkpoints.removal import remove
from spotladder.core.model import TERMINAL, Instant, JobSpec, JobState, Seconds, Stage
from spotladder.display.timeline import Committed, Moved, Record
from spotladder.errors import EnvironmentFailure, InvalidSpec, LogCorrupt
from spotladder.local import preflight
from spotladder.local.runner import laid_down
from spotladder.local.state import JobFolder, Run

if TYPE_CHECKING:
    from spotladder.checkpoints.history import History
    from spotladder.checkpoints.log import CommitLog


class Begin(Enum):
    """What the user wants to be done about an earlier run."""

    NEW = "there must be none"
    FRESH = "forget it, with its checkpoints"
    RESUME = "go on with it"


@dataclass(frozen=True, slots=True)
class TakenUp:
    """What a runner begins with. `resumed`: something of an earlier one is in it."""

    state: JobState
    run: Run
    resumed: bool = False


def take_up(begin: Begin, folder: JobFolder, log: CommitLog, now: Run, *, interval: Seconds = 0.0) -> TakenUp:
    """Find out what there is. Nothing is changed, unless `begin` says that it is to be forgotten: that works whatever
    state it is in, as long as it is this job's for certain.

    `interval` is the one between commits, 0 where it is not a time. Raises InvalidSpec when the user has to choose,
    EnvironmentFailure when this is not what the run was begun with, when its commits are gone, or when another run
    writes the log.
    """
    if begin is not Begin.NEW:
        _refuse_live_writer(folder, log, now.began, interval)
    if begin is Begin.FRESH:
        before = folder.known_run()
        remove(log, ours=before is not None and before.uri == now.uri)
        folder.clear()  # last: until then it says whose the checkpoints are
        return TakenUp(JobState(), now)
    state, run, history = folder.load(), folder.load_run(), log.read()
    if begin is Begin.NEW:
        if state is not None:
            raise InvalidSpec(f"there is a run of this job: {_what(state)}", where=str(folder.path))
        if history.seq >= 0:
            step = history.newest.step if history.newest else 0
            raise InvalidSpec(f"there are checkpoints of this job, up to step {step}; {_CHOICE}", where=log.uri)
        return TakenUp(JobState(), now)
    if state is None or run is None:
        return TakenUp(JobState(), replace(now, uid=history.owner.uid or now.uid), resumed=history.seq >= 0)
    preflight.check_same(run, now)
    if (gone := went_back(state.progress, progress_of(history))) and state.stage is not Stage.SUCCEEDED:
        raise EnvironmentFailure(
            f"{log.uri}: {gone}: mount the file system or correct the address, or begin anew at step 0 with --fresh"
        )
    if state.stage in TERMINAL and state.stage is not Stage.SUCCEEDED:
        state = _reopened(state)
    return TakenUp(state, run, resumed=True)


def _refuse_live_writer(folder: JobFolder, log: CommitLog, at: Instant, interval: Seconds) -> None:
    """A log into which another run has written a moment ago is neither removed nor taken over.

    This folder's own run is not alive: its lock is held here.
    """
    try:
        history = log.read()
    except LogCorrupt:
        return  # it cannot be written either
    start, newest = history.start, history.newest
    if start is None or history.end is not None:
        return
    own = folder.known_run()
    if own is not None and own.uid == start.owner.uid:
        return
    wrote_at = max(start.at, newest.at if newest else start.at)
    limit = _silence(history, interval)
    if at - wrote_at < limit:
        what = f"step {newest.step}" if newest and newest.at == wrote_at else "its start"
        raise EnvironmentFailure(
            f"{log.uri}: attempt {start.attempt} of another run (not that of {folder.path}) has written {what} "
            f"{max(0.0, at - wrote_at):.0f} s ago and may be alive: stop it, or wait until nothing was written for "
            f"{limit:.0f} s"
        )


def _silence(history: History, interval: Seconds) -> Seconds:
    """After how many seconds without an entry a writer counts as gone: three times the longest interval between two
    commits, wanted or seen."""
    times = [commit.at for commit in history.commits if history.start and commit.attempt == history.start.attempt]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return max([LEAST_SILENCE, 3 * interval, *(3 * gap for gap in gaps)])


def _reopened(state: JobState) -> JobState:
    """The user has changed something, or wants it tried again: every tier is open. What was paid stays paid."""
    tiers = tuple(replace(tier, failures=0, exhausted_by=None) for tier in state.tiers)
    return JobState(last_number=state.last_number, tiers=tiers, history=state.history, started_at=state.started_at)


def settled(taken: TakenUp, spec: JobSpec, log: CommitLog, told: tuple[Record, ...]) -> tuple[TakenUp, list[Moved]]:
    """The attempt of a runner that was killed is closed; with the moves of that, at the time when they happened.

    `told` is what that runner told: its last record is its last sign of life, where it is later than the saved state.
    """
    if taken.state.attempt is None:
        return taken, []
    from spotladder.checkpoints.progress import progress

    signs = [record.at for record in told if not isinstance(record, Committed)]  # a commit has the program's clock
    alive_until = max([taken.state.clock, *signs[-1:]])
    state, moves = laid_down(spec, taken.state, progress(log), alive_until)
    return replace(taken, state=state), [Moved(alive_until, move) for move in moves]


def untold(commits: list[Committed], told: tuple[Record, ...]) -> list[Committed]:
    """Commits of an earlier runner's attempt that it was no more there to tell; none of a run that is not known."""
    known = {(record.attempt, record.step) for record in told if isinstance(record, Committed)}
    return [commit for commit in commits if told and (commit.attempt, commit.step) not in known]


def _what(state: JobState) -> str:
    if state.stage is Stage.SUCCEEDED:
        return "it has succeeded; --fresh removes it with its checkpoints and begins anew"
    if state.stage in TERMINAL:
        return f"it has failed ({state.reason}); {_CHOICE.replace('goes on', 'tries again', 1)}"
    return f"it is unfinished ({state.phase}); {_CHOICE}"


LEAST_SILENCE: Seconds = 60.0

_CHOICE = "--resume goes on from its newest commit, --fresh removes it and begins anew"
