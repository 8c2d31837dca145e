"""The diagram of a synthesized stack."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spotladder_infra.graph import DRAWN, mermaid

Configuration = dict[str, Any]


def drawn(stack: Configuration) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Labels by identifier, and the arrows between labels."""
    text = mermaid(stack, "east")
    labels = dict(re.findall(r'(n\d+)\["([^"]+)"\]', text))
    return labels, {(labels[a], labels[b]) for a, b in re.findall(r"(n\d+) --> (n\d+)", text)}


@pytest.mark.parametrize("name", ["east", "west", "alpha"])
def test_everything_that_people_name_is_in_the_diagram(name: str, configuration: Configuration) -> None:
    stack = configuration[name]
    labels, _ = drawn(stack)
    expected = [f"{DRAWN[kind][1]}<br>{key}" for kind in DRAWN for key in stack["resource"].get(kind, {})]
    assert sorted(labels.values()) == sorted(expected)


def test_an_arrow_points_from_a_resource_to_the_one_that_it_uses(configuration: Configuration) -> None:
    _, arrows = drawn(configuration["east"])
    assert ("subnet<br>private-us-east-1a", "VPC<br>vpc") in arrows
    assert ("EKS cluster<br>cluster", "subnet<br>private-us-east-1a") in arrows
    assert ("node group<br>system", "EKS cluster<br>cluster") in arrows
    assert ("EKS cluster<br>cluster", "KMS key<br>cluster-key") in arrows
    _, arrows = drawn(configuration["west"])
    assert ("node pool<br>system", "GKE cluster<br>cluster") in arrows
