"""The sources of an attempt's output, and the amount that is read."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from spotladder.checkpoints.outputs import CUT, LONGEST, Output
from spotladder.clusters.errors import ClusterUnreachable, Forbidden, NotFound, Unauthorized
from spotladder.operator.inventory.clusters import Located
from spotladder.operator.storage import program_output as module
from spotladder.operator.storage.program_output import LINES, LONGEST_RANK, RANKS, printed
from spotladder.resources import SECRETS
from spotladder.workloads.rayjob.records import RayJobRecord
from spotladder.workloads.records import NodeRecord, PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.workloads.builders import NODES, jobset, member, metadata, node, pod_object, status

MESSAGE = (
    "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\nstep 1\nboom\n"
)


class FakePodLogs:
    """A fake client. `logs` has the log by pod and container, `dashboard` the response by path."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, str], str | Exception] = {}
        self.dashboard: dict[str, Any] = {}
        self.lists: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.secrets: dict[str, str] = {}
        self.token = ""

    async def log(self, pod: str, _namespace: str, *, container: str, tail: int) -> AsyncIterator[bytes]:
        assert tail == LINES
        self.asked.append(f"{pod}/{container}")
        found = self.logs.get((pod, container), NotFound(404, "NotFound", "no such pod"))
        if isinstance(found, Exception):
            raise found
        for at in range(0, len(found), 1000):
            yield found[at : at + 1000].encode()

    async def get(self, kind: object, name: str, _namespace: str) -> Any:
        assert kind == SECRETS
        self.asked.append(f"get {name}")
        if name not in self.secrets:
            raise Forbidden(403, "Forbidden", "no permission")
        return {"data": {"auth_token": base64.b64encode(self.secrets[name].encode()).decode()}}

    def _authenticate(self, headers: Mapping[str, str]) -> None:
        expected = {"X-Ray-Authorization": f"Bearer {self.token}"} if self.token else {}
        if headers != expected:
            raise Unauthorized(401, "Unauthorized", "missing authentication token")

    async def ask(self, pod: str, _namespace: str, port: int, path: str, *, headers: Mapping[str, str]) -> Any:
        self._authenticate(headers)
        self.asked.append(f"{pod}:{port}/{path}")
        if path not in self.dashboard:
            raise ClusterUnreachable("no answer")
        return self.dashboard[path]

    async def read(
        self,
        pod: str,
        _namespace: str,
        port: int,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str],
    ) -> AsyncIterator[bytes]:
        self._authenticate(headers)
        self.asked.append(f"{pod}:{port}/{path}")
        assert query.get("lines", str(LINES)) == str(LINES)
        assert query.keys() == ({"submission_id", "lines"} if query else set())
        found = self.dashboard.get(f"{path}?{query['submission_id']}" if query else path)
        if found is None:
            raise ClusterUnreachable("500 Internal Server Error")
        for at in range(0, len(found), 1000):
            yield found[at : at + 1000].encode()

    async def pages(self, _kind: object, _namespace: str, *, labels: str = "", fields: str = "") -> AsyncIterator[Any]:
        self.asked.append(f"list {labels or fields}")
        yield type("Page", (), {"items": self.lists})


def rayjob(mode: str = "HTTPMode", message: str = "") -> RayJobRecord:
    body = {"metadata": metadata("digits-a001"), "spec": {"submissionMode": mode}, "status": {"message": message}}
    return RayJobRecord.of(body)


def pod(
    name: str = "head", role: str = "head", container: str = "ray-head", *, env: Any = (), **more: Any
) -> PodRecord:
    body = pod_object(name, role=role, **more)
    body["spec"]["containers"] = [{"name": container, "env": list(env)}]
    body["status"]["containerStatuses"][0]["name"] = container
    return PodRecord.of(body)


def rank(index: int, **more: Any) -> PodRecord:
    made = member(index, **more)
    containers = tuple(replace(entry, name="train") for entry in made.containers)
    return replace(made, program="train", containers=containers)


async def read(
    client: FakePodLogs, objects: AttemptObjects, nodes: Mapping[str, NodeRecord] = NODES
) -> dict[Output, str]:
    inventory = type("Inventory", (), {"nodes_of": lambda _self, _objects: nodes})()
    cluster = type("FakeCluster", (), {"client": client, "inventory": inventory})()
    return await printed(1, Located(cast("Any", cluster), objects))


DRIVER = Output(1, 0, "driver")


