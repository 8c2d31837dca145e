"""What an attempt's objects hold beside the user's template: names, environment, notice, ends, budgets, security."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec
from spotladder.workloads import names
from spotladder.workloads.grace import drain_of, grace_of
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.records import QUEUE
from spotladder.workloads.template import digests_of
from tests.workloads.builders import job, jobset_template, ray_template, tier, worker_spec

RAY = "spec.workload.ray.template.spec"
SET = "spec.workload.jobSet.template.spec"


def rendered(of: TieredJob, env: dict[str, str] | None = None, **capacity: Any) -> dict[str, Any]:
    """The RayJob or JobSet of attempt 3."""
    return workload_of(of).render(of, names.Origin("u-1"), tier(of, **capacity), 3, env or {})[-1]


def workers(of: TieredJob, env: dict[str, str] | None = None, **capacity: Any) -> dict[str, Any]:
    """The workers' pod spec as rendered."""
    return worker_spec(rendered(of, env, **capacity))


def head(of: TieredJob, **capacity: Any) -> dict[str, Any]:
    spec: dict[str, Any] = rendered(of, **capacity)["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    return spec


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def refusal(of: TieredJob, **capacity: Any) -> InvalidSpec:
    with pytest.raises(InvalidSpec) as error:
        rendered(of, **capacity)
    return error.value


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job_name", "attempt", "expected"),
    [
        ("digits", 1, "digits-a001"),
        ("digits", 1000, "digits-a1000"),
        ("j" * 42, 999, "j" * 42 + "-a999"),
    ],
)
def test_name_of_an_attempt(job_name: str, attempt: int, expected: str) -> None:
    assert names.attempt_name(job_name, attempt) == expected


def test_a_long_name_is_shortened_without_meeting_another() -> None:
    long, other = "j" * 42 + "a", "j" * 42 + "b"
    assert names.attempt_name(long, 1) != names.attempt_name(other, 1)
    assert {len(names.attempt_name(name, number)) for name in (long, other) for number in (1, 1000)} == {47}
    assert names.attempt_name("j" * 42, 1000) != names.attempt_name("j" * 42, 1001)


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["rayjob", "jobset"])
def test_the_same_arguments_make_the_same_objects(template: dict[str, Any]) -> None:
    of = job(template)
    assert rendered(of, provider="aws", capacityType="spot") == rendered(of, provider="aws", capacityType="spot")


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["rayjob", "jobset"])
def test_rendering_leaves_the_template_alone(template: dict[str, Any]) -> None:
    of = job(template)
    before = of.model_dump_json()
    rendered(of, provider="gcp", capacityType="spot")
    assert of.model_dump_json() == before


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["rayjob", "jobset"])
def test_everything_is_labelled(template: dict[str, Any]) -> None:
    of = job(template)
    expected = {names.MANAGED_BY: "spotladder", names.JOB: "digits", names.ATTEMPT: "3", names.TIER: "spot-a"}
    found: list[dict[str, str]] = []

    def collect(thing: Any) -> None:
        if isinstance(thing, dict):
            if "containers" in thing.get("spec", {}) or "kind" in thing:
                found.append(thing["metadata"]["labels"])
            for inner in thing.values():
                collect(inner)
        elif isinstance(thing, list):
            for inner in thing:
                collect(inner)

    collect(workload_of(of).render(of, names.Origin("u-1"), tier(of), 3, {}))
    assert len(found) == (4 if of.spec.workload.ray else 3)
    assert all(labels.items() >= expected.items() for labels in found)


