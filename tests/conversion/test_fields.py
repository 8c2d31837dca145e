"""What single fields of a source become."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from spotladder.conversion.draft import Draft
from spotladder.conversion.reading import read_sources
from spotladder.conversion.registry import convert
from spotladder.conversion.source import Options
from spotladder.errors import InvalidSpec
from spotladder.workloads.program_container import DEFAULT_CONTAINER, program_of
from tests.conversion.sources import FOLDER, comments, converted, draft, draft_of

RAY = ("spec", "workload", "ray", "template", "spec")
CLUSTER = (*RAY, "rayClusterSpec")
JOBS = ("spec", "workload", "jobSet", "template", "spec", "replicatedJobs")


def pod(made: Draft, index: int = 0) -> dict[str, Any]:
    """The pod's spec of a replicated job."""
    return dict(made.get(*JOBS, index, "template", "spec", "template", "spec"))


def variables(made: Draft, index: int = 0) -> dict[str, str]:
    """The variables of the program's container: values, or the fields that have them."""
    found = {}
    for entry in pod(made, index)["containers"][0]["env"]:
        source = entry.get("valueFrom", {})
        found[entry["name"]] = entry.get("value") or source.get("fieldRef", {}).get("fieldPath", "")
    return found


def test_the_tiers_are_those_of_the_options_and_the_last_is_unlimited() -> None:
    made = draft("ray-plain", "a100-spot", "a100", checkpoints="gs://wheat/commits")
    assert [(tier["name"], tier["capacityTier"], tier["maxFailures"]) for tier in made.get("spec", "tiers")] == [
        ("a100-spot", "a100-spot", 2),
        ("a100", "a100", -1),
    ]
    assert made.get("spec", "checkpoints") == {"uri": "gs://wheat/commits"}
    assert "placeholder" not in comments(made)
    assert "assumed" not in comments(made)


def test_defaults_say_that_they_are_assumptions() -> None:
    made = draft("ray-plain")
    assert [tier["name"] for tier in made.get("spec", "tiers")] == ["spot", "on-demand"]
    assert "spot and on-demand are assumed names: use --tier" in comments(made)
    assert "A placeholder: name a bucket" in comments(made)
    assert "begins from the start unless it resumes with spotladder.train" in comments(made)


def test_a_removed_limit_of_retries_names_the_field_that_replaces_it() -> None:
    made = draft("ray-submitter")
    assert made.get(*RAY, "backoffLimit") is None
    assert "spec.applicationFailures limits the job's errors" in comments(made)
    assert "spec.restartPolicy" not in comments(made)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("ray-submitter", "applicationFailures", 3),
        ("batch-plain", "applicationFailures", 4),
        ("batch-per-index", "applicationFailures", 3),
        ("pytorch-alike", "applicationFailures", 3),
        ("ray-live", "applicationFailures", None),
        ("ray-autoscaling", "maxDuration", "4h"),
        ("pytorch-alike", "maxDuration", "24h"),
        ("aichor-kuberay", "maxDuration", "36h"),
        ("jobset-suspended", "maxDuration", "2h"),
        ("jobset-suspended", "suspend", None),  # Kueue's
        ("ray-kueue", "suspend", None),
        ("ray-runtime-env", "suspend", True),
        ("batch-script", "suspend", True),
    ],
)
def test_limits_and_retries_become_fields_of_the_job(name: str, field: str, value: object) -> None:
    assert draft(name).get("spec", field) == value


def test_groups_on_the_tier_lose_what_the_tier_sets_and_others_keep_their_nodes() -> None:
    made = draft("ray-cpu-and-gpu")
    decode, train = (group["template"]["spec"] for group in made.get(*CLUSTER, "workerGroupSpecs"))
    head = made.get(*CLUSTER, "headGroupSpec", "template", "spec")
    assert "nodeSelector" not in train
    assert decode["nodeSelector"]["karpenter.sh/capacity-type"] == "on-demand"
    assert head["nodeSelector"] == {"karpenter.sh/capacity-type": "on-demand"}
    assert "Removed karpenter.sh/capacity-type: spot. It is set by the CapacityTier" in comments(made)
    assert "names one pool, and each tier has another" in comments(made)


