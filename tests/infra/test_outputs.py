"""The contract between a stack and the platform layer, on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import outputs
from tests.infra.contract import east, without


def test_written_outputs_are_read_back() -> None:
    read = outputs.read(east(), "east")
    assert outputs.written(read) == east()


@pytest.mark.parametrize("cluster", ["east", "west", "alpha"])
def test_stacks_write_their_outputs(cluster: str, configuration: dict[str, Any]) -> None:
    value = configuration[cluster]["output"][outputs.NAME]["value"]
    assert outputs.read(value, cluster).fleet == "training"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "expected version 1, got none"),
        (east(version=2), "expected version 1, got version 2"),
        (east(endpoint=""), "endpoint: "),
        (without(east(), "nodeIdentity"), "nodeIdentity: is missing"),
        (east(surprise="x"), "surprise: "),
    ],
)
def test_invalid_outputs_are_rejected(found: object, message: str) -> None:
    with pytest.raises(
        EnvironmentFailure, match="run spotladder infra bootstrap --cluster east with this release"
    ) as error:
        outputs.read(found, "east")
    assert str(error.value).startswith("outputs of cluster east: ")
    assert message in str(error.value)