async def test_the_driver_output_is_read_from_rays_state_api() -> None:
    client = FakePodLogs()
    client.dashboard = {
        "api/jobs/": [{"submission_id": None}, {"submission_id": "d-1"}],
        "api/v0/logs/file?d-1": "hi\n",
    }
    assert await read(client, AttemptObjects(top=rayjob(), pods=(pod(),))) == {DRIVER: "hi\n"}
    assert client.asked == ["head:8265/api/jobs/", "head:8265/api/v0/logs/file"]


SOURCE = {"name": "digits-a001-x7k2p", "key": "auth_token"}
TOKEN = ({"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": SOURCE}},)
"""The environment of a head that requires a token."""


async def test_the_dashboard_is_asked_with_the_token_of_the_cluster() -> None:
    client = FakePodLogs()
    client.token = client.secrets["digits-a001-x7k2p"] = "s3cret"
    client.dashboard = {"api/jobs/": [{"submission_id": "d-1"}], "api/v0/logs/file?d-1": "hi\n"}
    assert await read(client, AttemptObjects(top=rayjob(), pods=(pod(env=TOKEN),))) == {DRIVER: "hi\n"}


async def test_without_permission_for_the_token_the_output_is_the_message_of_the_rayjob() -> None:
    client = FakePodLogs()
    client.token, client.lists = "s3cret", [{"status": {"message": MESSAGE}}]
    with capture_logs() as logs:
        found = await read(client, AttemptObjects(top=rayjob(message=MESSAGE), pods=(pod(env=TOKEN),)))
    assert found == {DRIVER: "step 1\nboom\n"}
    assert "Secret team-a/digits-a001-x7k2p: allow get on secrets" in logs[0]["error"]


async def test_without_the_state_api_the_output_is_read_from_the_jobs_api() -> None:
    client = FakePodLogs()
    client.dashboard = {"api/jobs/": [{"submission_id": "d-1"}], "api/jobs/d-1/logs": '{"logs": "a \\"quoted\\" ä\\n"}'}
    assert await read(client, AttemptObjects(top=rayjob(), pods=(pod(),))) == {DRIVER: 'a "quoted" ä\n'}
    assert client.asked[-2:] == ["head:8265/api/v0/logs/file", "head:8265/api/jobs/d-1/logs"]


async def test_a_long_answer_of_the_jobs_api_is_cut_to_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakePodLogs()
    text = "".join(f'step "{step}" \\ é\n' for step in range(60_000))
    client.dashboard = {"api/jobs/": [{"submission_id": "d-1"}], "api/jobs/d-1/logs": json.dumps({"logs": text})}
    (found,) = (await read(client, AttemptObjects(top=rayjob(), pods=(pod(),)))).values()
    assert found.startswith(f'{CUT}step "')
    assert text.endswith(found.removeprefix(CUT))
    assert len(found) > LONGEST / 2
    monkeypatch.setattr(module, "LONGEST_ANSWER", 100_000)
    assert await read(client, AttemptObjects(top=rayjob(), pods=(pod(),))) == {}


async def test_no_request_is_sent_when_no_output_can_exist_or_be_reached() -> None:
    client = FakePodLogs()
    lost = {"node-1": node(ready="Unknown")}
    assert await read(client, AttemptObjects(top=rayjob(), pods=(pod(),)), lost) == {}
    assert await read(client, AttemptObjects(top=rayjob(), pods=(pod(phase="Pending"),))) == {}
    assert await read(client, AttemptObjects(pods=(pod(),))) == {}
    assert client.asked == []


def submitter(name: str, container: str = "ray-job-submitter") -> Any:
    """A submitter's pod, into which a proxy was injected."""
    return pod_object(name, container=status(container), others=[status("istio-proxy")])


async def test_an_internal_error_is_logged_and_the_output_is_left_out() -> None:
    with capture_logs() as logs:
        assert await printed(1, cast("Any", object())) == {}
    assert "unexpected error" in logs[0]["event"]


async def test_a_submitter_of_the_templates_own_name_is_read() -> None:
    client = FakePodLogs()
    client.lists, client.logs = [submitter("sub", "mine")], {("sub", "mine"): "trained\n"}
    assert await read(client, AttemptObjects(top=rayjob("K8sJobMode"), pods=(pod(),))) == {DRIVER: "trained\n"}


