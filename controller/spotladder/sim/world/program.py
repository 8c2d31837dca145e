"""The program of an attempt: the work that it has done, committed and lost. Times are in seconds since the start of
the run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spotladder.core.model import CommitSize, Seconds
from spotladder.errors import InvalidSpec

NO_COMMIT = CommitSize()


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """The properties of a program. One step is one second of work.

    `work` is its training time without interruptions and `restart` the time from ready workers to the first step. Every
    `commit_interval` seconds of training it takes a snapshot, which is committed `commit_time` seconds later, while
    training continues. `commit_size` is that of the files of a commit, for which the spec and the world may have
    prices. `commits_wake`: the controller decides after every commit; otherwise, and in `quiet_zones`, it learns of
    commits at the next other event, which is faster and makes no difference to a policy that does not use progress
    there. `hands_over`: it can continue inside an attempt without pods that are leaving.
    `stands_by`: it can be held in a standby attempt; `resume` is the part of `restart` that is left when such a program
    is let go, in which it reads the newest checkpoint. `sizes` are the ascending numbers of workers with which an
    elastic program trains, at a rate that is proportional to them, and `grow_after` is how long it trains before it
    restarts with more. Raises InvalidSpec for invalid values.
    """

    work: int
    restart: Seconds = 180.0
    commit_interval: Seconds = 300.0
    commit_time: Seconds = 10.0
    commits_wake: bool = True
    quiet_zones: tuple[str, ...] = ()
    hands_over: bool = False
    stands_by: bool = False
    resume: Seconds = 0.0
    sizes: tuple[int, ...] = ()
    grow_after: Seconds = 600.0
    commit_size: CommitSize = NO_COMMIT

    def __post_init__(self) -> None:
        for name, least in (("work", 1), ("restart", 0), ("commit_time", 0), ("resume", 0)):
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise InvalidSpec(f"expected {least} or more, got {value:g}", path=name)
        if self.resume > self.restart:
            raise InvalidSpec(f"expected at most restart, {self.restart:g}, got {self.resume:g}", path="resume")
        if not 0 < self.commit_interval < math.inf:
            raise InvalidSpec(f"expected more than 0 s, got {self.commit_interval:g}", path="commit_interval")


class SimulatedProgram:
    """A program that starts at `began` and resumes from `base`, the newest committed step, after `restart` seconds.
    Then it makes `rate` steps a second."""

    def __init__(
        self, plan: ProgramPlan, began: Seconds, base: float, restart: Seconds, rate: float = 1.0, *, zone: str = ""
    ) -> None:
        self.plan, self.base, self.rate, self._began = plan, base, rate, began
        self._commits_wake = plan.commits_wake and zone not in plan.quiet_zones
        self.trains_at = began + restart
        self._stopped_at: Seconds | None = None
        self._snapshot_at = min(self.trains_at + plan.commit_interval, self.done_at)
        self._commit: tuple[Seconds, float] | None = None
        self._asked_at: Seconds | None = None

    @property
    def stopping(self) -> bool:
        """Whether its next commit is its last one."""
        return self._stopped_at is not None

    @property
    def done_at(self) -> Seconds:
        """When the last step is done."""
        return self.trains_at + (self.plan.work - self.base) / self.rate

    @property
    def grows_at(self) -> Seconds:
        """When an elastic program may restart with more workers; never once it stops."""
        return self.trains_at + self.plan.grow_after if self.plan.sizes and not self.stopping else math.inf

    def step(self, now: Seconds) -> float:
        """The finished work in seconds."""
        until = now if self._stopped_at is None else self._stopped_at
        if until >= self.done_at:
            return float(self.plan.work)
        return self.base + max(0.0, until - self.trains_at) * self.rate

    def overhead(self, now: Seconds) -> Seconds:
        """The time that it ran without training."""
        return min(now, self.trains_at) - self._began

    def stop(self, now: Seconds) -> None:
        """Commit the finished work and stop training."""
        if self._stopped_at is None:
            self._stopped_at = now
            self._commit = (now + self.plan.commit_time, self.step(now))

    def ask(self, asked_at: Seconds, now: Seconds) -> bool:
        """Take a snapshot now, or when the commit in progress is complete. Returns whether this request, identified by
        its time, is new."""
        if asked_at == self._asked_at or self.stopping:
            return False
        self._asked_at = asked_at
        if now > self.trains_at:
            self._snapshot_at = min(self._snapshot_at, now)
        return True

    def wakes_at(self) -> Seconds:
        """The time at which the next commit of the program is complete; the last commit if earlier commits do not
        cause a decision. The start of a commit is no event for the controller; `advance` processes it later."""
        if self._commit is not None:
            complete = self._commit[0]
        else:
            complete = math.inf if self.stopping else self._snapshot_at + self.plan.commit_time
        return complete if self._commits_wake or self.stopping else max(self.done_at, complete)

    def _next_event(self) -> Seconds:
        """When a snapshot is due or a commit is complete."""
        if self._commit is not None:
            return self._commit[0]
        return math.inf if self.stopping else self._snapshot_at

    def advance(self, now: Seconds) -> float | None:
        """The step of the newest commit that is complete by now and was not at the last call, if there is one."""
        complete = None
        while (event := self._next_event()) <= now and complete != self.plan.work:
            step = self._advance(event)
            complete = complete if step is None else step
        return complete

    def _advance(self, now: Seconds) -> float | None:
        """The step of the commit that is complete at this event, if there is one."""
        complete = None
        if self._commit is not None and self._commit[0] <= now:
            complete, self._commit = self._commit[1], None
        if self._commit is None and not self.stopping and self._snapshot_at <= now and complete != self.plan.work:
            step = self.step(now)
            self._commit = (now + self.plan.commit_time, step)
            self._snapshot_at = min(now + self.plan.commit_interval, max(now, self.done_at))
            if self.plan.commit_time == 0.0 and complete is None:
                complete, self._commit = step, None
        return complete
