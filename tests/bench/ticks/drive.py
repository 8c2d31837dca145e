"""Runs a tick job through the real `decide`."""

from __future__ import annotations

from spotladder.core.lifecycle import decide
from spotladder.core.model import TERMINAL, Action, Delete, Drain, Finish, JobSpec, JobState, Launch, Stage
from spotladder.core.policies import Policy
from spotladder.sim.world.run import PolicyOscillates
from tests.bench.ticks.job import START, TickJob, TickResult, cost_of
from tests.bench.ticks.world import TickWorld

DECISIONS_PER_TICK = 50
"""Maximum number of decisions at one moment; if a policy makes more, it contradicts itself."""


def run(job: TickJob, policy: Policy) -> TickResult:
    """One run of the job, decided tick by tick. Raises PolicyOscillates."""
    world, state, spec = TickWorld(job), JobState(), job.spec()
    for tick in range(-(-job.deadline // job.tick)):
        world.begin(tick)
        if job.varying:
            spec = job.spec(tick)
        state = state_after_decisions(world, spec, state, policy)
        finished = world.advance()
        if finished and world.now <= START + job.deadline:
            state = state_after_decisions(world, spec, state, policy)
            break
    met = state.stage is Stage.SUCCEEDED
    return TickResult(
        cost=cost_of(world.billed),
        finished=world.now - START if met else float(job.deadline),
        met=met,
        evictions=world.evictions,
        attempts=state.last_number,
    )


def state_after_decisions(world: TickWorld, spec: JobSpec, state: JobState, policy: Policy) -> JobState:
    """The state after all decisions that are due at this moment, with their effects in the world."""
    for _ in range(DECISIONS_PER_TICK):
        decision = decide(spec, state, world.observe(), world.now, policy)
        state, before = decision.state, world.changes
        for action in decision.actions:
            _apply(world, action)
        if not decision.moves and (world.changes == before or state.stage in TERMINAL):
            return state
    raise PolicyOscillates(policy, world.now - START)


def _apply(world: TickWorld, action: Action) -> None:
    match action:
        case Launch():
            world.launch(action)
        case Drain():
            world.drain(action)
        case Delete():
            world.delete(action)
        case Finish():
            world.finish(action)