def test_the_users_labels_and_annotations_are_kept() -> None:
    template = {**ray_template(), "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "mine"}}}
    metadata = rendered(job(template))["metadata"]
    assert metadata["labels"]["team"] == "vision"
    assert metadata["annotations"]["note"] == "mine"
    assert metadata["labels"][names.JOB_UID] == "u-1"


# --- what the program is told ----------------------------------------------------------------------------------------


def test_environment() -> None:
    told = env_of(workers(job(grace="2m"))["containers"][0])
    assert told == {
        "SPOTLADDER_JOB": "digits",
        "SPOTLADDER_NAMESPACE": "team-a",
        "SPOTLADDER_ATTEMPT": "3",
        "SPOTLADDER_TIER": "spot-a",
        "SPOTLADDER_URI": "s3://bucket/prefix",
        "SPOTLADDER_INTERVAL": "50steps",
        "SPOTLADDER_GRACE": "2m",
        "SPOTLADDER_KEEP": "3",
        "SPOTLADDER_NOTICE": "/run/spotladder/notice",
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "25",
    }


def test_whose_word_counts_for_a_variable() -> None:
    template = ray_template()
    worker_spec(template)["containers"][0]["env"] = [
        {"name": "A", "value": "template"},
        {"name": "B", "value": "template"},
        {"name": "C", "value": "template"},
        {"name": "SPOTLADDER_ATTEMPT", "value": "99"},
    ]
    of = job(template, tier={"overrides": {"env": {"B": "tier", "C": "tier"}}})
    told = env_of(workers(of, env={"C": "controller"})["containers"][0])
    assert {key: told[key] for key in ("A", "B", "C", "SPOTLADDER_ATTEMPT")} == {
        "A": "template", "B": "tier", "C": "controller", "SPOTLADDER_ATTEMPT": "3",
    }  # fmt: skip


def test_the_notice_is_a_file_that_follows_an_annotation() -> None:
    spec = workers(job())
    (volume,) = spec["volumes"]
    field = {"fieldPath": "metadata.annotations['spotladder.io/notice']"}
    assert volume["downwardAPI"]["items"] == [{"path": "notice", "fieldRef": field}]
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/run/spotladder")


def test_credentials_come_from_the_secret() -> None:
    of = job(checkpoints={"uri": "s3://b/p", "credentials": {"secretName": "bucket"}})
    reference = [{"secretRef": {"name": "bucket"}}]
    assert workers(of)["containers"][0]["envFrom"] == reference
    assert head(of)["containers"][0]["envFrom"] == reference


def test_the_sidecars_of_ray_are_left_alone() -> None:
    template = ray_template()
    sidecar = {"name": "fluentbit", "image": "fluent/fluent-bit:3"}
    worker_spec(template)["containers"].append(sidecar)
    assert workers(job(template))["containers"][1] == sidecar


# --- overrides -------------------------------------------------------------------------------------------------------


def test_overrides_of_a_tier() -> None:
    overrides = {"image": "rayproject/ray:2.58.1-gpu", "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "8Gi"}}}
    of = job(tier={"overrides": overrides})
    worker, leader = workers(of)["containers"][0], head(of)["containers"][0]
    assert worker["image"] == leader["image"] == "rayproject/ray:2.58.1-gpu"
    assert worker["resources"] == {"limits": {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1"}}
    assert leader["resources"] == {"limits": {"cpu": "1", "memory": "2Gi"}}


# --- how a pod ends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("notice", "grace", "drain"), [(120, 115, 110), (30, 25, 20), (0, 30, 25), (6, 5, 1)])
def test_a_drain_ends_before_the_grace_and_the_grace_before_the_node(notice: int, grace: int, drain: int) -> None:
    assert (grace_of(notice), drain_of(grace_of(notice), notice)) == (grace, drain)
    assert drain < grace
    assert not notice or grace < notice


@pytest.mark.parametrize(("grace", "notice", "drain"), [(60, 120, 55), (600, 120, 110), (600, 0, 595), (3, 30, 1)])
def test_the_shorter_of_grace_and_notice_sets_the_drain(grace: int, notice: int, drain: int) -> None:
    assert drain_of(grace, notice) == drain


def test_the_users_own_grace_sets_the_drain() -> None:
    template = ray_template()
    worker_spec(template)["terminationGracePeriodSeconds"] = 60
    spec = workers(job(template), provider="aws", capacityType="spot")
    assert spec["terminationGracePeriodSeconds"] == 60
    assert env_of(spec["containers"][0])["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"] == "55"


def test_pods_are_not_restarted_in_place() -> None:
    assert workers(job())["restartPolicy"] == head(job())["restartPolicy"] == "Never"
    template = ray_template()
    worker_spec(template)["restartPolicy"] = "Always"
    assert refusal(job(template)).path.endswith("workerGroupSpecs[0].template.spec.restartPolicy")


@pytest.mark.parametrize(("template", "pods"), [(ray_template(), 3), (jobset_template(), 2)], ids=["rayjob", "jobset"])
def test_a_budget_keeps_every_pod(template: dict[str, Any], pods: int) -> None:
    of = job(template)
    first, main = workload_of(of).render(of, names.Origin("u-1"), tier(of), 3, {})
    assert (first["kind"], first["spec"]["minAvailable"]) == ("PodDisruptionBudget", pods)
    assert first["spec"]["selector"]["matchLabels"] == {names.JOB_UID: "u-1", names.ATTEMPT: "3"}
    assert main["kind"] == workload_of(of).main.kind


# --- security --------------------------------------------------------------------------------------------------------


def with_container(**more: Any) -> TieredJob:
    template = ray_template()
    worker_spec(template)["containers"][0].update(more)
    return job(template)


@pytest.mark.parametrize(
    ("image", "user"),
    [
        ("rayproject/ray:2.58.1", 1000),
        ("docker.io/rayproject/ray-ml:2.58.1-gpu", 1000),
        ("rayproject/ray@sha256:0123", 1000),
        ("example.org/rayproject/ray-mine:1", None),
        ("localhost/ray:2.58", None),
    ],
)
def test_only_images_whose_user_is_known_run_as_it(image: str, user: int | None) -> None:
    context = workers(with_container(image=image))["containers"][0]["securityContext"]
    assert context.get("runAsUser") == user
    assert context.get("runAsNonRoot") is (True if user else None)


def test_defaults_for_containers_that_say_nothing() -> None:
    spec = workers(with_container(image="example.org/mine:1"))
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    context = spec["containers"][0]["securityContext"]
    assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"privileged": True}, {"privileged": True}),
        (
            {"capabilities": {"add": ["IPC_LOCK"]}},
            {"capabilities": {"add": ["IPC_LOCK"]}, "allowPrivilegeEscalation": False},
        ),
        ({"allowPrivilegeEscalation": True}, {"allowPrivilegeEscalation": True, "capabilities": {"drop": ["ALL"]}}),
    ],
)  # fmt: skip
def test_what_a_container_says_is_kept(given: dict[str, Any], expected: dict[str, Any]) -> None:
    of = with_container(image="example.org/mine:1", securityContext=given)
    assert workers(of)["containers"][0]["securityContext"] == expected


