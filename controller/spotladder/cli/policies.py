"""The option --policy of the commands of the simulator. Needs its packages."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.errors import InvalidSpec
from spotladder.sim.scenario import installed


def policies(given: Sequence[str]) -> list[str]:
    """The policies that are named, each once. Raises InvalidSpec for one that is not installed."""
    for name in given:
        try:
            installed(name)
        except InvalidSpec as error:
            raise InvalidSpec(error.message, path="--policy") from None
    return list(dict.fromkeys(given))
