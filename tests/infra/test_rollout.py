"""Rollouts over two real clusters: Pulumi, Helm and kubectl as users have them, KubeRay and the controller in pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.infra.sites import Sites, sites

pytestmark = pytest.mark.timeout(540)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with sites(tmp_path_factory.mktemp("rollout")) as made:
        yield made


def test_first_rollout_trains_in_both_clusters(both: Sites) -> None:
    printed = both.run("rollout")
    assert printed.index("east  smoke job: ready") < printed.index("west  crds-kuberay-operator")
    assert "west  smoke job: ready" in printed
    assert both.run("rollout").count("ready") > 0
