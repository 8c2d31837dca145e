"""Code that runs inside Ray Tune's driver: the callback that commits the state of a sweep."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from ray.tune import Callback

from spotladder.core.contract import Notice
from spotladder.train.interruption import Interrupted
from spotladder.train.membership import Member
from spotladder.train.pending import Checkpoint
from spotladder.train.sweep_state import PLACE

_log = logging.getLogger("spotladder.train")

COMMIT_INTERVAL = 2.0
"""Minimum seconds between two commits, however many trials end."""


class _Sweep:
    """The sweep of this driver. `below` is its folder in the job's store."""

    def __init__(self, member: Member, below: str) -> None:
        self.member = member
        self.below = below
        self.total = 0
        self.count = 0
        self.finished = 0
        self.seen: tuple[str, int] = ("", 0)
        self.committed_at = float("-inf")
        self.request: Notice | None = None
        self.results = -1


_sweep: _Sweep | None = None


def watch(member: Member, below: str) -> None:
    """Set the sweep that this process commits."""
    global _sweep  # noqa: PLW0603 – a driver has one sweep; Ray stores callbacks with the sweep, so they hold nothing
    _sweep = _Sweep(member, below)


class StateCommits(Callback):  # type: ignore[misc]
    """Commits the state that Ray has just written: after a trial ends, when the interval is over and
    trials have new results, and at the end.

    Has no state: Ray pickles it with the sweep and restores it in another process.
    """

    def setup(self, stop: Any = None, num_samples: Any = None, total_num_samples: Any = None, **info: Any) -> None:  # noqa: ARG002 – Ray's protocol
        if _sweep is not None and isinstance(total_num_samples, int):
            _sweep.total = total_num_samples

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:  # noqa: ARG002 – Ray's protocol
        if _sweep is None or not trials:
            return
        _sweep.member.commits.check()
        state = _new_state(_sweep, trials)
        notice = _sweep.member.listener.poll()
        if state is None:
            return
        now = time.monotonic()
        interval = _sweep.member.environment.interval.seconds
        due = interval and now - _sweep.committed_at >= interval and _results(trials) != _sweep.results
        due = due or _ended(trials) > _sweep.finished
        asked = _sweep.member.listener.request != _sweep.request
        if notice is not None:
            _commit(_sweep, state, trials)
            _sweep.member.commits.wait()
            raise Interrupted(_sweep.finished)
        commits = _sweep.member.commits
        if (asked or (due and now - _sweep.committed_at >= COMMIT_INTERVAL)) and (not commits.busy or commits.away):
            _sweep.request = _sweep.member.listener.request
            _commit(_sweep, state, trials)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:  # noqa: ARG002 – Ray's protocol
        if _sweep is None or not trials:
            return
        _commit(_sweep, Path(trials[0].storage.experiment_driver_staging_path), trials)
        _sweep.member.commits.wait()


def _new_state(sweep: _Sweep, trials: list[Any]) -> Path | None:
    """The folder with the state; None if Ray has not written a state since the last commit.

    Ray writes the state in the same thread before the callback, so it is complete.
    """
    folder = Path(trials[0].storage.experiment_driver_staging_path)
    newest = max(folder.glob("experiment_state-*.json"), default=None)
    if newest is None:
        return None
    version = (newest.name, newest.stat().st_mtime_ns)
    return folder if version != sweep.seen else None


def _commit(sweep: _Sweep, state: Path, trials: list[Any]) -> None:
    newest = max(state.glob("experiment_state-*.json"))
    session = newest.stem.removeprefix("experiment_state-")
    folder = Path(tempfile.mkdtemp(prefix="spotladder-commit-"))
    for file in state.iterdir():
        if file.is_file() and session in file.name:
            shutil.copyfile(file, folder / file.name)
    (folder / PLACE).write_text(json.dumps({"folder": sweep.below}), encoding="utf-8")
    sweep.seen = (newest.name, newest.stat().st_mtime_ns)
    sweep.count += 1
    sweep.finished = _ended(trials)
    sweep.results = _results(trials)
    sweep.committed_at = time.monotonic()
    total = max(sweep.total, len(trials))
    again = sweep.member.writer.start.restart if sweep.member.writer else 0
    sweep.member.commits.submit(
        Checkpoint(
            sweep.finished,
            folder,
            total,
            {"trials": len(trials), "finished": sweep.finished},
            path=f"{sweep.below}.state/{sweep.count:06d}.{again}",
        )
    )
    sweep.member.heartbeat.beat(sweep.finished, total, at_once=True)


def _results(trials: list[Any]) -> int:
    """The number of results of all trials. Ray writes the state of a sweep whose trials are all paused, too."""
    return sum((trial.last_result or {}).get("training_iteration", 0) for trial in trials)


def _ended(trials: list[Any]) -> int:
    return sum(trial.status == "TERMINATED" for trial in trials)