def test_affinities_to_spot_nodes_are_removed_as_a_whole() -> None:
    made = draft("ray-tpu")
    (group,) = made.get(*CLUSTER, "workerGroupSpecs")
    assert "affinity" not in group["template"]["spec"]
    assert list(group["template"]["spec"]["nodeSelector"]) == [
        "cloud.google.com/gke-tpu-accelerator",
        "cloud.google.com/gke-tpu-topology",
    ]


@pytest.mark.parametrize(
    ("name", "at", "container", "annotated"),
    [
        ("jobset-sidecar", (*JOBS, 0, "template", "spec", "template"), "program", False),
        ("jobset-two-containers", (*JOBS, 0, "template", "spec", "template"), "left", True),
        ("pytorch-single", (*JOBS, 0, "template", "spec", "template"), "pytorch", True),
        ("ray-sidecar", (*CLUSTER, "headGroupSpec", "template"), "ray-head", False),
        ("ray-sidecar", (*CLUSTER, "workerGroupSpecs", 0, "template"), "ray-worker", False),
    ],
)
def test_the_program_among_several_containers_is_named_unless_it_is_evident(
    name: str, at: tuple[str | int, ...], container: str, annotated: bool
) -> None:
    made = draft(name)
    assert program_of(made.get(*at), at)["name"] == container
    annotation = made.get(*at, "metadata", "annotations", DEFAULT_CONTAINER)
    assert annotation == (container if annotated else None)


def test_masters_and_workers_alike_are_one_replicated_job() -> None:
    made = draft("pytorch-alike")
    (job,) = made.get(*JOBS)
    assert (job["name"], job["replicas"], job["template"]["spec"]["parallelism"]) == ("workers", 1, 4)
    assert variables(made) == {
        "PET_NNODES": "4",
        "PET_NODE_RANK": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
        "PET_MASTER_ADDR": "metadata.labels['jobset.sigs.k8s.io/coordinator']",
        "PET_MASTER_PORT": "29500",
        "PET_NPROC_PER_NODE": "4",
    }


def test_a_master_of_its_own_is_the_first_job_of_the_set() -> None:
    """The index of a Job among all Jobs of the set is the rank, and the coordinator is the first pod of the first."""
    made = draft("pytorch-master-differs")
    master, worker = made.get(*JOBS)
    assert [(job["name"], job["replicas"], job["template"]["spec"]["parallelism"]) for job in (master, worker)] == [
        ("master", 1, 1),
        ("worker", 2, 1),
    ]
    for index in range(2):
        found = variables(made, index)
        assert found["RANK"] == found["PET_NODE_RANK"] == "metadata.labels['jobset.sigs.k8s.io/job-global-index']"
        assert found["MASTER_ADDR"] == "metadata.labels['jobset.sigs.k8s.io/coordinator']"
        assert (found["WORLD_SIZE"], found["PET_NNODES"]) == ("3", "3")


def test_a_role_without_pods_has_no_job() -> None:
    text = (FOLDER / "pytorch-master-differs.yaml").read_text(encoding="utf-8")
    made = draft_of(text.replace("replicas: 1", "replicas: 0"))
    (job,) = made.get(*JOBS)
    assert (job["template"]["spec"]["parallelism"], variables(made)["PET_NNODES"]) == (2, "2")
    assert "sidecar.istio.io/inject" not in str(job), "the template is that of the workers"


