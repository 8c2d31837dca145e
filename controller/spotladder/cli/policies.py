"""The option --policy of the commands of the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.core.policies import Policy
from spotladder.errors import InvalidSpec
from spotladder.policies.registry import by_name


def policies(given: Sequence[str]) -> dict[str, Policy]:
    """The policies that are named, each once. Raises InvalidSpec for one that is not installed."""
    try:
        return {name: by_name(name) for name in given}
    except InvalidSpec as error:
        raise InvalidSpec(error.message, path="--policy") from None
