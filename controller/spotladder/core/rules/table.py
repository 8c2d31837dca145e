"""The life cycle of a job: for each stage, the rules that apply in it, in order of precedence.

A rule is a pure function, named by the event that it answers. The first sentence of its description says what the event
is and what follows; docs/design.md shows the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spotladder.core.model import Stage
from spotladder.core.rules import (
    failed_starts,
    missing_capacity,
    next_attempt,
    notices,
    planned_moves,
    program_ends,
    readiness,
    removal,
    replacements,
    stops,
)
from spotladder.core.rules.effect import Rule

_ENDS: tuple[Rule, ...] = (
    program_ends.vanished_attempt,
    program_ends.withdrawn_quota,
    program_ends.program_exit,
    program_ends.crashed_start,
    program_ends.lost_head,
    program_ends.silent_nodes,
    program_ends.exceeded_failures,
    program_ends.bad_node,
    stops.job_limit,
    stops.suspension,
    stops.removed_tier,
    planned_moves.withdrawn_notice,
    planned_moves.end_of_notice,
    planned_moves.planned_move,
    program_ends.unexplained_end,
)
"""The rules of every stage with a live attempt. They come first: what ended an attempt explains everything else."""

RULES_OF_STAGES: Mapping[Stage, tuple[Rule, ...]] = MappingProxyType(
    {
        Stage.IDLE: (
            stops.job_limit,
            stops.suspension,
            next_attempt.corrected_template,
            next_attempt.takeover,
            next_attempt.pause,
            next_attempt.exhausted_tiers,
            next_attempt.chosen_tier,
        ),
        Stage.STARTING: (
            *_ENDS,
            missing_capacity.ready_hedge,
            readiness.ready_workers,
            notices.drained_node,
            failed_starts.start_timeout,
            missing_capacity.queue_timeout,
            missing_capacity.provision_timeout,
            missing_capacity.due_hedge,
        ),
        Stage.RUNNING: (
            *_ENDS,
            notices.notice,
            readiness.missing_workers,
            readiness.smaller_program,
            readiness.survived_loss,
            readiness.stall,
        ),
        Stage.REPLACING: (
            *_ENDS,
            notices.notice,
            readiness.missing_workers,
            replacements.replacement_step,
            readiness.stall,
        ),
        Stage.RECOVERING: (
            *_ENDS,
            missing_capacity.ready_hedge,
            notices.notice,
            readiness.recovered_workers,
            missing_capacity.queue_timeout,
            missing_capacity.provision_timeout,
            missing_capacity.recovery_timeout,
            missing_capacity.due_hedge,
        ),
        Stage.DRAINING: (
            removal.further_notice,
            removal.finished_job,
            removal.foreign_writer,
            removal.stopped_program,
            removal.end_of_grace,
        ),
        Stage.ENDING: (
            removal.finished_job,
            removal.removed_objects,
            removal.waiting_standby,
            removal.slow_removal,
            removal.free_tier,
        ),
        Stage.SUSPENDED: (next_attempt.resumption,),
        Stage.SUCCEEDED: (),
        Stage.FAILED: (),
    }
)
"""The table. A pass over the rules of a stage ends with the first rule that changes the stage or makes the job wait. A
rule that only changes the state does not end it."""
