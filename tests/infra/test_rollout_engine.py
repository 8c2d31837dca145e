"""Rollouts with the real Pulumi over clusters that are files: waves, locks, drift, rollback, upgrade, removal.

A run of Pulumi takes seconds. Tests that begin after a good rollout of both clusters work on copies of one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spotladder.local.reaper import marked
from spotladder_infra.rollout.remove import OUR_NODEPOOLS, remove
from spotladder_infra.topology.read import read_fleet
from tests.absent import absent
from tests.checkpoints.gcs import BUCKET as CLOUD_BUCKET
from tests.docs.markdown import ROOT, blocks, commands
from tests.e2e.bucket import NAME as BUCKET
from tests.e2e.bucket import bucket
from tests.infra.fakecluster import VARIABLE, FakeCluster, install
from tests.infra.jsonstorage import storage
from tests.kube.apiserver import tools
from tests.topology.builders import TODAY
from tests.waiting import until

FLEET = {
    "apiVersion": "spotladder.io/v1alpha1",
    "kind": "Fleet",
    "metadata": {"name": "lab"},
    "spec": {
        "home": "east",
        "teams": [{"name": "team-a"}],
        "platform": {"charts": "charts", "image": {"repository": "r/spotladder", "tag": "1"}},
        "clusters": [
            {
                "name": name,
                "cloud": "existing",
                "context": name,
                "pools": [
                    {"name": f"{name}-heads", "role": "heads", "selectors": {"pool": "system"}},
                    {"name": f"{name}-workers", "selectors": {"pool": "gpu"}, "price": {"perNodeHour": "0.4"}},
                ],
            }
            for name in ("east", "west")
        ],
    },
}


@dataclass
class Lab:
    """A folder with a fleet file, and its clusters."""

    folder: Path
    environment: dict[str, str]

    def cluster(self, name: str) -> FakeCluster:
        return FakeCluster(self.folder, name)

    def change(self, name: str, **state: Any) -> None:
        cluster = self.cluster(name)
        cluster.state.update(state)
        cluster.save()

    def write(self, **platform: Any) -> None:
        fleet = json.loads(json.dumps(FLEET))
        fleet["spec"]["platform"] |= platform
        (self.folder / "fleet.yaml").write_text(json.dumps(fleet))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "spotladder.cli.main", "infra", *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments)
        printed, _ = process.communicate(timeout=400)
        assert process.returncode == code, f"{arguments}: exit code {process.returncode}\n{printed}"
        return printed

    def versions(self) -> dict[str, dict[str, int]]:
        return {
            name: {release: self.cluster(name).revision(release) for release in self.cluster(name).state["releases"]}
            for name in ("east", "west")
        }


def made(folder: Path) -> Lab:
    """A lab without any release."""
    path = f"{install(folder / 'bin')}{os.pathsep}{tools() / 'bin'}{os.pathsep}{os.environ['PATH']}"
    if shutil.which("pulumi", path=path) is None:
        absent("pulumi is not installed", "infra")
    chart = folder / "charts" / "kuberay-operator"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: kuberay-operator\nversion: 1.6.1\n")
    lab = Lab(folder, {**os.environ, "PATH": path, VARIABLE: str(folder), "KUBECONFIG": "/nowhere"})
    lab.write()
    return lab


def ended(lab: Lab) -> None:
    """Waits until no engine, no provider, no helm and no watchdog of the lab runs."""
    until(lambda: not marked(f"{VARIABLE}={lab.folder}"))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = made(tmp_path)
    yield lab
    ended(lab)


@dataclass
class Begun:
    """A lab after its first rollout, and the output of its commands."""

    lab: Lab
    previewed: str
    before: dict[str, dict[str, int]]
    printed: str


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    lab = made(tmp_path_factory.mktemp("begun") / "lab")
    previewed, before = lab.run("rollout", "--dry-run"), lab.versions()
    printed = lab.run("rollout")
    ended(lab)
    return Begun(lab, previewed, before, printed)


@pytest.fixture
def good(begun: Begun, tmp_path: Path) -> Iterator[Lab]:
    """A copy of the lab after its first rollout."""
    folder = tmp_path / "lab"
    shutil.copytree(begun.lab.folder, folder)
    lab = Lab(folder, {**begun.lab.environment, VARIABLE: str(folder)})
    yield lab
    ended(lab)


pytestmark = pytest.mark.timeout(600)


def results(printed: str) -> dict[str, str]:
    """The table at the end of a rollout: the result of each cluster."""
    lines = [line.split(maxsplit=1) for line in printed.splitlines()]
    return {words[0]: words[1] for words in lines[lines.index(["CLUSTER", "RESULT"]) + 1 :] if words[0] in GOOD}


def records(lab: Lab, cluster: str) -> Any:
    """The recorded rollouts of a cluster."""
    found = lab.cluster(cluster).state["objects"]["configmap/spotladder-system/spotladder-rollout"]
    return json.loads(found["data"]["good"])


GOOD = {
    "east": {"spotladder-pools": 1, "kuberay-operator": 1, "spotladder": 1},
    "west": {"spotladder-pools": 1, "kuberay-operator": 1, "spotladder": 1},
}


def test_the_first_rollout_goes_in_waves(begun: Begun) -> None:
    assert "9 to change, 0 unchanged." in begun.previewed
    assert begun.before == {"east": {}, "west": {}}, "a preview changes nothing"
    printed, lab = begun.printed, begun.lab
    assert printed.index("east  controller: ready") < printed.index("west  crds-kuberay-operator: installing")
    assert lab.versions() == GOOD
    secret = lab.cluster("east").state["objects"]["secret/spotladder-system/cluster-west"]
    assert json.loads(secret["stringData"]["kubeconfig"])["clusters"][0]["cluster"]["tls-server-name"] == "api"
    state = "".join(path.read_text() for path in (lab.folder / ".spotladder").rglob("*.json"))
    assert "/nowhere" not in state, "the state has no path of this machine"
    assert "token" not in state


def test_no_change_then_drift_then_rollback(good: Lab) -> None:
    before = records(good, "east")
    printed = good.run("rollout")
    assert good.versions() == GOOD, "a rollout without a change changes nothing"
    assert results(printed) == {"east": "unchanged", "west": "unchanged"}
    assert records(good, "east") == before, "it keeps the time of the rollout that installed the releases"

    good.change("west", drift=["kuberay-operator"])
    assert "Deployment/kuberay-operator" in good.run("drift", code=1)
    good.write(values={"controller": {"replicaCount": 3}})
    previewed = good.run("rollout", "--dry-run")
    assert "drift: Deployment/kuberay-operator" in previewed
    assert "replicaCount: unset → 3" in previewed
    good.change("west", drift=[])
    good.write()
    good.run("drift")

    good.write(values={"controller": {"replicaCount": 3}})
    printed = good.run("rollout", "--cluster", "east")
    assert results(printed) == {"east": "good"}
    assert good.versions()["east"]["spotladder"] == 2
    good.run("rollback", "--cluster", "east")
    east = good.cluster("east").state["releases"]
    assert east["spotladder"][-1]["values"] == east["spotladder"][0]["values"]
    assert good.versions()["east"] == {"spotladder-pools": 1, "kuberay-operator": 1, "spotladder": 3}
    printed = good.run("rollback", "--cluster", "east", code=5)
    assert (
        "error: cluster east: there is no earlier good rollout to go back to (its only good rollout, of 20" in printed
    )
    assert "run spotladder infra rollout --cluster east" in printed
    assert "the same command" not in printed, "it would fail again"


def test_a_cluster_that_does_not_answer_hides_no_other(good: Lab) -> None:
    good.change("west", down=True)
    good.write(values={"controller": {"replicaCount": 3}})
    shown = {
        "status": ["east", "kuberay"],
        "drift": ["1", "east", "controller", "update"],
        "rollout --dry-run": ["1", "east", "controller", "update"],
        "upgrade": ["1", "east", "controller", "update"],
    }
    for command, row in shown.items():
        printed = good.run(*command.split(), code=5)
        assert row in [line.split()[: len(row)] for line in printed.splitlines()], printed
        (error,) = [line for line in printed.splitlines() if line.startswith("error: ")]
        assert error.startswith("error: cluster west: ")
        assert error.count("cluster west") == 1
        assert "i/o timeout (context west): check that the API server runs" in error
    assert "error: cluster west: kubectl get deployments.apps: " in good.run("rollout", code=5)
    assert good.versions() == GOOD, "nothing was changed"


def test_the_first_failure_stops_the_rollout_and_the_same_command_continues(lab: Lab) -> None:
    lab.write(values={"kuberay": {"image": {"tag": "typo"}}})
    printed = lab.run("rollout", code=5)
    assert "error: cluster east: kuberay-operator 1.6.1: Deployment kuberay-operator: 0 of 1 pods are ready" in printed
    assert "ErrImageNeverPull: r:typo" in printed
    assert "west  crds" not in printed
    assert lab.versions()["west"] == {}
    assert results(printed) == {"east": "failed", "west": "not begun"}
    assert printed.endswith("spotladder infra status --cluster east shows what is installed\n")
    assert "(none was good yet): correct the fleet file" in lab.run("rollback", "--cluster", "east", code=5)
    lab.write()
    lab.run("rollout")
    assert lab.versions()["west"] == GOOD["west"]


def test_a_failed_canary_is_rolled_back(good: Lab) -> None:
    good.write(jobset=True, values={"kuberay": {"image": {"tag": "typo"}}})
    jobset = good.folder / "charts" / "jobset"
    jobset.mkdir()
    (jobset / "Chart.yaml").write_text("name: jobset\nversion: 0.12.0\n")
    printed = good.run("rollout", code=5)
    assert "or restore the last good rollout, if any: spotladder infra rollback --cluster east; " in printed
    assert good.versions()["east"]["jobset"] == 1
    good.change("east", drift=["spotladder"])
    printed = good.run("rollback", "--cluster", "east")
    assert "good, as of 20" in printed, "the result says which rollout it went back to"
    found = {"spotladder-pools": 1, "kuberay-operator": 3, "spotladder": 2}
    assert good.versions()["east"] == found, "what was changed by hand is undone as well"
    good.change("east", drift=[])
    assert good.versions()["west"] == GOOD["west"]
    good.write()
    assert "0 to change, 9 unchanged." in good.run("rollout", "--dry-run")


def test_ctrl_c_prints_how_to_continue(good: Lab) -> None:
    good.write(values={"kuberay": {"hang": True}})
    process = good.start("rollout", "--cluster", "east")
    until(lambda: good.cluster("east").state.get("hung"), seconds=240)
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=200)
    assert process.returncode == 130, printed
    assert "interrupted: run the same command again to continue" in printed
    assert "failed" not in printed
    assert "good" in good.run("rollout", "--cluster", "east")


def test_a_rollback_records_the_crds_that_stay(good: Lab) -> None:
    chart = good.folder / "charts" / "kuberay-operator" / "Chart.yaml"
    chart.write_text(chart.read_text().replace("1.6.1", "v1.6.1"))
    good.write(values={"kuberay": {"image": {"tag": "typo"}}})
    good.run("rollout", "--cluster", "east", code=5)
    good.run("rollback", "--cluster", "east")
    (now,) = [version for name, version, _ in records(good, "east")[-1]["crds"] if name == "kuberay-operator"]
    assert now == "v1.6.1", "the newer CRDs stay"
    good.write()
    rows = [line.split() for line in good.run("rollout", "--dry-run", "--cluster", "east").splitlines()]
    assert ["1", "east", "kuberay", "update"] in [row[:4] for row in rows]
    assert "crds-kuberay-operator" not in [row[2] for row in rows if len(row) > 2], "they are installed"


def test_an_upgrade_holds_the_nodes(good: Lab) -> None:
    job = {"metadata": {"name": "j", "namespace": "team-a"}, "spec": {}, "status": {"phase": "Running", "attempt": 1}}
    good.change("east", jobs=[job])
    good.write(image={"repository": "r/spotladder", "tag": "2"})
    good.run("upgrade", "--apply", "--cluster", "east")
    pools = good.cluster("east").state["releases"]["spotladder-pools"]
    assert [bool(entry["values"].get("holdDuringUpgrade")) for entry in pools] == [False, True, False]
    assert good.cluster("east").state["releases"]["spotladder"][-1]["values"]["image"]["tag"] == "2"
    good.run("drift", "--cluster", "east")


def test_the_commands_of_the_pages(lab: Lab) -> None:
    """The fleet file of docs/rollout.md and the commands of both pages, in their order."""
    page = ROOT / "docs" / "rollout.md"
    fleet = next(block.text for block in blocks("yaml") if block.page == page)
    path = lab.folder / "fleet.yaml"
    path.write_text(fleet.replace("platform:\n", "platform:\n    charts: charts\n"))
    (lab.folder / "smoke.yaml").write_text((ROOT / "examples" / "on-a-cluster" / "digits.yaml").read_text())
    typed = [line.removeprefix("spotladder infra ").split() for line in commands(page)]
    assert [words[0] for words in typed] == ["rollout", "rollout", "rollout", "status", "drift", "rollback"]
    for words in typed[:-1]:
        lab.run(*words)
    job = lab.cluster("east").state["submitted"]
    assert job["metadata"]["name"] == "digits-west", "smoke jobs of all clusters are submitted at home"
    assert job["spec"]["tiers"] == [{"name": "west-workers", "capacityTier": "west-workers", "maxFailures": 0}]
    path.write_text(path.read_text().replace("tag: 0.1.0", "tag: 0.1.1"))
    for line in commands(ROOT / "docs" / "upgrade.md"):
        lab.run(*line.removeprefix("spotladder infra ").split())
    assert lab.cluster("east").state["releases"]["spotladder"][-1]["values"]["image"]["tag"] == "0.1.1"
    lab.run(*typed[-1])
    assert lab.cluster("east").state["releases"]["spotladder"][-1]["values"]["image"]["tag"] == "0.1.0"


def test_a_smoke_job_that_fails_stops_the_rollout(lab: Lab) -> None:
    fleet = json.loads((lab.folder / "fleet.yaml").read_text())
    fleet["spec"]["rollout"] = {"smoke": {"job": "smoke.yaml"}}
    (lab.folder / "fleet.yaml").write_text(json.dumps(fleet))
    (lab.folder / "smoke.yaml").write_text("kind: TieredJob\n")
    assert "smoke.yaml" in lab.run("rollout", code=2)
    assert lab.versions()["east"] == {}, "a bad smoke job is found before anything is changed"
    (lab.folder / "smoke.yaml").write_text((ROOT / "examples" / "on-a-cluster" / "digits.yaml").read_text())
    lab.change("east", phase="Failed")
    printed = lab.run("rollout", code=5)
    assert "smoke job default/digits-east failed" in printed
    assert lab.versions()["west"] == {}


@contextmanager
def in_s3() -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The state of a fleet in a bucket of S3, and the environment in which it is reached."""
    with bucket("127.0.0.1") as found:
        yield {"uri": f"s3://{BUCKET}/fleet", "region": "us-east-1"}, dict(found.environment)


