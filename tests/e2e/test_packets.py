"""A network that loses packets, between the machines and to the API server alike."""

from __future__ import annotations

from tests.e2e.world import SHARED, E2eCluster


def test_one_packet_in_twenty_is_lost(e2e: E2eCluster) -> None:
    """The controller's machine loses packets, too: no action is repeated, and no wait is endless.

    Ray's own checks sometimes treat a machine on such a network as dead, so the job may lose more machines than the
    test takes.
    """
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 3)
    with e2e.cluster.losing_packets(SHARED, *e2e.nodes["spot"], *e2e.nodes["on-demand"], share=0.05):
        e2e.submit("spot", {"name": "on-demand", "maxFailures": -1}, program="chain.py --steps 120")
        e2e.until("it has committed", e2e.steps, 300)
        e2e.cluster.remove(e2e.worker_node())
        e2e.succeeds(limit=600)
    assert e2e.last_on_each_tier() == [("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    e2e.is_the_uninterrupted_result(steps=120)
