"""Converts a task of SkyPilot into a JobSet: one pod for each node, which runs setup and run with bash."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from spotladder.api.template import inner
from spotladder.conversion import jobset, skeleton, torch
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.source import Options, Source
from spotladder.conversion.trainjob import IMAGE

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:([MGTP])i?B?)?\+?", re.IGNORECASE)
_DEVICES = (
    (re.compile(r"MI\d|Radeon", re.IGNORECASE), "amd.com/gpu"),
    (re.compile(r"Inferentia|Trainium", re.IGNORECASE), "aws.amazon.com/neuron"),
    (re.compile(r"Gaudi", re.IGNORECASE), "habana.ai/gaudi"),
    (re.compile(""), "nvidia.com/gpu"),
)
"""The resource of accelerators whose name begins like this."""

_DOCKER = "docker:"
_ADDRESSES = """\
# The host names of all nodes, rank 0 first, in the place of their addresses.
export SKYPILOT_NODE_IPS="$(for rank in $(seq 0 $((SKYPILOT_NUM_NODES - 1))); do
  echo "${MASTER_ADDR/-workers-0-0./-workers-0-$rank.}"; done)"
"""
_SETUP = """\
# setup, at each start of the pod: build it into the image to start faster
bash /dev/fd/3 3<<'END_OF_SETUP' || exit $?
{setup}
END_OF_SETUP
"""
_CHOSEN_BY_TIER = (
    "accelerator_args", "any_of", "cloud", "disk_tier", "infra", "instance_type", "job_recovery", "max_hourly_cost",
    "network_tier", "ordered", "region", "spot_recovery", "use_spot", "zone",
)  # fmt: skip


def from_task(source: Source, options: Options, others: list[Source]) -> Draft:
    """A TieredJob of a task."""
    task = deepcopy(dict(source.data))
    if task.get("service"):
        raise source.refused("is a service, which never ends: only tasks that end can be converted", "service")
    name, run, nodes = task.pop("name", None), task.pop("run", None), task.pop("num_nodes", None) or 1
    if not (run or "").strip():
        raise source.refused("is required: the commands of the task", "run")
    resources = task.pop("resources", None) or {}
    container: dict[str, Any] = {"name": "task", "image": IMAGE, "command": ["bash", "-c"]}
    script = _script(str(task.pop("setup", None) or ""), run)
    container["args"] = [script.replace("$$", "$$$$")]  # Kubernetes reads $$ as one $.
    accelerator = _accelerator(source, resources)
    variables = dict(task.pop("envs", None) or {})
    secrets = list(task.pop("secrets", None) or {})
    container["env"] = _environment(str(name or "task"), nodes, accelerator[1], variables, secrets)
    image = str(resources.pop("image_id", None) or "")
    if image.startswith(_DOCKER):
        container["image"] = image.removeprefix(_DOCKER)
    if amounts := _amounts(resources, accelerator):
        container["resources"] = amounts
    jobs = [torch.replicated("workers", 1, nodes, {"spec": {"containers": [container]}})]
    draft = skeleton.draft_of(source, options, "jobSet", {"replicatedJobs": jobs})
    at = (*jobset.JOBS, 0, "template", "spec", "template", "spec", "containers", 0)
    if not image.startswith(_DOCKER):
        was = f"image_id was {plain(image)}, a machine image" if image else "the task names none"
        draft.note((*at, "image"), f"A placeholder: {was}; it needs bash, the program and its packages.")
    for entry in (key for key, value in variables.items() if value is None):
        draft.heading.append(f"The variable {entry} has no value in the task: set it below.")
    if "$$" in script:
        draft.note((*at, "args"), "Changed: $$ is written as $$$$, which Kubernetes reads as $$.")
    if nodes > 1:
        draft.heading.append(
            "A pod ends with its commands, and SkyPilot keeps each node until those of all have ended: write a RayJob "
            "if they start a Ray cluster."
        )
    if before := _before(source, others):
        draft.heading.append(f"In the pipeline this task begins when {before} has ended: submit this job then.")
    if secrets:
        draft.heading.append(
            f"Values of secrets are not copied: create the Secret {_secret(str(name or 'task'))} with the keys "
            f"{', '.join(map(str, secrets))}."
        )
    _rest(draft, task, resources, accelerator)
    return jobset.finished(draft, "", "")


def _before(source: Source, others: list[Source]) -> str:
    """The name of the task before this one in its pipeline; "" without one."""
    file = [one for one in others if one.document.file == source.document.file]
    tasks = [one for one in file[: file.index(source)] if one.kind == source.kind]
    return plain(tasks[-1].name) if tasks and all(one.data.get("execution") != "parallel" for one in file) else ""


def _script(setup: str, run: str) -> str:
    parts = [_ADDRESSES] if "SKYPILOT_NODE_IPS" in setup + run else []
    if setup.strip():
        parts.append(_SETUP.format(setup=setup.rstrip()))
    return "".join([*parts, run.rstrip(), "\n"])


def _environment(
    name: str, nodes: int, accelerators: int, variables: dict[str, Any], secrets: list[Any]
) -> list[dict[str, Any]]:
    own = {
        "SKYPILOT_NUM_NODES": nodes,
        "SKYPILOT_NUM_GPUS_PER_NODE": accelerators,
        "SKYPILOT_TASK_ID": name,
        **{key: "" if value is None else value for key, value in variables.items()},
    }
    return [
        torch.completion_index("SKYPILOT_NODE_RANK"),
        *({"name": str(key), "value": _text(value)} for key, value in own.items()),
        *(
            {"name": str(key), "valueFrom": {"secretKeyRef": {"name": _secret(name), "key": str(key)}}}
            for key in secrets
        ),
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _secret(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", f"{name}-secrets".lower()).strip("-")


def _accelerator(source: Source, resources: dict[str, Any]) -> tuple[str, int]:
    """Name and number of the accelerators of a node; the first of several choices."""
    choices = [*(resources.get("any_of") or ()), *(resources.get("ordered") or ())]
    given = next(filter(None, (inner(one, "accelerators") for one in (resources, *choices))), None)
    if isinstance(given, dict | list):  # {H100:8, H200:8} is a mapping of names with counts to null.
        first = next(iter(given), None)
        count = given[first] if isinstance(given, dict) else None
        given = first if count is None else f"{first}:{count}"
    if not given:
        return "", 0
    name, _, count = str(given).partition(":")
    if name.lower().startswith("tpu"):
        message = f"asks for {plain(given)}: write a JobSet with the topology of the slice, and convert that"
        raise source.refused(message, "resources", "accelerators")
    if not count.isdigit() and count:
        raise source.refused(f"is {plain(given)}: expected NAME:COUNT", "resources", "accelerators")
    return name, int(count or 1)


def _amounts(resources: dict[str, Any], accelerator: tuple[str, int]) -> dict[str, Any]:
    requests = {}
    for field, name, unit in (("cpus", "cpu", ""), ("memory", "memory", "G"), ("disk_size", "ephemeral-storage", "G")):
        if match := _AMOUNT.fullmatch(str(resources.get(field))):
            requests[name] = match[1] + (match[2] or unit).upper()
            resources.pop(field)
    result: dict[str, Any] = {"requests": requests} if requests else {}
    if not accelerator[1]:
        return result
    device = next(resource for pattern, resource in _DEVICES if pattern.match(accelerator[0]))
    return {**result, "limits": {device: accelerator[1]}}


def _rest(draft: Draft, task: dict[str, Any], resources: dict[str, Any], accelerator: tuple[str, int]) -> None:
    kind = plain(resources.pop("accelerators", None) or accelerator[0])
    if accelerator[0]:
        draft.heading.append(f"accelerators {kind}: the CapacityTiers choose nodes with {accelerator[0]}.")
    chosen = {key: resources.pop(key) for key in _CHOSEN_BY_TIER if key in resources}
    skeleton.leftovers(draft, chosen, "resources.", "is set by the CapacityTiers, in the order of the tiers")
    skeleton.leftovers(draft, resources, "resources.")
    for target, origin in dict(task.pop("file_mounts", None) or {}).items():
        draft.dropped(
            f"Removed file_mounts {plain(target)}: {plain(origin)}. Copy it into the image, or mount a volume."
        )
    if workdir := task.pop("workdir", None):
        draft.dropped(f"Removed workdir: {plain(workdir)}. Copy it into the image and set workingDir of the container.")
    skeleton.leftovers(draft, task, "")
