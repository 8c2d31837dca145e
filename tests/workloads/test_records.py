"""Records of Kubernetes objects; any object that an API server may send can be recorded."""

from __future__ import annotations

import sys
from copy import deepcopy

import pytest

from spotladder.core.model import PodRole
from spotladder.timestamps import instant
from spotladder.workloads import names
from spotladder.workloads.records import (
    COMPLETION_INDEX,
    JOB_INDEX,
    REPLICATED_JOB,
    TPU_TOPOLOGY,
    PodRecord,
)
from tests.workloads.builders import AT, pod_object


def test_a_record_has_the_fields_of_its_pod() -> None:
    body = pod_object("head", role="head", disruption="EvictionByEvictionAPI", exit_code=137, exit_reason="OOMKilled")
    body["metadata"]["annotations"] = {names.NOTICE: '{"kind": "drain"}'}
    record = PodRecord.of(body)
    assert (record.job, record.attempt, record.tier, record.role) == ("digits", 1, "spot-a", PodRole.HEAD)
    assert (record.node, record.phase, record.ready) == ("node-1", "Running", False)
    assert (record.disruption, record.notice) == ("EvictionByEvictionAPI", '{"kind": "drain"}')
    assert (record.containers[0].exit_code, record.containers[0].exit_reason) == (137, "OOMKilled")
    assert not record.deleting


def test_a_record_has_the_times_at_which_its_pod_got_a_node_and_began_to_run() -> None:
    body = pod_object()
    body["status"]["conditions"].append({"type": "PodScheduled", "status": "True", "lastTransitionTime": AT})
    record = PodRecord.of(body)
    assert record.scheduled_at == record.containers[0].running_since == instant(AT)
    assert PodRecord.of(pod_object(phase="Pending")).containers[0].running_since is None


def test_updates_of_other_fields_leave_the_record_equal() -> None:
    before = pod_object()
    after = deepcopy(before)
    after["metadata"]["resourceVersion"] = "8"
    after["status"]["podIP"] = "10.0.0.1"
    assert PodRecord.of(before) == PodRecord.of(after)
    after["status"]["phase"] = "Failed"
    assert PodRecord.of(before) != PodRecord.of(after)


@pytest.mark.parametrize("label", ["", "one", "-1", "1.5", "٣"])
def test_an_invalid_attempt_label_is_ignored(label: str) -> None:
    body = pod_object()
    body["metadata"]["labels"][names.ATTEMPT] = label
    assert PodRecord.of(body).attempt == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T12:00:00.250000Z", 1795262400.25),
        ("", None),
        (None, None),
        ("yesterday", None),
    ],
)
def test_a_time_is_read_as_epoch_seconds(text: str | None, expected: float | None) -> None:
    assert instant(text) == expected


def test_a_pod_takes_little_memory() -> None:
    """The cache holds 10,000 pods: repeated strings are shared, and records have no `__dict__`."""
    one, two = PodRecord.of(pod_object("a")), PodRecord.of(pod_object("b"))
    assert not hasattr(one, "__dict__")
    assert one.node is two.node
    assert one.namespace is two.namespace
    own = [getattr(one, name) for name in ("name", "uid", "resource_version", "containers")]
    assert sys.getsizeof(one) + sum(map(sys.getsizeof, own)) < 1024


def test_the_hosts_of_a_replica_or_of_a_tpu_slice_are_one_unit() -> None:
    def unit(labels: dict[str, str], topology: str = "", tpus: str = "") -> str:
        body = pod_object(labels=labels)
        body["spec"]["nodeSelector"] = {TPU_TOPOLOGY: topology} if topology else {}
        body["spec"]["containers"] = [{"name": "c", "resources": {"limits": {"google.com/tpu": tpus} if tpus else {}}}]
        return PodRecord.of(body).unit

    member = {REPLICATED_JOB: "slice", JOB_INDEX: "1", COMPLETION_INDEX: "3"}
    assert unit({}) == ""
    assert unit({"ray.io/worker-group-replica-name": "tpu-af03de"}) == "tpu-af03de"
    assert unit({"replicaIndex": "tpu-0"}) == "tpu-0"
    assert unit(member) == "", "the pods of a Job are lost one by one"
    assert unit(member, "4x4", "4") == "slice-1"
    assert unit(member, "2x2", "4") == "", "a slice of one host"


def test_a_pod_has_the_claims_that_it_mounts_and_what_it_requests() -> None:
    body = pod_object()
    body["spec"]["volumes"] = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b"}]
    limits = {"cpu": "64", "nvidia.com/gpu": "8"}
    body["spec"]["containers"] = [{"resources": {"limits": limits, "requests": {"cpu": "32"}}}, {"name": "b"}]
    record = PodRecord.of(body)
    assert (record.claims, record.requests) == (("data",), "cpu 32, nvidia.com/gpu 8")
