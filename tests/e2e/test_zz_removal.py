"""The removal of an installation after all other tests: no call was refused, and no object remains."""

from __future__ import annotations

import json

from tests.e2e.kube import Kube
from tests.e2e.site import CALLS, SYSTEM, E2eSite, install
from tests.e2e.world import E2eCluster
from tests.kube.test_chart import NEVER_CALLED

UNUSED = {
    ("tieredjobs/finalizers", "update"),  # Required by an admission plugin, not by a call.
    ("rayjobs", "patch"),  # A launch applies an object whose creation got no response.
    ("jobsets", "patch"),
}


def test_no_call_was_refused_and_every_remaining_permission_was_used(site: E2eSite) -> None:
    """Check the calls of all end-to-end tests, which real operators cause, against the chart's permissions.

    tests/kube compares the permissions with the calls on a bare API server in both directions. The permissions that
    cannot be used there must be used here."""
    site.save_calls()
    calls = {tuple(call) for saved in CALLS.glob("*.json") for call in json.loads(saved.read_text())}
    used = {(resource, verb) for resource, called, status in calls for verb in verbs(called, status)}
    assert {call for call in calls if call[2] in ("401", "403")} == set()
    assert {(resource, verb) for _, resource, verb in NEVER_CALLED} - used == UNUSED


def verbs(called: str, status: str) -> tuple[str, ...]:
    """Permissions as RBAC names them: an apply is a patch, and an apply that creates needs `create`, too."""
    if called != "apply":
        return (called,)
    return ("patch", "create") if status == "201" else ("patch",)


def test_upgrade_and_uninstall_leave_nothing(e2e: E2eCluster, site: E2eSite) -> None:
    system = Kube(site.cluster.kubeconfig, SYSTEM)
    e2e.pool("spot", 0)
    e2e.submit("spot")
    e2e.until("it waits for capacity", lambda: e2e.status().get("phase") == "Pending")
    install(system, site.tag, site.bucket, "controller.workers=4")
    e2e.until("the new controller reconciles it", lambda: e2e.status().get("attempt") == 1)
    e2e.kube.delete("tieredjob", "job")
    system.helm("uninstall", "spotladder", "--wait")
    system.helm("uninstall", "spotladder-crds", "--wait")
    kinds = "deployments,configmaps,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
    left = [found["metadata"]["name"] for found in system.list(kinds, "app.kubernetes.io/part-of=spotladder")]
    cluster = system.list("clusterroles,clusterrolebindings", "app.kubernetes.io/part-of=spotladder")
    assert left + [found["metadata"]["name"] for found in cluster] == []
    # Helm keeps the CRDs: their deletion removes all jobs, so the user must do it.
    system.run("delete", "crd", "tieredjobs.spotladder.io", "capacitytiers.spotladder.io")
    assert "tieredjobs" not in system.run("api-resources", "--api-group=spotladder.io")