async def test_the_output_of_a_head_that_crashes_at_its_start_is_its_container_log() -> None:
    client = FakePodLogs()
    client.logs = {("head", "ray-head"): "no such option: --bogus\n"}
    objects = AttemptObjects(top=rayjob(), pods=(pod(phase="Failed", exit_code=2),))
    assert await read(client, objects) == {Output(1, 0, "head"): "no such option: --bogus\n"}


async def test_all_started_ranks_of_a_jobset_are_read_with_the_latest_restart_first() -> None:
    client = FakePodLogs()
    client.logs = {(f"workers-0-{index}-1", "train"): f"rank {index}\n" for index in range(4)}
    client.logs["workers-0-2-1", "train"] = Forbidden(403, "Forbidden", "no")
    client.logs["workers-0-0-0", "train"] = "before\n"
    pods = (
        rank(0, restart=1), rank(1, restart=1, phase="Failed", exit_code=1), rank(2, restart=1),
        rank(3, restart=1, phase="Pending"), rank(0, phase="Failed", exit_code=137),
    )  # fmt: skip
    found = await read(client, AttemptObjects(top=jobset(restarts=1), pods=pods))
    assert found == {
        Output(1, 1, "workers-0-1"): "rank 1\n",
        Output(1, 1, "workers-0-0"): "rank 0\n",
        Output(1, 0, "workers-0-0"): "before\n",
    }
    assert client.asked[0] == "workers-0-1-1/train"
    assert client.asked[-1] == "workers-0-0-0/train"


async def test_of_many_ranks_the_failed_ones_and_the_lowest_are_read() -> None:
    client = FakePodLogs()
    client.logs = {(f"workers-0-{index}-0", "train"): "x\n" for index in range(100)}
    pods = tuple(rank(index, **({"phase": "Failed", "exit_code": 1} if index == 90 else {})) for index in range(100))
    found = await read(client, AttemptObjects(top=jobset(pods=100), pods=pods))
    assert [output.source for output in found] == ["workers-0-90", *(f"workers-0-{n}" for n in range(RANKS - 1))]


async def test_only_the_end_of_a_long_log_is_kept_in_memory() -> None:
    client = FakePodLogs()
    text = "".join(f"step {step}\n" for step in range(100_000))
    client.logs = {("workers-0-0-0", "train"): text, ("head", "ray-job-submitter"): text}
    (one,) = (await read(client, AttemptObjects(top=jobset(), pods=(rank(0),)))).values()
    assert one.startswith(CUT + "step ")
    assert one.endswith("step 99999\n")
    assert LONGEST_RANK - 100 < len(one) <= LONGEST_RANK + len(CUT.encode())
    (other,) = (await read(client, AttemptObjects(top=rayjob("SidecarMode"), pods=(pod(),)))).values()
    assert LONGEST - 100 < len(other) <= LONGEST + len(CUT.encode())


@pytest.mark.parametrize(
    ("tail", "text"),
    [
        ((False, b'{"logs": "step 1\\nstep 2\\n"}'), "step 1\nstep 2\n"),
        ((False, b'{"logs": null}'), ""),
        ((False, b"{}"), ""),
        ((True, b'cut\\u00e9\\nstep 2\\n"quoted\\"'.replace(b'\\n"q', b'\\n\\"q') + b'"}'), f'{CUT}step 2\n"quoted"'),
        ((True, b'no complete line"}'), CUT),
        ((True, b'1%\\r2%\\r3%"}'), f"{CUT}2%\r3%"),
    ],
    ids=["complete", "null", "without logs", "cut", "cut inside its only line", "cut inside a progress bar"],
)
def test_the_end_of_a_json_text_begins_with_a_complete_line(tail: tuple[bool, bytes], text: str) -> None:
    assert module._end_of_json(tail) == text


async def test_a_job_without_a_submitter_pod_has_the_output_of_its_status() -> None:
    client = FakePodLogs()
    client.lists = []
    top = rayjob("K8sJobMode")
    with capture_logs() as logs:
        assert await read(client, AttemptObjects(top=top, pods=(pod(),))) == {}
    assert logs == [], "a missing submitter is no error"
    assert client.asked[0].startswith("list ")
    client.lists = [submitter("old"), submitter("sub")]
    client.logs = {("old", "ray-job-submitter"): "first\n", ("sub", "ray-job-submitter"): "second\n"}
    assert await read(client, AttemptObjects(top=top, pods=(pod(),))) == {DRIVER: "second\n"}, "the newest submitter"