def test_names_of_pods_become_the_address_of_rank_0() -> None:
    made = draft("jobset-addresses")
    chief = pod(made)["containers"][0]
    assert chief["command"] == ["python", "breeze.py", "--at", "$(JOBSET_COORDINATOR):7777"]
    assert variables(made)["JOBSET_COORDINATOR"] == "metadata.labels['jobset.sigs.k8s.io/coordinator']"
    hands = variables(made, 1)
    assert next(iter(hands)) == "JOBSET_COORDINATOR", "Kubernetes expands only variables that are defined before"
    assert (hands["CHIEF"], hands["RUN"]) == ("$(JOBSET_COORDINATOR)", "breeze-chief")
    assert "breeze-hands-1-0.winds names a pod of the source" in comments(made)


@pytest.mark.parametrize("backend", ["c10d", "etcd, rdzvHost: store, rdzvPort: 2379"])
def test_an_elastic_job_meets_at_its_first_pod(backend: str) -> None:
    """It needs no other store: with the backend etcd, nothing answers at that address."""
    text = (FOLDER / "pytorch-elastic.yaml").read_text(encoding="utf-8")
    made = draft_of(text.replace("rdzvBackend: c10d", f"rdzvBackend: {backend}"))
    found = variables(made)
    assert found["PET_RDZV_BACKEND"] == "c10d"
    assert found["PET_RDZV_ENDPOINT"] == "$(PET_MASTER_ADDR):29500"
    assert ("store" in comments(made)) == ("store" in backend)
    assert "For fewer workers use Ray Train and spec.elastic" in comments(made)


@pytest.mark.parametrize(("asks", "expected"), [("{limits: {nvidia.com/gpu: 8}}", "auto"), ("{}", None)])
@pytest.mark.parametrize("name", ["pytorch-elastic", "trainjob-no-image"])
def test_a_node_has_a_process_for_each_accelerator_as_by_default_in_kubeflow(
    name: str, asks: str, expected: str | None
) -> None:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").replace(", nProcPerNode: 2", "")
    for where, field in (("args: [epochs=2]", "resourcesPerNode"), ("image: example.com/chalk:1", "resources")):
        text = text.replace(where, f"{where}, {field}: {asks}")
    assert variables(draft_of(text)).get("PET_NPROC_PER_NODE") == expected


def test_a_trainjob_is_its_runtime_with_the_trainer_and_the_overrides() -> None:
    made = draft("trainjob-with-runtime")
    container = pod(made)["containers"][0]
    assert (container["image"], container["command"]) == ("example.com/torch:2", ["python", "birch.py"])
    assert {"EXTRA": "1", "ROOT": "/data", "PET_NNODES": "2"}.items() <= variables(made).items()
    assert pod(made)["serviceAccountName"] == "birch"
    assert "Removed the runtime's job dataset-initializer" in comments(made)
    queue = made.get("spec", "workload", "jobSet", "template", "metadata", "labels")
    assert queue == {"kueue.x-k8s.io/queue-name": "wood"}


def test_a_field_of_a_runtime_that_is_not_kept_is_named() -> None:
    text = (FOLDER / "trainjob-with-runtime.yaml").read_text(encoding="utf-8")
    made = draft_of(text.replace("  mlPolicy:", "  podGroupPolicy: {volcano: {}}\n  mlPolicy:"))
    assert 'Removed the runtime\'s podGroupPolicy: {"volcano": {}}.' in comments(made)


def test_patches_of_a_runtime_apply_to_the_pods_of_the_trainer() -> None:
    """The form of podTemplateOverrides since version 2.2 of the trainer."""
    pods = "{name: node, template: {spec: {template: {spec: {serviceAccountName: birch}}}}}"
    about = "metadata: {labels: {team: wood}}"
    patch = (
        f"  runtimePatches: [{{trainingRuntimeSpec: {{template: {{{about}, spec: {{replicatedJobs: [{pods}]}}}}}}}}]\n"
    )
    made = draft_of((FOLDER / "trainjob-no-image.yaml").read_text(encoding="utf-8") + patch)
    assert pod(made)["serviceAccountName"] == "birch"
    assert made.get("spec", "workload", "jobSet", "template", "metadata", "labels") == {"team": "wood"}
    assert "runtimePatches" not in comments(made)


