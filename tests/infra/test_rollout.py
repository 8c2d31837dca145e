"""Rollouts over two real clusters: Pulumi, Helm and kubectl as users have them, KubeRay and the controller in pods.

The tests build on each other, in the order of the file: a good rollout of a cluster takes a minute.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from tests.infra.sites import TEAM, Sites, sites, smoke
from tests.waiting import until

pytestmark = pytest.mark.timeout(540)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with sites(tmp_path_factory.mktemp("rollout")) as made:
        yield made


def revisions(both: Sites, cluster: str) -> dict[str, str]:
    """Helm's revisions by release."""
    listed = json.loads(both.kube(cluster).helm("list", "--all-namespaces", "-o", "json"))
    return {entry["name"]: entry["revision"] for entry in listed}


def test_the_first_rollout_trains_in_both_clusters(both: Sites) -> None:
    previewed = both.run("rollout", "--dry-run")
    assert "9 to change, 0 unchanged." in previewed
    assert revisions(both, "east") == {}, "a preview changes nothing"
    printed = both.run("rollout")
    assert printed.index("east  smoke job: ready") < printed.index("west  crds-kuberay-operator")
    assert "west  smoke job: ready" in printed
    assert both.bucket.log("team-a", "smoke-west").read().commits, "the job has committed what it trained"
    assert "token" not in "".join(path.read_text() for path in (both.folder / ".spotladder").rglob("*.json"))


def test_manual_changes_are_detected_and_undone(both: Sites) -> None:
    west = both.kube("west", "kuberay-system")
    west.patch("deployment", "kuberay-operator", {"spec": {"replicas": 2}})
    west.delete("clusterrolebinding", "kuberay-operator")
    west.patch("crd", "rayjobs.ray.io", {"spec": {"names": {"categories": ["mine"]}}})
    found = both.run("drift", "--output", "json", code=1)
    changed = [row for row in json.loads(found) if row["change"] != "same"]
    assert {(row["cluster"], row["component"]): row["details"].partition("drift: ")[2] for row in changed} == {
        ("west", "kuberay"): "ClusterRoleBinding/kuberay-operator, Deployment/kuberay-operator",
        ("west", "crds-kuberay-operator"): "CustomResourceDefinition/rayjobs.ray.io",
    }
    assert "Deployment/kuberay-operator" in both.run("rollout", "--dry-run", "--cluster", "west")
    both.run("rollout", "--cluster", "west", "--no-smoke")
    both.run("drift")
    deployment = west.get("deployment", "kuberay-operator")
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 1


def test_a_canary_that_does_not_start_stops_the_rollout(both: Sites) -> None:
    before = revisions(both, "west")
    values = {"controller": both.controller(controller={"workers": 4}), "kuberay": both.kuberay("typo")}
    both.write(values=values)
    printed = both.run("rollout", code=5)
    assert "ErrImageNeverPull" in printed or "ImagePullBackOff" in printed
    assert "localhost/kuberay-operator:typo" in printed
    assert revisions(both, "west") == before
    pods = both.kube("east", "kuberay-system").list("pods")
    assert any(pod["spec"]["containers"][0]["image"].endswith(":typo") for pod in pods), "it can be inspected"
    both.run("rollback", "--cluster", "east")
    status = json.loads(both.run("status", "--output", "json"))
    assert {row["ready"] for row in status} == {"1/1", "–"}
    both.write()
    assert "0 to change" in both.run("rollout", "--dry-run")


def test_a_killed_rollout_continues(both: Sites) -> None:
    both.write(values={"controller": both.controller(controller={"workers": 5}), "kuberay": both.kuberay("1.6.1")})
    process = both.start("rollout", "--no-smoke")
    assert process.stdout is not None
    for line in process.stdout:
        if "east  controller: upgrading" in line:
            break
    started = psutil.Process(process.pid).children(recursive=True)
    assert started, "Pulumi's engine runs"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    both.run("rollout", "--no-smoke")
    assert not [child for child in started if child.is_running()], "nothing of the killed rollout is left"
    for name in both.clusters:
        values = json.loads(both.kube(name).helm("get", "values", "spotladder", "-o", "json"))
        assert (values.get("controller") or {"workers": 5}) == {"workers": 5}
    both.run("drift")


def test_an_upgrade_disrupts_no_running_job(both: Sites) -> None:
    home = both.kube("east", TEAM)
    job = smoke(both, steps=100_000)
    job["metadata"]["name"] = "steady"
    job["spec"]["tiers"] = [{"name": "east-workers", "capacityTier": "east-workers", "maxFailures": 0}]
    home.apply(job)

    def step() -> int:
        commits = both.bucket.log(TEAM, "steady").read().commits
        return max((commit.step for commit in commits), default=0)

    def phase() -> tuple[str, int]:
        status = (home.get("tieredjob", "steady") or {}).get("status", {})
        return status.get("phase", ""), status.get("attempt", 0)

    until(lambda: phase() == ("Running", 1) and step() > 0)
    before = revisions(both, "east")
    restarted = {**both.kuberay("1.6.1"), "revision": "2"}
    both.write(values={"controller": both.controller(controller={"workers": 4}), "kuberay": restarted})
    printed = both.run("upgrade", "--apply", "--cluster", "east")
    after = revisions(both, "east")
    assert {name for name, revision in after.items() if revision != before[name]} >= {"kuberay-operator", "spotladder"}
    assert "attempt ended" not in printed
    newest = step()
    until(lambda: phase() == ("Running", 1) and step() > newest)
    home.patch("tieredjob", "steady", {"spec": {"suspend": True}})
    until(lambda: phase()[0] == "Suspended")