def test_a_user_that_was_chosen_is_kept() -> None:
    context = workers(with_container(securityContext={"runAsUser": 0}))["containers"][0]["securityContext"]
    assert context["runAsUser"] == 0
    assert "runAsNonRoot" not in context


def test_a_read_only_root_gets_a_tmp() -> None:
    read_only, tmp = {"readOnlyRootFilesystem": True}, "/tmp"  # noqa: S108 – a path in the pod
    spec = workers(with_container(securityContext=read_only))
    assert {"name": "spotladder-tmp", "emptyDir": {}} in spec["volumes"]
    assert {"name": "spotladder-tmp", "mountPath": tmp} in spec["containers"][0]["volumeMounts"]
    own = [{"name": "mine", "mountPath": f"{tmp}/"}]
    spec = workers(with_container(securityContext=read_only, volumeMounts=own))
    assert all(volume["name"] != "spotladder-tmp" for volume in spec["volumes"])


# --- RayJob ----------------------------------------------------------------------------------------------------------


def ray(**spec: Any) -> TieredJob:
    template = ray_template()
    template["spec"].update(spec)
    return job(template)


@pytest.mark.parametrize(
    ("given", "mode", "submitter"),
    [
        ({}, "HTTPMode", None),
        ({"submissionMode": "SidecarMode"}, "SidecarMode", None),
        ({"submissionMode": "K8sJobMode"}, "K8sJobMode", {"backoffLimit": 0}),
        ({"submitterConfig": {"backoffLimit": 5}}, "K8sJobMode", {"backoffLimit": 0}),
        ({"submitterPodTemplate": {"spec": {}}}, "K8sJobMode", {"backoffLimit": 0}),
    ],
)
def test_nobody_submits_twice(given: dict[str, Any], mode: str, submitter: dict[str, int] | None) -> None:
    spec = rendered(ray(**given))["spec"]
    assert (spec["submissionMode"], spec.get("submitterConfig"), spec["backoffLimit"]) == (mode, submitter, 0)


