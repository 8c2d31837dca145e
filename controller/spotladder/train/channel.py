"""The channel between the ranks of one attempt: each rank has a TCP connection to rank 0.

The ranks use it a few times per commit, and not at all while no commit is due. Both ends of a connection prove that
they know the attempt's token (HMAC over a fresh challenge). Frames are JSON with a length and a code that only the two
ends can make (see `framing`). The channel has three operations:

`exchange`   every rank gives a value under a topic; rank 0 decides from all of them; every rank gets the decision.
`announce`   rank 0 sends a value to every rank, which waits for it (`announced`); rank 0 does not wait.
`agree`      rank 0 agrees with all ranks on the step of the next commit (see `agreement`).

When a rank is lost, every exchange raises `RankLost` on all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from spotladder.train.agreement import Agreement

Decide = Callable[[list[Any]], Any]


class Channel(Protocol):
    """One rank's end of the channel."""

    def exchange(self, topic: str, mine: Any, decide: Decide, *, patient: bool = False) -> Any:
        """Send `mine` to rank 0 and return rank 0's decision. `decide` gets the values of all ranks and runs on rank 0
        only. `patient`: rank 0 waits as long as the others live, which read or store files before they give theirs.

        Every rank raises an error of `decide`. Every rank must use the same topics, each topic once.
        """

    def announce(self, topic: str, value: Any) -> None:
        """Rank 0 only: send this value to every rank. Does not wait. The value replaces an earlier one of the
        same topic that a rank has not waited for."""

    def announced(self, topic: str) -> Any:
        """On any other rank: the value that rank 0 announces. Waits without limit; raises RankLost if rank 0 is lost
        before it has announced one."""

    def agree(self, step: int, *, stop: bool, leaving: tuple[str, ...] = ()) -> None:
        """Rank 0 only: agree with all ranks on a commit at a step after `step`."""

    def report(self, notice: dict[str, Any]) -> None:
        """Report to rank 0 an eviction notice that this rank received."""

    @property
    def connected(self) -> bool:
        """Whether no rank is known to be lost."""

    def close(self) -> None: ...


class Alone:
    """The channel of a job with one rank: it sends nothing."""

    def __init__(self, agreement: Agreement) -> None:
        self._agreement = agreement

    def exchange(self, topic: str, mine: Any, decide: Decide, *, patient: bool = False) -> Any:  # noqa: ARG002
        return decide([mine])

    def announce(self, topic: str, value: Any) -> None:
        """Do nothing: there are no other ranks."""

    def announced(self, topic: str) -> Any:
        raise AssertionError(f"a job with one rank has no rank that waits for {topic!r}")

    def agree(self, step: int, *, stop: bool, leaving: tuple[str, ...] = ()) -> None:
        self._agreement.set_step(step, stop, leaving)

    def report(self, notice: dict[str, Any]) -> None:
        """Do nothing: there are no other ranks."""

    @property
    def connected(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: there is no connection to close."""
