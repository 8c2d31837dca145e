"""Random speeds of ranks: whatever the order of events, all ranks commit the same steps."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.train.agreement import Agreement


class Race:
    """Ranks that go on one step at a time in any order, and a rank 0 that settles commits message by message."""

    def __init__(self, size: int, stride: int) -> None:
        self.ranks = [Agreement() for _ in range(size)]
        self.at = [0] * size
        self.stride = stride
        self.taken: list[list[tuple[int, bool]]] = [[] for _ in range(size)]
        self.held: dict[int, int] = {}
        self.to_settle: dict[int, tuple[int, bool]] = {}
        self.deciding = False

    def advance(self, rank: int) -> None:
        """The rank asks about its next step, unless it is held or (rank 0) busy deciding."""
        if rank in self.held or (rank == 0 and self.deciding):
            return
        self.at[rank] += self.stride
        settled = self.ranks[rank].answer(self.at[rank])
        if settled:
            self.taken[rank].append((settled.step, settled.stop))

    def decide(self) -> None:
        self.deciding = True

    def hold(self, rank: int) -> None:
        """A hold message arrives."""
        if self.deciding and rank > 0 and rank not in self.held and rank not in self.to_settle:
            self.held[rank] = self.ranks[rank].hold()

    def settle(self, stop: bool) -> None:
        """All have answered: rank 0 settles, and goes on; the others learn of it one by one."""
        others = range(1, len(self.ranks))
        if self.deciding and all(rank in self.held for rank in others):
            step = max([self.at[0], *self.held.values()]) + 1
            self.ranks[0].settle(step, stop)
            self.to_settle = dict.fromkeys(others, (step, stop))
            self.deciding = False

    def learn(self, rank: int) -> None:
        """A settle message arrives."""
        if not self.deciding and rank in self.to_settle:
            self.ranks[rank].settle(*self.to_settle.pop(rank))
            del self.held[rank]


EVENT = st.tuples(st.sampled_from(["advance", "decide", "hold", "settle", "learn"]), st.integers(0, 3), st.booleans())


@settings(max_examples=150)
@given(size=st.integers(2, 4), stride=st.sampled_from([1, 3]), events=st.lists(EVENT, min_size=40, max_size=120))
def test_all_ranks_commit_the_same_steps(size: int, stride: int, events: list[tuple[str, int, bool]]) -> None:
    race = Race(size, stride)
    for event, number, flag in events:
        rank = number % size
        match event:
            case "advance":
                race.advance(rank)
            case "decide" if not race.to_settle:
                race.decide()
            case "hold":
                race.hold(rank)
            case "settle":
                race.settle(flag)
            case "learn":
                race.learn(rank)
    for rank in range(1, size):
        race.hold(rank)
    race.settle(False)
    for rank in range(1, size):
        race.learn(rank)
    end = max(race.at) + 2 * stride
    for rank in range(size):
        while race.at[rank] < end:
            race.advance(rank)
    assert race.taken == [race.taken[0]] * size
