"""The objects that an attempt's pods refer to."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.references import MAX_REFERENCES, references
from tests.workloads.builders import job, jobset_template, ray_template, tier, worker_spec


def named(template: dict[str, Any], **spec: Any) -> list[str]:
    of = job(template, **spec)
    return [str(reference) for reference in references(workload_of(of).render(of, names.Origin("u"), tier(of), 1, {}))]


@pytest.mark.parametrize(
    ("pod", "container", "expected"),
    [
        ({}, {}, []),
        ({"serviceAccountName": "trainer"}, {}, ["ServiceAccount trainer"]),
        (
            {"priorityClassName": "high", "runtimeClassName": "gvisor"},
            {},
            ["PriorityClass high", "RuntimeClass gvisor"],
        ),
        ({"imagePullSecrets": [{"name": "registry"}]}, {}, ["Secret registry"]),
        ({"volumes": [{"name": "v", "secret": {"secretName": "key"}}]}, {}, ["Secret key"]),
        ({"volumes": [{"name": "v", "secret": {"secretName": "key", "optional": True}}]}, {}, []),
        ({"volumes": [{"name": "v", "configMap": {"name": "conf"}}]}, {}, ["ConfigMap conf"]),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}]}, {}, ["PersistentVolumeClaim d"]),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "key"}}]}}]}, {}, ["Secret key"]),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {}, []),
        ({}, {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "a"}}}]}, ["Secret key"]),
        ({}, {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a"}}}]}, ["ConfigMap c"]),
        ({}, {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}, []),
        ({}, {"envFrom": [{"secretRef": {"name": "key", "optional": True}}]}, []),
        ({}, {"envFrom": [{"configMapRef": {"name": "conf"}}]}, ["ConfigMap conf"]),
        ({"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "key"}}]}]}, {}, ["Secret key"]),
    ],
)
@pytest.mark.parametrize("make", [ray_template, jobset_template])
def test_every_referenced_object_is_listed(
    make: Any, pod: dict[str, Any], container: dict[str, Any], expected: list[str]
) -> None:
    template = make()
    worker_spec(template).update(pod)
    worker_spec(template)["containers"][0].update(container)
    assert named(template) == expected


def test_the_credentials_secret_is_listed_once() -> None:
    assert named(ray_template(), checkpoints={"uri": "s3://b/p", "credentials": {"secretName": "s3"}}) == ["Secret s3"]


def test_no_job_asks_the_api_server_for_thousands_of_objects() -> None:
    template = ray_template()
    worker_spec(template)["imagePullSecrets"] = [{"name": f"secret-{number}"} for number in range(10_000)]
    assert len(named(template)) == MAX_REFERENCES
