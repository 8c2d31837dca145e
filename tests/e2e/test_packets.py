"""A network that loses packets, between the machines and to the API server alike."""

from __future__ import annotations

from tests.e2e.world import SHARED, E2eCluster


def test_one_packet_in_twenty_is_lost(here: E2eCluster) -> None:
    """The controller's machine loses packets, too: no action is repeated, and no wait is endless.

    Ray's own checks sometimes treat a machine on such a network as dead, so the job may lose more machines than the
    test takes.
    """
    here.pool("spot", 2)
    here.pool("on-demand", 3)
    with here.cluster.losing_packets(SHARED, *here.nodes["spot"], *here.nodes["on-demand"], share=0.05):
        here.submit("spot", {"name": "on-demand", "maxFailures": -1}, program="chain.py --steps 120")
        here.until("it has committed", here.steps, 300)
        here.cluster.remove(here.worker_node())
        here.succeeds(limit=600)
    assert here.last_on_each_tier() == [("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    here.is_the_uninterrupted_result(steps=120)
