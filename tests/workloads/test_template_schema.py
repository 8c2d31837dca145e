"""A template of any shape is either rendered or rejected with the path of the field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.errors import InvalidSpec
from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.references import references
from tests.searching import examples
from tests.workloads.builders import job, jobset_template, ray_template, tier, worker_spec


def rich(template: dict[str, Any]) -> dict[str, Any]:
    """Fill in every field that rendering reads."""
    worker_spec(template).update(
        {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu"}],
            "terminationGracePeriodSeconds": 60,
            "restartPolicy": "Never",
            "serviceAccountName": "trainer",
            "imagePullSecrets": [{"name": "registry"}],
            "securityContext": {"runAsUser": 7},
            "initContainers": [{"name": "init", "env": [{"name": "A", "value": "1"}]}],
            "volumes": [
                {"name": "a", "secret": {"secretName": "key"}},
                {"name": "b", "projected": {"sources": [{"configMap": {"name": "conf"}}]}},
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]
                    }
                }
            },
        }
    )
    worker_spec(template)["containers"][0].update(
        {
            "args": ["--epochs", "3"],
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "a"}}},
                {"name": "PYTHONPATH", "value": "/app"},
            ],
            "envFrom": [{"secretRef": {"name": "key"}}],
            "volumeMounts": [{"name": "a", "mountPath": "/a"}],
            "resources": {"requests": {"cpu": 1}},
            "securityContext": {"readOnlyRootFilesystem": True},
            "ports": [{"containerPort": 8080}],
        }
    )
    return template


def places(thing: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    for key, inner in thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ():
        yield from places(inner, (*at, key))


def changed(template: dict[str, Any], at: tuple[Any, ...], value: Any) -> dict[str, Any]:
    template = json.loads(json.dumps(template))
    thing: Any = template
    for key in at[:-1]:
        thing = thing[key]
    thing[at[-1]] = value
    return template


TEMPLATES = {"rayjob": rich(ray_template()), "jobset": rich(jobset_template())}
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "text", [], [None], ["text"], [{}], {}, {"name": None}, {"a": []}]
)


@settings(max_examples=examples(400))
@given(st.data(), st.sampled_from(sorted(TEMPLATES)), JUNK)
def test_any_shape_is_rendered_or_rejected(data: st.DataObject, kind: str, junk: Any) -> None:
    at = data.draw(st.sampled_from([place for place in places(TEMPLATES[kind]) if len(place) > 1]))
    with suppress(InvalidSpec):
        of = job(
            changed(TEMPLATES[kind], at, junk),
            tier={"overrides": {"resources": {"limits": {"cpu": "2"}}}},
            source={"uri": f"s3://bucket/{'0' * 64}.zip"},
        )
        objects = workload_of(of).render(
            of, names.Origin("u"), tier(of, provider="gcp", capacityType="on-demand"), 1, {"A": "b"}
        )
        references(objects)
        json.dumps(objects)


@pytest.mark.parametrize(
    ("at", "value", "path"),
    [
        (("nodeSelector",), ["a"], "nodeSelector: must be a mapping"),
        (("nodeSelector", "disk"), True, "nodeSelector.disk: must be text"),
        (("containers", 0, "env"), {"A": "1"}, "containers[0].env: must be a list"),
        (("containers", 0, "env", 0), None, "containers[0].env[0]: must be a non-empty entry"),
        (("containers", 0, "command"), "python train.py", "containers[0].command: must be a list"),
        (("containers", 0, "args"), ["--epochs", 3], "containers[0].args[1]: must be text"),
        (("containers", 0, "env", 0), {"name": "A", "value": 1}, "containers[0].env[0].value: must be text"),
        (("containers", 0, "ports"), [8080], "containers[0].ports[0]: must be a mapping"),
        (("terminationGracePeriodSeconds",), "60s", "terminationGracePeriodSeconds: must be a whole number"),
    ],
)
@pytest.mark.parametrize("kind", sorted(TEMPLATES))
def test_the_error_names_the_field_with_the_wrong_type(kind: str, at: tuple[Any, ...], value: Any, path: str) -> None:
    template = json.loads(json.dumps(TEMPLATES[kind]))
    thing = worker_spec(template)
    for key in at[:-1]:
        thing = thing[key]
    thing[at[-1]] = value
    of = job(template)
    with pytest.raises(InvalidSpec) as error:
        workload_of(of).render(of, names.Origin("u"), tier(of), 1, {})
    assert path in str(error.value)


@pytest.mark.parametrize(
    ("at", "value", "path"),
    [
        (("submitterPodTemplate",), {"spec": {"containers": "submit"}}, "spec.containers: must be a list"),
        (
            ("rayClusterSpec", "headGroupSpec", "rayStartParams"),
            {"num-cpus": 0},
            "rayStartParams.num-cpus: must be text",
        ),
        (("rayClusterSpec", "rayVersion"), 2.58, "rayClusterSpec.rayVersion: must be text"),
        (("rayClusterSpec", "authOptions"), "disabled", "rayClusterSpec.authOptions: must be a mapping"),
        (("rayClusterSpec", "autoscalerOptions"), {"env": {"A": "1"}}, "autoscalerOptions.env: must be a list"),
    ],
)
def test_the_error_names_the_field_of_a_rayjob_with_the_wrong_type(at: tuple[str, ...], value: Any, path: str) -> None:
    of = job(changed(TEMPLATES["rayjob"], ("spec", *at), value))
    with pytest.raises(InvalidSpec) as error:
        references(workload_of(of).render(of, names.Origin("u"), tier(of), 1, {}))
    assert path in str(error.value)
