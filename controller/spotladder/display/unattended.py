"""Whether a controller still reconciles a job, as far as the job's status shows it."""

from __future__ import annotations

from spotladder.core.model import TERMINAL, Instant, JobState, Seconds
from spotladder.display.figures import span

FIRST_RECONCILE_TIMEOUT: Seconds = 60.0
"""Seconds after its creation in which a controller gives a job a status."""

RECONCILE_TIMEOUT: Seconds = 900.0
"""Three times the interval at which a controller writes the status of a job that holds nodes, whatever happens."""

AGE = ": last reconcile "
"""Precedes the age in the text of `unattended`, which changes every second."""


def unattended(state: JobState | None, created_at: Instant, now: Instant) -> str:
    """That no controller answers, and since when; "" if one does, or if the status does not show it.

    `state` is the controller's state of the job; None if the job has no status.
    """
    if state is None:
        late = now - created_at >= FIRST_RECONCILE_TIMEOUT
        return f"no controller answers{AGE}never, created {span(now - created_at)} ago" if late else ""
    held = state.nodes + state.standby_nodes + state.left_nodes
    silent = now - state.clock
    if not state.clock or not held or state.stage in TERMINAL or silent < RECONCILE_TIMEOUT:
        return ""
    return f"no controller answers{AGE}{span(silent)} ago"
