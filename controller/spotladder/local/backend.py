"""`AttemptBackend` on this machine: each attempt is a real Ray cluster whose workers come from its tier's pool.

1. No method blocks: slow operations (Ray's start, the submission, the bucket) run in the background. `observe` reports
   their progress and starts the next operation; the runner calls it about ten times a second.
2. The head represents a cluster's on-demand head: it has no pool and no price. Each attempt has its own head, like a
   RayJob: state that an attempt leaves in Ray (placement groups, actors, nodes whose loss Ray has not noticed) would
   take resources from the next attempt. Once the program runs, or the pool has no node for it, the next attempt's
   head is started ahead.
3. The submission and the start of the nodes run in parallel. The program starts when the gang is ready.
4. Ray runs the program's driver on the head. A program that does not connect to Ray runs entirely in its driver. It
   counts as running on its workers' nodes, so the loss of a node kills it.
5. A standby attempt is a second cluster beside the live one, on the nodes of its own tier's pool.
6. Each attempt's program has its own TMPDIR, which is removed with the attempt. What PyTorch compiles stays with the
   run.
7. A backend's attempts end with its process, so a new backend has no attempts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spotladder.core.attempt_program import LAST_COMMIT_LIMIT, launch_variables
from spotladder.core.contract import Milestone, Variable, compile_caches
from spotladder.core.model import (
    AskToCommit,
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Finish,
    Instant,
    Launch,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    Replace,
    Resize,
    Seconds,
    TakeOver,
)
from spotladder.core.reasons import Cause
from spotladder.errors import EnvironmentFailure
from spotladder.local.local_job import LocalJob
from spotladder.local.logwatch import LogWatch
from spotladder.local.nodes import Head, NodeSettings, Worker
from spotladder.local.pools import PoolClock
from spotladder.local.program import Program
from spotladder.local.worker_group import WorkerGroup
from spotladder.records import model as records
from spotladder.workloads import names

HEAD_STARTS = 3
"""Maximum number of tries to start an attempt's head, which can time out on a busy machine."""

SPARE_AFTER: Seconds = 60.0
"""Seconds after the program's start before the next head is started, unless the program shows progress earlier. Until
then the program has the whole machine."""

CONNECTS_WITHIN: Seconds = 60.0
"""Seconds after which a program without heartbeats and without a connection to Ray counts as not using Ray."""

_PHASES = {
    "imports": "the program starts and imports its modules",
    "connected": "the program has connected to Ray, its workers start and import their modules",
    "joined": "the program has joined its commit log and starts its first step",
    "first step": "the first step runs",
    "program": "the program runs; its next checkpoint is not saved yet",
}


@dataclass(slots=True)
class _Attempt:
    number: int
    tier: str
    fleet: WorkerGroup
    program: Program
    head: Head
    launch: Launch
    head_starts: int = 1
    noted_start: bool = False
    exited_at: Instant | None = None
    beat: records.Beat | None = None
    without_ray: bool | None = None  # None: not known yet
    lost_before: tuple[str, ...] = ()  # nodes that were lost and replaced before `without_ray` was known
    went_with: str = ""
    taken_over: bool = False
    size: int | None = None  # the number of workers with which an elastic program trains

    @property
    def standby(self) -> bool:
        """Whether it was launched as a standby attempt."""
        return self.launch.standby


