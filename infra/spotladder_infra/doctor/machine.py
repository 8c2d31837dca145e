"""Programs and Python packages on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder.versions import Version, parse
from spotladder_infra.doctor.result import CheckResult, Status
from spotladder_infra.rollout.tools import NEEDED
from spotladder_infra.stacks import node as nodejs
from spotladder_infra.terraform import providers, tool
from spotladder_infra.topology.cluster import CREATED, Cloud, Cluster

SCOPE = "machine"
TIMEOUT = 30.0
"""Seconds for a program to print its version."""

_VERSION = re.compile(r"v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True, slots=True)
class RequiredProgram:
    """A program. `oldest` is the oldest supported version."""

    name: str
    arguments: tuple[str, ...]
    oldest: Version
    why: str
    where: str


HELM = RequiredProgram("helm", ("version", "--short"), (3, 18), "rollout", NEEDED["helm"])
KUBECTL = RequiredProgram("kubectl", ("version", "--client"), (1, 32), "rollout", NEEDED["kubectl"])
PULUMI = RequiredProgram("pulumi", ("version",), (3, 250), "rollout", NEEDED["pulumi"])
KIND = RequiredProgram("kind", ("version",), (0, 20), "clusters of cloud kind", "https://kind.sigs.k8s.io")

PACKAGES = {
    Cloud.AWS: ("cdktn-aws", "boto3"),
    Cloud.GCP: ("cdktn-provider-google", "google-auth", "google-cloud-container"),
}
EXTRAS = {"boto3": "aws", "google-auth": "gcp", "google-cloud-container": "gcp"}


def examine(clusters: Sequence[Cluster], state: Path) -> Iterator[CheckResult]:
    """The results for the programs and packages that these clusters need. `state` is the folder for local state."""
    clouds = {cluster.cloud for cluster in clusters}
    if clouds & set(CREATED):
        yield terraform()
        yield node()
        yield from chosen_providers(clusters, state)
    for needed in (*([KIND] if Cloud.KIND in clouds else []), HELM, PULUMI):
        yield program(needed)
    yield kubectl(program(KUBECTL), clusters)
    packages = ["pulumi"]
    if clouds & set(CREATED):
        packages.append("cdktn")
    for cloud in CREATED:
        if cloud in clouds:
            packages += PACKAGES[cloud]
    for name in packages:
        yield package(name)


def terraform() -> CheckResult:
    """Terraform or OpenTofu, found as the commands find it."""
    try:
        found = tool.find()
    except EnvironmentFailure as error:
        message, _, fix = str(error).rpartition(": ")
        return CheckResult(SCOPE, "terraform or tofu", Status.FAILED, message, fix)
    return CheckResult(SCOPE, "terraform or tofu", Status.OK, f"{found.product} {found.version}")


def chosen_providers(clusters: Sequence[Cluster], state: Path) -> Iterator[CheckResult]:
    """Whether the provider's version that earlier runs have chosen fits the stacks, by cloud."""
    for cloud, name in providers.NAMES.items():
        stacks = {entry.name: providers.required(entry) for entry in clusters if entry.cloud is cloud}
        if not stacks:
            continue
        check = f"Terraform provider {name}"
        version = providers.locked(cloud, state)
        if version is None:
            wanted = " and ".join(dict.fromkeys(stacks.values()))
            yield CheckResult(SCOPE, check, Status.OK, f"none chosen yet: the first run takes the newest of {wanted}")
            continue
        wrong = {entry: wanted for entry, wanted in stacks.items() if not providers.fits(version, wanted)}
        if not wrong:
            yield CheckResult(SCOPE, check, Status.OK, version)
        for entry, wanted in wrong.items():
            fix = f"delete {providers.lock_file(cloud, state)}: the next run chooses a version again"
            yield CheckResult(SCOPE, check, Status.FAILED, f"{version}; cluster {entry} needs {wanted}", fix)


def program(needed: RequiredProgram) -> CheckResult:
    """Whether the program is on the PATH, and new enough."""
    name = needed.name
    path = shutil.which(name)
    if path is None:
        return CheckResult(
            SCOPE, name, Status.FAILED, f"not found (needed for {needed.why})", f"install it: {needed.where}"
        )
    text = _output([path, *needed.arguments])
    found = _VERSION.search(text or "")
    if found is None:
        return CheckResult(
            SCOPE, name, Status.FAILED, f"{path} does not print its version", f"reinstall it: {needed.where}"
        )
    if parse(found[1]) < needed.oldest:
        oldest = ".".join(map(str, needed.oldest))
        return CheckResult(
            SCOPE, name, Status.FAILED, f"{found[1]} (needs {oldest} or newer)", f"upgrade it: {needed.where}"
        )
    return CheckResult(SCOPE, name, Status.OK, found[1])


def kubectl(found: CheckResult, clusters: Sequence[Cluster]) -> CheckResult:
    """The result for kubectl, with a warning when it is more than one minor version away from a cluster."""
    if found.status is not Status.OK:
        return found
    own = parse(found.found)[1]
    minors = [entry.kubernetes for entry in clusters if entry.cloud in CREATED]
    far = [minor for minor in minors if abs(parse(minor)[1] - own) > 1]
    if not far:
        return found
    fix = f"install kubectl {max(far, key=parse)}: {KUBECTL.where}"
    return CheckResult(SCOPE, found.check, Status.WARNING, f"{found.found} (the cluster has {far[0]})", fix)


def node() -> CheckResult:
    """Node.js, found as synthesis finds it."""
    try:
        found = nodejs.find()
    except EnvironmentFailure as error:
        message, _, fix = str(error).rpartition(": ")
        return CheckResult(SCOPE, "node", Status.FAILED, message, fix)
    where = f" ({found.path})" if found.path else ""
    return CheckResult(SCOPE, "node", Status.OK, f"{found.version}{where}".strip())


def package(name: str) -> CheckResult:
    """Whether a Python package is installed."""
    found = _installed(name)
    if found is None:
        fix = f"pip install 'spotladder[{EXTRAS.get(name, 'infra')}]'"
        return CheckResult(SCOPE, f"package {name}", Status.FAILED, "not installed", fix)
    return CheckResult(SCOPE, f"package {name}", Status.OK, found)


def _installed(name: str) -> str | None:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return None


def _output(command: Sequence[str]) -> str | None:
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1", "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