@pytest.mark.parametrize(
    ("given", "shutdown", "ttl"),
    [
        ({}, True, 60),
        ({"ttlSecondsAfterFinished": 5}, True, 5),
        ({"shutdownAfterJobFinishes": False}, False, None),
        ({"deletionStrategy": {"deletionRules": []}}, None, None),
    ],
)
def test_a_cluster_outlives_its_program_by_a_minute(
    given: dict[str, Any], shutdown: bool | None, ttl: int | None
) -> None:
    spec = rendered(ray(**given))["spec"]
    assert (spec.get("shutdownAfterJobFinishes"), spec.get("ttlSecondsAfterFinished")) == (shutdown, ttl)


def test_a_lost_head_is_not_brought_back() -> None:
    assert rendered(ray())["metadata"]["annotations"]["ray.io/disable-provisioned-head-restart"] == "true"


def probes(**cluster: Any) -> list[dict[str, Any] | None]:
    """How the head's and the workers' readiness is asked for."""
    found = rendered(broken(**cluster))["spec"]["rayClusterSpec"]
    groups = [found["headGroupSpec"], *found["workerGroupSpecs"]]
    return [group["template"]["spec"]["containers"][0].get("readinessProbe") for group in groups]


def test_a_node_of_ray_is_ready_as_soon_as_it_says_so() -> None:
    asked = probes()
    assert [probe and probe["httpGet"] for probe in asked] == [
        {"path": "/api/gcs_healthz", "port": 8265},
        {"path": "/api/local_raylet_healthz", "port": 52365},
    ]
    assert [probe and probe["initialDelaySeconds"] + probe["periodSeconds"] for probe in asked] == [3, 3]


@pytest.mark.parametrize(
    ("head", "worker", "ports"),
    [
        ({"dashboard-port": "8300"}, {"dashboard-agent-listen-port": "52400"}, [8300, 52400]),
        ({"dashboard-agent-listen-port": "52400"}, {}, [8265, 52365]),
        ({"dashboard-port": "$PORT"}, {}, [None, 52365]),
    ],
)
def test_ray_is_asked_where_it_listens(head: dict[str, str], worker: dict[str, str], ports: list[int | None]) -> None:
    cluster = ray_template()["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["rayStartParams"] = head
    cluster["workerGroupSpecs"][0]["rayStartParams"] = worker
    assert [probe and probe["httpGet"]["port"] for probe in probes(**cluster)] == ports


def test_the_templates_own_probe_and_that_of_a_cluster_with_tokens_are_kept() -> None:
    own = {"tcpSocket": {"port": 6379}}
    cluster = ray_template()["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["readinessProbe"] = own
    assert probes(**cluster)[0] == own
    assert probes(authOptions={"mode": "token"}) == [None, None]  # a probe has no token


def broken(**changes: Any) -> TieredJob:
    template = ray_template()
    template["spec"]["rayClusterSpec"].update(changes)
    return job(template)


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (ray(submissionMode="InteractiveMode"), f"{RAY}.submissionMode"),
        (broken(headGroupSpec=None), f"{RAY}.rayClusterSpec.headGroupSpec"),
        (broken(headGroupSpec={}), f"{RAY}.rayClusterSpec.headGroupSpec.template.spec.containers"),
        (
            broken(workerGroupSpecs=[{"groupName": "w", "replicas": 1, "template": {"spec": {"containers": []}}}]),
            f"{RAY}.rayClusterSpec.workerGroupSpecs[0].template.spec.containers",
        ),
    ],
)
def test_a_ray_template_that_runs_on_no_cluster(of: TieredJob, path: str) -> None:
    assert refusal(of).path == path


