"""What the message about a pod that fits no node says of the nodes."""

from __future__ import annotations

import pytest

from spotladder.workloads.node_size import largest_node
from spotladder.workloads.placement import Placement
from spotladder.workloads.records import NodeRecord


def node(name: str, labels: dict[str, str], **allocatable: str) -> NodeRecord:
    amounts = {key.replace("gpu", "nvidia.com/gpu"): amount for key, amount in allocatable.items()}
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": {**amounts, "hugepages-2Mi": "0", "pods": "110"}},
    }
    return NodeRecord.of(body)


SPOT, ON_DEMAND = {"pool": "spot"}, {"pool": "od"}
NODES = [
    node("a", SPOT, cpu="3920m", memory="15728640Ki"),
    node("b", SPOT, cpu="7910m", memory="31457280Ki", gpu="0"),
    node("c", ON_DEMAND, cpu="96", memory="100Gi", gpu="8"),
    node("d", ON_DEMAND, cpu="128", memory="100Gi"),
    NodeRecord(name="e", uid="unknown"),
]


@pytest.mark.parametrize(
    ("placement", "says"),
    [
        (Placement(labels=(("pool", "spot"),)), "cpu 7.91, memory 30.0Gi"),
        (Placement(labels=(("pool", "od"),)), "cpu 96, memory 100.0Gi, nvidia.com/gpu 8"),
        (Placement(one_of=(("pool", ("spot", "other")),)), "cpu 7.91, memory 30.0Gi"),
        (Placement(none_of=(("pool", ("od",)),)), "cpu 7.91, memory 30.0Gi"),
        (Placement(labels=(("pool", "reserved"),)), ""),
        (Placement(one_of=(("pool", ("reserved",)),)), ""),
        (Placement(), "cpu 96, memory 100.0Gi, nvidia.com/gpu 8"),
    ],
)
def test_the_largest_node_is_one_of_the_tier(placement: Placement, says: str) -> None:
    assert largest_node(NODES, placement) == says