def test_a_task_runs_with_the_variables_of_skypilot_and_without_values_of_secrets() -> None:
    made = draft("sky-nodes")
    found = variables(made)
    assert found["SKYPILOT_NUM_NODES"] == "2"
    assert found["SKYPILOT_NODE_RANK"] == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert (found["EPOCHS"], found["DEBUG"]) == ("3", "false")
    script = pod(made)["containers"][0]["args"][0]
    assert 'echo "process $$$$"' in script  # Kubernetes reads $$ as $.
    assert "export SKYPILOT_NODE_IPS" in script
    assert "hunter2" not in comments(made) + str(made.job)
    assert "create the Secret orange-secrets with the keys HF_TOKEN" in comments(made)
    assert "write a RayJob if they start a Ray cluster" in comments(made)
    assert "RayJob" not in comments(draft("sky-simple"))


def test_resources_of_aichor_are_those_of_the_pods() -> None:
    made = draft("aichor-kuberay")
    worker = made.get(*CLUSTER, "workerGroupSpecs", 0, "template", "spec")
    assert worker["containers"][0]["resources"] == {
        "requests": {"cpu": "8", "memory": "64G"},
        "limits": {"nvidia.com/gpu": 1},
    }
    assert [volume["name"] for volume in worker["volumes"]] == ["shm", "fasta"]
    head = made.get(*CLUSTER, "headGroupSpec", "template", "spec", "containers", 0, "resources", "requests")
    assert head == {"cpu": "2", "memory": "4G"}


def test_other_objects_of_the_files_are_named() -> None:
    assert [text.split(" (")[0] for text in converted("ray-configmap").others] == [
        "Not in this file: ConfigMap lichen-code",
        "Not in this file: PersistentVolumeClaim lichen-data",
    ]


def test_a_removed_variable_with_a_credential_is_not_in_a_comment() -> None:
    made = draft_of(
        "name: t\nrun: python t.py\nconfig: {api_token: abc123, env: [{name: DB_PASSWORD, value: xyz789}]}\n"
    )
    assert "Removed config:" in comments(made)
    assert "abc123" not in comments(made)
    assert "xyz789" not in comments(made)


