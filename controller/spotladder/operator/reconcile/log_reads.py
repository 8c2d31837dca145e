"""When a decision waits for a read of the commit log."""

from __future__ import annotations

from spotladder.core.model import Exit, Handover, Instant, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation
from spotladder.operator.loaded import Loaded
from spotladder.operator.storage.commit_logs import Logs


def time_until_log_read(loaded: Loaded, logs: Logs, now: Instant) -> Seconds:
    """Maximum time to wait for a read of the log; 0 if the decision needs none.

    A decision about the end of a program needs its last commit. A decision about the first notice and, with `overlap`,
    about a changed template needs the start entry, which states whether the program can hand over and stand by.

    A decision to start the next attempt while the ended one is removed needs a start entry: without one, the log fences
    no program.

    If the workload's operator gave up the job, there is no last commit to wait for, and the next attempt reads the
    log anyway.
    """
    live, reading, key = loaded.state.attempt, loaded.reading, loaded.record.key
    seen = loaded.seen.attempt(live.number) if live else None
    if seen is None:
        return 0.0
    if seen.exit not in (None, Exit.LOST):
        return logs.time_until_read(key, (seen.number, seen.exit))
    if loaded.state.stage is Stage.ENDING and loaded.spec.handover is Handover.FENCED and not reading.unreadable:
        return 0.0 if reading.progress.attempt else logs.time_until_read(key, (seen.number, Stage.ENDING))
    if loaded.state.stage is not Stage.RUNNING or reading.progress.attempt >= seen.number or reading.unreadable:
        return 0.0
    noticed = any(pod.noticed for pod in seen.pods)
    if seen.surplus is not None and noticed:
        return logs.time_until_read(key, (seen.number, Stage.REPLACING))
    situation = Situation(loaded.spec, loaded.state, loaded.seen, now)
    if loaded.spec.overlap is not None and (situation.pending_update or noticed):
        return logs.time_until_read(key, (seen.number, Reason.SPEC_UPDATED))
    return 0.0
