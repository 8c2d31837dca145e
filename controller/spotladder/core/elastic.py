"""Elastic attempts, which train with fewer workers than they were launched with.

1. The attempt is ready with `min_workers`. provisionTimeout runs only below that.
   Where the program begins only with all workers, the attempt needs all of them until then.
2. After a loss, or a notice, that leaves enough workers, the program restarts with fewer inside the attempt, which
   recovers until the program trains with workers that stay. Each loss counts as usual.
3. Where the program does not learn of a notice by itself, it is asked to continue without the noticed pods
   (`replacing.py`).
4. The program decides when it grows.
"""

from __future__ import annotations

from spotladder.core import limits
from spotladder.core.model import Loss, PodPhase, PodRole
from spotladder.core.situation import Situation


def staying_workers(here: Situation) -> int:
    """The number of ready workers of the live attempt whose nodes are not about to be reclaimed."""
    seen = here.attempt_seen
    pods = seen.pods if seen is not None and seen.reachable else ()
    workers = (pod for pod in pods if pod.role is PodRole.WORKER and pod.phase is PodPhase.RUNNING)
    return sum(1 for pod in workers if pod.ready and not pod.noticed)


def continues_smaller(here: Situation) -> bool:
    """Whether an elastic attempt continues without its lost and its noticed workers: enough are left, and no limit of
    failures is exceeded."""
    if not here.elastic or limits.over_tier_limit(here) or limits.over_backoff_limit(here):
        return False
    return staying_workers(here) >= here.needed


def learns_of_notices(here: Situation) -> bool:
    """Whether the program learns of a notice by itself, and not from the controller."""
    seen = here.attempt_seen
    return seen is None or seen.surplus is None


def fits(here: Situation) -> bool:
    """Whether an elastic program trains with workers that stay. It does not between a loss, or a notice, and its
    restart with fewer workers. True if the backend does not observe it."""
    seen = here.attempt_seen
    if not here.elastic or seen is None or seen.size is None or not seen.reachable:
        return True
    return seen.size <= staying_workers(here)


def why_smaller(here: Situation, losses: list[Loss]) -> str:
    """Why an elastic program restarts, and with how many workers."""
    why = ", ".join(f"{loss.pod} ({loss.cause})" for loss in losses) or "a worker is gone"
    return f"{why}; the program continues with up to {staying_workers(here)} of {here.workers} workers"


def how_many(here: Situation) -> str:
    """With how many workers an elastic attempt is ready, if these are not all; "" otherwise."""
    staying = staying_workers(here)
    return f"{staying} of {here.workers} workers" if here.elastic and staying < here.workers else ""
