"""One Helm release: install, restore an earlier revision, compare with the running objects, remove. A failed revision
stays, so that its pods and events can be inspected; the next run continues from it. A pending revision whose process is
gone is removed first: Helm refuses any operation while a revision is pending.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass

from spotladder.errors import EnvironmentFailure
from spotladder.local.reaper import alive
from spotladder_infra.programs import CommandFailure
from spotladder_infra.rollout import ready
from spotladder_infra.rollout.components import NAMESPACES
from spotladder_infra.rollout.tools import Object, Tools

HISTORY = 20
"""Revisions that Helm keeps of a release: those of the last good rollouts must be among them."""

PENDING = "another operation (install/upgrade/rollback) is in progress"
"""Helm's message when a revision of the release is pending."""

_LIVE = "{{.Release.Version}} {{.Release.Info.Status}} {{.Release.Chart.Metadata.Version}}\n{{.Release.Manifest}}"
"""Revision, status and version of a release in one line, then its manifest: one call of helm in place of two."""

HOST_LABEL = "spotladder-host"
PROCESS_LABEL = "spotladder-process"
"""Labels of the revisions that a rollout creates: the machine and the process that created them."""


@dataclass(frozen=True, slots=True)
class LiveRelease:
    """A release as it is in the cluster. `revision` is 0 for a release that is not installed."""

    revision: int = 0
    status: str = ""
    version: str = ""
    manifest: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of a cluster."""

    tools: Tools
    name: str
    namespace: str

    def install(self, chart: str, values: str, timeout: float) -> int:
        """Installs or upgrades it, and waits until its workloads are ready. Returns the revision.

        Args:
            chart: Path of the chart.
            values: JSON.
            timeout: Seconds for the workloads to become ready.

        Raises:
            EnvironmentFailure: Helm refuses, or the workloads do not become ready. The failed state is left in place.
        """
        labels = f"{HOST_LABEL}={_host()},{PROCESS_LABEL}={os.getpid()}"
        command = (
            "upgrade", "--install", self.name, chart, "--values", "-", "--create-namespace", "--skip-crds",
            f"--history-max={HISTORY}", f"--labels={labels}", "--server-side=true", "--force-conflicts",
            "--output", "json",
        )  # fmt: skip
        try:
            made = self._helm(*command, given=values)
        except CommandFailure as failure:
            if PENDING not in str(failure):
                raise
            self.clear_pending()
            made = self._helm(*command, given=values)
        found = json.loads(made)
        self._ready(found.get("manifest", ""), found["chart"]["metadata"]["version"], timeout)
        return int(found["version"])

    def restore(self, revision: int, timeout: float) -> int:
        """Restores a revision of Helm's history, and waits until it is ready. Returns the new revision."""
        self.clear_pending()
        self._helm("rollback", self.name, str(revision), f"--history-max={HISTORY}", "--force-conflicts")
        live = self.live()
        self._ready(live.manifest, live.version, timeout)
        return live.revision

    def _ready(self, manifest: str, version: str, timeout: float) -> None:
        """Waits until the workloads of the manifest are ready. Raises EnvironmentFailure."""
        try:
            ready.wait(self.tools, ready.workloads(manifest, self.namespace), timeout)
        except EnvironmentFailure as error:
            raise EnvironmentFailure(f"{self.name} {version}: {error}") from None

    def live(self) -> LiveRelease:
        """The release as Helm knows it."""
        try:
            found = self._helm("get", "all", self.name, "--template", _LIVE)
        except CommandFailure as error:
            if "release: not found" in str(error):  # a missing credentials program is also "not found"
                return LiveRelease()
            raise
        line, _, manifest = found.partition("\n")
        revision, status, version = line.split(" ", maxsplit=2)
        return LiveRelease(int(revision), status, version, manifest)

    def drift(self, live: LiveRelease, expected: int) -> list[str]:
        """How the release differs from the one with the revision `expected`, and its objects from its manifest."""
        found = []
        if expected and live.revision != expected:
            found.append(f"revision {live.revision} (expected {expected})")
        if live.status != "deployed":
            found.append(f"status {live.status}")
        return found + self.tools.changes(live.manifest, self.namespace)

    def installed_by_a_rollout(self) -> bool:
        """Whether a rollout has made one of the revisions that Helm keeps."""
        selector = f"owner=helm,name={self.name},{HOST_LABEL}"
        return bool(self.tools.items("secrets", "--namespace", self.namespace, "--selector", selector))

    def remove(self) -> None:
        """Uninstalls it and waits until its objects are gone. Does nothing for a release that is not installed."""
        self.clear_pending()
        self._helm("uninstall", self.name, "--ignore-not-found", "--wait")

    def clear_pending(self) -> None:
        """Removes a pending revision whose process is gone.

        Raises:
            EnvironmentFailure: Another process, or another machine, changes the release at this moment.
        """
        selector = f"owner=helm,name={self.name},status in (pending-install,pending-upgrade,pending-rollback)"
        for secret in self.tools.items("secrets", "--namespace", self.namespace, "--selector", selector):
            labels = secret["metadata"].get("labels", {})
            host, process = labels.get(HOST_LABEL), labels.get(PROCESS_LABEL, "")
            where = f"release {self.name} in namespace {self.namespace}"
            revision = f"revision {labels.get('version')}, {labels.get('status')}"
            if host != _host():
                raise EnvironmentFailure(
                    f"{where} is being changed by another helm ({revision}): wait until it has ended; if it was "
                    f"killed, delete the Secret {secret['metadata']['name']}"
                )
            if process.isdigit() and int(process) != os.getpid() and alive(int(process)):
                raise EnvironmentFailure(f"{where} is being changed by process {process} ({revision}): wait for it")
            self.tools.kubectl("delete", "secret", secret["metadata"]["name"], "--namespace", self.namespace)

    def _helm(self, *arguments: str, given: str | None = None) -> str:
        return self.tools.helm(*arguments, "--namespace", self.namespace, given=given)


def _host() -> str:
    """A label for this machine."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:16]


def releases(tools: Tools) -> dict[str, Object]:
    """The releases of a cluster in the namespaces of the platform by name, as `helm list` shows them. Users may have
    releases of the same names in theirs."""
    text = tools.helm("list", "--all-namespaces", "--max=1000", "-o", "json")
    listed: list[Object] = json.loads(text or "[]")
    return {entry["name"]: entry for entry in listed if entry["namespace"] in NAMESPACES}
