"""`spotladder submit` on a fake cluster: checks before the first write, and output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from spotladder.cli.cluster import submit as command
from spotladder.cli.target import ClusterTarget
from spotladder.clusters.client import Page
from spotladder.clusters.errors import ApiError, Forbidden, Invalid, NotFound
from spotladder.jobs.connected_cluster import ConnectedCluster
from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import call
from tests.workloads.builders import ray_template

Capture = pytest.CaptureFixture[str]
Object = dict[str, Any]


class RecordingClient:
    """Objects by kind, namespace and name, with the calls of a client. `written` are the writes, in their order."""

    def __init__(self) -> None:
        self.things: dict[tuple[str, str, str], Object] = {}
        self.written: list[Object] = []
        self.refusing: dict[str, ApiError] = {}
        self.listed = True
        self.forbidden: set[str] = set()
        self.against_policy: dict[str, ApiError] = {}
        self.connection = type("Connection", (), {"context": "east", "namespace": "default"})

    async def get(self, kind: Any, name: str, namespace: str = "") -> Object:
        try:
            return self.things[kind.kind, namespace, name]
        except KeyError:
            raise NotFound(404, "NotFound", f"{name} not found") from None

    async def pages(self, kind: Any, namespace: str = "") -> AsyncIterator[Page]:
        if not self.listed:
            raise Forbidden(403, "Forbidden", "may not list")
        yield Page([thing for key, thing in self.things.items() if key[0] == kind.kind], "7")

    async def apply(self, kind: Any, body: Object, *, force: bool = False, dry_run: bool = False) -> Object:
        name = body["metadata"]["name"]
        if kind.plural in self.forbidden:
            raise Forbidden(403, "Forbidden", f"{kind.plural} is forbidden")
        if dry_run:
            if error := self.against_policy.get(name):
                raise error
            return body
        if name in self.refusing:
            raise self.refusing[name]
        version = str(len(self.written) + 1)
        thing = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        self.things[kind.kind, body["metadata"].get("namespace", ""), name] = thing
        self.written.append(body)
        return thing

    async def exists(self, _kind: Any) -> bool:
        return True

    def has(self, kind: str, name: str, namespace: str = "", **spec: Any) -> None:
        metadata = {"name": name, "namespace": namespace, "resourceVersion": "0"}
        self.things[kind, namespace, name] = {"kind": kind, "metadata": metadata, "spec": spec}

    def names(self) -> list[str]:
        return [body["metadata"]["name"] for body in self.written]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> RecordingClient:
    from spotladder.jobs.connected_cluster import for_user

    client = RecordingClient()

    def talk(target: ClusterTarget, work: Any) -> Any:
        async def run() -> Any:
            cluster = ConnectedCluster(client, target.namespace)  # type: ignore[arg-type]
            try:
                return await work(cluster)
            except ApiError as error:
                raise await for_user(error, cluster) from None

        return asyncio.run(run())

    monkeypatch.setattr(command, "on_cluster", talk)
    return client


def job(name: str = "digits", tier: str = "spot", **spec: Any) -> str:
    document = {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "TieredJob",
        "metadata": {"name": name},
        "spec": {
            "tiers": [{"name": "a", "capacityTier": tier}],
            "checkpoints": {"uri": "s3://bucket/prefix", "credentials": {"secretName": "bucket"}},
            "workload": {"ray": {"template": ray_template()}},
            **spec,
        },
    }
    return json.dumps(document)


TIER = """\
apiVersion: spotladder.io/v1alpha1
kind: CapacityTier
metadata: {name: spot}
spec: {capacityType: spot, provider: aws, price: {perNodeHour: 1}}
"""


def test_capacity_is_sent_first_in_the_notation_of_the_schema(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    one = written(tmp_path, "job.yaml", job(budget=250, stallTimeout=None))
    tier = written(tmp_path, "tier.yaml", TIER)
    answer = call(capsys, "submit", one, tier, "-n", "team-a")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "capacitytier.spotladder.io/spot created",
        "tieredjob.spotladder.io/digits created",
    ]
    capacity, sent = client.written
    assert capacity["spec"]["price"] == {"perNodeHour": "1"}
    assert sent["metadata"] == {"name": "digits", "namespace": "team-a"}
    assert sent["spec"]["budget"] == "250"
    assert "stallTimeout" not in sent["spec"]


def test_a_folder_is_sent_with_the_job_and_named_again_at_an_update(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    files, bucket = tmp_path / "files", tmp_path / "bucket"
    for folder in (files, bucket):
        folder.mkdir()
    (files / "train.py").write_text("pass")
    pip = written(files, "requirements.txt", "torch")
    file = written(tmp_path, "job.yaml", job(checkpoints={"uri": f"file://{bucket}"}))
    answer = call(capsys, "submit", file, "--working-dir", files, "--pip", pip)
    assert answer.code == 0, answer.err
    source = client.written[0]["spec"]["source"]
    assert source["pip"] == "requirements.txt"
    assert [path.as_uri() for path in (bucket / "digits/source").iterdir()] == [source["uri"]]

    answer = call(capsys, "submit", file, "--update")
    assert (answer.code, len(client.written)) == (2, 1)
    assert "has the files of --working-dir: give --working-dir again" in answer.err
    (files / "train.py").write_text("changed")
    assert call(capsys, "submit", file, "--update", "--working-dir", files).code == 0
    assert client.written[1]["spec"]["source"]["uri"] != source["uri"]


def test_requirements_without_a_folder_are_refused(client: RecordingClient, capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "submit", written(tmp_path, "job.yaml", job()), "--pip", tmp_path / "requirements.txt")
    assert (answer.code, client.written) == (2, [])
    assert "--pip is only allowed with --working-dir" in answer.err


def test_a_job_that_exists_is_found_before_anything_is_written(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    client.has("TieredJob", "old", "default")
    client.has("TieredJob", "older", "default")
    files = [written(tmp_path, f"{name}.yaml", job(name)) for name in ("new", "old", "older")]
    answer = call(capsys, "submit", *files, written(tmp_path, "tier.yaml", TIER))
    assert (answer.code, answer.out, client.written) == (2, "", [])
    assert [line.partition(":")[2].partition(" already exists in ")[0] for line in answer.err.splitlines()] == [
        " tieredjob old",
        " tieredjob older",
    ]
    assert "use --update to change it" in answer.err
    printed = call(capsys, "submit", "--update", *files).out.splitlines()
    assert [line for line in printed if not line.startswith("  ")] == [
        "tieredjob.spotladder.io/new created",
        "tieredjob.spotladder.io/old configured",
        "tieredjob.spotladder.io/older configured",
    ]


def test_an_update_prints_its_changes(client: RecordingClient, capsys: Capture, tmp_path: Path) -> None:
    tier = written(tmp_path, "tier.yaml", TIER)
    file = written(tmp_path, "job.yaml", job(budget=250, grace="2m"))
    call(capsys, "submit", file, tier)
    assert call(capsys, "submit", "--update", file).out == "tieredjob.spotladder.io/digits unchanged\n"
    written(tmp_path, "job.yaml", job(grace="3m"))
    assert call(capsys, "submit", "--update", file).out.splitlines() == [
        "tieredjob.spotladder.io/digits configured",
        "   spec:",
        "  -  budget: '250'",
        "     checkpoints:",
        "       uri: s3://bucket/prefix",
        "  -  grace: 2m",
        "  +  grace: 3m",
        "     tiers:",
    ]


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ((), "commits and stops; the next one, on the same tier,"),
        (("--at-next-attempt",), "continues; the next one has"),
    ],
)
def test_an_update_prints_its_effect_on_the_running_attempt(
    flag: tuple[str, ...], says: str, client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    file, tier = written(tmp_path, "job.yaml", job()), written(tmp_path, "tier.yaml", TIER)
    call(capsys, "submit", file, tier)
    running = client.things["TieredJob", "default", "digits"]
    running["status"] = {"phase": "Running", "tier": "a"}
    other = written(tmp_path, "grace.yaml", job(grace="5m"))
    assert "running attempt" not in call(capsys, "submit", "--update", other).out
    client.things["TieredJob", "default", "digits"]["status"] = running["status"]
    template = ray_template()
    template["spec"]["entrypoint"] = "python other.py"
    changed_pods = written(tmp_path, "pods.yaml", job(workload={"ray": {"template": template}}))
    assert says in call(capsys, "submit", "--update", changed_pods, *flag).out.splitlines()[-1]


def test_changed_pods_may_wait_for_the_next_attempt(client: RecordingClient, capsys: Capture, tmp_path: Path) -> None:
    file, tier = written(tmp_path, "job.yaml", job()), written(tmp_path, "tier.yaml", TIER)
    refused = call(capsys, "submit", file, tier, "--at-next-attempt")
    assert (refused.code, client.written) == (2, [])
    assert "is only allowed with --update" in refused.err
    assert call(capsys, "submit", file, tier, "--update", "--at-next-attempt").code == 0
    capacity, sent = client.written
    assert sent["spec"]["updateStrategy"] == "AtNextAttempt"
    assert "updateStrategy" not in capacity["spec"]


@pytest.mark.parametrize("output", ["table", "json"])
def test_objects_written_before_a_refusal_are_printed(
    output: str, client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    client.refusing["bad"] = Forbidden(403, "Forbidden", "exceeded quota")
    files = [written(tmp_path, f"{name}.yaml", job(name)) for name in ("good", "bad")]
    answer = call(capsys, "submit", *files, written(tmp_path, "tier.yaml", TIER), "-o", output)
    assert answer.code == 5
    assert "exceeded quota" in answer.err
    if output == "table":
        assert answer.out.splitlines() == [
            "capacitytier.spotladder.io/spot created",
            "tieredjob.spotladder.io/good created",
        ]
    else:
        assert [item["metadata"]["name"] for item in json.loads(answer.out)["items"]] == ["spot", "good"]


def test_a_misspelt_tier_beside_its_capacity_is_refused(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    misspelt = written(tmp_path, "job.yaml", job(tier="spto"))
    answer = call(capsys, "submit", misspelt, written(tmp_path, "tier.yaml", TIER))
    assert (answer.code, answer.out, client.written) == (2, "", [])
    assert (
        'spec.tiers[0].capacityTier: "spto" is neither a CapacityTier in these files nor in the cluster' in answer.err
    )
    assert "did you mean spot?" in answer.err


def test_a_tier_may_be_known_to_the_cluster_alone(client: RecordingClient, capsys: Capture, tmp_path: Path) -> None:
    client.has("CapacityTier", "there")
    one, tier = written(tmp_path, "job.yaml", job(tier="there")), written(tmp_path, "tier.yaml", TIER)
    answer = call(capsys, "submit", one, tier)
    assert (answer.code, answer.err) == (0, "")
    assert client.names() == ["spot", "digits"]


def test_without_capacity_in_the_files_the_job_waits_for_it(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    answer = call(capsys, "submit", written(tmp_path, "job.yaml", job()))
    assert (answer.code, answer.out) == (0, "tieredjob.spotladder.io/digits created\n")
    assert answer.err.endswith("CapacityTier spot does not exist in this cluster; the job waits for it\n")
    client.listed = False
    answer = call(capsys, "submit", written(tmp_path, "other.yaml", job("other")))
    assert (answer.code, answer.err) == (0, "")


def test_submit_runs_the_controllers_checks(client: RecordingClient, capsys: Capture, tmp_path: Path) -> None:
    local = written(tmp_path, "job.yaml", changed(JOB, ("s3://bucket/prefix", "checkpoints")))
    answer = call(capsys, "submit", local)
    assert (answer.code, answer.out, client.written) == (2, "", [])
    assert "spec.checkpoints.uri: is a path" in answer.err
    assert "headGroupSpec: is required on a cluster" in answer.err
    assert call(capsys, "submit", written(tmp_path, "world.yaml", WORLD)).err.endswith(
        "is a world file, which only local runs use: remove it\n"
    )


def test_missing_permission_for_capacitytiers_is_reported_before_the_first_write(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    client.forbidden = {"capacitytiers"}
    one, tier = written(tmp_path, "job.yaml", job()), written(tmp_path, "tier.yaml", TIER)
    answer = call(capsys, "submit", one, tier)
    assert (answer.code, answer.out, client.written) == (5, "", [])
    assert "capacitytiers is forbidden; ask an administrator to create them, and submit only the jobs" in answer.err
    client.has("CapacityTier", "spot")
    assert call(capsys, "submit", one).code == 0


@pytest.mark.parametrize("flags", [(), ("--update",)])
def test_missing_permission_for_jobs_is_reported_before_the_first_write(
    client: RecordingClient, capsys: Capture, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    client.forbidden = {"tieredjobs"}
    one, tier = written(tmp_path, "job.yaml", job()), written(tmp_path, "tier.yaml", TIER)
    answer = call(capsys, "submit", one, tier, "-n", "team-a", *flags)
    assert (answer.code, answer.out, client.written) == (5, "", [])
    assert "tieredjobs is forbidden; ask an administrator for Kubernetes' role edit" in answer.err


def test_a_refusal_by_an_admission_policy_precedes_the_first_write(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    client.against_policy["second"] = Invalid(422, "Invalid", "spec.checkpoints.uri is not allowed")
    files = [written(tmp_path, f"{name}.yaml", job(name)) for name in ("first", "second")]
    answer = call(capsys, "submit", *files, written(tmp_path, "tier.yaml", TIER))
    assert (answer.code, answer.out, client.written) == (2, "", [])
    assert "the cluster rejects the object: spec.checkpoints.uri is not allowed" in answer.err


def test_without_credentials_the_administrator_must_allow_it(
    client: RecordingClient, capsys: Capture, tmp_path: Path
) -> None:
    text = json.loads(job())
    del text["spec"]["checkpoints"]["credentials"]
    file = written(tmp_path, "job.yaml", json.dumps(text))
    client.has("CapacityTier", "spot")
    for command_ in ("submit", "validate"):
        answer = call(capsys, command_, file, *(("--for-cluster",) if command_ == "validate" else ()))
        assert answer.code == 0
        assert "warning: " in answer.err
        assert "with its own identity: the administrator must allow that" in answer.err
    assert call(capsys, "validate", file).err == ""
