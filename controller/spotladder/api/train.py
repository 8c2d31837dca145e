"""`spec.train`: the short form of a job, which is expanded to the workload when a file is read."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, field_validator

from spotladder.api.default_image import default_image
from spotladder.api.fields import Count, FilledText, Name, WholeNumber, choice, refused
from spotladder.api.record import Record
from spotladder.errors import InvalidSpec
from spotladder.versions import RAY

_GPU = "nvidia.com/gpu"
_TORCHRUN = ["-m", "spotladder.train.torchrun"]
_NODES = ["--node-rank", "$(RANK)", "--master-addr", "$(MASTER_ADDR)", "--master-port", "$(MASTER_PORT)"]


class Framework(StrEnum):
    """How the processes of the script are started."""

    TORCH = "torch"
    RAY = "ray"
    PYTHON = "python"


class Train(Record):
    """A training script and its workers."""

    script: FilledText = Field(description="The script and its arguments, like train.py --epochs 3.")
    workers: Annotated[WholeNumber, Field(ge=1, le=10_000)] = Field(
        default=1, description="Number of workers: pods on the tier."
    )
    gpus: Count = Field(default=0, description="Number of NVIDIA GPUs of each worker.")
    framework: Annotated[Framework, choice(Framework)] = Field(
        default=Framework.TORCH,
        description="How the script is started: torch (torchrun; also Lightning and Hugging Face), ray (once, on the"
        " head) or python (a process for each worker, like JAX).",
    )
    image: FilledText | None = Field(
        default=None, description=f"Image of the program. Default: {default_image(None)}, with GPUs its -gpu variant."
    )

    service_account: Name | None = Field(
        default=None,
        description="Service account of the pods, which has their cloud identity. Default: default.",
    )

    @field_validator("script")
    @classmethod
    def _is_a_command(cls, script: str) -> str:
        try:
            shlex.split(script)
        except ValueError as error:
            raise refused(f"cannot be read as a command: {str(error).lower()}") from None
        return script

    @property
    def words(self) -> list[str]:
        """The script and its arguments."""
        return shlex.split(self.script)

    @property
    def processes(self) -> int:
        """The number of processes of each worker."""
        return max(1, self.gpus) if self.framework is Framework.TORCH else 1


def workload_of_train(train: Train) -> dict[str, Any]:
    """The workload on a cluster: a RayJob for Ray, else a JobSet."""
    resources = {"resources": {"limits": {_GPU: train.gpus}}} if train.gpus else {}
    image = train.image or default_image(resources)
    account = {"serviceAccountName": train.service_account} if train.service_account else {}
    if train.framework is not Framework.RAY:
        container = {"name": "train", "image": image, "command": _command(train), **resources}
        pods = {"parallelism": train.workers, "template": {"spec": {"containers": [container], **account}}}
        jobs = [{"name": "workers", "replicas": 1, "template": {"spec": pods}}]
        return {"jobSet": {"template": {"spec": {"replicatedJobs": jobs}}}}
    head = {"name": "ray-head", "image": train.image or default_image(None)}
    worker = {"name": "ray-worker", "image": image, **resources}
    cluster = {
        **({} if train.image else {"rayVersion": RAY}),
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0"},
            "template": {"spec": {"containers": [head], **account}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": train.workers,
                "template": {"spec": {"containers": [worker], **account}},
            }
        ],
    }
    return _ray(["python", *train.words], cluster)


def _command(train: Train) -> list[str]:
    """The command of each pod of the JobSet."""
    if train.framework is Framework.PYTHON or train.workers * train.processes == 1:
        return ["python", *train.words]
    size = ["--nnodes", str(train.workers), "--nproc-per-node", str(train.processes)]
    return ["python", *_TORCHRUN, *size, *(_NODES if train.workers > 1 else ["--standalone"]), *train.words]


def local_workload(train: Train) -> dict[str, Any]:
    """The workload for local mode: all processes of torchrun are on one node. Raises InvalidSpec for several workers of
    plain Python."""
    processes = train.workers * train.processes
    launcher: list[str] = []
    if train.framework is Framework.TORCH and processes > 1:
        launcher = [*_TORCHRUN, "--standalone", "--nproc-per-node", str(processes)]
    elif train.framework is Framework.PYTHON and processes > 1:
        message = "local mode starts several processes only for torch and ray: set workers to 1"
        raise InvalidSpec(message, path="spec.train.workers")
    replicas = train.workers if train.framework is Framework.RAY else 1
    cluster = {"workerGroupSpecs": [{"groupName": "workers", "replicas": replicas}]}
    return _ray(["python", *launcher, *train.words], cluster)


def _ray(words: list[str], cluster: dict[str, Any]) -> dict[str, Any]:
    return {"ray": {"template": {"spec": {"entrypoint": shlex.join(words), "rayClusterSpec": cluster}}}}