def test_groups_without_name_get_one() -> None:
    group = ray_template()["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    nameless = {key: value for key, value in group.items() if key != "groupName"}
    groups = rendered(broken(workerGroupSpecs=[nameless, nameless]))["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [group["groupName"] for group in groups] == ["workers", "workers-1"]


# --- JobSet ----------------------------------------------------------------------------------------------------------


def many(replicas: int, parallelism: int, **spec: Any) -> TieredJob:
    template = jobset_template()
    entry = template["spec"]["replicatedJobs"][0]
    entry["replicas"] = replicas
    entry["template"]["spec"]["parallelism"] = parallelism
    template["spec"].update(spec)
    return job(template)


def test_workers_of_a_jobset() -> None:
    assert workload_of(many(2, 3)).workers(many(2, 3)) == 6


def test_a_jobset_never_decides_when_to_give_up() -> None:
    policy = rendered(many(1, 2))["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 2**31 - 1
    assert policy["rules"][0]["action"] == "FailJobSet"


def test_a_program_that_ends_with_a_failure_ends_the_set_and_one_that_is_killed_does_not() -> None:
    (entry,) = rendered(many(1, 2))["spec"]["replicatedJobs"]
    job_spec = entry["template"]["spec"]
    assert job_spec["backoffLimit"] == 0
    (rule,) = job_spec["podFailurePolicy"]["rules"]
    assert rule == {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [137, 143]}}


@pytest.mark.parametrize(
    ("replicas", "parallelism", "field"),
    [
        (1, 4, "metadata.annotations['batch.kubernetes.io/job-completion-index']"),
        (4, 1, "metadata.labels['jobset.sigs.k8s.io/job-index']"),
    ],
)
def test_a_plain_script_knows_its_rank(replicas: int, parallelism: int, field: str) -> None:
    told = env_of(workers(many(replicas, parallelism))["containers"][0])
    assert told["RANK"] == {"fieldRef": {"fieldPath": field}}
    assert told["WORLD_SIZE"] == "4"
    assert told["MASTER_ADDR"] == "digits-a003-workers-0-0.digits-a003"


def test_the_coordinator_is_where_the_user_says() -> None:
    of = many(1, 4, coordinator={"replicatedJob": "workers", "podIndex": 2}, network={"subdomain": "mesh"})
    assert env_of(workers(of)["containers"][0])["MASTER_ADDR"] == "digits-a003-workers-0-2.mesh"


def named_jobset(name: str, *, workers: str = "workers", replicas: int = 1, pods: int = 2, **spec: Any) -> TieredJob:
    template = jobset_template()
    (entry,) = template["spec"]["replicatedJobs"]
    entry.update(name=workers, replicas=replicas)
    entry["template"]["spec"]["parallelism"] = pods
    template["spec"].update(spec)
    return job(template, name=name)


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (named_jobset("j" * 20), "j" * 20 + "-a003"),
        (named_jobset("j" * 21), None),
        (named_jobset("j" * 42), None),
        (named_jobset("j" * 42, replicas=100, pods=1000), None),
        (named_jobset("j" * 42, workers="w" * 24), None),
        (named_jobset("j" * 37, network={"subdomain": "mesh"}), "j" * 37 + "-a003"),
        (named_jobset("j" * 42, network={"subdomain": "m" * 20}), None),
        (named_jobset("j" * 42, coordinator={"replicatedJob": "workers", "podIndex": 1}), None),
    ],
    ids=["20 fit", "21", "42", "large indexes", "long replicated job", "short subdomain", "long subdomain", "chosen"],
)
def test_what_jobset_derives_from_a_name_has_at_most_63_characters(of: TieredJob, name: str | None) -> None:
    jobset = rendered(of)
    made, spec = jobset["metadata"]["name"], jobset["spec"]
    (entry,) = spec["replicatedJobs"]
    pods = entry["template"]["spec"]["completions"]
    assert len(f"{made}-{entry['name']}-{entry.get('replicas', 1) - 1}-{pods - 1}-abcde") <= 63
    chosen, subdomain = spec["coordinator"], (spec.get("network") or {}).get("subdomain") or made
    place = f"{chosen['replicatedJob']}-{chosen.get('jobIndex', 0)}-{chosen.get('podIndex', 0)}"
    assert len(f"{made}-{place}.{subdomain}") <= 63
    assert made.startswith("j")
    assert made.endswith("-a003")
    assert name in (None, made)