def test_a_cluster_beside_a_job_is_not_converted_without_a_program() -> None:
    text = "\n---\n".join((FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in ("ray-plain", "raycluster"))
    assert draft_of(text).get("metadata", "name") == "wheat-yield"


def test_an_entrypoint_replaces_that_of_a_rayjob() -> None:
    made = draft_of((FOLDER / "ray-plain.yaml").read_text(encoding="utf-8"), entrypoint="python other.py")
    assert made.get(*RAY, "entrypoint") == "python other.py"
    assert "Was python /srv/wheat.py --epochs 4: --entrypoint replaces it." in comments(made)


def test_the_address_of_a_pod_that_is_not_rank_0_is_reported_with_a_remedy() -> None:
    assert "cedar-workers-0-0.cedar names a pod of the source" in comments(draft("jobset-startup"))
    assert "set spec.coordinator of the JobSet to its job and convert again" in comments(draft("jobset-startup"))


def test_a_file_with_several_jobs_has_a_job_for_each_and_names_the_other_objects() -> None:
    made = converted("batch-several")
    assert [one.job["metadata"]["name"] for one in made.drafts] == ["larch-a", "larch-b"]
    assert [text.split(" (")[0] for text in made.others] == [
        "Not in this file: Namespace ml",
        "Not in this file: ConfigMap code",
        "Not in this file: PersistentVolumeClaim data",
    ]


def test_a_hook_that_stops_ray_before_the_program_has_committed_is_removed() -> None:
    made = draft("ray-http-mode")
    assert "ray stop" not in str(made.job)
    assert 'Removed lifecycle.preStop: {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}' in comments(made)


def test_a_deadline_of_the_pods_becomes_that_of_the_job() -> None:
    """It would end each attempt, and the job would begin again for ever."""
    made = draft_of(JOB.replace("containers:", "activeDeadlineSeconds: 5400, containers:"))
    assert made.get("spec", "maxDuration") == "1h30m"
    assert "activeDeadlineSeconds" not in pod(made)


def test_placeholders_in_commands_are_those_of_shells() -> None:
    made = draft_of(JOB.replace("image: i", 'image: i, command: [bash, -c, "echo ${A} {{b}} $(C)"]'))
    assert pod(made)["containers"][0]["command"][-1] == "echo ${A} {{b}} $(C)"


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: t}
spec: {template: {spec: {containers: [{name: c, image: i}]}}}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "apiVersion: spotladder.io/v1alpha1\nkind: TieredJob\nmetadata: {name: a}\n",
            "given.yaml:2:7: kind: already is a TieredJob",
        ),
        (
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\nspec: {}\n",
            "given.yaml:1:1: is a cluster without a program: add --entrypoint",
        ),
        (
            "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {clusterSelector: {ray.io/cluster: b}}\n",
            "given.yaml:4:25: spec.clusterSelector: names the existing cluster b",
        ),
        (JOB.replace("[{name: c, image: i}]", "{name: c}"), "must be a list, as in Kubernetes"),
        (
            (FOLDER / "ray-plain.yaml").read_text(encoding="utf-8").replace("replicas: 2", "replicas: $WORKERS"),
            "workerGroupSpecs[0].replicas: must be a whole number, as in Kubernetes",
        ),
        (JOB.replace("batch/v1", "batch.volcano.sh/v1alpha1"), "Job (batch.volcano.sh/v1alpha1) cannot be converted"),
        (
            JOB.replace("image: i", 'image: "${IMAGE}:1"'),
            "containers[0].image: has the placeholder ${IMAGE}:1: convert",
        ),
        (JOB.replace("image: i", "image: <image>"), "containers[0].image: has the placeholder <image>: convert"),
        (
            JOB.replace("containers:", "serviceAccountName: $ACCOUNT, containers:"),
            "spec.serviceAccountName: has the placeholder $ACCOUNT: convert",
        ),
        (
            JOB.replace("containers:", 'volumes: [{name: v, persistentVolumeClaim: {claimName: "${C}"}}], containers:'),
            "volumes[0].persistentVolumeClaim.claimName: has the placeholder ${C}: convert",
        ),
        (
            (FOLDER / "trainjob-mpi.yaml").read_text(encoding="utf-8").replace("mpi: {", "jax: {"),
            "spec.runtimeRef: names launcher, a runtime of jax: expected one of torch, or without a framework",
        ),
        (
            JOB.replace("name: t", "generateName: t-") + "---\n" + JOB,
            'given.yaml:8:18: metadata.name: becomes "t", which is the name of the job at given.yaml:1:1 already: ',
        ),
        ("run: [python]\n", "given.yaml:1:6: run: must be text, as in Kubernetes"),
        ("just: data\n", "an object without kind cannot be converted"),
        ("type: task\ncommands: [a]\nresources: {gpu: 24GB}\n", "an object without kind cannot be converted"),  # dstack
        ("name: a\nservice: {port: 1}\nrun: serve\n", "is a service, which never ends"),
        (
            "kind: AIchorManifest\napiVersion: 0.2.3\nspec: {operator: spark, command: a, types: {b: {}}}\n",
            "spec.operator: is spark (expected one of kuberay, ray",
        ),
    ],
)
def test_errors_name_the_field_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(InvalidSpec) as error:
        draft_of(text)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["", "apiVersion: v1\nkind: List\nitems: []\n", "name: pipeline\n"])
