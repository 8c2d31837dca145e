"""All ranks commit the same steps in every order of events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.train.agreement import Agreement
from tests.searching import examples


class Race:
    """Ranks that advance one step at a time in any order, while rank 0 agrees on commits message by message."""

    def __init__(self, size: int, stride: int) -> None:
        self.ranks = [Agreement() for _ in range(size)]
        self.at = [0] * size
        self.stride = stride
        self.taken: list[list[tuple[int, bool]]] = [[] for _ in range(size)]
        self.held: dict[int, int] = {}
        self.undelivered: dict[int, tuple[int, bool]] = {}
        self.deciding = False

    def advance(self, rank: int) -> None:
        """The rank calls `should_commit` for its next step, unless it is held or is rank 0 in the middle of a
        decision."""
        if rank in self.held or (rank == 0 and self.deciding):
            return
        self.at[rank] += self.stride
        agreed = self.ranks[rank].answer(self.at[rank])
        if agreed:
            self.taken[rank].append((agreed.step, agreed.stop))

    def decide(self) -> None:
        self.deciding = True

    def hold(self, rank: int) -> None:
        """A hold message arrives."""
        if self.deciding and rank > 0 and rank not in self.held and rank not in self.undelivered:
            self.held[rank] = self.ranks[rank].hold()

    def agree(self, stop: bool) -> None:
        """All ranks have answered: rank 0 sets the step and continues. The other ranks receive it one by one."""
        others = range(1, len(self.ranks))
        if self.deciding and all(rank in self.held for rank in others):
            step = max([self.at[0], *self.held.values()]) + 1
            self.ranks[0].set_step(step, stop)
            self.undelivered = dict.fromkeys(others, (step, stop))
            self.deciding = False

    def learn(self, rank: int) -> None:
        """The message with the agreed step arrives."""
        if not self.deciding and rank in self.undelivered:
            self.ranks[rank].set_step(*self.undelivered.pop(rank))
            del self.held[rank]


EVENT = st.tuples(st.sampled_from(["advance", "decide", "hold", "agree", "learn"]), st.integers(0, 3), st.booleans())


@settings(max_examples=examples(150))
@given(size=st.integers(2, 4), stride=st.sampled_from([1, 3]), events=st.lists(EVENT, min_size=40, max_size=120))
def test_all_ranks_commit_the_same_steps(size: int, stride: int, events: list[tuple[str, int, bool]]) -> None:
    race = Race(size, stride)
    for event, number, flag in events:
        rank = number % size
        match event:
            case "advance":
                race.advance(rank)
            case "decide" if not race.undelivered:
                race.decide()
            case "hold":
                race.hold(rank)
            case "agree":
                race.agree(flag)
            case "learn":
                race.learn(rank)
    for rank in range(1, size):
        race.hold(rank)
    race.agree(False)
    for rank in range(1, size):
        race.learn(rank)
    end = max(race.at) + 2 * stride
    for rank in range(size):
        while race.at[rank] < end:
            race.advance(rank)
    assert race.taken == [race.taken[0]] * size
