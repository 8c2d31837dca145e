"""Messages for invalid world files. The messages are compared exactly."""

from __future__ import annotations

import pytest

from tests.api.builders import WORLD, Case, changed, said_about

CASES = [
    Case(
        "negative step",
        "{at: [20s, 45s]}",
        "{atSteps: [-5]}",
        "world.yaml:8:31: pools.g5-spot-use1a.interruptions.atSteps[0]: must be at least 1, not -5",
    ),
    Case(
        "no pools",
        WORLD,
        "pools: {}\n",
        "world.yaml:1:8: pools: must have at least one entry",
    ),
    Case(
        "invalid pool name",
        "g5-od-use1",
        "G5_OD",
        "world.yaml:10:3: pools.G5_OD: \"G5_OD\" is not a valid name: use lower-case letters, digits and '-', no "
        "'-' at the ends; for example \"g5-od\"",
    ),
    Case(
        "two kinds of interruption",
        "{at: [20s, 45s]}",
        "{at: [20s], hazardPerHour: 3}",
        "world.yaml:8:20: pools.g5-spot-use1a.interruptions: needs exactly one of at, atSteps, hazardPerHour and trace",
    ),
    Case(
        "seed without hazardPerHour",
        "{at: [20s, 45s]}",
        "{at: [20s], seed: 3}",
        "world.yaml:8:20: pools.g5-spot-use1a.interruptions: seed is only allowed with hazardPerHour",
    ),
    Case(
        "unavailable period that ends before it begins",
        "to: 120s",
        "to: 30s",
        "world.yaml:9:19: pools.g5-spot-use1a.unavailable[0]: to must be later than from",
    ),
    Case(
        "misspelt field",
        "provisionDelay",
        "provisioningDelay",
        "world.yaml:6:5: pools.g5-spot-use1a.provisioningDelay: is not a known field; did you mean provisionDelay?",
    ),
    Case(
        "too many nodes",
        "    nodes: 2\n    price: {perNodeHour: 1.41}",
        "    nodes: 2000\n    price: {perNodeHour: 1.41}",
        "world.yaml:11:12: pools.g5-od-use1.nodes: must be at most 64, not 2000",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_an_invalid_world(case: Case) -> None:
    assert said_about(changed(WORLD, (case.old, case.new)), "world.yaml") == [case.message]
