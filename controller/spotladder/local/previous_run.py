"""How the runner handles a previous run of the job: refuse to start, remove it, or resume it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from spotladder.checkpoints.history import History
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.progress import progress, progress_of, went_back
from spotladder.checkpoints.removal import remove
from spotladder.core.model import TERMINAL, Instant, JobSpec, JobState, Seconds, Stage
from spotladder.errors import EnvironmentFailure, InvalidSpec, LogCorrupt
from spotladder.local import preflight
from spotladder.local.runner import end_interrupted_attempt
from spotladder.local.state import JobFolder, RunIdentity
from spotladder.records.model import Committed, Moved, Record


class StartMode(Enum):
    """What the user asks for: `run`, `run --fresh` or `run --continue`."""

    NEW = "fail if there is a previous run"
    FRESH = "remove the previous run and its checkpoints"
    RESUME = "resume the previous run"


@dataclass(frozen=True, slots=True)
class RunStart:
    """The state and the identity with which a runner starts. `resumed`: one of them is from a previous run."""

    state: JobState
    run: RunIdentity
    resumed: bool = False


def start_from(
    mode: StartMode, folder: JobFolder, log: CommitLog, now: RunIdentity, *, interval: Seconds = 0.0
) -> RunStart:
    """Read the previous run and return the state with which the runner starts. Only `FRESH` changes anything: it
    removes the previous run, whatever its state, if it belongs to this job.

    `interval` is the commit interval in seconds, 0 if it is not a time. Raises InvalidSpec if the user must choose
    between `--fresh` and `--continue`; EnvironmentFailure if the previous run had other versions or another address, if
    its commits are missing, or if another run writes to the log.
    """
    if mode is not StartMode.NEW:
        _refuse_live_writer(folder, log, now.began, interval)
    if mode is StartMode.FRESH:
        before = folder.known_run()
        remove(log, ours=before is not None and before.uri == now.uri)
        folder.clear()  # Last: until then run.json names the owner of the checkpoints.
        return RunStart(JobState(), now)
    state, run, history = folder.load(), folder.load_run(), log.read()
    if mode is StartMode.NEW:
        if state is not None:
            place = keep = ""
            if run is not None and run.folder not in ("", now.folder):
                place, keep = f", in {run.folder}", "; to keep it, set another metadata.name or --state-dir"
            raise InvalidSpec(f"this job has a previous run{place}: {_what(state)}{keep}", where=str(folder.path))
        if history.seq >= 0:
            step = history.newest.step if history.newest else 0
            raise InvalidSpec(f"this job has checkpoints up to step {step}; {_choice('resumes')}", where=log.uri)
        return RunStart(JobState(), now)
    if state is None or run is None:
        return RunStart(JobState(), replace(now, uid=history.owner.uid or now.uid), resumed=history.seq >= 0)
    preflight.check_same(run, now)
    if (gone := went_back(state.progress, progress_of(history))) and state.stage is not Stage.SUCCEEDED:
        raise EnvironmentFailure(
            f"{log.uri}: {gone}: mount the file system or correct the address, or start over at step 0 with --fresh"
        )
    if state.stage in TERMINAL and state.stage is not Stage.SUCCEEDED:
        state = _reopened(state)
    return RunStart(state, run, resumed=True)


def _refuse_live_writer(folder: JobFolder, log: CommitLog, at: Instant, interval: Seconds) -> None:
    """Raise EnvironmentFailure if another run may still write to the log. The run of this folder is not alive, since
    this process holds its lock."""
    try:
        history = log.read()
    except LogCorrupt:
        return  # No run can write to it either.
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
            f"{max(0.0, at - wrote_at):.0f} s ago and may be alive: stop it, or wait until it has written nothing for "
            f"{limit:.0f} s"
        )


def _silence(history: History, interval: Seconds) -> Seconds:
    """Seconds without an entry after which a writer counts as gone: three times the longest interval between two
    commits, configured or observed."""
    times = [commit.at for commit in history.commits if history.start and commit.attempt == history.start.attempt]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return max([LEAST_SILENCE, 3 * interval, *(3 * gap for gap in gaps)])


def _reopened(state: JobState) -> JobState:
    """The state of a failed job that is resumed: every tier may be used again; cost and history are kept."""
    tiers = tuple(replace(tier, failures=0, exhausted_by=None) for tier in state.tiers)
    return JobState(last_number=state.last_number, tiers=tiers, history=state.history, started_at=state.started_at)


def close_interrupted_attempt(
    start: RunStart, spec: JobSpec, log: CommitLog, recorded: tuple[Record, ...]
) -> tuple[RunStart, list[Moved]]:
    """End the attempt of a runner that was killed. Returns the new start and the moves, at the time they happened.

    `recorded` is the timeline of that runner. The runner counts as alive until the last record or the saved state,
    whichever is later.
    """
    if start.state.attempt is None:
        return start, []
    signs = [record.at for record in recorded if not isinstance(record, Committed)]  # Commits have the program's clock.
    alive_until = max([start.state.clock, *signs[-1:]])
    state, moves = end_interrupted_attempt(spec, start.state, progress(log), alive_until)
    return replace(start, state=state), [Moved(alive_until, move) for move in moves]


def unrecorded_commits(commits: list[Committed], recorded: tuple[Record, ...]) -> list[Committed]:
    """The commits that the previous runner did not record before it was killed; none if there is no timeline."""
    known = {(record.attempt, record.step) for record in recorded if isinstance(record, Committed)}
    return [commit for commit in commits if recorded and (commit.attempt, commit.step) not in known]


def _what(state: JobState) -> str:
    if state.stage is Stage.SUCCEEDED:
        return "it has succeeded; --fresh removes it with its checkpoints and starts over"
    if state.stage in TERMINAL:
        return f"it has failed ({state.reason}); {_choice('retries')}"
    return f"it is unfinished ({state.phase}); {_choice('resumes')}"


def _choice(verb: str) -> str:
    return f"--continue {verb} it from its newest commit, --fresh removes it and starts over"


LEAST_SILENCE: Seconds = 60.0  # lower limit of the time after which a writer counts as gone
