"""The contract between a stack and the platform layer, on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import outputs

OUTPUTS: dict[str, Any] = {
    "version": 1,
    "fleet": "training",
    "cluster": "east",
    "cloud": "aws",
    "region": "us-east-1",
    "kubernetes": "1.35",
    "endpoint": "https://example.com",
    "nodeIdentity": "east-node",
    "interruptionQueue": "east-interruptions",
    "checkpoints": "s3://acme-east",
    "identities": {"karpenter": "arn:k", "controller": "arn:c", "training": {"team-a": "arn:t"}},
}


def test_what_is_written_is_read() -> None:
    read = outputs.read(OUTPUTS, "east")
    assert outputs.written(read) == OUTPUTS


@pytest.mark.parametrize("cluster", ["east", "west", "alpha"])
def test_stacks_write_it(cluster: str, configuration: dict[str, Any]) -> None:
    value = configuration[cluster]["output"][outputs.NAME]["value"]
    assert outputs.read(value, cluster).fleet == "training"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "expected version 1, got none"),
        ({**OUTPUTS, "version": 2}, "expected version 1, got version 2"),
        ({**OUTPUTS, "endpoint": ""}, "endpoint: "),
        ({key: value for key, value in OUTPUTS.items() if key != "nodeIdentity"}, "nodeIdentity: is missing"),
        ({**OUTPUTS, "surprise": "x"}, "surprise: "),
    ],
)
def test_anything_else_is_refused(found: object, message: str) -> None:
    with pytest.raises(
        EnvironmentFailure, match="run spotladder infra bootstrap --cluster east with this release"
    ) as error:
        outputs.read(found, "east")
    assert str(error.value).startswith("outputs of cluster east: ")
    assert message in str(error.value)
