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
    """The sentence that no controller answers, and since when; "" if one does, or if the status does not show it.

    `state` is the controller's state of the job; None if the job has no status.
    """
    return no_status(created_at, now) if state is None else silent_since(reconciled_at(state), now)


def reconciled_at(state: JobState) -> Instant | None:
    """When the job was last reconciled, if a controller reconciles it again whatever happens: it holds nodes."""
    held = state.nodes + state.standby.nodes + state.left_nodes
    return state.clock if state.clock and held and state.stage not in TERMINAL else None


def no_status(created_at: Instant, now: Instant) -> str:
    """The sentence that no controller has given the job a status; "" until `FIRST_RECONCILE_TIMEOUT`."""
    late = now - created_at >= FIRST_RECONCILE_TIMEOUT
    return f"no controller answers{AGE}never, created {span(now - created_at)} ago" if late else ""


def silent_since(reconciled: Instant | None, now: Instant) -> str:
    """The sentence that no controller has reconciled the job since `reconciled`; "" until `RECONCILE_TIMEOUT`."""
    if reconciled is None or now - reconciled < RECONCILE_TIMEOUT:
        return ""
    return f"no controller answers{AGE}{span(now - reconciled)} ago"