@contextmanager
def in_cloud_storage() -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The same in Cloud Storage."""
    with storage() as environment:
        yield {"uri": f"gs://{CLOUD_BUCKET}/fleet"}, environment


def keep_state(lab: Lab, state: dict[str, str]) -> None:
    """Writes the fleet file with another location of the state."""
    fleet = json.loads((lab.folder / "fleet.yaml").read_text())
    fleet["spec"]["state"] = state
    (lab.folder / "fleet.yaml").write_text(json.dumps(fleet))


@pytest.mark.parametrize("place", [in_s3, in_cloud_storage])
def test_state_in_a_bucket_is_shared(
    place: Callable[[], AbstractContextManager[tuple[dict[str, str], dict[str, str]]]], lab: Lab
) -> None:
    with place() as (state, environment):
        keep_state(lab, state)
        lab.environment |= environment
        lab.run("rollout", "--cluster", "east")
        shutil.rmtree(lab.folder / ".spotladder")
        assert "0 to change, 5 unchanged." in lab.run("rollout", "--dry-run", "--cluster", "east"), (
            "another machine knows it"
        )


def test_state_in_cloud_storage_without_credentials(lab: Lab) -> None:
    keep_state(lab, {"uri": "gs://acme-state/fleet"})
    lab.environment["GOOGLE_APPLICATION_CREDENTIALS"] = str(lab.folder / "absent.json")
    printed = lab.run("rollout", "--cluster", "east", code=5)
    assert "state gs://acme-state/fleet/rollout cannot be opened: missing google credentials" in printed
    assert "gcloud auth application-default login" in printed
    assert lab.versions()["east"] == {}


def test_removal_stops_jobs_releases_nodes_and_uninstalls(good: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"metadata": {"name": "j", "namespace": "team-a"}, "spec": {}, "status": {"phase": "Running"}}
    good.change("east", jobs=[job], karpenter=True, claims=[{"metadata": {"name": "n"}}])
    for name, value in good.environment.items():
        monkeypatch.setenv(name, value)
    fleet = read_fleet(good.folder / "fleet.yaml", TODAY).fleet
    reports: list[tuple[str, str, str]] = []
    state = good.folder / ".spotladder"
    assert "secret/spotladder-system/cluster-west" in good.cluster("east").state["objects"]
    monkeypatch.chdir(good.folder)
    remove(fleet, fleet.cluster("east"), state, lambda *one: reports.append(one))
    assert reports[0] == ("jobs", "stopping", "team-a/j")
    assert ("nodes", "draining", "n") in reports
    deleted = [call[2:] for call in good.cluster("east").state["calls"] if call[:2] == ["kubectl", "delete"]]
    assert ["nodepools.karpenter.sh", f"--selector={OUR_NODEPOOLS}"] in deleted
    removed = [name for name, what, _ in reports if what == "removed"]
    assert removed == ["spotladder", "kuberay-operator", "spotladder-pools"]
    assert good.versions()["east"] == {}
    assert "secret/spotladder-system/cluster-west" not in good.cluster("east").state["objects"], "it has a token"
    remove(fleet, fleet.cluster("east"), state, lambda *one: None)
