"""Every manifest is converted into jobs that `spotladder validate --for-cluster` accepts, or refused with a reason."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.api.document import documents_of
from spotladder.api.review import review
from spotladder.conversion.draft import Draft
from spotladder.conversion.registry import convert
from spotladder.conversion.render import text_of
from spotladder.conversion.source import Options
from spotladder.errors import InvalidSpec
from spotladder.workloads.file_review import for_cluster
from tests.conversion.sources import ENTRYPOINTS, FOLDER, MANIFESTS, converted, sources_of

_EXPECTED = "(expected RayJob, RayCluster with --entrypoint, JobSet, Job (batch/v1), TrainJob, PyTorchJob"

REFUSED = {
    "argo": f"argo.yaml:2:7: kind: Workflow (argoproj.io/v1alpha1) cannot be converted {_EXPECTED}",
    "cronjob": f"cronjob.yaml:2:7: kind: CronJob (batch/v1) cannot be converted {_EXPECTED}",
    "envsubst": "envsubst.yaml:4:9: metadata.name: has the placeholder train-${USER}: convert the file with its values",
    "helm-quoted": "helm-quoted.yaml:4:9: metadata.name: has the placeholder {{ .Release.Name }}-train: convert",
    "helm-template": "helm-template.yaml: is a template ({{ … }}), not YAML: convert what helm template prints",
    "mpijob": f"mpijob.yaml:2:7: kind: MPIJob (kubeflow.org/v2beta1) cannot be converted {_EXPECTED}",
    "ray-selector-elsewhere": "ray-selector-elsewhere.yaml:7:5: spec.clusterSelector: names the existing cluster",
    "rayservice": f"rayservice.yaml:2:7: kind: RayService (ray.io/v1) cannot be converted {_EXPECTED}",
    "volcano": f"volcano.yaml:2:7: kind: Job (batch.volcano.sh/v1alpha1) cannot be converted {_EXPECTED}",
    "batch-queue": "batch-queue.yaml:5:16: spec.completions: is 100 with parallelism 10: a queue of independent tasks",
    "not-a-job": "not-a-job.yaml:2:7: kind: Deployment (apps/v1) cannot be converted (expected RayJob, RayCluster with",
    "sky-tpu": "sky-tpu.yaml:2:27: resources.accelerators: asks for tpu-v5e-8",
    "trainjob-mpi": "trainjob-mpi.yaml:11:20: spec.runtimeRef: names launcher, a runtime of mpi: expected one of torch",
}
"""Manifests that are no job of one gang, with the beginning of the error."""

ACCEPTED = [name for name in MANIFESTS if name not in REFUSED]
KEPT = [name for name in ACCEPTED if name.startswith(("ray", "jobset", "batch"))]
"""Manifests whose fields keep their names."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_training_job_is_refused_with_its_location(name: str) -> None:
    with pytest.raises(InvalidSpec) as error:
        converted(name)
    assert str(error.value).startswith(f"{FOLDER}/{REFUSED[name]}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_result_is_valid_on_a_cluster(name: str, tmp_path: Path) -> None:
    made = converted(name)
    file = tmp_path / "job.yaml"
    file.write_text(text_of(made.drafts, made.others), encoding="utf-8")
    found = review([file])
    assert (found.problems, for_cluster(found)) == ((), [])
    assert [entry.document.data for entry in found.objects] == [draft.job for draft in made.drafts]


@pytest.mark.parametrize("name", ACCEPTED)
def test_no_comment_advises_what_the_conversion_has_done(name: str) -> None:
    made = converted(name)
    assert [note.text for draft in made.drafts for note in draft.notes if "remove it" in note.text] == []


NOT_FIELDS = {"apiVersion", "kind", "generateName", "clusterSelector", "ray.io/cluster", "annotations", "status"}
"""Keys whose meaning is in the result under another name, and what only a live object has."""


@pytest.mark.parametrize("name", KEPT)
def test_every_field_of_the_source_is_in_the_result_or_in_a_comment(name: str) -> None:
    made = converted(name)
    words = " ".join(text_of(made.drafts, made.others).replace("#", " ").split())
    jobs = [one for one in sources_of(name) if one.kind in ("RayJob", "RayCluster", "JobSet", "Job")]
    for source in jobs:
        fields = {key: value for key, value in source.data.items() if key != "status"}
        assert [key for key in keys(fields) if key not in words and key not in NOT_FIELDS] == []


def keys(value: Any) -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str):
            yield key
        yield from keys(inner)


VALUES: list[Any] = [None, 3, -1, True, "text", "", [], ["a"], {}, {"a": 1}, [None], [{}], 1.5]


@given(
    st.sampled_from([name for name in MANIFESTS if name != "helm-template"]),
    st.randoms(use_true_random=False),
    st.sampled_from(VALUES),
)
def test_a_field_of_another_type_is_an_error_of_the_source(name: str, random: Any, value: Any) -> None:
    """Converting either works or names the field; the text has the job's fields in any case."""
    changed = []
    for source in sources_of(name):
        data = copy.deepcopy(dict(source.data))
        path = random.choice([path for path in paths(data, ()) if path])
        place: Any = data
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = copy.deepcopy(value)
        changed.append(replace(source, data=data))
    try:
        made = convert(changed, Options(entrypoint=ENTRYPOINTS.get(name, "")))
    except InvalidSpec:
        return
    read = documents_of(text_of(made.drafts, made.others), "text")
    assert [document.data for document in read] == [draft.job for draft in made.drafts]


def paths(value: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(inner, (*at, key))


@given(st.text("a🚀\n\r\t\f\v\x85\u2028 #:-'"))
def test_every_text_is_written_so_that_it_is_read_again(text: str) -> None:
    made = Draft({"args": [text, f"{text}\n"]})
    (read,) = documents_of(text_of([made], []), "text")
    assert read.data == made.job