class LocalBackend:
    """All attempts of one job, as processes of this machine."""

    def __init__(
        self,
        job: LocalJob,
        machine: NodeSettings,
        pools: Mapping[str, PoolClock],
        log: LogWatch,
        *,
        clock: Callable[[], Instant],
        emit: Callable[[records.Record], None],
        revision: int = 0,
    ) -> None:
        self._job, self._machine, self._pools, self._log = job, machine, pools, log
        self._clock, self._emit = clock, emit
        self._revision = revision
        self._attempts: dict[int, _Attempt] = {}
        self._spare: Head | None = None
        self._heads = 0
        self._available: dict[str, bool] = {}
        self._placement_noted = False
        self.last_exit: int | None = None
        """The exit code of the last program that ended."""

    # --- AttemptBackend ---

    def launch(self, action: Launch) -> None:
        """Request the workers from the tier's pool and submit the driver to Ray."""
        if action.attempt in self._attempts:
            return
        if self._log.gone:
            raise EnvironmentFailure(
                f"{self._log.gone}, so attempt {action.attempt} would start at step 0: mount the file system or "
                "restore the folder, then run with --continue"
            )
        tier, pool = self._job.tiers[action.tier], self._pools[action.tier]

        def start(name: str) -> Worker | None:
            return self._start_worker(name, action)

        fleet = WorkerGroup(action, self._job.workers, pool, start, self._emit)
        folder = self._machine.folder / "attempts" / f"{action.attempt:04d}"
        program = Program(folder, tier.entrypoint, self._job.cwd)
        self._machine.temporary(action.attempt).mkdir(parents=True, exist_ok=True)
        attempt = _Attempt(action.attempt, action.tier, fleet, program, self._take_head(), action)
        self._attempts[action.attempt] = attempt
        self._emit(records.Launched(self._clock(), action.attempt, action.tier))

    def drain(self, action: Drain) -> None:
        """Write the notice that makes the program commit and stop."""
        attempt = self._attempts.get(action.attempt)
        if attempt:
            attempt.program.ask_to_stop(action.reason, action.deadline)

    def delete(self, action: Delete) -> None:
        """Kill the program and the nodes; returns when they are gone."""
        attempt = self._attempts.pop(action.attempt, None)
        if attempt:
            attempt.program.kill()
            attempt.head.kill()
            attempt.fleet.close(self._clock())
            self._note_exit(attempt)
            shutil.rmtree(self._machine.temporary(attempt.number), ignore_errors=True)

    def replace(self, action: Replace) -> None:
        """Replace noticed workers. For a handover, write the notice of their nodes; then remove them."""
        attempt = self._attempts.get(action.attempt)
        if attempt is None:
            return
        attempt.fleet.replace(action.pods)
        if action.hand_over:
            attempt.fleet.hand_over(action.pods, action.deadline)
        if action.remove:
            attempt.fleet.remove(action.pods)

    def resize(self, action: Resize) -> None:
        """Never asked for: `surplus` is None, and a program of this machine begins as soon as enough nodes are up."""
        raise AssertionError(f"the number of workers of attempt {action.attempt} is not changed on this machine")

    def take_over(self, action: TakeOver) -> None:
        """Write the notice that lets the held program start."""
        attempt = self._attempts.get(action.attempt)
        if attempt:
            attempt.taken_over = True
            attempt.program.take_over()

    def ask_to_commit(self, action: AskToCommit) -> None:
        """Write the notice that makes the program commit."""
        attempt = self._attempts.get(action.attempt)
        if attempt:
            attempt.program.ask_to_commit(action.reason, action.asked_at)

    def finish(self, action: Finish) -> None:
        """Record the outcome in the commit log. The job's processes end with the run."""
        for number in list(self._attempts):
            self.delete(Delete(number, action.reason))
        self._log.end(succeeded=action.succeeded, message=action.reason.value)

    def observe(self) -> Observation:
        """Advance every pending operation and return the observation."""
        now = self._clock()
        self._revision += 1
        self._note_pools(now)
        seen = tuple(self._look(attempt, now) for attempt in self._attempts.values())
        live = self._live()
        room = live.fleet.room(now) if live is not None else None
        return Observation(self._revision, seen, self._log.progress, surge_room=room)

    def beats(self) -> list[records.Beat]:
        """The newest heartbeat of each attempt."""
        return [attempt.beat for attempt in self._attempts.values() if attempt.beat is not None]

    def reached(self, number: int) -> Mapping[Milestone, Instant]:
        """The milestones that the program of this attempt has reached."""
        return self._attempts[number].program.reached if number in self._attempts else {}

    def doing(self) -> str:
        """What the live attempt waits for before its first step is done; "" afterwards."""
        attempt = self._live()
        if attempt is None or attempt.exited_at is not None:
            return ""
        program = attempt.program
        if not attempt.head.up:
            return "Ray starts"
        if not program.released:
            return "Ray has started, its nodes are starting"
        if program.started_at is None:
            return "Ray starts the program"
        if phase := program.phase:
            return _PHASES.get(phase, "")
        if attempt.beat is not None or attempt.without_ray:
            return ""
        return _PHASES["imports"] if attempt.without_ray is None else _PHASES["connected"]

    def _live(self) -> _Attempt | None:
        """The newest attempt that may write."""
        live = (one for one in reversed(self._attempts.values()) if not one.standby or one.taken_over)
        return next(live, None)

    # --- one attempt ---

    def _look(self, attempt: _Attempt, now: Instant) -> AttemptSeen:
        program, fleet = attempt.program, attempt.fleet
        head = self._checked_head(attempt)
        ended = program.exit()
        if head.up and head.alive and (agent := head.agent):
            name = f"{self._job.name}-{attempt.number:04d}"
            program.submit(agent, name, self._environment(attempt), token=self._machine.token)
        if program.submission_error and ended is None:
            raise EnvironmentFailure(program.submission_error)
        stopping = program.asked_to_stop
        step = max(self._log.progress.step, attempt.beat.step if attempt.beat else 0)
        replaced = ended is None and not stopping and not attempt.without_ray
        fleet.advance(now, replace=replaced, step=step, starting=bool(program.phase))
        lost = [pod for pod in fleet.lost if pod not in attempt.lost_before]
        if attempt.without_ray and lost and ended is None:
            attempt.went_with = attempt.went_with or ", ".join(lost)
            program.go_with_node()
        if stopping and not program.released:
            ended = ended or Exit.INTERRUPTED  # The program never started: there is nothing to commit.
        elif fleet.can_start(self._job.min_workers) and not program.released:
            program.release()
        self._note_start(attempt)
        if ended is not None:
            self._note_exit(attempt)
        since = None if attempt.exited_at is None or self._log.current else attempt.exited_at
        waits = since is not None and now - since < LAST_COMMIT_LIMIT
        exit_ = None if waits else ended
        attempt.beat = program.beat(now, attempt.number)
        self._note_placement(attempt, now)
        self._start_spare(attempt, now)
        outage = program.outage() if ended is None else None
        size = self._note_size(attempt, now)
        return AttemptSeen(
            attempt.number,
            pods=(self._head_pod(attempt), *fleet.seen()),
            exit=exit_,
            message=_why(attempt) if exit_ in (Exit.FAILED, Exit.LOST, Exit.REFUSED, Exit.UNSAFE) else "",
            moved_at=attempt.beat.at if attempt.beat else None,
            total=attempt.beat.total if attempt.beat else 0,
            store_unavailable_since=outage.since if outage else None,
            store_message=outage.message if outage else "",
            hung=program.hang() if ended is None else "",
            size=size,
            surplus=fleet.surplus if self._job.min_workers is None else None,
            held=program.phase == "standby" if attempt.standby and not attempt.taken_over else None,
        )

    def _environment(self, attempt: _Attempt) -> dict[str, str]:
        program = attempt.program
        return {
            "TMPDIR": str(self._machine.temporary(attempt.number)),
            **{
                variable: os.environ.get(variable, folder)
                for variable, folder in compile_caches(str(self._machine.folder / "compiled")).items()
            },
            **self._job.tiers[attempt.tier].environment,
            **self._job.environment,
            "RAY_ADDRESS": attempt.head.address,  # Connect to this Ray cluster, not to another one on this machine.
            Variable.JOB: self._job.name,
            Variable.NAMESPACE: self._job.namespace,
            Variable.ATTEMPT: str(attempt.number),
            Variable.TIER: attempt.tier,
            Variable.NOTICE: str(program.notice_file),
            Variable.HEARTBEAT: str(program.heartbeat_file),
            **launch_variables(attempt.launch),
        }

    def _note_size(self, attempt: _Attempt, now: Instant) -> int | None:
        """The number of workers with which an elastic program trains; None before the first report."""
        size = attempt.program.size() if self._job.min_workers is not None else None
        if size is not None and size != attempt.size:
            self._emit(records.Resized(now, attempt.number, size, self._job.workers, attempt.size or 0))
        attempt.size = size
        return size

    def _note_start(self, attempt: _Attempt) -> None:
        if not attempt.noted_start and (at := attempt.program.started_at) is not None:
            attempt.noted_start = True
            self._emit(records.DriverStarted(at, attempt.number))

    def _note_placement(self, attempt: _Attempt, now: Instant) -> None:
        """Detect whether the program uses Ray; report once that a program without Ray ends with its nodes."""
        started = attempt.program.started_at
        if attempt.without_ray is False or started is None:
            return
        if attempt.head.used:
            attempt.without_ray = False
        elif attempt.without_ray is None and (_has_stepped(attempt) or now - started >= CONNECTS_WITHIN):
            attempt.without_ray, attempt.lost_before = True, tuple(attempt.fleet.lost)
            if not self._placement_noted:
                self._placement_noted = True
                nodes = ", ".join(pod.node for pod in attempt.fleet.seen() if pod.phase is not PodPhase.LOST)
                text = f"the program does not use Ray: it counts as running on {nodes}, and ends when a node is lost"
                self._emit(records.Noted(now, text, attempt.number))

    def _note_exit(self, attempt: _Attempt) -> None:
        if attempt.noted_start and attempt.exited_at is None:
            attempt.exited_at = self._clock()
            self.last_exit = attempt.program.exit_code
            self._emit(records.DriverExited(self._clock(), attempt.number, self.last_exit))
            self._log.poll_now()

    # --- head and workers ---

    def _new_head(self) -> Head:
        self._heads += 1
        return Head(f"h{self._heads}", self._machine)

    def _take_head(self) -> Head:
        spare, self._spare = self._spare, None
        if spare is not None and (not spare.alive or spare.failed()):
            spare.kill()
            spare = None
        return spare or self._new_head()

    def _start_spare(self, attempt: _Attempt, now: Instant) -> None:
        started = attempt.program.started_at
        if len(self._attempts) > 1 or (attempt.standby and not attempt.taken_over):
            return  # A standby attempt has the place of the spare head.
        trains = started is not None and (attempt.beat or now - started >= SPARE_AFTER)
        if self._spare is None and (trains or (attempt.head.up and attempt.fleet.lacks_capacity)):
            self._spare = self._new_head()

    def _checked_head(self, attempt: _Attempt) -> Head:
        """The attempt's head; starts another one if it did not start."""
        if not attempt.head.up and (why := attempt.head.failed()):
            attempt.head.kill()
            if attempt.head_starts >= HEAD_STARTS:
                raise EnvironmentFailure(f"{why}; free memory and CPU, then run with --continue")
            attempt.head_starts += 1
            attempt.head = self._new_head()
        return attempt.head

    def _head_pod(self, attempt: _Attempt) -> PodSeen:
        uid, head = f"a{attempt.number}-head", attempt.head
        if not head.up:
            return PodSeen(uid, PodRole.HEAD, PodPhase.PENDING, ready=False, scheduled=True, image_pulled=True)
        if not head.alive:
            return PodSeen(uid, PodRole.HEAD, PodPhase.LOST, ready=False, cause=Cause.NODE_LOST)
        return PodSeen(uid, PodRole.HEAD)

    def _start_worker(self, name: str, action: Launch) -> Worker | None:
        head, plan = self._attempts[action.attempt].head, self._pools[action.tier].plan
        if not head.up or not head.alive:
            return None
        labels = {
            names.MANAGED_BY: names.MANAGER,
            names.JOB: self._job.name,
            names.ATTEMPT: str(action.attempt),
            names.TIER: action.tier,
        }
        place = (name, self._machine, head.address)
        return Worker(*place, cpus=plan.cpus, gpus=plan.gpus, labels=labels, drain=plan.notice)

    def _note_pools(self, now: Instant) -> None:
        for tier, pool in self._pools.items():
            available = pool.available(now)
            if self._available.get(tier, True) is not available:
                self._emit(records.PoolChanged(now, tier, available))
            self._available[tier] = available


def _has_stepped(attempt: _Attempt) -> bool:
    """Whether the program has done a step: until then it may still connect to Ray."""
    return attempt.beat is not None and not attempt.program.phase


def _why(attempt: _Attempt) -> str:
    if attempt.went_with:
        return f"the program ran on {attempt.went_with}, which is lost"
    return attempt.program.last_words()