def test_a_file_without_an_object_is_refused(text: str, tmp_path: Path) -> None:
    """As what kubectl prints if there are no jobs."""
    (file := tmp_path / "jobs.yaml").write_text(text)
    with pytest.raises(InvalidSpec, match="is empty; specify the manifest of a job"):
        convert(read_sources([file]), Options())


def test_amounts_of_skypilot_keep_their_units() -> None:
    made = draft_of("run: python t.py\nresources: {cpus: 4+, memory: 64GB+, disk_size: 1.5TB}\n")
    assert pod(made)["containers"][0]["resources"]["requests"] == {
        "cpu": "4",
        "memory": "64G",
        "ephemeral-storage": "1.5T",
    }
    assert "Removed resources.memory: 4x" in comments(draft_of("run: python t.py\nresources: {memory: 4x}\n"))


def test_a_timeout_of_aichor_that_is_no_duration_is_reported() -> None:
    text = (FOLDER / "aichor-kuberay.yaml").read_text(encoding="utf-8").replace("1d12h", "90")
    assert "Removed spec.timeout: 90" in comments(draft_of(text))


def test_a_group_has_the_workers_that_kuberay_starts() -> None:
    text = (FOLDER / "ray-min-only.yaml").read_text(encoding="utf-8")
    for counts, expected in (("minReplicas: 3", 3), ("replicas: 9", 5), ("replicas: 4", 4)):
        (group,) = draft_of(text.replace("minReplicas: 3", counts)).get(*CLUSTER, "workerGroupSpecs")
        assert group["replicas"] == expected


@pytest.mark.parametrize(
    ("resources", "name", "limits"),
    [
        ("any_of: [{infra: aws, accelerators: H100:8}, {accelerators: L4}]", "H100", {"nvidia.com/gpu": 8}),
        ("ordered: [{infra: aws, accelerators: H100:8}, {accelerators: L4}]", "H100", {"nvidia.com/gpu": 8}),
        ("accelerators: {H100:8, H200:8}", "H100", {"nvidia.com/gpu": 8}),
        ("accelerators: {H100: 8, H200: 8}", "H100", {"nvidia.com/gpu": 8}),
        ("accelerators: {L4}", "L4", {"nvidia.com/gpu": 1}),
        ("accelerators: MI300X:4", "MI300X", {"amd.com/gpu": 4}),
        ("accelerators: Trainium:16", "Trainium", {"aws.amazon.com/neuron": 16}),
        ("accelerators: Gaudi HL-205:8", "Gaudi HL-205", {"habana.ai/gaudi": 8}),
    ],
)
def test_the_accelerators_of_skypilots_first_choice_are_requested(
    resources: str, name: str, limits: dict[str, int]
) -> None:
    made = draft_of(f"run: python t.py\nresources: {{{resources}}}\n")
    assert pod(made)["containers"][0]["resources"] == {"limits": limits}
    assert f"the CapacityTiers choose nodes with {name}." in comments(made)


@pytest.mark.parametrize(("header", "noted"), [("name: p", True), ("{name: p, execution: parallel}", False)])
def test_a_task_of_a_pipeline_names_the_one_before_it(header: str, noted: bool, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"{header}\n---\nname: load\nrun: load\n---\nname: train\nrun: train\n", encoding="utf-8")
    load, train = convert(read_sources([file]), Options()).drafts
    assert "pipeline" not in "".join(load.heading[1:])
    assert ("begins when load has ended: submit this job then" in comments(train)) == noted


def test_a_command_of_skypilots_setup_that_reads_its_input_does_not_take_the_rest_of_the_setup(tmp_path: Path) -> None:
    made = draft_of("setup: |\n  cat\n  echo installed\n  false && true\nrun: echo trained\n")
    command = [*pod(made)["containers"][0]["command"], *pod(made)["containers"][0]["args"]]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (1, "installed\n")
