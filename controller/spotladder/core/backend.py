"""The port between the decision core and the backends that run attempts: `observe`, and one method for each kind of
action.

`local.backend` and the simulator implement it directly. On Kubernetes the operator does the same with
coroutines and for many jobs at once (`load.observe`, `execute.Executor`), so it does not implement this protocol. The
conformance suite tests it through an adapter and requires the same behaviour.
"""

from __future__ import annotations

from typing import Protocol

from spotladder.core.model import (
    Action,
    AskToCommit,
    Delete,
    Drain,
    Finish,
    Launch,
    Observation,
    Replace,
    Resize,
    TakeOver,
)


class AttemptBackend(Protocol):
    """Executes actions and observes the job. Every method is idempotent: it may be called again with the same argument
    at any time, also by a new process after a crash."""

    def launch(self, action: Launch) -> None:
        """Create the attempt. Returns at once; the next observation shows the effect."""

    def drain(self, action: Drain) -> None:
        """Request the attempt's program to commit and stop. Does nothing if the attempt does not exist."""

    def delete(self, action: Delete) -> None:
        """Remove the attempt and all of its pods. Does nothing if the attempt does not exist."""

    def replace(self, action: Replace) -> None:
        """Run replacements beside these pods, or hand over to them. Only called where `surplus` is not None. An attempt
        or a pod that does not exist is not an error."""

    def resize(self, action: Resize) -> None:
        """Ask for this number of workers. Only called where `surplus` is not None and the attempt is elastic. An
        attempt that does not exist is not an error."""

    def take_over(self, action: TakeOver) -> None:
        """Let the held program of this attempt, launched as a standby, start. An attempt that does not exist is not an
        error."""

    def ask_to_commit(self, action: AskToCommit) -> None:
        """Request the attempt's program to commit at once and to continue. Does nothing to a program that was asked to
        stop, and if the attempt does not exist."""

    def finish(self, action: Finish) -> None:
        """End the job: record the outcome beside the checkpoints and release all remaining resources."""

    def observe(self) -> Observation:
        """The current state of the job's objects, with a revision that never decreases, also across restarts of this
        process."""


def apply(backend: AttemptBackend, action: Action) -> None:
    """Call the method of this kind of action."""
    match action:
        case Launch():
            backend.launch(action)
        case Drain():
            backend.drain(action)
        case Delete():
            backend.delete(action)
        case Replace():
            backend.replace(action)
        case Resize():
            backend.resize(action)
        case TakeOver():
            backend.take_over(action)
        case AskToCommit():
            backend.ask_to_commit(action)
        case Finish():
            backend.finish(action)
