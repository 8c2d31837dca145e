"""Applies a change to the clusters of a fleet in waves, and stops at the first failure.

A cluster is good when its releases are ready and its smoke job has succeeded. The next wave begins when all clusters of
the previous wave are good. After a failure, completed changes stay: run the same command again to continue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from spotladder.errors import EnvironmentFailure, InvalidSpec, SpotladderError
from spotladder_infra.rollout import good_rollouts, link, smoke
from spotladder_infra.rollout import upgrade as held
from spotladder_infra.rollout.cluster_rollout import ClusterPlatform, Installed, Report, RolloutSite
from spotladder_infra.rollout.inspection import inspect_all
from spotladder_infra.rollout.plan import plan
from spotladder_infra.rollout.release import releases
from spotladder_infra.rollout.tools import Object, Tools

SMOKE = "smoke job"
LINK = "link"


class ClusterOutcome(StrEnum):
    """The outcome for a cluster. It is unchanged if it was good before and nothing was installed."""

    GOOD = "good"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    UNTOUCHED = "not begun"


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The outcome of one cluster; `message` says why it failed, or which rollout was restored.

    A failure is `final` when the same command would fail again; its message then has another remedy.
    """

    cluster: str
    outcome: ClusterOutcome
    message: str = ""
    final: bool = False


Progress = Callable[[str, str, str, str], None]
"""Called with a cluster, a component, its state and details. From several threads, one call at a time."""


def rollout(place: RolloutSite, proof: Object | None, progress: Progress) -> list[ClusterResult]:
    """Installs the state in the fleet file in the clusters. `proof` is the smoke job; None without one.

    Raises:
        InvalidSpec: The chosen clusters cannot be rolled out in this order.
        EnvironmentFailure: A chart or a cluster is unreachable, or the cluster has another KubeRay; nothing was
            changed.
    """
    platforms = {name: place.platform(name) for wave in place.waves() for name in wave}
    home = place.home()
    _home_first(place, home)
    _check(platforms, place.fleet.spec.rollout.concurrency)

    def install(name: str, report: Report) -> tuple[ClusterPlatform, Installed]:
        platform = platforms[name]
        installed = platform.install(platform.desired()[0], report)
        if name != place.fleet.spec.home:
            report(LINK, "installing", "")
            link.link(home, platform.tools, name)
            report(LINK, "ready", "")
        return platform, installed

    return _in_waves(place, proof, progress, install)


def upgrade(place: RolloutSite, progress: Progress) -> list[ClusterResult]:
    """Upgrades the clusters in waves, while their nodes are held. Raises as `rollout` does."""
    home = place.home()

    def install(name: str, report: Report) -> tuple[ClusterPlatform, Installed]:
        platform = place.platform(name)
        return platform, Installed(held.upgrade(platform, home, report), changed=True)

    return _in_waves(place, None, progress, install)


def _in_waves(
    place: RolloutSite,
    proof: Object | None,
    progress: Progress,
    install: Callable[[str, Report], tuple[ClusterPlatform, Installed]],
) -> list[ClusterResult]:
    """Calls `install` for each cluster, runs its smoke job and records it as good."""
    lock = threading.Lock()

    def one(name: str) -> ClusterResult:
        def report(component: str, state: str, details: str) -> None:
            with lock:
                progress(name, component, state, details)

        try:
            platform, installed = install(name, report)
            proved = _smoke(platform, proof, report)
            new = good_rollouts.add(platform.tools, replace(installed.good, at=_now(), smoke=proved))
        except SpotladderError as error:
            return _failed(name, error)
        return ClusterResult(name, ClusterOutcome.GOOD if installed.changed or new else ClusterOutcome.UNCHANGED)

    return run_waves(place.waves(), place.fleet.spec.rollout.concurrency, one)


