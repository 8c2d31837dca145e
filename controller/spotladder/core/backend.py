"""The port between the decision core and whatever runs attempts. Implemented by local, Kubernetes and the simulator."""

from __future__ import annotations

from typing import Protocol

from spotladder.core.model import Delete, Drain, Finish, Launch, Observation, Seconds

LAST_COMMIT_LIMIT: Seconds = 10.0
"""So long a backend keeps a program's end to itself until the commit log was looked at after it: the end is judged
with the last commit. The bucket may be away."""


class AttemptBackend(Protocol):
    """Does what was decided and says what is. Every method may be called again with the same argument at any time,
    also by a new process after a crash, and must then change nothing."""

    def launch(self, action: Launch) -> None:
        """Make the attempt exist. Returns at once; what became of it is in the next observation."""

    def drain(self, action: Drain) -> None:
        """Ask the attempt's program to commit and stop. An attempt that is gone is no error."""

    def delete(self, action: Delete) -> None:
        """Remove the attempt and all of its pods. An attempt that is gone is no error."""

    def finish(self, action: Finish) -> None:
        """The job ended: note the outcome beside the checkpoints, release what is left."""

    def observe(self) -> Observation:
        """What exists now, with a revision that never falls, also across restarts of this process."""
