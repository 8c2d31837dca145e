"""A network that loses packets, between the machines and to the API server alike."""

from __future__ import annotations

from tests.e2e.world import SHARED, World


def test_one_packet_in_twenty_is_lost(here: World) -> None:
    """The controller is on such a machine, too: nothing is done twice, nothing waits for ever."""
    here.pool("spot", 2)
    here.pool("on-demand", 2)
    with here.cluster.losing_packets(SHARED, *here.nodes["spot"], *here.nodes["on-demand"], share=0.05):
        here.submit("spot", "on-demand", program="chain.py --steps 60")
        here.runs("spot")
        here.cluster.remove(here.worker_node())
        here.succeeds(limit=600)
    assert here.path() == [("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    here.is_the_uninterrupted_result(steps=60)
