"""The removal of an installation after all other tests: no call was refused, and no object remains."""

from __future__ import annotations

import json

from tests.e2e.kube import Kube
from tests.e2e.site import CALLS, SYSTEM, E2eSite, install
from tests.e2e.world import E2eCluster
from tests.kube.test_chart import granted

UNUSED = {
    ("tieredjobs/finalizers", "update"): "required by an admission plugin, not by a call",
    ("rayclusters", "delete"): "KubeRay removes them with their RayJob, unless it is down",
    ("rayjobs", "deletecollection"): "used only for jobs that can no longer be read",
    ("jobsets", "deletecollection"): "",
    ("poddisruptionbudgets", "deletecollection"): "",
    ("priorityclasses", "get"): "no template here names one, nor any of the following",
    ("runtimeclasses", "get"): "",
    ("serviceaccounts", "get"): "",
    ("persistentvolumeclaims", "get"): "",
}
"""Permissions that no test here uses, and the reasons."""


def test_the_rights_are_what_was_called(site: E2eSite) -> None:
    """Compare the chart's permissions with the calls of all end-to-end tests.

    tests/kube compares each call on a bare API server; here the calls are those that real operators cause."""
    site.save_calls()
    calls = {tuple(call) for saved in CALLS.glob("*.json") for call in json.loads(saved.read_text())}
    system = Kube(site.cluster.kubeconfig, SYSTEM)
    kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    given = granted([found for kind in kinds for found in system.list(kind, "app.kubernetes.io/name=spotladder")])
    used = {(resource, verb) for resource, called, status in calls for verb in verbs(called, status)}
    assert {call for call in calls if call[2] in ("401", "403")} == set()
    assert {(resource, verb) for _, resource, verb in given} - used - set(UNUSED) == set()


def verbs(called: str, status: str) -> tuple[str, ...]:
    """Permissions as RBAC names them: an apply is a patch, and an apply that creates needs `create`, too."""
    if called != "apply":
        return (called,)
    return ("patch", "create") if status == "201" else ("patch",)


def test_upgrade_and_uninstall_leave_nothing(here: E2eCluster, site: E2eSite) -> None:
    system = Kube(site.cluster.kubeconfig, SYSTEM)
    here.pool("spot", 0)
    here.submit("spot")
    here.until("it waits for capacity", lambda: here.status().get("phase") == "Pending")
    install(system, site.tag, "controller.workers=4")
    here.until("the new controller reconciles it", lambda: here.status().get("attempt") == 1)
    here.kube.delete("tieredjob", "job")
    system.helm("uninstall", "spotladder", "--wait")
    system.helm("uninstall", "spotladder-crds", "--wait")
    kinds = "deployments,configmaps,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
    left = [found["metadata"]["name"] for found in system.list(kinds, "app.kubernetes.io/part-of=spotladder")]
    cluster = system.list("clusterroles,clusterrolebindings", "app.kubernetes.io/part-of=spotladder")
    assert left + [found["metadata"]["name"] for found in cluster] == []
    # Helm keeps the CRDs: their deletion removes all jobs, so the user must do it.
    system.run("delete", "crd", "tieredjobs.spotladder.io", "capacitytiers.spotladder.io")
    assert "tieredjobs" not in system.run("api-resources", "--api-group=spotladder.io")