def test_names_that_are_cut_do_not_meet() -> None:
    jobs = named_jobset("j" * 40 + "a"), named_jobset("j" * 40 + "b")
    assert len({rendered(of)["metadata"]["name"] for of in jobs}) == 2


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (named_jobset("digits", workers="w" * 40), f"{SET}.replicatedJobs[0].name"),
        (named_jobset("digits", network={"subdomain": "m" * 50}), f"{SET}.network.subdomain"),
    ],
)
def test_a_jobset_whose_own_names_leave_no_room_is_refused(of: TieredJob, path: str) -> None:
    error = refusal(of)
    assert error.path == path
    assert "63" in error.message


def test_a_rank_that_is_not_one_number_is_the_templates() -> None:
    assert "RANK" not in env_of(workers(many(2, 2))["containers"][0])


def test_a_rank_of_the_templates_is_kept() -> None:
    template = jobset_template()
    worker_spec(template)["containers"][0]["env"] = [{"name": "RANK", "value": "7"}]
    assert env_of(workers(job(template))["containers"][0])["RANK"] == "7"


def in_job(**changes: Any) -> TieredJob:
    template = jobset_template()
    template["spec"]["replicatedJobs"][0]["template"]["spec"].update(changes)
    return job(template)


JOB = f"{SET}.replicatedJobs[0]"


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (many(1, 2, failurePolicy={"maxRestarts": 3}), f"{SET}.failurePolicy"),
        (many(1, 2, suspend=True), f"{SET}.suspend"),
        (many(1, 2, ttlSecondsAfterFinished=60), f"{SET}.ttlSecondsAfterFinished"),
        (in_job(backoffLimit=6), f"{JOB}.template.spec.backoffLimit"),
        (in_job(podFailurePolicy={"rules": []}), f"{JOB}.template.spec.podFailurePolicy"),
        (in_job(parallelism=0), f"{JOB}.template.spec.parallelism"),
        (in_job(template=None), JOB),
        (many(0, 2), f"{JOB}.replicas"),
    ],
)
def test_a_jobset_template_that_competes_or_is_incomplete(of: TieredJob, path: str) -> None:
    assert refusal(of).path == path


# --- Kueue -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", [ray_template, jobset_template])
def test_a_tiers_queue_labels_the_attempt_and_wins_over_the_template(template: Any) -> None:
    given = template()
    given["metadata"] = {"labels": {QUEUE: "other", "kueue.x-k8s.io/priority-class": "high"}}
    labels = rendered(job(given, tier={"queue": "team"}))["metadata"]["labels"]
    assert (labels[QUEUE], labels["kueue.x-k8s.io/priority-class"]) == ("team", "high")
    assert rendered(job(given))["metadata"]["labels"][QUEUE] == "other"
    assert QUEUE not in rendered(job(template()))["metadata"]["labels"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("shutdownAfterJobFinishes", False), ("deletionStrategy", {"deletionRules": []})],
)
def test_what_kueue_refuses_is_refused_before_it(field: str, value: Any) -> None:
    template = ray_template()
    template["spec"][field] = value
    error = refusal(job(template, tier={"queue": "team"}))
    assert error.path == f"{RAY}.{field}"
    assert "Kueue" in error.message
    rendered(job(template))


def test_another_queue_is_another_attempt() -> None:
    before, after = digests_of(job()), digests_of(job(tier={"queue": "team"}))
    assert before["spot-a"] != after["spot-a"]
    assert digests_of(job(tier={"queueTimeout": "1h"})) == before
