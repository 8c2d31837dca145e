"""Messages for invalid world files: where, which field, and the beginning of what is wrong."""

from __future__ import annotations

import pytest

from tests.api.builders import WORLD, changed, said_about

CASES = [
    ("{at: [20s, 45s]}", "{atSteps: [-5]}", "8:31: pools.g5-spot-use1a.interruptions.atSteps[0]: must be at least 1"),
    (WORLD, "pools: {}\n", "1:8: pools: must have at least one entry"),
    ("g5-od-use1", "G5_OD", "10:3: pools.G5_OD: \"G5_OD\" is not a valid name: use lower-case letters, digits and '-'"),
    ("{at: [20s, 45s]}", "{at: [20s], hazardPerHour: 3}", "8:20: pools.g5-spot-use1a.interruptions: needs exactly one"),
    ("{at: [20s, 45s]}", "{at: [20s], seed: 3}", "8:20: pools.g5-spot-use1a.interruptions: seed is only allowed with"),
    ("to: 120s", "to: 30s", "9:19: pools.g5-spot-use1a.unavailable[0]: to must be later than from"),
    ("provisionDelay", "provisioningDelay", "6:5: pools.g5-spot-use1a.provisioningDelay: is not a known field; did"),
    (
        "    nodes: 2\n    price: {perNodeHour: 1.41}",
        "    nodes: 2000\n    price: {perNodeHour: 1.41}",
        "11:12: pools.g5-od-use1.nodes: must be at most",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), CASES)
def test_the_message_for_an_invalid_world(old: str, new: str, message: str) -> None:
    (said,) = said_about(changed(WORLD, (old, new)), "world.yaml")
    assert said.removeprefix("world.yaml:").startswith(message)
