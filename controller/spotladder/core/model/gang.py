"""The number of workers of an attempt, and whether its pods are placed, ready or refused."""

from __future__ import annotations

from collections.abc import Callable

from spotladder.core.model import Attempt, AttemptSeen, JobSpec, PodPhase, PodRole, PodSeen


def launched_workers(attempt: Attempt | None, spec: JobSpec) -> int:
    """The number of worker pods that the attempt was launched with; that of the spec without an attempt."""
    return spec.workers if attempt is None or attempt.workers is None else attempt.workers


def needed_workers(attempt: Attempt | None, spec: JobSpec) -> int:
    """The number of workers with which the attempt can train."""
    if attempt is None or attempt.min_workers is None:
        return launched_workers(attempt, spec)
    return attempt.min_workers


def required_workers(attempt: Attempt | None, seen: AttemptSeen | None, spec: JobSpec) -> int:
    """The number of workers that the attempt needs: all if its program begins only with all of them and their number
    cannot be changed, those with which it can train otherwise."""
    if seen is not None and seen.waits_for_all_workers and seen.surplus is None:
        return launched_workers(attempt, spec)
    return needed_workers(attempt, spec)


def required_ready(attempt: Attempt | None, seen: AttemptSeen | None, spec: JobSpec) -> bool:
    """Whether the head and the needed workers are running and ready. A program that begins only with all requested
    pods needs all workers and all auxiliary pods until it has begun."""
    waits = seen is not None and seen.waits_for_all_workers
    if seen is not None and waits and not _auxiliaries_ready(seen):
        return False
    return gang_ready(seen, launched_workers(attempt, spec) if waits else needed_workers(attempt, spec))


def _auxiliaries_ready(seen: AttemptSeen) -> bool:
    present = [pod for pod in seen.pods if pod.role is PodRole.AUXILIARY and pod.phase is not PodPhase.LOST]
    return all(pod.phase is PodPhase.RUNNING and pod.ready for pod in present)


def gang_ready(seen: AttemptSeen | None, workers: int) -> bool:
    """Whether the head and this number of workers of the attempt are running and ready."""
    return _gang(seen, workers, lambda pod: pod.phase is PodPhase.RUNNING and pod.ready)


def gang_running(seen: AttemptSeen | None, workers: int) -> bool:
    """Whether the head and this number of workers of the attempt are running, ready or not, on nodes that answer."""
    return _gang(seen, workers, lambda pod: pod.phase is PodPhase.RUNNING and not pod.suspect)


def gang_placed(seen: AttemptSeen | None, workers: int) -> bool:
    """Whether the head and this number of workers of the attempt have a node with their image."""
    return _gang(seen, workers, lambda pod: pod.phase is not PodPhase.LOST and pod.placed)


def _gang(seen: AttemptSeen | None, workers: int, meets: Callable[[PodSeen], bool]) -> bool:
    if seen is None or not seen.reachable:
        return False
    met = [pod for pod in seen.pods if meets(pod)]
    heads = [pod for pod in seen.pods if pod.role is PodRole.HEAD]
    enough = sum(1 for pod in met if pod.role is PodRole.WORKER) >= workers
    return enough and (not heads or any(pod.role is PodRole.HEAD for pod in met))


def gang_refused(seen: AttemptSeen | None, workers: int) -> bool:
    """Whether the provisioner creates no node for the head, or fewer than this number of workers have a node or may get
    one."""
    return _cut_off(seen, workers, lambda pod: pod.refused)


def gang_misfit(seen: AttemptSeen | None, workers: int) -> PodSeen | None:
    """A pod of the attempt that fits no node of its tier, if the head is one or fewer than this number of workers may
    get a node."""
    if seen is None or not _cut_off(seen, workers, lambda pod: bool(pod.misfit)):
        return None
    return min((pod for pod in seen.pods if pod.misfit), key=lambda pod: pod.called, default=None)


def misfit_lasts(seen: AttemptSeen | None, workers: int) -> bool:
    """Whether the head, or too many workers, fit no node of the tier, and waiting does not help."""
    return _cut_off(seen, workers, lambda pod: pod.misfit_lasts)


def _cut_off(seen: AttemptSeen | None, workers: int, gets_none: Callable[[PodSeen], bool]) -> bool:
    if seen is None or not seen.reachable:
        return False
    present = [pod for pod in seen.pods if pod.phase is not PodPhase.LOST]
    none = [pod for pod in present if gets_none(pod)]
    if not none or any(pod.role is PodRole.HEAD for pod in none):
        return bool(none)
    return sum(1 for pod in present if pod.role is PodRole.WORKER and not gets_none(pod)) < workers
