"""The GPUs of this machine, and which of them a node offers.

A simulated node has no GPU of its own. Nodes of consecutive attempts use the same GPUs, and so do the nodes of a
standby attempt and of the live one, so the number of nodes is not limited: a node gets the GPUs that the fewest others
use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from spotladder.errors import EnvironmentFailure

GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def of_machine(environ: Mapping[str, str] = os.environ, devices: Path = Path("/dev")) -> tuple[str, ...]:
    """The GPUs that programs on this machine may use, as CUDA_VISIBLE_DEVICES lists them: those before a -1."""
    if (listed := environ.get(GPUS_VARIABLE)) is not None:
        words = filter(None, (word.strip() for word in listed.split(",")))
        return tuple(takewhile(lambda word: word != "-1", words))
    found = [file for file in devices.glob("nvidia*") if file.name.removeprefix("nvidia").isdigit()]
    return tuple(str(index) for index in range(len(found)))


class GpuShares:
    """Counts how many nodes use each GPU of the machine."""

    def __init__(self, machine: Sequence[str] = ()) -> None:
        self._uses = dict.fromkeys(machine, 0)

    def take(self, count: int) -> tuple[str, ...]:
        """The `count` GPUs that the fewest nodes use, in the machine's order."""
        fewest = sorted(self._uses, key=self._uses.__getitem__)[:count]
        for gpu in fewest:
            self._uses[gpu] += 1
        return tuple(gpu for gpu in self._uses if gpu in fewest)

    def give_back(self, gpus: Iterable[str]) -> None:
        """Record that the node with these GPUs is gone."""
        for gpu in gpus:
            self._uses[gpu] -= 1


def check(pools: Mapping[str, int | None], machine: Sequence[str]) -> None:
    """Check that the machine has the GPUs that each pool's nodes offer. Raises EnvironmentFailure."""
    for pool, count in pools.items():
        if count is not None and count > len(machine):
            raise EnvironmentFailure(
                f"pools.{pool}.gpusPerNode is {count}, but this machine has {len(machine)} GPUs that programs may use: "
                f"reduce it, or list the GPUs in {GPUS_VARIABLE}"
            )
