"""Elastic attempts, which train with fewer workers than they were launched with.

1. The attempt is ready with `min_workers`. provisionTimeout runs only below that.
2. Where the program begins only when all requested workers are ready, it begins with fewer after `BEGIN_DELAY`: those
   without a node are requested again once it has begun. Where their number cannot be changed, the attempt needs all.
3. After a loss, or a notice, that leaves enough workers, the program restarts with fewer inside the attempt, which
   recovers until the program trains with workers that stay. Each loss counts as usual.
4. Where the program does not learn of a notice by itself, it is asked to continue without the noticed pods
   (`replacing.py`).
5. The program decides when it grows.
6. A standby attempt begins, and is ready, by the same rules 1 and 2. The program that takes over keeps the workers with
   which it was held, and grows later.
"""

from __future__ import annotations

from spotladder.core.facts import limits
from spotladder.core.model import Attempt, AttemptSeen, Instant, JobState, Loss, PodPhase, PodRole, Resize, Seconds
from spotladder.core.model.gang import gang_ready, launched_workers, required_workers
from spotladder.core.situation import Situation

BEGIN_DELAY: Seconds = 30.0
"""Time that enough ready workers wait for those without a node before the program begins. Nodes that a provisioner
starts together become ready within this time, and a program that has begun must restart to use them."""


def staying_workers(situation: Situation) -> int:
    """The number of ready workers of the live attempt whose nodes are not about to be reclaimed."""
    return _staying(situation.attempt_seen)


def _staying(seen: AttemptSeen | None) -> int:
    pods = seen.pods if seen is not None and seen.reachable else ()
    workers = (pod for pod in pods if pod.role is PodRole.WORKER and pod.phase is PodPhase.RUNNING)
    return sum(1 for pod in workers if pod.ready and not pod.noticed)


def continues_smaller(situation: Situation) -> bool:
    """Whether an elastic attempt continues without its lost and its noticed workers: enough are left, and no limit of
    failures is exceeded."""
    if not situation.elastic or limits.over_tier_limit(situation) or limits.over_backoff_limit(situation):
        return False
    return staying_workers(situation) >= situation.needed


def fits(situation: Situation) -> bool:
    """Whether an elastic program trains with workers that stay. It does not between a loss, or a notice, and its
    restart with fewer workers. True if the backend does not observe it."""
    seen = situation.attempt_seen
    if not situation.elastic or seen is None or seen.size is None or not seen.reachable:
        return True
    return seen.size <= staying_workers(situation)


def why_smaller(situation: Situation, losses: list[Loss]) -> str:
    """Why an elastic program restarts, and with how many workers."""
    why = ", ".join(f"{loss.pod} ({loss.cause})" for loss in losses) or "a worker is gone"
    return f"{why}; the program continues with up to {staying_workers(situation)} of {situation.workers} workers"


def how_many(situation: Situation) -> str:
    """The number of ready workers of an elastic attempt, as text; "" if all workers are ready."""
    staying = staying_workers(situation)
    return f"{staying} of {situation.workers} workers" if situation.elastic and staying < situation.workers else ""


def trains_with(state: JobState) -> tuple[int, int] | None:
    """The number of workers with which the program of an elastic job last started, and the number with which its live
    attempt was launched; None before the program's start, and for another job."""
    attempt, progress = state.attempt, state.progress
    if attempt is None or attempt.workers is None or progress.attempt != attempt.number or not progress.workers:
        return None
    return progress.workers, attempt.workers


def resized(before: JobState, after: JobState) -> tuple[int, int, int] | None:
    """Three numbers of workers: with which the program of the live attempt trains now, with which the attempt was
    launched, and with which the program trained before (0: it begins). None if the first has not changed."""
    size, last = trains_with(after), trains_with(before)
    if size is None or size == last:
        return None
    return (*size, last[0] if last is not None and before.number == after.number else 0)


def size_text(workers: int, wanted: int, before: int = 0) -> str:
    """The sentence for the user about the number of workers, or about its change."""
    size = f"{workers} of {wanted} workers" if workers < wanted else f"{workers} workers"
    if not before:
        return f"trains with {size}"
    return f"grew to {size}" if workers > before else f"continues with {size}"


# --- beginning with fewer workers: the live attempt, or the standby attempt ---


def enough_since(situation: Situation, attempt: Attempt) -> Instant | None:
    """The time since which enough workers are ready for the program to begin, while it waits for the rest; None if it
    does not wait."""
    seen, workers = situation.seen.attempt(attempt.number), launched_workers(attempt, situation.spec)
    if seen is None or not (seen.waits_for_all_workers and seen.reachable):
        return None
    if gang_ready(seen, workers) or not gang_ready(seen, required_workers(attempt, seen, situation.spec)):
        return None
    return situation.now if attempt.enough_since is None else attempt.enough_since


def begin_due(situation: Situation, attempt: Attempt) -> Instant | None:
    """When the program begins without the workers that have no node: at once if the provisioner has refused them all.
    None if it does not, while another worker that has a node is not ready, or while too few ready workers stay."""
    seen = situation.seen.attempt(attempt.number)
    if seen is None or attempt.enough_since is None:
        return None
    if _staying(seen) < required_workers(attempt, seen, situation.spec):
        return None
    missing = [pod for pod in seen.pods if pod.role is PodRole.WORKER and not (pod.phase is PodPhase.LOST or pod.ready)]
    if any(pod.scheduled or pod.phase is PodPhase.RUNNING for pod in missing):
        return None
    return attempt.enough_since + (0.0 if all(pod.refused for pod in missing) else BEGIN_DELAY)


def resize(situation: Situation, attempt: Attempt) -> Resize | None:
    """The change of the number of requested workers that is due: fewer, so that the program begins, or all again once
    it has begun."""
    seen, workers = situation.seen.attempt(attempt.number), launched_workers(attempt, situation.spec)
    if seen is None or not seen.reachable or seen.surplus is None:
        return None
    if seen.waits_for_all_workers:
        return Resize(attempt.number, _staying(seen)) if situation.passed(begin_due(situation, attempt)) else None
    elastic = required_workers(attempt, seen, situation.spec) < workers
    return Resize(attempt.number, workers) if elastic and seen.surplus < 0 else None
