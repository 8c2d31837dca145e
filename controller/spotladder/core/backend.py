"""The port between the decision core and what runs attempts: one `observe`, and one method for each kind of action.

`local.backend`, the simulator and `core.fake` implement it as it is. On Kubernetes the operator does the same with
coroutines and for many jobs at once (`load.observe`, `execute.Executor`), so it does not implement this protocol; the
conformance suite drives it by an adapter, and holds it to the same behaviour.
"""

from __future__ import annotations

from typing import Protocol

from spotladder.core.model import Delete, Drain, Finish, Launch, Observation, Seconds

LAST_COMMIT_LIMIT: Seconds = 10.0
"""How long a backend holds back a program's exit until the commit log was read after it, so that the exit is judged
with the last commit. The log may be unreachable: then the exit is reported after this time."""


class AttemptBackend(Protocol):
    """Carries out actions and observes the job. Every method is idempotent: it may be called again with the same
    argument at any time, also by a new process after a crash."""

    def launch(self, action: Launch) -> None:
        """Create the attempt. Returns at once; the effect is in the next observation."""

    def drain(self, action: Drain) -> None:
        """Ask the attempt's program to commit and stop. An attempt that does not exist is no error."""

    def delete(self, action: Delete) -> None:
        """Remove the attempt and all of its pods. An attempt that does not exist is no error."""

    def finish(self, action: Finish) -> None:
        """The job ended: record the outcome beside the checkpoints, release everything that is left."""

    def observe(self) -> Observation:
        """What exists now, with a revision that never decreases, also across restarts of this process."""
