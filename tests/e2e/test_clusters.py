"""Two clusters: the one with the spot nodes becomes unreachable, and the job continues in the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import controller
from tests.e2e.kube import Kube
from tests.e2e.provider import ProvidedCluster
from tests.e2e.site import E2eSite
from tests.e2e.world import HEADS, SHARED, E2eCluster


@pytest.fixture
def west(site: E2eSite) -> Iterator[ProvidedCluster]:
    """A second cluster."""
    cluster = ProvidedCluster(f"e2ew{os.getpid()}")
    try:
        cluster.up(site.tag, {SHARED: f"pool={HEADS}"})
        cluster.addons("kuberay")
        yield cluster
    finally:
        cluster.down()


@pytest.mark.smoke
def test_a_cluster_is_cut_off_and_swept_when_it_is_back(
    alone: E2eCluster, west: ProvidedCluster, tmp_path: Path
) -> None:
    """The controller is on this machine, which reaches both clusters; pods of one do not reach the other."""
    e2e = alone
    member = E2eCluster(west, Kube(west.kubeconfig, e2e.namespace), e2e.bucket, e2e.reported, e2e.image)
    member.prepare()
    e2e.pool("west", 0, cluster="west")
    member.nodes["west"] = []
    member.give("west", 2)
    e2e.pool("on-demand", 2)
    e2e.submit("west", "on-demand", program="chain.py --steps 100000")
    with controller(e2e, tmp_path, clusters={"west": {"kubeconfig": {"file": str(west.kubeconfig)}}}):
        e2e.runs("west")
        tiers = [e2e.tier({"name": "west", "provisionTimeout": "30s"}), e2e.tier("on-demand")]
        e2e.kube.patch("tieredjob", "job", {"spec": {"tiers": tiers}})  # starting Ray may take as long
        with west.stopped("apiserver"):
            cut_off = time.time()
            e2e.runs("on-demand", past=e2e.steps())
            assert [step for step in e2e.done() if step.attempt == 1 and step.at > cut_off + 5], "it is no zombie"
            taken_over = min(step.at for step in e2e.done() if step.attempt == 2)
            assert not [commit for commit in e2e.commits() if commit.attempt == 1 and commit.at > taken_over]
        e2e.until("the remaining objects are deleted", lambda: not member.kube.list("rayjobs,rayclusters,pods"))
        e2e.suspend()
        e2e.is_the_uninterrupted_result(steps=e2e.steps())
