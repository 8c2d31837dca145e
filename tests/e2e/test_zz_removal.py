"""The end of an installation, after everything else: it was refused nothing, and it leaves nothing."""

from __future__ import annotations

import re

from tests.e2e.conftest import SYSTEM, Site, install
from tests.e2e.kube import Kube
from tests.e2e.world import World


def test_nothing_that_was_called_was_refused(site: Site) -> None:
    system = Kube(site.cluster.kubeconfig, SYSTEM)
    refused, used = set(), set()
    for pod in system.list("pods", "app.kubernetes.io/name=spotladder"):
        path = f"/api/v1/namespaces/{SYSTEM}/pods/{pod['metadata']['name']}:8080/proxy/metrics"
        for call in re.findall(r"spotladder_api_requests_total\{(.*)\}", system.run("get", "--raw", path)):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', call))
            right = labels["resource"], labels["verb"]
            used.add(right)
            if labels["code"] in ("401", "403"):
                refused.add(right)
    assert refused == set()
    assert {("leases", "update"), ("tieredjobs", "watch")} <= used


def test_upgrade_and_uninstall_leave_nothing(here: World, site: Site) -> None:
    system = Kube(site.cluster.kubeconfig, SYSTEM)
    here.pool("spot", 0)
    here.submit("spot")
    here.until("it waits for capacity", lambda: here.status().get("phase") == "Pending")
    install(system, site.tag, "controller.workers=4")
    here.until("it is looked after by the new one", lambda: here.status().get("attempt") == 1)
    here.kube.delete("tieredjob", "job")
    system.helm("uninstall", "spotladder", "--wait")
    system.helm("uninstall", "spotladder-crds", "--wait")
    kinds = "deployments,configmaps,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
    left = [found["metadata"]["name"] for found in system.list(kinds, "app.kubernetes.io/part-of=spotladder")]
    cluster = system.list("clusterroles,clusterrolebindings", "app.kubernetes.io/part-of=spotladder")
    assert left + [found["metadata"]["name"] for found in cluster] == []
    # Helm keeps the CRDs: with them go all jobs, and that is for a person to say.
    system.run("delete", "crd", "tieredjobs.spotladder.io", "capacitytiers.spotladder.io")
    assert "tieredjobs" not in system.run("api-resources", "--api-group=spotladder.io")
