"""One cluster's rollout: its desired releases, their charts on this machine, and the stack that applies them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder_infra import access, terraform
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.outputs import StackIdentities, identities
from spotladder_infra.rollout import charts, good_rollouts
from spotladder_infra.rollout.components import OWN, Chart
from spotladder_infra.rollout.engine import Change, Program, PulumiStack, Watcher, resources
from spotladder_infra.rollout.foreign import check_karpenter, check_kuberay
from spotladder_infra.rollout.good_rollouts import InstalledRelease, PlatformState
from spotladder_infra.rollout.plan import Plan, plan, waves
from spotladder_infra.rollout.provider import Context, CrdsProvider, ReleaseProvider, StackResource
from spotladder_infra.rollout.release import Release, releases
from spotladder_infra.rollout.tools import Tools
from spotladder_infra.topology.cluster import WITH_STACK, Cluster
from spotladder_infra.topology.fleet import Fleet

CRDS = "crds-"
"""Prefix of the name of the resource with the CRDs of a chart."""

Report = Callable[[str, str, str], None]
"""Called with a component, its state and details: (`kuberay`, `installing`, `1.6.1`)."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The state of a cluster after a run of the engine, and whether that run changed the cluster."""

    good: PlatformState
    changed: bool


@dataclass(frozen=True, slots=True)
class RolloutSite:
    """The chosen clusters of a fleet, and the working folders of its rollout on this machine. `folder` has the charts
    of clusters without internet access."""

    fleet: Fleet
    state: Path
    folder: Path | None = None
    targets: tuple[str, ...] = ()

    def chart(self, chart: Chart) -> charts.LocalChart:
        """The chart on this machine."""
        return charts.find(chart, self.folder, self.state / "charts")

    def target(self, cluster: Cluster) -> KubeContext:
        """The context of the cluster."""
        return access.target(self.fleet, cluster, self.state)

    def home(self) -> Tools:
        """helm and kubectl of the home cluster."""
        return Tools(self.target(self.fleet.cluster(self.fleet.spec.home)))

    def platform(self, name: str) -> ClusterPlatform:
        """The platform layer of the cluster with this name."""
        return ClusterPlatform(self, self.fleet.cluster(name))

    def waves(self) -> list[list[str]]:
        """The chosen clusters in the order of the rollout."""
        return waves(self.fleet, self.targets)

    def stack(self, cluster: Cluster) -> StackIdentities | None:
        """The identities of the cluster's applied stack; None for a cluster that spotladder has not created."""
        if cluster.cloud not in WITH_STACK:
            return None
        return identities(terraform.outputs(self.fleet, cluster, self.state / "stacks", self.state))