def run_waves(
    ordered: Sequence[Sequence[str]], concurrency: int, one: Callable[[str], ClusterResult]
) -> list[ClusterResult]:
    """Calls `one` for each cluster, in waves; starts no further cluster after a failure."""
    results: dict[str, ClusterResult] = {
        name: ClusterResult(name, ClusterOutcome.UNTOUCHED) for wave in ordered for name in wave
    }
    stopped = threading.Event()

    def guarded(name: str) -> ClusterResult:
        if stopped.is_set():
            return results[name]
        found = one(name)
        if found.outcome is ClusterOutcome.FAILED:
            stopped.set()
        return found

    for wave in ordered:
        if stopped.is_set():
            break
        with ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="rollout") as pool:
            try:
                for found in pool.map(guarded, wave):
                    results[found.cluster] = found
            except KeyboardInterrupt:
                stopped.set()
                raise
    return list(results.values())


def rollback(place: RolloutSite, progress: Progress) -> list[ClusterResult]:
    """Restores the last good rollout of each cluster: one after the other, the home cluster last."""
    results = []
    for name in (name for wave in reversed(place.waves()) for name in reversed(wave)):
        try:
            message = _back(place.platform(name), lambda *change, at=name: progress(at, *change))
            results.append(ClusterResult(name, ClusterOutcome.GOOD, message))
        except SpotladderError as error:
            results.append(_failed(name, error))
    return results


def _failed(cluster: str, error: SpotladderError) -> ClusterResult:
    final = isinstance(error, good_rollouts.NoGoodRollout | InvalidSpec)
    return ClusterResult(cluster, ClusterOutcome.FAILED, str(error), final)


def _back(platform: ClusterPlatform, report: Report) -> str:
    goods = good_rollouts.read(platform.tools)
    ours = {step.release for step in plan(platform.place.fleet, platform.cluster).releases}
    ours |= {name for good in goods for name in good.revisions}
    live = {name: int(entry["revision"]) for name, entry in releases(platform.tools).items() if name in ours}
    wanted = good_rollouts.target(goods, live)
    if wanted is None:
        name = platform.cluster.name
        why = f"its only good rollout, of {goods[-1].at}, is installed" if goods else "none was good yet"
        raise good_rollouts.NoGoodRollout(
            f"cluster {name}: there is no earlier good rollout to go back to ({why}): correct the fleet file and run "
            f"spotladder infra rollout --cluster {name}; spotladder infra destroy --cluster {name} removes what a "
            "rollout has installed"
        )
    made = platform.restore(wanted, report)
    kept = goods[: goods.index(wanted)]
    good_rollouts.write(platform.tools, [*kept, replace(made, at=_now(), smoke=wanted.smoke)])
    return f"as of {wanted.at}"


def _smoke(platform: ClusterPlatform, proof: Object | None, report: Report) -> bool:
    """Whether the smoke job has succeeded in a cluster; False without a job or without pools for it."""
    document = None if proof is None else smoke.job(proof, platform.cluster)
    asked = platform.place.fleet.spec.rollout.smoke
    if document is None or asked is None:
        return False
    report(SMOKE, "running", "")
    try:
        smoke.run(platform.place.home(), document, asked.timeout, lambda text: report(SMOKE, "running", text))
    except EnvironmentFailure as error:
        report(SMOKE, "failed", str(error))
        raise
    report(SMOKE, "ready", "succeeded")
    return True


def _check(platforms: Mapping[str, ClusterPlatform], concurrency: int) -> None:
    """Checks all clusters before the rollout, `concurrency` at the same time, and opens their states.

    Raises:
        EnvironmentFailure: The rollout cannot succeed in some clusters (one line for each), or Pulumi does not run.
    """
    from spotladder_infra.rollout import automation  # noqa: PLC0415 – slow to import

    automation.command()  # once, before the threads
    for platform in platforms.values():
        platform.desired()  # one after the other, so that a chart is downloaded once

    def check(name: str) -> list[str]:
        platforms[name].check()
        platforms[name].open()
        return []

    _, failures = inspect_all(list(platforms), concurrency, check)
    if failures:
        raise EnvironmentFailure("\n".join(failures))


def _home_first(place: RolloutSite, home: Tools) -> None:
    """The controller at home must have been rolled out before, or be in the first wave: the others depend on it."""
    name, ordered = place.fleet.spec.home, place.waves()
    if not ordered or name in ordered[0] or good_rollouts.read(home):
        return
    raise InvalidSpec(
        f"the home cluster {name} has no good rollout yet: put it first, into spec.rollout.canary", path="spec.rollout"
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