class ClusterPlatform:
    """The platform layer of one cluster. Raises EnvironmentFailure if the cluster or a chart is unreachable."""

    def __init__(self, place: RolloutSite, cluster: Cluster) -> None:
        self.place = place
        self.cluster = cluster
        self.target = place.target(cluster)
        self.tools = Tools(self.target)
        self._desired: tuple[PlatformState, dict[str, str]] | None = None

    def desired(self) -> tuple[PlatformState, dict[str, str]]:
        """The releases in the fleet file, and the path of each chart. Charts are looked up once in a run."""
        if self._desired is None:
            self._desired = self._looked_up()
        return self._desired

    def _looked_up(self) -> tuple[PlatformState, dict[str, str]]:
        asked: Plan = plan(self.place.fleet, self.cluster, self.place.stack(self.cluster))
        found = {chart.name: self.place.chart(chart) for chart in asked.charts}
        crds = tuple((chart.name, found[chart.name].version, found[chart.name].digest) for chart in asked.crds)
        listed = tuple(
            InstalledRelease(
                step.name,
                step.release,
                step.namespace,
                step.chart.name,
                found[step.chart.name].version,
                found[step.chart.name].digest,
                json.dumps(step.values, sort_keys=True),
                0,
            )
            for step in asked.releases
        )
        self._unchanged(asked.charts, found)
        return PlatformState(listed, crds), {name: chart.path for name, chart in found.items()}

    def _unchanged(self, asked: Iterable[Chart], found: dict[str, charts.LocalChart]) -> None:
        """Raises an error if the content of a public chart without a pinned digest differs from the content that was
        installed under its version before.

        Raises:
            EnvironmentFailure: A good rollout of this cluster had another content.
        """
        unpinned = [chart.name for chart in asked if chart.source != OWN and not chart.digest]
        if self.place.folder is not None or not unpinned:
            return
        goods = good_rollouts.read(self.tools)
        for name in unpinned:
            version, digest = found[name].version, found[name].digest
            before = good_rollouts.digest_of(goods, name, version)
            if before not in ("", digest):
                raise EnvironmentFailure(
                    f"chart {name} {version} differs from the installed one (expected sha256 {before}, got "
                    f"{digest}): find out why it was replaced; if you trust {found[name].path}, roll it out once from "
                    "a folder with --charts"
                )

    def check(self) -> None:
        """Raises EnvironmentFailure if the rollout cannot succeed. Changes nothing."""
        self.desired()
        check_kuberay(self.tools, self.cluster)
        check_karpenter(self.tools, self.cluster)

    def open(self) -> None:
        """Opens the state of the rollout. Raises EnvironmentFailure."""
        self._stack({}).open()

    def preview(self) -> list[Change]:
        """The changes of a rollout, without applying them."""
        self.check()
        desired, paths = self.desired()
        made: list[Change] = []
        stack = self._stack(paths)
        stack.run(program(desired), Watcher(lambda _: None, made.append, lambda *_: None), preview=True)
        final = {change.resource: change for change in resources(made) if change.operation != "refresh"}
        return list(final.values())

    def install(self, desired: PlatformState, report: Report) -> Installed:
        """Installs these releases and CRDs, with the charts of this machine. Raises EnvironmentFailure."""
        return self._apply(desired, self._stack(self.desired()[1]), report)

    def restore(self, good: PlatformState, report: Report) -> PlatformState:
        """Restores a good rollout from Helm's history, and removes the releases that it did not have. CRDs stay.

        The result names the CRDs that the cluster has, which may be newer than those of the good rollout.
        """
        live = {name: int(entry["revision"]) for name, entry in releases(self.tools).items()}
        # All of them: a release at its good revision may have been changed by hand, and is applied again from there.
        known = {name: revision for name, revision in good.revisions.items() if name in live}
        paths = self.desired()[1] if len(known) < len(good.revisions) else {}
        made = self._apply(good, self._stack(paths, known), report).good
        for component in plan(self.place.fleet, self.cluster).releases:
            if component.release in live and component.release not in good.revisions:
                report(component.name, "removing", "")
                Release(self.tools, component.release, component.namespace).remove()
                report(component.name, "removed", "")
        return made

    def forget(self) -> None:
        """Removes the stack from the state, after everything in it was uninstalled."""
        self._stack({}).remove()

    def _apply(self, desired: PlatformState, stack: PulumiStack, report: Report) -> Installed:
        versions = {entry.resource: entry.version for entry in desired.releases}
        versions |= {f"{CRDS}{name}": version for name, version, _ in desired.crds}
        changed: list[str] = []
        crds = {name: (name, version, digest) for name, version, digest in desired.crds}

        def begins(change: Change) -> None:
            if change.resource in versions and change.operation in _DOING:
                report(change.resource, _DOING[change.operation], versions[change.resource])

        def done(change: Change) -> None:
            if change.resource not in versions:
                return
            if change.operation == "same" and (chart := change.resource.removeprefix(CRDS)) in crds:
                versions[change.resource] = change.old["version"]
                crds[chart] = (chart, change.old["version"], change.old["digest"])
            if change.operation in _DOING:
                changed.append(change.resource)
            if change.operation in (*_DOING, "same"):
                report(change.resource, "ready", versions[change.resource])

        stack.run(program(desired), Watcher(begins, done, _failed(report)))
        live = releases(self.tools)
        installed = tuple(replace(entry, revision=int(live[entry.release]["revision"])) for entry in desired.releases)
        good = PlatformState(installed, tuple(crds.values()))
        return Installed(good, bool(changed))

    def _stack(self, paths: dict[str, str], restore: dict[str, int] | None = None) -> PulumiStack:
        timeout = self.place.fleet.spec.rollout.timeout
        context = Context(self.target.kubeconfig, self.target.context, paths, timeout, restore)
        return PulumiStack(self.place.fleet, self.cluster.name, self.place.state, context)


_DOING = {
    "create": "installing",
    "update": "upgrading",
    "replace": "replacing",
    "create-replacement": "installing",
    "delete": "removing",
}


def _failed(report: Report) -> Callable[[str, str], None]:
    return lambda resource, message: report(resource, "failed", message)


def program(desired: PlatformState) -> Program:
    """The stack: each release after the one before it and after the CRDs of its own chart. The first one also waits for
    the CRDs of charts that are no release, which all may use. So the pools do not wait for KubeRay's CRDs.
    """

    def declare() -> None:
        from pulumi import Resource, ResourceOptions  # noqa: PLC0415 – slow to import

        crds: dict[str, Resource] = {
            name: StackResource(CrdsProvider(), f"{CRDS}{name}", {"chart": name, "version": version, "digest": digest})
            for name, version, digest in desired.crds
        }
        released = {entry.chart for entry in desired.releases}
        before = [made for name, made in crds.items() if name not in released]
        for entry in desired.releases:
            own = [crds[entry.chart]] if entry.chart in crds else []
            after = ResourceOptions(depends_on=[*before, *own])
            before = [StackResource(ReleaseProvider(), entry.resource, entry.inputs, after)]

    return declare
